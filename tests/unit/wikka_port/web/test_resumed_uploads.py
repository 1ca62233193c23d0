"""Uploads in parts by tus 1.0: what breaks off continues, and belongs to nobody else."""

from __future__ import annotations

import base64
import socket
import threading
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from werkzeug.test import TestResponse

from tests.support.file_forms import CONTENT_TYPE, PNG, multipart
from tests.support.wiki_client import WikiClient
from tests.support.wiki_server import running_wiki
from wikka_port.config import FileConfig
from wikka_port.files.file_rows import CHUNKS, GRACE_MS, SWEPT_ROW, UPLOADS, Upload
from wikka_port.files.stored_files import StoredFiles
from wikka_port.files.uploading import UploadWriter
from wikka_port.handlers.upload import MANY, SEEN_MAX
from wikka_port.limits import TRANSFER_FROM_BYTES
from wikka_port.request_queues import PLACE_KEY
from wikka_port.rights.rules import PageRights, Privilege

PART = {"Content-Type": "application/offset+octet-stream"}
CONTENT = b"".join(b"%07d\n" % number for number in range(320_000))  # more than two chunks


class Tus:
    """A client of the protocol in one browser."""

    def __init__(self, web: WikiClient, page: str = "HomePage") -> None:
        self.web = web
        self.page = page
        self.token = web.form(f"/{page}/files")["csrf"]

    def send(self, method: str, path: str, headers: Mapping[str, Any] = {}, data: bytes = b"") -> TestResponse:
        given = {"Tus-Resumable": "1.0.0", "X-Form-Token": self.token, **headers}
        return self.web.client.open(path, method=method, headers=given, data=data)

    def begin(self, name: str, length: int, **fields: str) -> TestResponse:
        pairs = {"filename": name, **{key.replace("_", "-"): value for key, value in fields.items()}}
        metadata = ",".join(f"{key} {base64.b64encode(value.encode()).decode()}" for key, value in pairs.items())
        return self.send("POST", f"/{self.page}/files", {"Upload-Length": length, "Upload-Metadata": metadata})

    def part(self, place: str, offset: int, data: bytes) -> TestResponse:
        return self.send("PATCH", place, {"Upload-Offset": offset, **PART}, data)


@pytest.fixture
def web() -> WikiClient:
    made = WikiClient(files=FileConfig(bytes_max=50_000_000))
    made.wiki.save("HomePage", "A text.", author="Ann", base=0)
    return made


@pytest.fixture
def tus(web: WikiClient) -> Tus:
    return Tus(web)


def test_a_file_comes_in_parts_of_any_size(web: WikiClient, tus: Tus) -> None:
    begun = tus.begin("Data.csv", len(CONTENT), note="for you", alt=" two\nlines ")
    place = begun.headers["Location"]
    assert (begun.status_code, begun.headers["Upload-Offset"], begun.headers["Tus-Resumable"]) == (201, "0", "1.0.0")
    assert begun.headers["Upload-Expires"].endswith("GMT")
    offset = 0
    for size in (1, 1_048_575, 0, 700_000, 900_000):
        head = tus.send("HEAD", place)
        assert (head.status_code, head.headers["Upload-Offset"]) == (200, str(offset))
        assert head.headers["Upload-Length"] == str(len(CONTENT))
        assert head.headers["Cache-Control"] == "no-store"
        data = CONTENT[offset : offset + size]
        answer = tus.part(place, offset, data)
        offset += len(data)
        assert (answer.status_code, answer.text, answer.headers["Upload-Offset"]) == (204, "", str(offset))
    assert offset == len(CONTENT)
    assert answer.headers["Content-Location"] == "/HomePage/files/Data.csv"
    assert web.get("/HomePage/files/Data.csv").data == CONTENT
    shown = web.get("/HomePage/file?file=Data.csv").text
    assert "for you" in shown
    assert "two lines" in shown
    assert tus.part(place, len(CONTENT), b"").status_code == 404, "it has ended"
    assert list(web.wiki.rows.scan(UPLOADS)) == []


