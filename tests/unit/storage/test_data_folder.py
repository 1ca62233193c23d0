"""A data folder that cannot be used is not left locked: what was opened on the way is closed at once."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest

from columnar import clock
from columnar.clock import ClockFile
from columnar.config import StandaloneConfig
from columnar.errors import FolderInUse, HostError
from columnar.roles.standalone import Standalone
from columnar.storage import data_folder
from columnar.storage.data_folder import REGIONS, DataFolder, is_new


def open_files() -> set[str]:
    """The files that this process has open, by their descriptors' links."""
    found = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            found.add(os.readlink(f"/proc/self/fd/{name}"))
        except FileNotFoundError:  # the listing's own
            continue
    return found


def lock_of(folder: Path) -> str:
    return str(folder / "LOCK")


def test_a_refused_folder_is_unlocked(tmp_path: Path) -> None:
    DataFolder.locked(str(tmp_path)).close()
    (tmp_path / "FORMAT").write_text("columnar-data 10\n")
    with pytest.raises(HostError, match="upgrade") as refused:
        DataFolder.locked(str(tmp_path))
    assert lock_of(tmp_path) not in open_files(), "the error keeps the frame, and the frame would keep the lock"
    assert refused.value.text
    (tmp_path / "FORMAT").write_text("columnar-data 5\n")
    (tmp_path / REGIONS).rmdir()
    with pytest.raises(HostError, match="is missing"):
        DataFolder.locked(str(tmp_path))
    (tmp_path / REGIONS).mkdir()
    again = DataFolder.locked(str(tmp_path))
    assert lock_of(tmp_path) in open_files()
    again.close()


def test_a_folder_whose_files_cannot_be_read_is_unlocked(tmp_path: Path) -> None:
    (tmp_path / "FORMAT").mkdir()
    with pytest.raises(HostError, match="cannot use the data folder") as refused:
        DataFolder.locked(str(tmp_path))
    assert lock_of(tmp_path) not in open_files()
    assert refused.value.text


def test_a_store_whose_certificate_cannot_be_read_leaves_the_folder_unlocked(tmp_path: Path) -> None:
    config = StandaloneConfig(str(tmp_path), port=0, web_port=-1, tls_cert=str(tmp_path / "none"), tls_key="none")
    with pytest.raises(HostError, match="--tls-cert") as refused:
        Standalone.locked(config)
    assert lock_of(tmp_path) not in open_files()
    assert refused.value.text
    DataFolder.locked(str(tmp_path)).close()


def test_a_clock_that_cannot_be_read_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(clock.os, "pread", refuse)
    with pytest.raises(HostError, match=r"cannot use .*clock") as refused:
        ClockFile.opened(str(tmp_path))
    assert str(tmp_path / clock.NAME) not in open_files()
    assert refused.value.text


# --- a supervisor that was killed, and a server that has not ended yet -----------------------------------

SUPERVISOR = """
import os, subprocess, sys
from columnar.storage.data_folder import DataFolder
folder = DataFolder.locked(sys.argv[1])
server = "import sys; print('held', flush=True); sys.stdin.read()"
subprocess.Popen([sys.executable, "-c", server], pass_fds=[folder.lock_descriptor])
os._exit(0)
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[IO[bytes]]:
    """The stdin of a process that holds the lock of ``tmp_path`` and ends with it; who took the lock has ended."""
    command = [sys.executable, "-c", SUPERVISOR, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as supervisor:
        assert supervisor.stdin is not None
        assert supervisor.stdout is not None
        assert supervisor.stdout.readline() == b"held\n"
        supervisor.wait()
        yield supervisor.stdin
        supervisor.stdin.close()
        assert supervisor.stdout.read() == b"", "it has ended"


def looking(monkeypatch: pytest.MonkeyPatch, then: Callable[[], None]) -> list[float]:
    """Call ``then`` at each pause between two looks at a lock; the list grows by each pause."""
    pauses: list[float] = []
    sleep = time.sleep

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        then()
        sleep(seconds)

    monkeypatch.setattr(data_folder, "sleep", pause)
    return pauses


def test_a_start_waits_for_the_servers_of_a_supervisor_that_has_ended(
    tmp_path: Path, server: IO[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that was started a moment before ends after its supervisor; on a busy machine, seconds after it."""
    pauses = looking(monkeypatch, server.close)
    folder = DataFolder.locked(str(tmp_path))
    folder.close()
    assert pauses, "the server had the lock"
    assert (tmp_path / "LOCK").read_text() == f"process {os.getpid()}\n"


def test_a_supervisor_that_nobody_has_reaped_has_ended_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = [sys.executable, "-c", SUPERVISOR, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as supervisor:
        assert supervisor.stdin is not None
        assert supervisor.stdout is not None
        assert supervisor.stdout.readline() == b"held\n"
        os.waitid(os.P_PID, supervisor.pid, os.WEXITED | os.WNOWAIT)
        pauses = looking(monkeypatch, supervisor.stdin.close)
        DataFolder.locked(str(tmp_path)).close()
        assert pauses, "the server had the lock"


@pytest.mark.usefixtures("server")
def test_a_server_that_outlives_its_supervisor_is_named_and_does_not_hold_a_start_up_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_folder, "ENDING_S", 0.0)
    with pytest.raises(FolderInUse, match=r"in use by children of process \d+, which has ended") as refused:
        DataFolder.locked(str(tmp_path))
    assert lock_of(tmp_path) not in open_files()
    assert refused.value.text


def test_a_store_that_lives_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses = looking(monkeypatch, lambda: None)
    folder = DataFolder.locked(str(tmp_path))
    with pytest.raises(FolderInUse, match=f"in use by process {os.getpid()};"):
        DataFolder.locked(str(tmp_path))
    folder.close()
    assert pauses == []


