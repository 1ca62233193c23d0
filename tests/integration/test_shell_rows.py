"""``columnar get | put | delete | incr | ...`` as typed, and what is told of words that were not meant so."""

from __future__ import annotations

import http.server
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from columnar.cli import main
from columnar.limits import CELL_BYTES
from columnar.shell import wrong_port
from columnar.shell.shell_output import Cell, Output
from columnar.webui.server import WebServer, bind, served_at
from tests.support.serving import Serving
from tests.support.shell import Shell, store_at


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with store_at(tmp_path_factory.mktemp("shell") / "data") as found:
        yield found


@pytest.fixture
def shell(address: str) -> Shell:
    return Shell(address)


@pytest.fixture
def pages(shell: Shell) -> Iterator[str]:
    shell.out("create", "pages", "text", "meta:versions=3")
    yield "pages"
    shell.out("drop", "pages", "--yes")


def test_delete(shell: Shell, pages: str) -> None:
    for stamp in ("5", "6"):
        shell.out("put", pages, "r", f"meta:v={stamp}", f"meta:w={stamp}", "text:n=1", "--timestamp", stamp)
    shell.out("delete", pages, "r", "meta:v", "--timestamp", "5")
    assert shell.out("get", pages, "r", "meta", "--versions", "9") == "r\tmeta:v\t6\nr\tmeta:w\t6\nr\tmeta:w\t5\n"
    assert shell.json("delete", pages, "r", "meta:v", "text") == {"deleted": "r", "columns": ["meta:v", "text"]}
    assert shell.out("get", pages, "r") == "r\tmeta:w\t6\n"
    shell.out("delete", pages, "r")
    assert "no such row" in shell.error("get", pages, "r")
    shell.out("delete", pages, "r")  # of what is not there


def test_counters(shell: Shell, pages: str) -> None:
    assert shell.out("incr", pages, "r", "meta:n") == "1\n"
    assert shell.json("incr", pages, "r", "meta:n", "-3") == {"value": -2}
    assert shell.out("get", pages, "r") == "r\tmeta:n\t\\xFF\\xFF\\xFF\\xFF\\xFF\\xFF\\xFF\\xFE\n"
    shell.out("put", pages, "r", "meta:n=+70000", "--as", "counter")
    shell.out("put", pages, "r", "text:name=seven of 7")
    assert shell.out("get", pages, "r", "--as", "counter") == "r\tmeta:n\t70000\nr\ttext:name\tseven of 7\n"
    assert shell.out("scan", pages, "--as", "counter", "--columns", "meta") == "r\tmeta:n\t70000\n"
    values = [cell["value"] for cell in shell.json("get", pages, "r", "--as", "counter")["cells"]]
    assert values == [70_000, "seven of 7"]
    assert shell.out("get", pages, "r", "meta:n", "--as", "hex") == "r\tmeta:n\t0000000000011170\n"
    shell.out("put", pages, "r", "meta:n=0000000000000005", "--as", "hex")
    assert shell.out("incr", pages, "r", "meta:n") == "6\n"
    assert "write a whole number" in shell.error("put", pages, "r", "meta:n=5.0", "--as", "counter", status=2)
    assert "64 bits" in shell.error("incr", pages, "r", "meta:n", str(1 << 63), status=2)
    assert "not a valid integer" in shell("incr", pages, "r", "meta:n", "--bye").stderr
    shell.error("incr", pages, "r", "text:name")


def test_eight_bytes_that_are_no_text_are_pointed_out_at_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    cells = [Cell(b"n:a", b"\0\0\0\0\0\0\0\5", 1), Cell(b"n:b", b"eightlet", 1), Cell(b"n:c", b"\0\5", 1)]
    Output(False, True).row(b"r", cells, timestamps=False)
    assert [line.split("  ", 2)[2] for line in capsys.readouterr().out.splitlines()[1:]] == [
        "\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x05  (as a counter: 5)", "eightlet", "\\x00\\x05",
    ]  # fmt: skip
    Output(False, False).row(b"r", cells[:1], timestamps=False)
    assert capsys.readouterr().out.endswith("\t\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x05\n")