def test_a_client_that_has_lost_the_last_answer_learns_whether_there_is_a_file(web: WikiClient, tus: Tus) -> None:
    def head(place: str, asking: Tus = tus) -> tuple[int, str, str]:
        answer = asking.send("HEAD", place)
        return answer.status_code, answer.headers.get("Content-Location", ""), answer.headers.get("Upload-Offset", "")

    place = tus.begin("a_b.txt", 3).headers["Location"]
    assert head(place) == (200, "", "0")
    tus.part(place, 0, b"one")
    assert head(place) == (200, "/HomePage/files/a_b.txt", "3")
    assert head(place, Tus(web.signed_in("Eve"))) == (404, "", ""), "it is not hers"
    renamed = tus.begin("Tabelle", 3).headers["Location"]
    tus.part(renamed, 0, b"two")
    assert head(renamed) == (200, "/HomePage/files/Tabelle.txt", "3")
    picture = tus.begin("photo.jpg", len(PNG)).headers["Location"]
    tus.part(picture, 0, PNG)
    assert head(picture) == (200, "/HomePage/files/photo.png", str(len(PNG)))
    token = web.wiki.files.files_of("HomePage")["a_b.txt"].token
    other_name = tus.begin("Newer.txt", 4, replaces=token).headers["Location"]
    tus.part(other_name, 0, b"four")
    assert head(other_name) == (200, "/HomePage/files/a_b.txt", "4")


def test_a_file_that_waits_for_its_page_is_a_sign_too(web: WikiClient) -> None:
    mia = web.signed_in("Mia")
    tus = Tus(mia, "New")
    place = tus.begin("a.txt", 3).headers["Location"]
    assert tus.part(place, 0, b"one").status_code == 204
    head = tus.send("HEAD", place)
    assert (head.status_code, head.headers.get("Content-Location")) == (200, "/New/files/a.txt")
    assert Tus(web.signed_in("Eve")).send("HEAD", place).status_code == 404


def test_a_file_of_before_is_no_sign_that_an_upload_succeeded(web: WikiClient, tus: Tus) -> None:
    place = tus.begin("a.txt", 3).headers["Location"]
    query = dict(parse_qsl(urlsplit(place).query))

    def status(**other: str) -> int:
        return tus.send("HEAD", f"/-/upload?{urlencode({**query, **other})}").status_code

    tus.part(place, 0, b"one")
    (version,) = web.wiki.files.versions("HomePage", "a.txt")
    assert (status(), status(seen="01234567")) == (200, 200)
    assert status(seen=f"01234567,{version.token[:8]}") == 404, "it was there before"
    for wrong in ({"bytes": "4"}, {"bytes": "x"}, {"seen": MANY}, {"file": "b.txt"}, {"file": ""}, {"page": "Other"}):
        assert status(**wrong) == 404, wrong
    token = web.wiki.files.files_of("HomePage")["a.txt"].token
    tus.web.post("/HomePage/file?file=a.txt", {"csrf": tus.token, "seen": token, "remove": "1"})
    assert status() == 404, "it was removed since"
    again = tus.begin("a.txt", 3).headers["Location"]
    tus.part(again, 0, b"two")
    assert tus.send("HEAD", again).status_code == 200
    web.wiki.rights.change("HomePage", PageRights(""), "", {Privilege.READ: "Ann"})
    assert tus.send("HEAD", again).status_code == 404, "nobody learns of files of a page that he may not read"


@pytest.mark.parametrize("skew_ms", [-86_400_000, -1, 0, 1, 86_400_000])
def test_clocks_of_two_machines_tell_nothing_of_an_upload(web: WikiClient, tus: Tus, skew_ms: int) -> None:
    """The process that ends an upload has another clock than the one that began it."""
    earlier = tus.begin("a.txt", 3).headers["Location"]
    tus.part(earlier, 0, b"one")
    token = web.wiki.files.files_of("HomePage")["a.txt"].token
    begun = tus.begin("a.txt", 3, replaces=token).headers["Location"]
    web.wiki._now_ms += skew_ms
    tus.send("DELETE", begun)
    assert tus.send("HEAD", begun).status_code == 404, "the file of its name was there before"
    web.wiki._now_ms -= skew_ms
    begun = tus.begin("a.txt", 3, replaces=token).headers["Location"]
    web.wiki._now_ms += skew_ms
    assert tus.part(begun, 0, b"two").status_code == 204
    head = tus.send("HEAD", begun)
    assert (head.status_code, head.headers.get("Content-Location")) == (200, "/HomePage/files/a.txt")


