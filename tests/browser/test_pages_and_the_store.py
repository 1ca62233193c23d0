"""What web pages can do to a store on loopback: nothing, unless their origin is allowed by name."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.ports import free_port
from tests.support.standalone_store import StoreProcess

PAGE = b"<!doctype html><title>a page</title>"
# Sends a message as bytes in every way that needs no leave, and in one that does; what could be read comes back.
SEND = """
async ([url, message, types, mode]) => {
  const heard = [];
  for (const type of types) {
    try {
      const body = new Blob([new Uint8Array(message)], type ? {type} : {});
      const answer = await fetch(url, {method: "POST", mode, body});
      heard.push(answer.status + " " + new TextDecoder("latin1").decode(await answer.arrayBuffer()));
    } catch (error) {
      heard.push("" + error.name);
    }
  }
  return heard;
}
"""
READ = """async url => { try { return await (await fetch(url)).text() } catch (error) { return "" + error.name } }"""
SIMPLE = ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
THRIFT = "application/x-thrift"


def message(method: bytes, *texts: bytes) -> list[int]:
    args = b"".join(b"\x0b\x00" + bytes([n]) + len(one).to_bytes(4, "big") + one for n, one in enumerate(texts, 1))
    return list(b"\x80\x01\x00\x01" + len(method).to_bytes(4, "big") + method + b"\0\0\0\1" + args + b"\0")


class _Pages(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(PAGE)

    def log_message(self, *_: Any) -> None:
        """Nobody reads it."""


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    """Another origin on this machine."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Pages) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    context = browser.new_context()
    yield context.new_page()
    context.close()


class Store(StoreProcess):
    def __init__(self, folder: Path, *flags: str) -> None:
        self.web_port = free_port()
        super().__init__(folder, "--web-port", str(self.web_port), *flags)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def tables(self) -> dict[bytes, bool]:
        connection = self.connection()
        try:
            return {name: connection.is_table_enabled(name) for name in connection.tables()}
        finally:
            connection.close()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, browser: Any) -> Iterator[Store]:
    with Store(tmp_path_factory.mktemp("pages") / "data") as running:
        connection = running.connection()
        connection.create_table("secret", {"f": {}})
        connection.close()
        yield running


def test_a_page_of_another_origin_neither_reads_nor_changes(page: Any, site: str, store: Store) -> None:
    page.goto(site)
    for mode in ("no-cors", "cors"):
        drop = page.evaluate(SEND, [store.url, message(b"disableTable", b"secret"), SIMPLE, mode])
        read = page.evaluate(SEND, [store.url, message(b"getTableNames"), SIMPLE, mode])
        assert not any("secret" in one for one in [*drop, *read])
    assert page.evaluate(SEND, [store.url, message(b"disableTable", b"secret"), [THRIFT], "cors"]) == ["TypeError"]
    assert page.evaluate(READ, f"http://127.0.0.1:{store.web_port}/") == "TypeError"
    page.set_content(f"<form method=post enctype=text/plain action='{store.url}'><input name=x></form>")
    page.evaluate("document.forms[0].submit()")
    assert store.tables() == {b"secret": True}


def test_a_name_that_was_made_to_lead_here_is_not_answered(page: Any, store: Store) -> None:
    """The page comes from its own server, and its name leads to this machine when it asks again."""
    for port in (store.port, store.web_port):
        origin = f"http://rebound.example:{port}"
        page.route(f"{origin}/page", lambda route: route.fulfill(body=PAGE.decode(), content_type="text/html"))
        page.goto(f"{origin}/page")
        assert "rebound.example" in page.evaluate(READ, f"{origin}/")
        (heard,) = page.evaluate(SEND, [f"{origin}/", message(b"disableTable", b"secret"), [THRIFT], "cors"])
        assert heard.startswith("403 ")
    assert store.tables() == {b"secret": True}


def test_an_origin_that_is_allowed_by_name_may(page: Any, site: str, tmp_path: Path) -> None:
    with Store(tmp_path / "data", "--allow-origin", site) as store:
        connection = store.connection()
        connection.create_table("open", {"f": {}})
        connection.close()
        page.goto(site)
        heard = page.evaluate(SEND, [store.url, message(b"getTableNames"), [THRIFT, "text/plain"], "cors"])
        assert [("open" in one, one[:4]) for one in heard] == [(True, "200 "), (True, "200 ")]
        page.evaluate(SEND, [store.url, message(b"disableTable", b"open"), [THRIFT], "cors"])
        assert store.tables() == {b"open": False}
        page.goto(site.replace("127.0.0.1", "localhost"))
        assert page.evaluate(SEND, [store.url, message(b"getTableNames"), [THRIFT], "cors"]) == ["TypeError"]


def test_a_person_sees_the_status_page(page: Any, store: Store) -> None:
    for host in ("127.0.0.1", "localhost"):
        page.goto(f"http://{host}:{store.web_port}/")
        assert page.locator("body").inner_text().count("secret") >= 1