def test_append_and_check_and_put(shell: Shell, pages: str) -> None:
    shell.out("append", pages, "r", "text:log=one;", "meta:v=x")
    assert shell.json("append", pages, "r", "text:log=two;") == {"appended": 1, "bytes": 8}
    assert shell.out("get", pages, "r") == "r\tmeta:v\tx\nr\ttext:log\tone;two;\n"
    check = ("check-and-put", pages, "r", "text:body=new", "meta:v=y")
    assert shell.json(*check, "--if", "meta:v=x", "--if-absent", "text:body") == {"written": 2}
    assert shell.error(*check, "--if", "meta:v=x") == "nothing is written: meta:v=x does not hold"
    assert shell.error(*check, "--if-absent", "meta:v").endswith("--if-absent meta:v does not hold")
    assert shell.error(*check, "--if-exists", "meta:w").endswith("--if-exists meta:w does not hold")
    assert shell.out("get", pages, "r", "text:body", "meta:v") == "r\tmeta:v\ty\nr\ttext:body\tnew\n"
    shell.out(*check, "--if-exists", "meta:v")
    assert "say what is expected" in shell.error(*check, status=2)


def test_values_from_files_and_standard_input(shell: Shell, pages: str, tmp_path: Path) -> None:
    (tmp_path / "page").write_bytes(b"\x00\xfftext=\\x41\n")
    file = str(tmp_path / "page")
    result = shell("put", pages, "r", f"text:file=@{file}", "text:in=-", "text:at=\\x40a", typed="piped\\x41\n")
    assert result.exit_code == 0, result.output
    assert shell.out("get", pages, "r") == (
        "r\ttext:at\t@a\nr\ttext:file\t\\x00\\xFFtext=\\x5Cx41\\x0A\nr\ttext:in\tpiped\\x5Cx41\\x0A\n"
    )
    assert "is one value" in shell.error("put", pages, "r", "text:a=-", "text:b=-", status=2)
    assert "cannot read" in shell.error("put", pages, "r", "text:a=@/no/such/file", status=2)
    with (tmp_path / "big").open("wb") as big:
        big.truncate(CELL_BYTES + 1)
    assert "more than" in shell.error("put", pages, "r", f"text:a=@{tmp_path}/big", status=2)


