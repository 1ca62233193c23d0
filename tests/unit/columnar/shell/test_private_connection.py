"""``--data`` of a folder that stalls: the command says which folder, and ends."""

from __future__ import annotations

import errno
import os
import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from columnar.cli import main
from columnar.errors import HostError
from columnar.shell import private_connection
from columnar.storage import run_file


def servers_of(data: Path) -> Result:
    return CliRunner().invoke(main, ["servers", "--data", str(data)])


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """What its call waits for."""
    monkeypatch.setattr(private_connection, "FOLDER_S", 0.05)
    answers = threading.Event()
    yield answers
    answers.set()
    for thread in threading.enumerate():
        if thread.name == private_connection.FOLDER:
            thread.join(20)


def test_a_run_file_that_cannot_be_read_now_keeps_no_command(
    tmp_path: Path, held: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = run_file.read

    def read(folder: str) -> run_file.RunFile | None:  # the copies beside sockets lie elsewhere
        if folder == str(tmp_path):
            held.wait(20)
        return really(folder)

    monkeypatch.setattr(run_file, "read", read)
    result = servers_of(tmp_path)
    assert result.exit_code == 2
    assert f"the data folder {tmp_path} does not answer within 0.05 s" in result.output


def test_nor_does_a_folder_that_cannot_be_looked_at(
    tmp_path: Path, held: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = os.stat

    def stat(path: object, *more: object, **named: object) -> object:
        if path == str(tmp_path):
            held.wait(20)
        return really(path, *more, **named)  # type: ignore[arg-type, call-overload]

    monkeypatch.setattr(os, "stat", stat)
    result = servers_of(tmp_path)
    assert result.exit_code == 2
    assert f"the data folder {tmp_path} does not answer" in result.output


def test_errors_of_the_folder_are_told_as_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.touch()
    assert f"Directory '{file}' is a file" in servers_of(file).output
    assert f"nobody serves {tmp_path} with several servers" in servers_of(tmp_path).output
    (tmp_path / run_file.NAME).write_text("nonsense")
    assert "is damaged; a restart of the store writes it anew" in servers_of(tmp_path).output

    def refuses(_data: str) -> None:
        raise OSError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))

    monkeypatch.setattr(run_file, "read", refuses)
    result = servers_of(tmp_path)
    assert result.exit_code == 2
    assert "does not answer within" not in result.output


@pytest.fixture
def listening(tmp_path: Path) -> Iterator[str]:
    """The path of a socket that listens."""
    path = str(tmp_path / "living")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        yield path


def left_by(folder: Path, pid: int, path: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    run_file.write(str(folder), run_file.RunFile(pid, "c", path))


def test_a_node_that_lives_comes_before_those_that_were_killed(tmp_path: Path, listening: str) -> None:
    dead = tmp_path / "dead"
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(str(dead))
    data = tmp_path / "data"
    left_by(data / "nodes" / "n1", 1, str(dead))
    left_by(data / "nodes" / "n2", 2, listening)
    left_by(data / "nodes" / "n3", 3, str(tmp_path / "of a different machine"))
    found = run_file.read_local(str(data))
    assert found is not None
    assert found.pid == 2
    left_by(data, 4, str(dead))  # by the last process that served the folder alone
    assert run_file.read_local(str(data)) == found


@pytest.mark.parametrize("damaged", ["nodes/n1", "."], ids=["another node's", "that of a process alone"])
def test_a_file_that_a_power_cut_emptied_hides_no_node_of_this_machine(
    tmp_path: Path, listening: str, damaged: str
) -> None:
    """The file is not synced; that of another machine's node stays until that node starts again."""
    data = tmp_path / "data"
    left_by(data / damaged, 1, str(tmp_path / "of a different machine"))
    (data / damaged / run_file.NAME).write_bytes(b"")
    said = f"{data / damaged / run_file.NAME} is damaged; a restart of the store writes it anew"
    with pytest.raises(HostError, match=re.escape(said)):
        run_file.read_local(str(data))
    left_by(data / "nodes" / "n2", 2, listening)
    found = run_file.read_local(str(data))
    assert found is not None
    assert found.pid == 2


def test_a_folder_of_nodes_is_not_started_as_one_of_a_single_process(tmp_path: Path) -> None:
    data = tmp_path / "data"
    left_by(data / "nodes" / "n1", 1, str(tmp_path / "dead"))
    (data / "CLUSTER").touch()
    said = servers_of(data).output
    assert f"no node of this machine serves {data}; start one with 'columnar node'" in said
    assert "standalone" not in said
    left_by(data, 4, str(tmp_path / "dead"))
    assert f"process 4 does not serve {data} any more; start it with 'columnar node'" in servers_of(data).output
