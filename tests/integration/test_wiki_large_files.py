"""Large files through store and ``wikka serve``, in processes of their own: they come back, and take little memory."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.test_wiki_served import Editor, start, stop
from tests.support.deep import cases
from tests.support.ports import free_port

MB = 1 << 20
SHORT = (40 * MB, 24 * MB)
LONG = pytest.param(1024 * MB, 64 * MB, marks=pytest.mark.lasts(200))
BOUNDARY = "a-boundary-of-the-tests"
PIECE = b"".join(b"%06d of a long table\n" % number for number in range(2_500))  # 65 KB


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    """The wiki's address and the process of its one worker."""
    folder, port = tmp_path_factory.mktemp("large"), free_port()
    options = ["--data", str(folder / "data"), "--port", str(port), "--web-port", "-1"]
    store, _ = start("columnar", "standalone", *options, "--trigger-modules", "wikka_port.triggers")
    at = f"127.0.0.1:{port}"
    try:
        subprocess.run([sys.executable, "-m", "wikka_port", "prepare", "--store", at], check=True, timeout=60)
        options = ["--port", "0", "--workers", "1", "--edits-per-minute", "0", "--log-level", "error"]
        web, ready = start("wikka_port", "serve", "--store", at, *options, "--file-bytes-max", "2000000000")
        try:
            (worker,) = Path(f"/proc/{web.pid}/task/{web.pid}/children").read_text().split()
            yield ready.split()[2].rstrip("/"), int(worker)
        finally:
            stop(web)
    finally:
        stop(store)


def peak_bytes(process: int) -> int:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


class Upload:
    """The body of a form with one file of ``size`` bytes, made as it is sent."""

    def __init__(self, token: str, name: str, size: int) -> None:
        self.digest = hashlib.sha256()
        self.size = size
        part = f"--{BOUNDARY}\r\nContent-Disposition: form-data; name="
        self.head = f'{part}"csrf"\r\n\r\n{token}\r\n{part}"file"; filename="{name}"\r\n\r\n'.encode()
        self.tail = f"\r\n--{BOUNDARY}--\r\n".encode()

    def __len__(self) -> int:
        return len(self.head) + self.size + len(self.tail)

    def __iter__(self) -> Iterator[bytes]:
        yield self.head
        for start_at in range(0, self.size, len(PIECE)):
            piece = PIECE[: self.size - start_at]
            self.digest.update(piece)
            yield piece
        yield self.tail


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(("size", "most"), cases("sizes of files", deep=[SHORT, LONG], short=[SHORT]))
def test_a_file_goes_up_and_down_in_little_memory(served: tuple[str, int], size: int, most: int) -> None:
    url, worker = served
    editor = Editor(url)
    assert editor.post("/Large", {**editor.form("/Large"), "body": "text"}).status_code in (302, 303)
    path = "/Large/files"
    token = editor.get(path).text.partition('name="csrf" value="')[2].partition('"')[0]
    headers = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
    small = Upload(token, f"Small{size}.csv", 2 * MB)
    sent = editor.session.post(url + path, data=small, headers=headers, timeout=60, allow_redirects=False)
    assert sent.status_code == 303, sent.text[:2_000]
    before = peak_bytes(worker)
    body = Upload(token, f"Table{size}.csv", size)
    sent = editor.session.post(url + path, data=body, headers=headers, timeout=300, allow_redirects=False)
    assert sent.status_code == 303, sent.text[:2_000]
    digest = hashlib.sha256()
    with editor.session.get(f"{url}{path}/Table{size}.csv", stream=True, timeout=60) as got:
        assert got.headers["Content-Length"] == str(size)
        for piece in got.iter_content(1 << 20):
            digest.update(piece)
    assert digest.hexdigest() == body.digest.hexdigest()
    grown = peak_bytes(worker) - before
    print(f"{size / MB:.0f} MB up and down: {grown / MB:.1f} MB more")
    assert grown < most