def test_so_many_files_of_one_name_with_other_endings_are_no_sign(web: WikiClient, tus: Tus) -> None:
    for number in range(SEEN_MAX + 1):
        web.wiki.attach("HomePage", f"a.{number}.txt", media_type="text/plain")
    place = tus.begin("a.txt", 3).headers["Location"]
    assert len(place) < 1_000
    tus.part(place, 0, b"one")
    assert tus.send("HEAD", place).status_code == 404, "the client sends it again"


def test_a_part_that_begins_elsewhere_or_is_too_long_is_refused(tus: Tus) -> None:
    place = tus.begin("a.txt", 10).headers["Location"]
    assert tus.part(place, 0, b"12345").status_code == 204
    assert tus.part(place, 0, b"12345").status_code == 409
    assert tus.part(place, 5, b"123456").status_code == 413
    assert tus.send("PATCH", place, {"Upload-Offset": 5}, b"12345").status_code == 415
    assert tus.send("PATCH", place, PART, b"12345").status_code == 400
    assert tus.part(place, 5, b"12345").status_code == 204


def test_an_upload_that_is_deleted_leaves_nothing(web: WikiClient, tus: Tus) -> None:
    place = tus.begin("a.txt", len(CONTENT)).headers["Location"]
    tus.part(place, 0, CONTENT[:1_500_000])
    assert list(web.wiki.rows.scan(CHUNKS)) != []
    assert tus.send("DELETE", place).status_code == 204
    assert list(web.wiki.rows.scan(CHUNKS)) == list(web.wiki.rows.scan(UPLOADS)) == []
    assert tus.part(place, 1_500_000, b"x").status_code == 404


@pytest.mark.parametrize("step", ["settle", "refer", "blob", "stage", "commit"])
def test_an_upload_that_is_deleted_while_it_becomes_a_file_keeps_its_bytes(
    web: WikiClient, tus: Tus, step: str
) -> None:
    """A browser sends DELETE as soon as it has given up its last part, which the wiki may have whole."""
    place, answers = tus.begin("a.txt", 6).headers["Location"], list[int]()

    def delete(at: str) -> None:
        if at == step and not answers:
            answers.append(0)
            answers[0] = tus.send("DELETE", place).status_code

    web.wiki.files.on_step_done = delete
    assert tus.part(place, 0, b"onetwo").status_code == 204
    web.wiki.files.on_step_done = lambda at: None
    assert answers == [204]
    assert web.get("/HomePage/files/a.txt").data == b"onetwo"
    web.wiki._now_ms += GRACE_MS + 1
    web.wiki.files.sweep.run()
    assert web.get("/HomePage/files/a.txt").data == b"onetwo"
    assert [row for row, _ in web.wiki.rows.scan(UPLOADS)] in ([], [SWEPT_ROW])


