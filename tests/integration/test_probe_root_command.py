"""``columnar probe-root``: on one machine, between two, with mounts that hang or end; nothing is left behind."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from columnar.shell import probe_link
from columnar.shell.probe_link import (
    LINE_BYTES,
    LinkLost,
    MountLink,
    accept_joined,
    joined,
    local_mount,
    new_code,
    read_line,
    serve,
    token_of,
)
from columnar.storage.data_folder import PROBES
from columnar.storage.probe_mount import MountOperations, MountStalls
from tests.support.shell import Shell
from tests.support.stopped_process import stop_process

WAIT_S = 60.0  # the machine may be busy
SHELL = Shell("127.0.0.1:1")
TOKEN = "0123456789abcdef"


def started(*words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "columnar", "probe-root", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@contextmanager
def two_sockets() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, its = socket.socketpair()
    with ours, its:
        yield ours, its


def test_one_mount(tmp_path: Path) -> None:
    lines = [line.split("\t") for line in SHELL.out("probe-root", str(tmp_path)).splitlines()]
    assert lines[-1] == ["suitable"]
    assert {line[0] for line in lines[:-1]} == {"ok", "note"}
    assert lines[-2][:2] == ["note", "one mount"], "one mount is no proof, and the report says so"
    assert sum(line[1] == "file system" and line[0] == "ok" for line in lines[:-1]) == 1
    assert os.listdir(tmp_path) == []


def test_two_paths_of_one_folder_as_json(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "also").symlink_to(tmp_path / "data", target_is_directory=True)
    report = SHELL.json("probe-root", str(tmp_path / "data"), "--also", str(tmp_path / "also"))
    assert report["suitable"] is True
    texts = {one["name"]: one["text"] for one in report["findings"]}
    assert texts["bytes"] == "20 of 20 files were read whole as soon as they were synced"
    assert os.listdir(tmp_path / "data") == []


def test_two_folders_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("columnar.storage.probe_root.STALE_S", 0.1)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    result = SHELL("probe-root", str(tmp_path / "a"), "--also", str(tmp_path / "b"))
    assert result.exit_code == 1
    assert result.stdout.splitlines()[-1].startswith("NOT SUITABLE")
    assert "FAULT\tsame folder" in result.stdout
    assert os.listdir(tmp_path / "a") == []


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_two_machines(tmp_path: Path, form: tuple[str, ...]) -> None:
    with started(str(tmp_path), "--listen", "127.0.0.1:0", *form) as first:
        assert first.stderr is not None
        line = first.stderr.readline()
        found = re.fullmatch(r"on the other machine: columnar probe-root (\S+) --join (\S+)\n", line)
        assert found is not None, line
        with started(found[1], "--join", found[2], *form) as second:
            outputs = [process.communicate(timeout=WAIT_S)[0] for process in (first, second)]
            assert (first.returncode, second.returncode) == (0, 0), outputs
    assert outputs[0].splitlines() == outputs[1].splitlines()
    if form:
        assert json.loads(outputs[0])["suitable"] is True
    else:
        assert outputs[0].splitlines()[-1] == "suitable"
    assert "one mount" in outputs[0], "both machines are this one"
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--join", "127.0.0.1"), "expected HOST:PORT/CODE"),
        (("--join", "127.0.0.1:99999/aa"), "expected HOST:PORT/CODE"),
        (("--listen", "here:"), "expected PORT or HOST:PORT"),
        (("--listen", "127.0.0.1:0", "--also", "/tmp"), "exclude each other"),
        (("--limit", "0"), "--limit"),
    ],
)
def test_misuse(tmp_path: Path, words: tuple[str, ...], says: str) -> None:
    result = SHELL("probe-root", str(tmp_path), *words)
    assert result.exit_code == 2
    assert says in result.stderr


def test_what_cannot_be_tried(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    assert SHELL.error("probe-root", str(missing), status=2) == f"{missing} cannot be tried: No such file or directory"
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        said = SHELL.error("probe-root", str(tmp_path), "--listen", address, status=2)
        assert said == f"cannot listen on {address}: Address already in use"
    assert "Connection refused" in SHELL.error("probe-root", str(tmp_path), "--join", f"{address}/aa", status=2)


def test_nobody_joins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("columnar.shell.probe_root.WAIT_S", 0.05)
    result = SHELL("probe-root", str(tmp_path), "--listen", "127.0.0.1:0")
    assert result.exit_code == 2
    assert "no other machine has joined for 0.05 s" in result.stderr


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT])
def test_an_ended_command_leaves_nothing(tmp_path: Path, ending: signal.Signals) -> None:
    with started(str(tmp_path), "--listen", "127.0.0.1:0") as first:
        assert first.stderr is not None
        address, _, code = first.stderr.readline().split()[-1].partition("/")
        host, port = address.split(":")
        with joined((host, int(port)), code) as connection:
            while (request := read_line(connection, WAIT_S))["call"] != "is_there":
                probe_link.send_line(connection, {"value": {"kind": "", "refusal": "", "remarks": []}})
            probe_link.send_line(connection, {"value": False})
            request = read_line(connection, WAIT_S)  # after the folder was made
            assert request["call"] == "is_there"
            assert os.listdir(tmp_path) == [PROBES + token_of(code)]
            first.send_signal(ending)
            first.communicate(timeout=WAIT_S)
    until_gone(tmp_path)


def until_gone(folder: Path) -> None:
    """Wait until the process that served the mount has removed its files; nothing else waits for it."""
    ended = threading.Event()
    for _ in range(int(WAIT_S / 0.02)):
        if not os.listdir(folder):
            return
        ended.wait(0.02)
    raise AssertionError(os.listdir(folder))


# --- the link ----------------------------------------------------------------------------------------------


def test_a_mount_that_hangs_is_named_after_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    processes: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def noted(*arguments: Any, **more: Any) -> subprocess.Popen[bytes]:
        processes.append(popen(*arguments, **more))
        return processes[-1]

    monkeypatch.setattr(subprocess, "Popen", noted)
    with local_mount(str(tmp_path), TOKEN, 0.2) as mount:
        MountLink.run_operation(mount_with_limit(mount, WAIT_S), "clock")  # it has started
        mount_with_limit(mount, 0.2)
        stop_process(processes[0].pid)
        for _ in range(2):
            with pytest.raises(MountStalls, match=rf"{tmp_path} has not answered for 0\.2 s"):
                mount.run_operation("clock")
    assert processes[0].returncode == -signal.SIGKILL


def mount_with_limit(mount: MountLink, seconds: float) -> MountLink:
    mount._limit_s = seconds
    return mount


def test_a_mount_whose_process_has_ended(tmp_path: Path) -> None:
    with two_sockets() as (ours, its):
        mount = MountLink("/mnt", ours, WAIT_S)
        its.close()
        for _ in range(2):
            with pytest.raises(LinkLost, match="the probe at /mnt has ended"):
                mount.run_operation("clock")
        mount.send_report({})


def test_what_a_peer_sends_is_checked(tmp_path: Path) -> None:
    for line in (b"[]\n", b"no json\n", b"x" * (LINE_BYTES + 2)):
        with two_sockets() as (ours, its):
            its.sendall(line)
            its.shutdown(socket.SHUT_WR)
            with pytest.raises(ValueError, match=r"."):
                read_line(ours, WAIT_S)
    requests = ({"call": "clock"}, {"with": []}, {"call": 5, "with": [1]}, {"call": "write", "with": ["../a", 1, 1]})
    with two_sockets() as (ours, its), closing(MountOperations(str(tmp_path), TOKEN)) as mount:
        server = threading.Thread(target=serve, args=(ours, mount))
        server.start()
        answers = []
        for request in requests:
            probe_link.send_line(its, request)
            answers.append(read_line(its, WAIT_S))
        its.close()
        server.join(WAIT_S)
    assert ["errno" in answer for answer in answers] == [False, True, True, True]


def test_a_machine_without_the_code_is_refused_and_the_right_one_still_joins() -> None:
    code, refused = new_code(), []
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        address = listener.getsockname()
        accepted: list[socket.socket] = []
        thread = threading.Thread(
            target=lambda: accepted.append(accept_joined(listener, code, WAIT_S, refused.append)[0])
        )
        thread.start()
        with joined(address, new_code()) as wrong:
            assert wrong.recv(1) == b"", "it was closed"
        with socket.create_connection(address) as silent:
            silent.shutdown(socket.SHUT_WR)
            silent.recv(LINE_BYTES)
            assert silent.recv(1) == b""
        with joined(address, code) as right:
            thread.join(WAIT_S)
            probe_link.send_line(accepted[0], {"report": {}})
            assert read_line(right, WAIT_S) == {"report": {}}
        accepted[0].close()
    assert refused[0] == "127.0.0.1 does not know the code"
    assert len(refused) == 2


def test_a_machine_that_does_not_probe_is_left_at_once(tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.sendall(b'{"hello": 1}\n')

        thread = threading.Thread(target=answer)
        thread.start()
        port = listener.getsockname()[1]
        said = SHELL.error("probe-root", str(tmp_path), "--join", f"127.0.0.1:{port}/aa", status=2)
        assert said == f"cannot join 127.0.0.1:{port}: no probe listens there"
        thread.join()


@pytest.mark.parametrize("report", [{}, {"suitable": True, "findings": [1]}, {"suitable": 1, "findings": []}])
def test_a_report_of_another_version(tmp_path: Path, report: dict[str, Any]) -> None:
    code = new_code()
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:

        def answer() -> None:
            with accept_joined(listener, code, WAIT_S, print)[0] as connection:
                probe_link.send_line(connection, {"report": report})

        thread = threading.Thread(target=answer)
        thread.start()
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        said = SHELL.error("probe-root", str(tmp_path), "--join", f"{address}/{code}", status=2)
        assert said == f"the probe at {address} has another version"
        thread.join()
