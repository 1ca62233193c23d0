"""A folder that may stall: its own thread probes it each second, with a time limit.

    answers --a probe is unanswered for LIMIT_S--> stalls --the probe is answered--> answers

A file operation has no time limit: if the servers of a network folder are unreachable, or a disk repeats a failing
command, the operation blocks its thread for minutes.  So a loop that must stay responsive calls no function on its
folder.  The loop reads here the result of the last probe; an unanswered probe means that operations on the folder wait.

The probe is one ``statvfs``, which the file system's server answers.  A local disk that blocks only writes, such as a
frozen one, also answers it.

Invariants:
    W1. At most one probe is under way, so that a stalled folder blocks only one thread.
    W2. ``room`` is the answer of the last probe; None before the first answer, and after an error.

Owned by the loop, except the thread, which uses only the queue of probes.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Final

from columnar.errors import HostError
from columnar.runtime.planned_step import PlannedStep
from columnar.storage.file_systems import MountEvicted

_log = logging.getLogger(__name__)

LOOP: Final = "the watch of the data folder"
THREAD: Final = "probes of the data folder"
PROBE_S: Final = 1.0  # between two probes
LIMIT_S: Final = 1.0  # PROBE_S + LIMIT_S is less than the time until a silent server is killed (``master.liveness``)
LATE_S: Final = 0.5  # a loop that checks the limit so late was blocked, and may not have read the answer


@dataclass(frozen=True, slots=True)
class Room:
    """The room of the folder's disk, for the store's user."""

    free_bytes: int
    size_bytes: int


def room_of(path: str) -> Room:
    """Return the room of the disk at ``path``.  Blocks; raises OSError."""
    found = os.statvfs(path)
    return Room(found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize)


class WatchedFolder:
    """The state of a watched folder.  Call ``begin`` first, ``close`` last."""

    def __init__(
        self, path: str, probe: Callable[[], Room], on_evicted: Callable[[str], None] = lambda _why: None
    ) -> None:
        """Take the path, which messages name, and ``probe``, which runs in the thread.

        The probe blocks, and may raise OSError, HostError, and MountEvicted, with whose text ``on_evicted`` is called
        on the loop: no later operation on the folder succeeds.
        """
        self._on_evicted = on_evicted
        self.path = path
        self.room: Room | None = None
        self._probe = probe
        self._wanted: SimpleQueue[asyncio.AbstractEventLoop | None] = SimpleQueue()  # None ends the thread
        self._step = PlannedStep(LOOP, self._check_folder)
        self._begun_s: float | None = None  # when the probe under way began
        self._limit_s = 0.0  # when that probe is unanswered for too long
        self._answering: asyncio.Future[None] | None = None  # while the folder stalls; done when it answers
        self._refusal = ""  # the last one that was logged
        self._is_closed = False

    def begin(self) -> None:
        threading.Thread(target=self._serve_probes, name=THREAD, daemon=True).start()
        self._check_folder()

    @property
    def is_stalled(self) -> bool:
        return self._answering is not None

    def stalled_s(self) -> float:
        """Return for how long the folder has not answered; 0 unless it stalls."""
        if self._answering is None or self._begun_s is None:
            return 0.0
        return asyncio.get_running_loop().time() - self._begun_s

    def remark(self) -> str:
        """Return a sentence for people if the folder stalls, otherwise an empty text."""
        if self._answering is None:
            return ""
        text = f"the data folder {self.path} has not answered for {self.stalled_s():.1f} s"
        return f"{text}: requests that need it wait, and no server is killed for that"

    async def until_it_answers(self) -> None:
        """Wait until the folder does not stall; as a rule this returns at once."""
        while self._answering is not None:
            await asyncio.shield(self._answering)

    def close(self) -> None:
        """Stop probing.  A thread whose probe is unanswered is not waited for: it ends with the process."""
        self._is_closed = True
        self._step.cancel()
        self._wanted.put(None)
        self._answers()

    # --- probes --------------------------------------------------------------------------------------------

    def _check_folder(self) -> None:
        """Begin a probe; if one is under way and its limit has passed, mark the folder as stalled."""
        loop = asyncio.get_running_loop()
        if self._begun_s is None:
            self._begun_s = loop.time()
            self._wanted.put(loop)
            self._wait_for_limit(loop.time())
        elif loop.time() - self._limit_s > LATE_S:
            self._wait_for_limit(loop.time())
        elif self._answering is None:
            self._answering = loop.create_future()
            _log.error("%s", self.remark())

    def _wait_for_limit(self, now_s: float) -> None:
        self._limit_s = now_s + LIMIT_S
        self._step.after(LIMIT_S)

    def _serve_probes(self) -> None:
        while (loop := self._wanted.get()) is not None:
            try:
                found: Room | OSError | HostError = self._probe()
            except (OSError, HostError) as error:
                found = error
            try:
                loop.call_soon_threadsafe(self._probed, found)
            except RuntimeError:  # the loop was closed meanwhile
                return

    def _probed(self, found: Room | OSError | HostError) -> None:
        if self._is_closed:
            return
        if self._answering is not None:
            _log.warning("the data folder %s answers again after %.1f s", self.path, self.stalled_s())
        self._begun_s = None
        self.room = found if isinstance(found, Room) else None
        if isinstance(found, Room):
            self._refusal = ""
        elif self._refusal != str(found):
            self._refusal = str(found)
            _log.error("nobody can tell how much of the disk is free: %s", found)
            if isinstance(found, MountEvicted):
                self._on_evicted(self._refusal)
        self._answers()
        self._step.cancel()
        self._step.after(PROBE_S)

    def _answers(self) -> None:
        answering, self._answering = self._answering, None
        if answering is not None and not answering.done():
            answering.set_result(None)