def test_a_part_of_an_upload_that_is_deleted_meanwhile_is_not_stored(
    web: WikiClient, tus: Tus, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tus.begin("a.txt", 6).headers["Location"]
    original = StoredFiles.take

    def late(self: StoredFiles, upload: Upload) -> Upload:
        monkeypatch.setattr(StoredFiles, "take", original)
        assert tus.send("DELETE", place).status_code == 204
        return original(self, upload)

    monkeypatch.setattr(StoredFiles, "take", late)
    assert tus.part(place, 0, b"onetwo").status_code == 423
    assert web.get("/HomePage/files/a.txt").status_code == 404
    assert list(web.wiki.rows.scan(CHUNKS)) == list(web.wiki.rows.scan(UPLOADS)) == []


def test_an_upload_whose_part_is_being_written_is_deleted(
    web: WikiClient, tus: Tus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The part stops; what it has stored is left to the sweep, since it might be about to become a file."""
    place = tus.begin("a.txt", 6).headers["Location"]
    original = UploadWriter.finish_part

    def late(self: UploadWriter) -> Upload:
        monkeypatch.setattr(UploadWriter, "finish_part", original)
        assert tus.send("DELETE", place).status_code == 204
        return original(self)

    monkeypatch.setattr(UploadWriter, "finish_part", late)
    assert tus.part(place, 0, b"onetwo").status_code == 423
    assert tus.send("HEAD", place).status_code == 404
    assert web.get("/HomePage/files/a.txt").status_code == 404
    web.wiki._now_ms += GRACE_MS + 1
    web.wiki.files.sweep.run()
    assert list(web.wiki.rows.scan(CHUNKS)) == []
    assert tus.part(place, 0, b"onetwo").status_code == 404


def test_a_client_of_another_version_is_told_which_one_is_spoken(tus: Tus) -> None:
    answer = tus.send("POST", "/HomePage/files", {"Tus-Resumable": "0.2"})
    assert (answer.status_code, answer.headers["Tus-Version"]) == (412, "1.0.0")
    options = tus.web.client.open("/-/upload", method="OPTIONS")
    assert (options.status_code, options.headers["Tus-Max-Size"]) == (204, "50000000")
    assert options.headers["Tus-Extension"] == "creation,termination,expiration"
    for method in ("GET", "POST"):
        assert tus.web.client.open("/-/upload", method=method).status_code == 405
    assert tus.web.client.open("/HomePage", method="PATCH").status_code == 405


def test_what_the_form_refuses_is_refused_before_a_byte_is_sent(web: WikiClient, tus: Tus) -> None:
    assert tus.begin("a.txt", 50_000_001).status_code == 413
    assert tus.begin("a.txt", 0).status_code == 400
    assert tus.begin("", 5).status_code == 422
    assert tus.part(tus.begin("a.txt", 3).headers["Location"], 0, b"one").status_code == 204
    taken = tus.begin("A.TXT", 3)
    assert (taken.status_code, "has a file of this name" in taken.text) == (422, True)
    place = tus.begin("a.txt", 3, replace="yes").headers["Location"]
    assert tus.part(place, 0, b"two").status_code == 204
    assert web.get("/HomePage/files/a.txt").data == b"two"
    assert web.get("/HomePage/files/a.txt?v=1").data == b"one"


def test_a_whole_file_that_is_not_taken_ends_its_upload(web: WikiClient, tus: Tus) -> None:
    program = b"MZ\x00\x01" * 100
    place = tus.begin("evil.exe", len(program)).headers["Location"]
    answer = tus.part(place, 0, program)
    assert answer.status_code == 422
    assert "does not know this kind of file" in answer.text
    assert tus.send("HEAD", place).status_code == 404
    assert list(web.wiki.rows.scan(CHUNKS)) == list(web.wiki.rows.scan(UPLOADS)) == []
    first, second = (tus.begin("b.png", len(PNG)).headers["Location"] for _ in range(2))
    assert tus.part(first, 0, PNG).status_code == 204
    late = tus.part(second, 0, PNG)
    assert (late.status_code, "has a file of this name" in late.text) == (422, True)


def test_why_a_picture_is_damaged_is_said_in_the_language_of_the_wiki() -> None:
    web = WikiClient(language="de")
    web.wiki.save("HomePage", "Ein Text.", author="Ann", base=0)
    tus = Tus(web)
    answer = tus.part(tus.begin("b.png", 40).headers["Location"], 0, PNG[:40])
    assert (answer.status_code, "es endet zu früh" in answer.text) == (422, True), answer.text


def test_an_upload_is_of_its_browser_or_account_alone(web: WikiClient, tus: Tus) -> None:
    place = tus.begin("a.txt", 10).headers["Location"]
    tus.part(place, 0, b"12345")
    for other in (Tus(web.other_visitor()), Tus(web.signed_in("Bob"))):
        assert other.send("HEAD", place).status_code == 404
        assert other.part(place, 5, b"12345").status_code == 404
        assert other.send("DELETE", place).status_code == 404
    web.wiki.save("Other", "A text.", author="Ann", base=0)
    elsewhere = place.replace("HomePage", "Other")
    assert elsewhere != place
    for wrong in (elsewhere, place + "0", "/-/upload", "/-/upload?page=HomePage&id=../..", "/-/upload?page=%00"):
        assert tus.send("HEAD", wrong).status_code == 404
    assert tus.send("HEAD", place).headers["Upload-Offset"] == "5"


def test_without_the_token_of_a_form_nothing_is_done(tus: Tus) -> None:
    place = tus.begin("a.txt", 10).headers["Location"]
    for headers in ({"X-Form-Token": "0.00"}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}):
        assert tus.send("POST", "/HomePage/files", {"Upload-Length": 5, **headers}).status_code == 403
        assert tus.send("PATCH", place, {"Upload-Offset": 0, **PART, **headers}, b"x" * 10).status_code == 403
        assert tus.send("DELETE", place, headers).status_code == 403
    assert tus.send("HEAD", place).headers["Upload-Offset"] == "0"


def test_rights_are_those_of_the_moment(web: WikiClient, tus: Tus) -> None:
    place = tus.begin("a.txt", 10).headers["Location"]
    tus.part(place, 0, b"12345")
    written = web.wiki.rights.change("HomePage", PageRights(""), "", {Privilege.WRITE: "Ann"})
    assert tus.part(place, 5, b"12345").status_code == 403
    assert tus.begin("b.txt", 10).status_code == 403
    web.wiki.rights.change("HomePage", written, "", {Privilege.READ: "Ann"})
    assert tus.send("HEAD", place).status_code == 404


def test_a_broken_part_is_stored_up_to_its_break() -> None:
    """Through the real server: the client is cut in a part that is larger than its bound of whole requests."""
    half = 1_200_003
    with running_wiki(max_text_bytes=1) as server:
        server.wiki.save("HomePage", "A text.", author="Ann", base=0)
        web = WikiClient(server.wiki, max_text_bytes=1)
        web.now = time.time()  # as the server's
        tus = Tus(web)
        place = tus.begin("Data.csv", len(CONTENT)).headers["Location"]
        cookies = "; ".join(f"{one.key}={one.value}" for one in tus.web.client._cookies.values())
        lines = {**PART, "Tus-Resumable": "1.0.0", "X-Form-Token": tus.token, "Cookie": cookies, "Upload-Offset": 0}
        head = "".join(f"{key}: {value}\r\n" for key, value in lines.items())
        request = f"PATCH {place} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(CONTENT)}\r\n{head}\r\n"
        with socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2])), timeout=10) as connection:
            connection.sendall(request.encode() + CONTENT[:half])
            connection.shutdown(socket.SHUT_WR)
            connection.recv(100)
        for _ in range(500):  # the server notices the break by itself
            offset = int(tus.send("HEAD", place).headers["Upload-Offset"])
            if offset == half:
                break
            threading.Event().wait(0.02)
        assert offset == half
        for _ in range(500):
            if tus.part(place, offset, CONTENT[offset:]).status_code != 423:  # the request that broke may still end
                break
            threading.Event().wait(0.02)
        assert tus.web.get("/HomePage/files/Data.csv").data == CONTENT


def test_two_parts_at_once_do_not_mix(web: WikiClient, tus: Tus, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tus.begin("a.txt", 10).headers["Location"]
    files = web.wiki.files
    upload = files.uploads(next(iter(files._rows.scan(UPLOADS)))[1][b"u:owner"].decode())[0]
    taken = files.take(upload)
    assert tus.part(place, 0, b"0123456789").status_code == 423
    files.release_writer(taken)
    assert tus.part(place, 0, b"0123456789").status_code == 204


class FullPlace:
    """The place of a request in the quick lane, while no more transfers may wait."""

    queue = "quick"
    has_arriving_body = False

    def restart(self, queue: str, full: type[Exception]) -> None:
        assert queue == "transfers"
        raise full


def test_what_is_large_waits_for_a_thread_of_transfers_and_nothing_else_does(web: WikiClient, tus: Tus) -> None:
    sizes = {"small.csv": TRANSFER_FROM_BYTES, "large.csv": TRANSFER_FROM_BYTES + 8}
    for name, size in sizes.items():
        place = tus.begin(name, size).headers["Location"]
        assert tus.part(place, 0, CONTENT[:8] * (size // 8)).status_code == 204
    full: dict[str, Any] = {"environ_base": {PLACE_KEY: FullPlace()}}
    assert web.get("/HomePage/files/small.csv", **full).status_code == 200
    assert web.get("/HomePage/files/large.csv", headers={"Range": "bytes=0-99"}, **full).status_code == 206
    assert web.client.head("/HomePage/files/large.csv", **full).status_code == 200
    place = tus.begin("a.txt", 10).headers["Location"]
    form = {
        "method": "POST",
        "path": "/HomePage/files",
        "content_type": CONTENT_TYPE,
        "data": multipart({}, ("a", b"b")),
    }
    part = {"method": "PATCH", "path": place, "headers": {"Tus-Resumable": "1.0.0", "X-Form-Token": tus.token}}
    part["headers"] |= {"Upload-Offset": "0", **PART}
    for request in ({"path": "/HomePage/files/large.csv"}, form, {**part, "data": b"12345"}):
        refused = web.client.open(**request, **full)
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "20"), request["path"]
        assert "Many files are being sent" in refused.text
    assert tus.part(place, 0, b"0123456789").status_code == 204, "the refused part has not taken the upload"
