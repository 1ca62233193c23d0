"""Files of pages over HTTP: added, listed, downloaded, replaced, described, removed, brought back."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest

from tests.support.exported_wiki import png_of
from tests.support.file_forms import CONTENT_TYPE, PNG, multipart, send_files, upload
from tests.support.wiki_client import WikiClient
from wikka_port.files.content_types import SANDBOX
from wikka_port.handlers import files as files_handler
from wikka_port.rights.rules import PageRights, Privilege

TEXT = b"a,b\n1,2\n"
LONG = b"".join(b"line %07d\n" % n for n in range(200_000))  # more than two chunks


@pytest.fixture
def web() -> WikiClient:
    made = WikiClient()
    made.wiki.save("HomePage", "A text.", author="Ann", base=0)
    return made


def test_a_file_is_added_listed_and_downloaded(web: WikiClient) -> None:
    answer = upload(web, ("Table.csv", TEXT), note="for you")
    assert (answer.status_code, answer.headers["Location"]) == (303, "/HomePage/file?file=Table.csv")
    assert "for you" in web.get("/HomePage/file?file=Table.csv").text
    assert "Table.csv" in web.get("/HomePage/files").text
    assert "1 file" in web.get("/HomePage").text
    got = web.get("/HomePage/files/Table.csv")
    assert (got.status_code, got.data, got.headers["Content-Type"]) == (200, TEXT, "text/plain; charset=utf-8")
    assert got.headers["Content-Disposition"] == 'inline; filename="Table.csv"'
    assert got.headers["Content-Security-Policy"] == SANDBOX
    assert got.headers["X-Content-Type-Options"] == "nosniff"


def test_several_files_come_with_one_form(web: WikiClient) -> None:
    answer = upload(web, ("a.txt", b"one"), ("b.png", PNG), ("evil.exe", b"MZ\x00\x01"), ("c.txt", b"three"))
    assert answer.status_code == 400
    assert "<strong>evil.exe</strong> was not added" in answer.text
    assert "3 other files are added" in answer.text
    assert [web.get(f"/HomePage/files/{name}").data for name in ("a.txt", "b.png", "c.txt")] == [b"one", PNG, b"three"]


def test_a_name_that_is_taken_is_replaced_only_if_wished(web: WikiClient) -> None:
    upload(web, ("a.txt", b"one"))
    refused = upload(web, ("A.TXT", b"two"))
    assert (refused.status_code, "has a file of this name" in refused.text) == (400, True)
    assert web.get("/HomePage/files/a.txt").data == b"one"
    assert upload(web, ("A.TXT", b"two"), replace="yes").status_code == 303
    assert web.get("/HomePage/files/a.txt").data == b"two"
    assert web.get("/HomePage/files/a.txt?v=1").data == b"one"
    assert web.get("/HomePage/files/a.txt?v=3").status_code == 404
    assert web.get("/HomePage/files/A.TXT?v=1").headers["Location"] == "/HomePage/files/a.txt?v=1"


def test_files_for_a_page_that_redirects_are_its_targets(web: WikiClient) -> None:
    web.wiki.save("Old", "#REDIRECT [[HomePage]]", author="Ann", base=0)
    first = upload(web, ("a.txt", b"one"), page="/Old")
    assert (first.status_code, first.headers["Location"]) == (303, "/HomePage/file?file=a.txt")
    assert web.get("/HomePage/files/a.txt").data == b"one"
    refused = upload(web, ("A.txt", b"two"), page="/Old")
    assert (refused.status_code, "has a file of this name" in refused.text) == (400, True)
    assert 'action="/HomePage/files"' in refused.text, "the form that comes back is the target's"
    assert upload(web, ("A.txt", b"two"), page="/Old", replace="yes").status_code == 303
    assert web.get("/HomePage/files/a.txt").data == b"two"
    more = upload(web, ("b.txt", b"one"), ("c.txt", b"two"), page="/Old")
    assert more.headers["Location"] == "/HomePage/files?added=2"
    assert web.wiki.files.files_of("Old") == {}
    web.wiki.save("Older", "#REDIRECT [[Old]]", author="Ann", base=0)
    assert upload(web, ("d.txt", b"far"), page="/Older").headers["Location"] == "/HomePage/file?file=d.txt"
    for name, circle in (("Round", "About"), ("About", "Over"), ("Over", "Round")):
        web.wiki.save(name, f"#REDIRECT [[{circle}]]", author="Ann", base=0)
    assert upload(web, ("e.txt", b"own"), page="/Round").headers["Location"] == "/Round/file?file=e.txt"
    web.wiki.save("Hers", "Rita's", author="Rita", base=0, owner="Rita")
    web.wiki.save("Lent", "#REDIRECT [[Hers]]", author="Ann", base=0)
    for right, status in ((Privilege.WRITE, 403), (Privilege.READ, 403)):
        web.wiki.rights.change("Hers", web.wiki.page("Hers").rights, "Rita", {right: "Rita"})
        web.wiki.clock_s += 1_000
        assert upload(web, ("f.txt", b"mine"), page="/Lent").status_code == status
    assert web.wiki.files.files_of("Hers") == {}


def test_a_newer_version_of_a_file_that_changed_meanwhile_is_refused(web: WikiClient) -> None:
    upload(web, ("a.txt", b"one"))
    form = web.form("/HomePage/file?file=a.txt")
    upload(web, ("a.txt", b"two"), replace="yes")
    assert upload(web, ("x.txt", b"three"), replaces=form["replaces"]).status_code == 400
    assert web.get("/HomePage/files/a.txt").data == b"two"
    form = web.form("/HomePage/file?file=a.txt")
    assert upload(web, ("x.txt", b"three"), replaces=form["replaces"]).status_code == 303
    assert web.get("/HomePage/files/a.txt").data == b"three"


def test_a_removed_file_can_be_brought_back(web: WikiClient) -> None:
    upload(web, ("a.txt", b"one"))
    form = web.form("/HomePage/file?file=a.txt")
    answer = web.post("/HomePage/file?file=a.txt", {**form, "remove": "1", "note": "wrong"})
    assert answer.status_code == 303
    assert web.get("/HomePage/files/a.txt").status_code == 404
    assert "1 removed file" in web.get("/HomePage/files").text
    shown = web.get("/HomePage/file?file=a.txt")
    assert "was removed" in shown.text
    assert "wrong" in shown.text
    assert web.post("/HomePage/file?file=a.txt", {**web.form_of(shown), "restore": "1"}).status_code == 303
    assert web.get("/HomePage/files/a.txt").data == b"one"
    assert web.post("/HomePage/file?file=a.txt", {**web.form_of(shown), "remove": "1"}).status_code == 409, "old form"
    assert web.get("/HomePage/files/a.txt").data == b"one"


def test_a_picture_gets_a_description(web: WikiClient) -> None:
    upload(web, ("b.png", PNG), alt="a dot")
    shown = web.get("/HomePage/file?file=b.png")
    assert 'alt="a dot"' in shown.text
    assert 'width="1" height="1"' in shown.text
    web.post("/HomePage/file?file=b.png", {**web.form_of(shown), "describe": "1", "alt": "a  red\tdot", "note": ""})
    assert 'alt="a red dot"' in web.get("/HomePage/file?file=b.png").text
    assert "[[b.png]]" in web.get("/HomePage/file?file=b.png").text


@pytest.mark.parametrize(
    ("header", "status", "span"),
    [
        ("bytes=0-9", 206, (0, 10)),
        ("bytes=1048570-1048585", 206, (1_048_570, 1_048_586)),
        ("bytes=-5", 206, (len(LONG) - 5, len(LONG))),
        ("bytes=2000000-", 206, (2_000_000, len(LONG))),
        ("bytes=0-1,5-6", 200, (0, len(LONG))),
        ("lines=1-2", 200, (0, len(LONG))),
    ],
)
def test_parts_of_a_file(web: WikiClient, header: str, status: int, span: tuple[int, int]) -> None:
    upload(web, ("long.txt", LONG))
    got = web.get("/HomePage/files/long.txt", headers={"Range": header})
    assert (got.status_code, got.data) == (status, LONG[slice(*span)])
    assert got.headers["Content-Length"] == str(span[1] - span[0])
    if status == 206:
        assert got.headers["Content-Range"] == f"bytes {span[0]}-{span[1] - 1}/{len(LONG)}"


def test_a_client_that_has_a_file_does_not_get_it_again(web: WikiClient) -> None:
    upload(web, ("long.txt", LONG))
    got = web.client.head("/HomePage/files/long.txt")
    assert (got.data, got.headers["Content-Length"]) == (b"", str(len(LONG)))
    etag = got.headers["ETag"]
    again = web.get("/HomePage/files/long.txt", headers={"If-None-Match": etag})
    assert (again.status_code, again.data) == (304, b"")
    beyond = web.get("/HomePage/files/long.txt", headers={"Range": "bytes=9999999-"})
    assert (beyond.status_code, beyond.headers["Content-Range"]) == (416, f"bytes */{len(LONG)}")
    other = web.get("/HomePage/files/long.txt", headers={"Range": "bytes=0-1", "If-Range": '"other"'})
    assert (other.status_code, len(other.data)) == (200, len(LONG))


def test_rights_are_those_of_the_page(web: WikiClient) -> None:
    rita = web.signed_in("Rita")
    web.wiki.save("Own", "Rita's", author="Rita", base=0, owner="Rita")
    upload(rita, ("a.txt", b"one"), page="/Own")
    web.wiki.rights.change("Own", PageRights("Rita"), "Rita", {Privilege.WRITE: "Rita"})
    assert web.get("/Own/files/a.txt").data == b"one"
    assert "Upload" not in web.get("/Own/files").text
    assert send_files(web, "/Own", {"csrf": web.form("/HomePage/files")["csrf"]}, ("b.txt", b"two")).status_code == 403
    form = {"csrf": web.form("/HomePage/files")["csrf"], "seen": rita.form("/Own/file?file=a.txt")["seen"]}
    assert web.post("/Own/file?file=a.txt", {**form, "remove": "1"}).status_code == 403
    web.wiki.rights.change("Own", web.wiki.page("Own").rights, "Rita", {Privilege.READ: "Rita"})
    answers = [web.get(path) for path in ("/Own/files", "/Own/files/a.txt", "/Own/files/b.txt", "/Own/file?file=a.txt")]
    assert {one.status_code for one in answers} == {403}
    assert not any("a.txt" in one.text for one in answers[:3]), "nobody learns which files there are"
    assert rita.get("/Own/files/a.txt").data == b"one"


def test_a_form_without_a_token_adds_nothing(web: WikiClient) -> None:
    assert send_files(web, "/HomePage", {"csrf": "0.0"}, ("b.txt", b"two")).status_code == 403
    assert web.post("/HomePage/files", {"csrf": "0.0"}).status_code == 403
    assert web.post("/HomePage/files", web.form("/HomePage/files")).status_code == 400, "no file was chosen"
    assert "b.txt" not in web.get("/HomePage/files").text
    assert web.wiki.files.uploads("") == []


def test_a_form_that_breaks_off_leaves_nothing(web: WikiClient) -> None:
    token = web.form("/HomePage/files")["csrf"]
    whole = multipart({"csrf": token}, ("a.txt", LONG))
    half = io.BytesIO(whole[: len(whole) - 100])
    for length in (len(whole) - 100, len(whole)):  # a form without its end, and a connection that was cut
        half.seek(0)
        answer = web.client.post("/HomePage/files", input_stream=half, content_type=CONTENT_TYPE, content_length=length)
        assert answer.status_code == 400
    assert "a.txt" not in web.get("/HomePage/files").text
    assert not list(web.wiki.rows.scan(b"uploads"))
    assert not list(web.wiki.rows.scan(b"chunks"))


def test_a_page_that_is_not_there_has_no_files(web: WikiClient) -> None:
    assert "This page is not saved yet." in web.get("/Nothing/files").text
    assert web.get("/Nothing/files/a.txt").status_code == 404
    assert web.get("/Nothing/file?file=a.txt").status_code == 404
    assert web.get("/HomePage/file?file=a.txt").status_code == 404


def test_a_file_over_the_bound_is_refused(web: WikiClient) -> None:
    small = WikiClient(web.wiki, files=replace(web.config.files, bytes_max=1000))
    small.wiki.files.config = small.config.files
    answer = upload(small, ("a.txt", b"x" * 1001), ("b.txt", b"y" * 1000))
    assert answer.status_code == 400
    assert "too large" in answer.text
    assert small.get("/HomePage/files/a.txt").status_code == 404
    assert small.get("/HomePage/files/b.txt").data == b"y" * 1000


def test_addresses_of_wikkawiki_lead_to_the_file(web: WikiClient) -> None:
    got = web.get("/HomePage/files.xml?action=download&file=a%20b.txt")
    assert (got.status_code, got.headers["Location"]) == (301, "/HomePage/files/a%20b.txt")
    assert web.get("/HomePage/files.xml?action=delete&file=a.txt").headers["Location"] == "/HomePage/file?file=a.txt"
    assert web.get("/HomePage/files.xml").headers["Location"] == "/HomePage/files"


def test_file_addresses_with_odd_names(web: WikiClient) -> None:
    upload(web, ("Ünï 50% #1.txt", b"odd"))
    html = web.get("/HomePage/files").text
    assert "/HomePage/files/%C3%9Cn%C3%AF%2050-%20-1.txt" in html, "the name is cleaned"
    assert web.get("/HomePage/files/%C3%9Cn%C3%AF%2050-%20-1.txt").data == b"odd"


def test_the_list_shows_small_versions_of_pictures_however_large(web: WikiClient) -> None:
    large = png_of(1_200, 900) + b"\0" * 2_000_000  # of more bytes than a list fetches whole
    upload(web, ("large.png", large), ("small.png", PNG), **{"keep-metadata": "yes"})
    shown = re.findall(r'class="thumb"[^>]*><img src="([^"]*)"', web.get("/HomePage/files").text)
    assert [*dict.fromkeys(shown)] == ["/HomePage/files/large.png?v=1&amp;w=320", "/HomePage/files/small.png?v=1"]


def test_the_page_of_a_file_names_the_pages_that_use_it(web: WikiClient) -> None:
    upload(web, ("b.png", PNG), ("c.png", PNG + b"x"))
    shown = web.get("/HomePage/file?file=b.png").text
    assert "No page uses this file." in shown
    assert "use this file. If" not in shown
    web.wiki.save("HomePage", "[[B.png]]", author="Ann", base=1)
    web.wiki.save("HomePage/Sub", "{{image src='b.png'}}", author="Ann", base=0)
    web.wiki.save("Other", "[[b.png]] [[file:HomePage/c.png]]", author="Ann", base=0)
    shown = web.get("/HomePage/file?file=b.png").text
    assert "2 pages use this file." in shown
    assert 'href="/HomePage~2FSub"' in shown
    assert "/Other" not in shown
    assert "1 page uses this file." in web.get("/HomePage/file?file=c.png").text
    listed = web.get("/HomePage/backlinks?file=B.PNG").text
    assert ("Pages that use" in listed, 'href="/HomePage~2FSub"' in listed, "/Other" in listed) == (True, True, False)
    form = web.form("/HomePage/file?file=b.png")
    assert web.post("/HomePage/file?file=b.png", {**form, "remove": "1"}).status_code == 303
    removed = web.get("/HomePage/file?file=b.png").text
    assert "These pages still name it:" in removed
    assert 'href="/HomePage~2FSub"' in removed


def test_a_long_list_of_uses_leads_onward(web: WikiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files_handler, "USERS_LISTED", 2)
    upload(web, ("b.png", PNG))
    for n in range(4):
        web.wiki.save(f"HomePage/{n}", "[[b.png]]", author="Ann", base=0)
    shown = web.get("/HomePage/file?file=b.png").text
    assert "2+ pages use this file." in shown
    assert "/HomePage/backlinks?file=b.png" in shown
    assert all(f"HomePage~2F{n}" in web.get("/HomePage/backlinks?file=b.png").text for n in range(4))
    assert web.get("/HomePage/backlinks?file=none.png").status_code == 404


def test_only_administrators_may_erase_and_only_what_there_is(web: WikiClient) -> None:
    upload(web, ("a.txt", b"one"))
    upload(web, ("a.txt", b"two"), replace="yes")
    root, path = web.signed_in("Root", admin=True), "/HomePage/file?file=a.txt"
    fields = {"erase": "1", "version": "1", "sure": "yes", "note": "why"}
    assert "Erase a version" not in web.get(path).text
    assert web.post(path, {**web.form(path), **fields}).status_code == 403
    assert web.post(path, {**web.form(path), **fields, "sure": ""}).status_code == 403
    assert web.get("/HomePage/files/a.txt?v=1").data == b"one"
    assert root.post(path, {**root.form(path), **fields, "version": "9"}).status_code == 409
    assert root.post(path, {**root.form(path), **fields, "sure": ""}).status_code == 409
    done = root.post(path, {**root.form(path), **fields})
    assert done.status_code == 303
    assert "Version 1 is erased." in root.get(done.headers["Location"]).text
    assert "is erased" not in root.get(path + "&erased=2").text, "an address alone says nothing"
    assert web.get("/HomePage/files/a.txt?v=1").status_code == 404
    assert web.get("/HomePage/files/a.txt").data == b"two"
