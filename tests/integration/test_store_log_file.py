"""``--log-file``: one file of a whole store, which an operator renames; and refusals at the start."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.cluster_process import ClusterProcess
from tests.support.readme_blocks import await_that
from tests.support.standalone_store import ROOT, WAIT_S


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def open_by(pid: int, path: Path) -> bool:
    inode = path.stat().st_ino
    folder = Path(f"/proc/{pid}/fd")
    return any(one.stat().st_ino == inode for one in folder.iterdir() if one.exists())


def test_all_processes_of_a_store_share_a_file_and_let_go_of_one_that_was_renamed(tmp_path: Path) -> None:
    path, older = tmp_path / "columnar.log", tmp_path / "columnar.log.old"
    flags = ("--log-file", str(path), "--log-format", "json")
    with ClusterProcess(tmp_path / "data", 2, *flags) as store:
        processes = [store.pid, *store.servers()]
        assert {line["role"] for line in lines_of(path)} == {"node", "server"}
        assert {line.get("server", "-").partition(".")[0] for line in lines_of(path)} == {"-", "s1", "s2"}
        assert {line["pid"] for line in lines_of(path)} == {*processes}
        path.rename(older)
        os.kill(store.pid, signal.SIGHUP)  # with neither a settings file nor TLS it has only the log file to open
        await_that(lambda: path.exists() and all(open_by(pid, path) for pid in processes), WAIT_S, older.read_text)
        assert not [pid for pid in processes if open_by(pid, older)]
        assert store.stop() == 0
        assert [line["message"] for line in lines_of(path)][-1] == "stopped"
        assert store.log.read_text() == "", "standard error has nothing"
    assert lines_of(older)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (
            ("--log-file", "{folder}/none/log"),
            "cannot open the log file {folder}/none/log: No such file or directory",
        ),
        (("--log-file", "{folder}/log", "--log-to", "stderr"), "--log-file and --log-to exclude each other"),
        (("--log-format", "json", "--log-to", "journald"), "--log-format json is for stderr and files"),
        (
            ("--log-file", "{folder}/log", "--log-file-bytes", "12"),
            "'12' is no size of a file; write",
        ),
    ],
)
def test_a_log_that_cannot_be_is_refused_in_a_line(flags: tuple[str, ...], said: str, tmp_path: Path) -> None:
    words = [flag.format(folder=tmp_path) for flag in flags]
    command = [sys.executable, "-m", "columnar", "standalone", "--data", str(tmp_path / "data"), *words]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert ended.returncode == 2
    assert said.format(folder=tmp_path) in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "data").exists()
