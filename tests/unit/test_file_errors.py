"""Commands on files: a full or unwritable folder is named, and not the connection."""

from __future__ import annotations

import errno
import os
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click import ClickException

from columnar.backup import folder_store, store_backup, table_export
from columnar.backup.repository import Repository
from columnar.errors import HostError
from columnar.runtime.file_errors import files_in, is_of_file
from columnar.shell.connecting import Misused, Unreachable, report_errors
from tests.support.shell import Shell, store_at

FREE_SOME = "No space left on device; free some space, or give another folder"
FULL = OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    ("error", "is_files"),
    [
        (FULL, True),
        (PermissionError(errno.EACCES, "no", "/x"), True),
        (OSError(errno.EROFS, "read-only"), True),
        (OSError(errno.EDQUOT, "quota"), True),
        (OSError(errno.EIO, "disk"), True),
        (FileNotFoundError(errno.ENOENT, "no", "/x"), True),
        (NotADirectoryError(errno.ENOTDIR, "no", "/x"), True),
        (ConnectionRefusedError(errno.ECONNREFUSED, "no"), False),
        (ConnectionResetError(errno.ECONNRESET, "no"), False),
        (BrokenPipeError(errno.EPIPE, "no"), False),
        (TimeoutError("slow"), False),
        (socket.gaierror(-2, "no such host"), False),
        (OSError(errno.EHOSTUNREACH, "no route"), False),
        (OSError(errno.ENETUNREACH, "no net"), False),
        (ssl.SSLError(1, "tls"), False),
        (OSError("no number"), False),
    ],
)
def test_which_errors_are_of_files(error: OSError, is_files: bool) -> None:
    assert is_of_file(error) == is_files
    expected: type[Exception] = HostError if is_files else type(error)
    with pytest.raises(expected), files_in("/backup"):
        raise error
    if isinstance(error, BrokenPipeError | ssl.SSLError):  # told in other words
        return
    with pytest.raises(ClickException) as caught, report_errors("127.0.0.1:9090"):
        raise error
    assert isinstance(caught.value, Misused if is_files else Unreachable)
    assert ("127.0.0.1:9090" in caught.value.message) != is_files


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    with store_at(tmp_path_factory.mktemp("files") / "data") as address:
        shell = Shell(address)
        shell.out("create", "gl", "f")
        shell.out("put", "gl", "r", "f:q=v")
        yield shell


def full(*_args: Any, **_options: Any) -> Any:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("where", ["_write_synced", "sync_folder"])
def test_a_backup_on_a_full_disk_says_so(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    monkeypatch.setattr(folder_store, where, full)
    said = shell.error("backup", str(tmp_path / "bk"))
    assert (
        said == f"cannot write to {tmp_path / 'bk'}: No space left on device; free some space, or give another folder"
    )


def test_an_export_on_a_full_disk_says_so(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_export, "_write_part", full)
    said = shell.error("export", "gl", str(tmp_path / "ex"))
    assert (
        said == f"cannot write to {tmp_path / 'ex'}: No space left on device; free some space, or give another folder"
    )


def test_a_restore_on_a_full_disk_says_so_and_leaves_nothing(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.out("backup", str(tmp_path / "bk"))
    assert (tmp_path / "bk").stat().st_mode & 0o777 == 0o700
    with monkeypatch.context() as patch:
        patch.setattr(store_backup, "write_durably", full)
        said = shell.error("restore-backup", str(tmp_path / "bk"), "--data", str(tmp_path / "new"))
    assert said.startswith(f"cannot write to {tmp_path / 'new'}: No space left on device")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["bk"]
    shell.out("restore-backup", str(tmp_path / "bk"), "--data", str(tmp_path / "new"))
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700


def test_folders_that_cannot_be_made_are_named(shell: Shell, tmp_path: Path) -> None:
    shell.out("backup", str(tmp_path / "bk"))
    for words in (
        ("backup", "/proc/x"),
        ("export", "gl", "/proc/x"),
        ("restore-backup", str(tmp_path / "bk"), "--data", "/proc/x"),
    ):
        said = shell.error(*words)
        assert "/proc" in said, words
        assert "127.0.0.1" not in said, words


def test_an_output_that_cannot_be_written_is_no_file() -> None:
    with pytest.raises(Misused) as caught, report_errors("127.0.0.1:9090"):
        raise FULL
    said = "cannot write the output: No space left on device; send it elsewhere, or make room for it"
    assert caught.value.message == said


def test_a_restore_on_a_full_disk_names_the_file(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.out("backup", str(tmp_path / "bk"))
    monkeypatch.setattr(Repository, "file_pieces", full)
    said = shell.error("restore-backup", str(tmp_path / "bk"), "--data", str(tmp_path / "new"))
    assert said.startswith(f"cannot restore {tmp_path}/new.restoring/")
    assert said.endswith(": No space left on device")
    assert not (tmp_path / "new.restoring").exists()


@pytest.mark.parametrize("package", ["columnar", "wikka_port"])
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--help >/dev/full", "cannot write the output: No space left on device"),
        ("nope 2>/dev/full", ""),
        ("--help >/dev/full 2>/dev/full", ""),
    ],
)
def test_a_command_whose_output_is_full_ends_with_one_line(package: str, words: str, said: str) -> None:
    ended = ended_command(package, words)
    assert ended.returncode == 2
    assert said in ended.stderr
    assert ended.stderr.count("\n") == (1 if said else 0)


def test_a_file_that_cannot_be_written_is_named() -> None:
    ended = ended_command("wikka_port", "texts /proc/de.po")
    assert ended.returncode == 2
    assert ended.stderr.startswith("wikka: cannot use /proc/de.po: ")


def ended_command(package: str, words: str) -> subprocess.CompletedProcess[str]:
    started = f"exec {sys.executable} -m {package}.cli {words}"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    return subprocess.run(["/bin/sh", "-c", started], env=environment, capture_output=True, text=True, timeout=60)
