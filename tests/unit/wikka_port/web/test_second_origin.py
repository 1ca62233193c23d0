"""``--files-url``: files that everybody may read come from a second origin, at which there is nothing else."""

from __future__ import annotations

import pytest

from tests.support.file_forms import PNG, upload
from tests.support.wiki_client import WikiClient
from wikka_port.config import FileConfig
from wikka_port.rights.rules import PageRights, Privilege

FILES = "files.example"
AT_FILES = {"base_url": f"http://{FILES}/"}


@pytest.fixture
def web() -> WikiClient:
    made = WikiClient(files=FileConfig(origin=f"http://{FILES}"))
    made.wiki.save("HomePage", "[[b.png]]", author="Ann", base=0)
    upload(made, ("b.png", PNG))
    upload(made, ("a b.txt", b"one"))
    return made


def test_a_public_file_is_led_to_the_second_origin_and_served_there(web: WikiClient) -> None:
    led = web.get("/HomePage/files/B.png?v=1&w=320&other=x")
    assert (led.status_code, led.headers["Location"]) == (302, f"http://{FILES}/HomePage/files/b.png?v=1&w=320")
    assert led.headers["Cache-Control"] == "private, no-cache"
    assert web.get("/HomePage/files/a%20b.txt").headers["Location"].startswith(f"http://{FILES}/HomePage/files/a")
    got = web.get("/HomePage/files/b.png?v=1", **AT_FILES)
    assert (got.status_code, got.data, got.headers["Content-Type"]) == (200, PNG, "image/png")
    assert got.headers["Cross-Origin-Resource-Policy"] == "cross-origin"
    assert "sandbox" in got.headers["Content-Security-Policy"]
    assert "Set-Cookie" not in got.headers
    assert web.get("/HomePage/files/none.png").status_code == 404
    assert f"http://{FILES}" in web.get("/HomePage").headers["Content-Security-Policy"]
    assert "Location" not in WikiClient(web.wiki).get("/HomePage/files/b.png").headers, "without the option"


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/HomePage", "/HomePage/edit", "/-/login", "/-/search?q=a", "/api/titles", "/api/v1/page?name=HomePage"),
        *("/-/static/wiki.css", "/robots.txt", "/HomePage/files", "/HomePage/file?file=b.png"),
        "/HomePage/files/none.png",
    ],
)
def test_there_is_nothing_else_at_the_second_origin(web: WikiClient, path: str) -> None:
    got = web.get(path, **AT_FILES)
    assert (got.status_code, got.headers["Content-Type"]) == (404, "text/plain; charset=utf-8")
    assert "Set-Cookie" not in got.headers
    assert web.client.post(path, **AT_FILES).status_code in (404, 405)
    assert web.get("/health", **AT_FILES).status_code == 200


def test_files_of_other_pages_stay_at_the_wiki(web: WikiClient) -> None:
    rita = web.signed_in("Rita")
    web.wiki.save("Own", "Rita's", author="Rita", base=0, owner="Rita")
    upload(rita, ("s.txt", b"secret"), page="/Own")
    web.wiki.rights.change("Own", PageRights("Rita"), "Rita", {Privilege.READ: "Rita"})
    assert rita.get("/Own/files/s.txt").data == b"secret"
    assert web.get("/Own/files/s.txt").status_code == 403
    for one in (web, rita):
        one.client.set_cookie("wikka_session", "x", domain=FILES)
        got = one.get("/Own/files/s.txt", **AT_FILES)
        assert (got.status_code, b"secret" in got.data) == (403, False)
        assert one.get("/Own/files/none.txt", **AT_FILES).status_code == 403, "nobody learns which files there are"