def test_a_new_folder_is_its_users_alone(tmp_path: Path) -> None:
    """Also one that was made beforehand, and with it the folders above the files; a folder that is in use stays."""
    made = tmp_path / "made"
    made.mkdir(mode=0o755)
    for folder in (made, tmp_path / "deep" / "new"):
        DataFolder.locked(str(folder)).close()
        assert folder.stat().st_mode & 0o777 == 0o700
    made.chmod(0o750)  # by its operator
    DataFolder.locked(str(made)).close()
    assert made.stat().st_mode & 0o777 == 0o750


# --- folders that are no store's, or lost what says that they are -----------------------------------------


def refusal(folder: Path) -> str:
    with pytest.raises(HostError) as refused:
        DataFolder.locked(str(folder))
    assert lock_of(folder) not in open_files()
    return refused.value.text


def test_a_folder_of_somebody_else_is_refused_and_stays_as_it_was(tmp_path: Path) -> None:
    """A store was begun between the files of another program."""
    (tmp_path / "notes.txt").write_text("mine")
    assert "not empty: it holds notes.txt; choose an empty or a new folder with --data" in refusal(tmp_path)
    assert os.listdir(tmp_path) == ["notes.txt"]
    (tmp_path / "more").mkdir()
    assert "it holds more and 1 more;" in refusal(tmp_path)


def test_a_new_file_system_and_a_start_that_was_cut_off_are_no_strangers(tmp_path: Path) -> None:
    for name in ("lost+found", REGIONS):
        (tmp_path / name).mkdir()
    for name in ("LOCK", "FORMAT.new"):
        (tmp_path / name).touch()
    DataFolder.locked(str(tmp_path)).close()
    assert (tmp_path / "FORMAT").read_text() == "columnar-data 6\n"
    other = tmp_path / "other"
    (other / "lost+found" / "#12").mkdir(parents=True)
    assert "it holds lost+found;" in refusal(other)


CATALOGUES = ["meta", "meta.5", "meta.6.from"]  # of nodes: a generation, and one whose takeover was cut off


def with_catalogue(folder: Path, entry: str) -> None:
    """Make the store of a catalogue, as far as a look at the folder goes."""
    (folder / REGIONS / entry).mkdir(parents=True)
    (folder / REGIONS / entry / "CURRENT").touch()


@pytest.mark.parametrize("catalogue", CATALOGUES)
@pytest.mark.parametrize("said", [None, "", "something else", "columnar-data", "columnar-data six"])
def test_a_format_that_a_store_lost_is_named_and_written_by_the_repair_alone(
    tmp_path: Path, said: str | None, catalogue: str
) -> None:
    """A folder of any format, without the file, was taken for one of the present format."""
    DataFolder.locked(str(tmp_path)).close()
    with_catalogue(tmp_path, catalogue)
    (tmp_path / "FORMAT").unlink()
    if said is not None:
        (tmp_path / "FORMAT").write_text(said)
    assert f"'columnar repair --data {tmp_path}', which writes it anew" in refusal(tmp_path)
    assert data_folder.lost_format(str(tmp_path)) == ("it was missing" if said is None else f"it said '{said}'")
    DataFolder.locked(str(tmp_path), repairs_format=True).close()
    assert (tmp_path / "FORMAT").read_text() == f"columnar-data {data_folder.FORMAT_VERSIONS[-1]}\n"
    assert data_folder.lost_format(str(tmp_path)) == ""


@pytest.mark.parametrize("entry", ["meta.6.9.new", "meta.5.deleted"])
def test_a_catalogue_that_is_being_made_or_removed_is_no_store(tmp_path: Path, entry: str) -> None:
    with_catalogue(tmp_path, entry)
    assert data_folder.lost_format(str(tmp_path)) == ""
    assert "FORMAT is missing, and of the store beside it the catalogue" in refusal(tmp_path)


def test_a_format_that_cannot_be_looked_for_is_an_error_with_its_reason(tmp_path: Path) -> None:
    """The command ended with a traceback."""
    with_catalogue(tmp_path, "meta")
    (tmp_path / "FORMAT").mkdir()
    with pytest.raises(HostError, match="cannot use the data folder"):
        data_folder.lost_format(str(tmp_path))


def test_a_newer_format_is_no_lost_one(tmp_path: Path) -> None:
    with_catalogue(tmp_path, "meta")
    (tmp_path / "FORMAT").write_text("columnar-data 10")
    assert data_folder.lost_format(str(tmp_path)) == ""
    with pytest.raises(HostError, match="upgrade"):
        DataFolder.locked(str(tmp_path), repairs_format=True)


@pytest.mark.parametrize("left", ["cluster-id", "servers", "opened", "regions/13ab"])
def test_a_store_that_lost_format_and_catalogue_is_no_new_one(tmp_path: Path, left: str) -> None:
    (tmp_path / left).mkdir(parents=True)
    assert "FORMAT is missing, and of the store beside it the catalogue; put it back, or restore" in refusal(tmp_path)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ((), True),
        (("LOCK", "regions/", "lost+found/", ".columnar-probe-1/", "PROBED"), True),
        (("regions/meta/",), False),
        (("FORMAT",), False),
        (("holiday.jpg",), False),
    ],
)
def test_a_folder_is_new_if_a_start_would_begin_a_store_there(
    tmp_path: Path, made: tuple[str, ...], expected: bool
) -> None:
    assert is_new(str(tmp_path / "missing"))
    for name in made:
        if name.endswith("/"):
            (tmp_path / name).mkdir(parents=True)
        else:
            (tmp_path / name).touch()
    assert is_new(str(tmp_path)) is expected
    with pytest.raises(HostError, match="cannot use the data folder"):
        is_new(str(Path(__file__) / "under a file"))
