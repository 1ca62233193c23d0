"""The private socket of a node: a folder that stands still holds neither the loop nor, beyond a limit, the stop."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from columnar.coordination.socket_folder import SocketFolder
from columnar.roles import membership
from columnar.roles.membership import ControlSocket
from columnar.storage import run_file
from columnar.storage.data_folder import DataFolder
from columnar.wire.server import WireServer

WAIT_S = 20.0


class Wire:
    """A wire that only keeps its socket."""

    def __init__(self) -> None:
        self.listening: socket.socket | None = None

    async def serve_privately(self, listening: socket.socket) -> None:
        self.listening = listening

    async def close(self, _grace_s: float) -> None:
        assert self.listening is not None
        self.listening.close()


class Stall:
    """A call of the folder that the test holds back."""

    def __init__(self, call: Callable[..., None], only: str) -> None:
        self._call = call
        self._only = only
        self.begun, self.goes_on = threading.Event(), threading.Event()

    def __call__(self, place: str, *rest: Any) -> None:
        if place == self._only:
            self.begun.set()
            assert self.goes_on.wait(WAIT_S), "nobody else runs: the loop is held"
        self._call(place, *rest)


async def until(event: threading.Event) -> None:
    async with asyncio.timeout(WAIT_S):
        while not event.is_set():  # noqa: ASYNC110 - a thread sets it
            await asyncio.sleep(0.001)


def made(place: Path, run_folder: SocketFolder) -> ControlSocket:
    folder = SimpleNamespace(cluster_id="c", path=str(place))
    return ControlSocket(cast(WireServer, Wire()), cast(DataFolder, folder), run_folder, str(place))


def test_the_run_file_is_written_and_removed_beside_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writing, removing = Stall(run_file.write, str(tmp_path)), Stall(run_file.remove, str(tmp_path))
    monkeypatch.setattr(run_file, "write", writing)
    monkeypatch.setattr(run_file, "remove", removing)

    async def main(run_folder: SocketFolder) -> None:
        control = made(tmp_path, run_folder)
        opening = asyncio.ensure_future(control.open_socket())
        await until(writing.begun)
        assert not opening.done()
        writing.goes_on.set()
        await opening
        found, copy = run_file.read(str(tmp_path)), run_file.read(run_folder.path)
        assert found is not None
        assert (found.pid, found.cluster_id, found.data) == (os.getpid(), "c", "")
        assert copy is not None
        assert (copy.socket, copy.data) == (found.socket, str(tmp_path))
        closing = asyncio.ensure_future(control.close())
        await until(removing.begun)
        assert not closing.done()
        removing.goes_on.set()
        await closing
        assert run_file.read(str(tmp_path)) is None

    run_folder = SocketFolder.made()
    try:
        asyncio.run(main(run_folder))
    finally:
        run_folder.remove()


def test_a_stop_does_not_wait_for_a_folder_that_stands_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    removing = Stall(run_file.remove, str(tmp_path))
    monkeypatch.setattr(run_file, "remove", removing)
    monkeypatch.setattr(membership, "REMOVAL_S", 0.05)

    async def main(run_folder: SocketFolder) -> None:
        control = made(tmp_path, run_folder)
        await control.open_socket()
        await control.close()
        assert not removing.goes_on.is_set()

    run_folder = SocketFolder.made()
    try:
        asyncio.run(main(run_folder))
    finally:
        run_folder.remove()
        removing.goes_on.set()
    assert f"{tmp_path}/run.json stays" in caplog.text


def test_a_run_file_that_cannot_be_written_is_an_error_of_the_start(tmp_path: Path) -> None:
    async def main(run_folder: SocketFolder) -> None:
        control = made(tmp_path / "missing", run_folder)
        with pytest.raises(membership.HostError, match=r"cannot write .*run\.json"):
            await control.open_socket()
        await control.close()

    run_folder = SocketFolder.made()
    try:
        asyncio.run(main(run_folder))
    finally:
        run_folder.remove()
