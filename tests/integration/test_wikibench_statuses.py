"""Exit statuses of wikibench: 1 is a requirement missed, and nothing else."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import json
import lzma
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from tests.integration.test_wikibench_replay import command, trace_of
from tests.support.fake_wiki import FakeWiki
from wikibench import cli
from wikibench.trace.files import write_trace
from wikibench.trace.lines import VIEW

ROOT = Path(__file__).parents[2]


@pytest.fixture
def wiki() -> Iterator[FakeWiki]:
    with FakeWiki() as wiki:
        yield wiki


@pytest.fixture
def trace(tmp_path: Path) -> str:
    path = str(tmp_path / "a.trace.gz")
    write_trace(path, trace_of(*[(f"Page{n}", VIEW) for n in range(50)]))
    return path


@pytest.mark.parametrize("window", [(), ("--sort-window", "10")], ids=["in memory", "streamed"])
@pytest.mark.parametrize("damage", ["cut", "flipped", "no gzip", "cut in its head"])
def test_a_damaged_trace(wiki: FakeWiki, trace: str, damage: str, window: tuple[str, ...]) -> None:
    data = Path(trace).read_bytes()
    damaged = {
        "cut": data[:-20],
        "flipped": data[:40] + bytes([data[40] ^ 0xFF]) + data[41:],
        "no gzip": gzip.decompress(data),
        "cut in its head": data[:5],
    }
    Path(trace).write_bytes(damaged[damage])
    result = command("replay", trace, "--target", wiki.url, *window)
    assert result.exit_code == 2
    assert "gzip" in result.output
    assert trace in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("name", "packed"),
    [
        ("bzip2", bz2.compress),
        ("xz", lzma.compress),
        ("zstd", lambda data: bytes.fromhex("28b52ffd0458") + data),
    ],
)
@pytest.mark.parametrize("is_whole", [True, False], ids=["whole", "cut"])
def test_a_trace_that_is_packed_otherwise_is_refused_by_name(
    wiki: FakeWiki, trace: str, tmp_path: Path, name: str, packed: Callable[[bytes], bytes], is_whole: bool
) -> None:
    data = packed(gzip.decompress(Path(trace).read_bytes()))
    other = tmp_path / "a.packed"
    other.write_bytes(data if is_whole else data[:20])
    result = command("replay", other, "--target", wiki.url)
    assert result.exit_code == 2
    assert f"{other}: it is packed by {name}: unpack it first" in "".join(result.output.splitlines())


def test_gzip_is_known_by_its_first_bytes(wiki: FakeWiki, trace: str, tmp_path: Path) -> None:
    other = tmp_path / "a.trace"
    other.write_bytes(Path(trace).read_bytes())
    assert command("replay", other, "--target", wiki.url, "--lateness", "60s").exit_code == 0


def wikibench(words: str, more: str = "", **streams: Any) -> subprocess.CompletedProcess[bytes]:
    """In a process of its own, by the system's shell."""
    started = f"exec {sys.executable} -c 'from wikibench.cli import main; main()' {words} {more}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(["/bin/sh", "-c", started], env=environment, capture_output=True, timeout=60, **streams)


def test_packed_standard_input_is_refused_by_name(wiki: FakeWiki, trace: str) -> None:
    ended = wikibench(f"replay - --target {wiki.url}", input=Path(trace).read_bytes())
    assert ended.returncode == 2
    assert b"standard input: it is packed by gzip" in ended.stderr


@pytest.mark.parametrize(
    ("words", "more"),
    [
        ("--help", ">/dev/full"),
        ("nope", "2>/dev/full"),
        ("--help", ">/dev/full 2>/dev/full"),
        ("synth --titles {names} --requests 9000 --rate 50 --out -", ">/dev/full"),
        ("synth --titles {names} --requests 9000 --rate 50 --out /dev/full", ""),
        ("synth --titles {names} --requests 9 --rate 50 --out {names}/below", ""),
    ],
)
def test_a_full_disk_is_no_requirement_missed(tmp_path: Path, words: str, more: str) -> None:
    names = tmp_path / "names"
    names.write_text("A\nB\n")
    ended = wikibench(words.format(names=names), more)
    assert ended.returncode == 2
    assert b"Traceback" not in ended.stderr
    assert b"Exception ignored" not in ended.stderr
    if not more:
        assert b"cannot be written" in ended.stderr