def test_times(shell: Shell, pages: str) -> None:
    for stamp in ("1000", "2000", "3000"):
        shell.out("put", pages, "a", f"meta:v={stamp}", "--timestamp", stamp)
    shell.out("put", pages, "b", "meta:v=late", "text:n=1", "--timestamp", "3000")
    shell.out("put", pages, "c", "meta:v=now")

    def get(*flags: str) -> list[str]:
        return [line.split("\t")[2] for line in shell.out("get", pages, "a", *flags).splitlines()]

    def scan(*flags: str) -> list[list[str]]:
        return [line.split("\t") for line in shell.out("scan", pages, "--columns", "meta", *flags).splitlines()]

    assert get("--at", "2000") == ["2000"]
    assert get("--at", "1999") == ["1000"]
    assert get("--until", "3000", "--versions", "5") == ["2000", "1000"]
    assert get("--since", "2000", "--versions", "5") == ["3000", "2000"]
    assert get("--since", "1001", "--until", "2001", "--versions", "5") == ["2000"]
    assert get("--at", "1970-01-01T00:00:02+00:00") == ["2000"]
    assert get("--until", "1h") == ["3000"]
    assert "no such row of that time in" in shell.error("get", pages, "a", "--at", "999")
    assert "none of these columns of that time" in shell.error("get", pages, "b", "text:n", "--since", "1h")
    assert scan("--at", "2500") == [["a", "meta:v", "2000"]]
    assert [row[0] for row in scan("--since", "3000")] == ["a", "b", "c"]
    assert [row[0] for row in scan("--since", "1h")] == ["c"]
    assert [row[0] for row in scan("--since", "3000", "--limit", "1", "--start", "a\\x00")] == ["b"]
    assert [row[0] for row in scan("--since", "1h", "--limit", "1")] == ["c"]
    assert [row[2] for row in scan("--versions", "2", "--until", "3001")] == ["3000", "2000", "late"]
    assert "is no time" in shell.error("get", pages, "a", "--at", "yesterday", status=2)
    assert "say one of them" in shell.error("get", pages, "a", "--at", "1", "--since", "1", status=2)
    assert "is empty" in shell.error("get", pages, "a", "--until", "5", "--since", "5", status=2)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("gte", "pages", "r"), "get"),
        (("deleteall", "pages", "r"), "delete"),
        (("list",), "tables"),
        (("pages", "get", "r"), "get pages r"),
        (("check_and_put", "pages"), "check-and-put"),
    ],
)
def test_an_unknown_command_names_the_nearest(shell: Shell, words: tuple[str, ...], meant: str) -> None:
    result = shell(*words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"No such command '{words[0]}'. Did you mean 'columnar {meant}'?" in result.stderr
    assert shell("trigger", "lst").exit_code == 2


def test_a_command_like_no_other_names_none(shell: Shell) -> None:
    assert "Did you mean" not in shell("xyzzy").stderr


def test_swapped_and_misspelled_words_are_told(shell: Shell, pages: str) -> None:
    assert shell.error("get", "pagse", "r") == "TableNotFoundException: pagse; did you mean 'pages'?"
    assert "the table comes first: did you mean 'pages HomePage'?" in shell.error("get", "HomePage", pages)
    assert "did you mean 'text'?" in shell.error("put", pages, "r", "txt:n=1")
    assert "did you mean 'meta'?" in shell.error("scan", pages, "--columns", "meat:n")
    assert "the row comes before the columns" in shell.error("get", pages, "text:n", "HomePage")
    swapped = shell.error("put", pages, "text:n=1", "HomePage", status=2)
    assert "the row comes before the cells: is 'text:n=1' one of them?" in swapped
    assert "did you mean 'pages'?" in shell.error("drop", "page", "--yes")


def test_table_names_complete(shell: Shell, address: str, pages: str) -> None:
    def completed(line: str, store: str) -> list[str]:
        words = line.split(" ")
        env = {"COLUMNAR_STORE": store, "_COLUMNAR_COMPLETE": "bash_complete", "COMP_WORDS": line,
               "COMP_CWORD": str(len(words) - 1)}  # fmt: skip
        result = CliRunner().invoke(main, [], prog_name="columnar", env=env)
        return [one.partition(",")[2] for one in result.stdout.splitlines() if one]

    shell.out("create", "parts", "f")
    try:
        assert completed("columnar get pa", address) == ["pages", "parts"]
        assert completed("columnar bulk-load pag", address) == ["pages"]
        assert completed(f"columnar scan --store {address} par", "127.0.0.1:1") == ["parts"]
        assert "get" in completed("columnar g", address)
        with socket.create_server(("127.0.0.1", 0)) as silent:
            began = time.monotonic()
            assert completed("columnar get pa", f"127.0.0.1:{silent.getsockname()[1]}") == []
            assert time.monotonic() - began < 10, "a call waits half a second, and without a bound for ever"
    finally:
        shell.out("drop", "parts", "--yes")


def test_the_web_port_is_told(tmp_path: Path) -> None:
    serving = Serving(tmp_path / "data").start()
    store_port = serving.store.port

    async def page() -> WebServer:
        web = served_at(bind("127.0.0.1", 0), serving.store.pages())
        await web.start()
        return web

    web = serving.run(page())
    try:
        line = Shell(f"127.0.0.1:{web.port}").error("tables", status=2)
    finally:
        serving.run(web.stop())
        serving.stop()
    assert f"this is the web port; the store is at {store_port}; look at --store" in line


def test_the_looks_at_a_port_take_three_seconds() -> None:
    assert 2 * wrong_port.ANSWER_S < 3


def test_another_web_server_is_told(shell: Shell) -> None:
    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(404)

        def log_message(self, *_: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        line = shell.error("tables", "--store", f"127.0.0.1:{server.server_port}", status=2)
        server.shutdown()
        thread.join()
    assert "what listens there speaks HTTP and is no store" in line
