"""The folder of the sockets of a store: it is nobody else's, and its sockets come back."""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
from pathlib import Path

import pytest

from columnar.coordination import socket_folder
from columnar.coordination.socket_folder import ListeningPath, SocketFolder, make_private
from columnar.errors import HostError


def test_a_folder_that_is_missing_is_made_for_its_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "run"
    make_private(str(path))
    assert path.stat().st_mode & 0o777 == 0o700
    make_private(str(path))


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701])
def test_a_folder_that_others_may_enter_is_not_used(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "run"
    path.mkdir()
    path.chmod(mode)
    with pytest.raises(HostError, match="is not the store's own now"):
        make_private(str(path))


def test_a_link_to_a_folder_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir(mode=0o700)
    (tmp_path / "run").symlink_to(tmp_path / "own")
    with pytest.raises(HostError, match="is not the store's own now"):
        make_private(str(tmp_path / "run"))


def test_a_folder_whose_parent_is_gone_too_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(HostError, match=r"cannot make .*/run: No such file"):
        make_private(str(tmp_path / "gone" / "run"))


def is_locked(path: str) -> bool:
    """Whether a cleaner that wants the folder for itself must pass it by."""
    cleaner = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(cleaner, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(cleaner)


def test_the_folder_is_locked_against_cleaners_until_it_is_removed() -> None:
    folder = SocketFolder.made()
    assert is_locked(folder.path)
    shutil.rmtree(folder.path)
    make_private(folder.path)
    assert not is_locked(folder.path)
    folder.lock()
    assert is_locked(folder.path)
    folder.remove()
    assert not os.path.exists(folder.path)


@pytest.mark.parametrize("failures", [0, 2])
def test_a_socket_whose_name_was_removed_is_there_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, failures: int
) -> None:
    monkeypatch.setattr(socket_folder, "CHECK_S", 0.001)
    path = tmp_path / "run" / "socket"
    tries = 0

    async def scenario() -> None:
        nonlocal tries
        back = asyncio.Event()

        async def listen() -> None:
            nonlocal tries
            tries += 1
            if tries <= failures:
                raise OSError(28, "No space left on device")
            path.touch()
            back.set()

        make_private(str(path.parent))
        path.touch()
        listening = ListeningPath(str(path), listen)
        listening.begin()
        for _ in range(2):
            shutil.rmtree(path.parent)
            await asyncio.wait_for(back.wait(), 20)
            back.clear()
        await listening.close()
        path.unlink()
        await asyncio.sleep(0.01)  # a look that was not called off would make it again
        assert not path.exists()

    asyncio.run(scenario())
    assert tries == failures + 2
    said = [record.message for record in caplog.records]
    assert [text.count("nobody can listen there again") for text in said].count(1) == min(failures, 1), said