def test_the_end_of_a_reader_is_no_mistake(tmp_path: Path) -> None:
    names = tmp_path / "names"
    names.write_text("A\nB\n")
    ended = wikibench(f"synth --titles {names} --requests 90000 --rate 50 --out -", "| head -1")
    assert ended.stdout.count(b"\n") == 1
    assert ended.stderr == b""


def test_a_header_that_is_none_is_not_shown(wiki: FakeWiki, trace: str) -> None:
    result = command("replay", trace, "--target", wiki.url, "--header", "Bearer SECRET123")
    assert result.exit_code == 2
    assert "SECRET123" not in result.output


def test_a_folder_without_room_for_a_report_is_said_before_the_load(
    wiki: FakeWiki, trace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full(io.BytesIO):
        def write(self, _data: Any) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("wikibench.report.tempfile.TemporaryFile", lambda **_: Full())
    result = command("replay", trace, "--target", wiki.url, "--report", tmp_path / "out")
    assert result.exit_code == 2
    assert f"{tmp_path / 'out'}: No space left on device" in "".join(result.output.splitlines())
    assert wiki.gets == []


def test_page_names_that_are_no_text(tmp_path: Path) -> None:
    names = tmp_path / "names"
    names.write_bytes(b"A\xff\n")
    result = command("synth", "--titles", names, "--out", tmp_path / "t", "--requests", "5", "--rate", "5")
    assert result.exit_code == 2
    assert "UTF-8" in result.output


@pytest.mark.parametrize("command_line", [("replay",), ("search", "--require", "p95<1s")], ids=["replay", "search"])
def test_a_report_that_cannot_be_written_is_said_before_the_load(
    wiki: FakeWiki, trace: str, tmp_path: Path, command_line: tuple[str, ...]
) -> None:
    (tmp_path / "file").write_text("x")
    result = command(*command_line, trace, "--target", wiki.url, "--report", tmp_path / "file" / "below")
    assert result.exit_code == 2
    assert wiki.gets == []


def test_a_fault_of_ours_is_no_requirement_missed(monkeypatch: pytest.MonkeyPatch, trace: str, wiki: FakeWiki) -> None:
    def fails(*_: Any) -> None:
        raise RuntimeError("a fault")

    monkeypatch.setattr(cli, "print_summary", fails)
    assert command("replay", trace, "--target", wiki.url).exit_code == 4


@pytest.mark.parametrize("ending", [click.Abort, KeyboardInterrupt])
def test_ctrl_c_at_any_moment_is_130(
    monkeypatch: pytest.MonkeyPatch, trace: str, wiki: FakeWiki, ending: type[BaseException]
) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise ending

    monkeypatch.setattr(cli.Experiment, "prepared", interrupted)
    assert command("replay", trace, "--target", wiki.url).exit_code == 130


def test_a_name_that_cannot_be_resolved_is_not_called_another_machine(
    monkeypatch: pytest.MonkeyPatch, trace: str
) -> None:
    def unknown(*_: Any, **__: Any) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    for more in ((), ("--allow-remote",)):
        result = command("replay", trace, "--target", "http://wikki.example:8080", *more)
        assert result.exit_code == 2
        assert "wikki.example cannot be resolved (Name or service not known)" in " ".join(result.output.split())
        assert "not this machine" not in result.output
    assert command("replay", trace, "--target", f"http://{'a' * 70}.example").exit_code == 2


def test_no_secret_is_in_a_report(wiki: FakeWiki, trace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = wiki.url.replace("http://", "http://bob:hunter22@")
    words = ["replay", trace, "--target", target, "--header", "X-Token: Bearer SECRET123", "--report", tmp_path / "out"]
    monkeypatch.setattr("sys.argv", ["wikibench", *map(str, words)])
    result = command(*words)
    assert result.exit_code == 0, result.output
    page, data = ((tmp_path / "out" / name).read_text() for name in ("report.html", "report.json"))
    for secret in ("SECRET123", "hunter22", "Ym9iOmh1bnRlcjIy"):
        assert secret not in page + data + result.output
    assert "X-Token: …" in json.loads(data)["command_line"]


@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
def test_a_replay_with_standard_streams_closed(wiki: FakeWiki, trace: str, tmp_path: Path, closed: str) -> None:
    words = f"replay {trace} --target {wiki.url} --report {tmp_path / 'out'} --lateness 60s"
    ended = wikibench(words, closed)
    assert (ended.returncode, ended.stderr.count(b"Traceback")) == (0, 0)
    assert json.loads((tmp_path / "out" / "report.json").read_text())
