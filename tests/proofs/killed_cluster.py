"""A real ``columnar standalone --servers N`` of which a process is killed or stopped every few seconds.

Some shots kill the trigger worker of a server alone.  Some stop a server (SIGSTOP) and let it continue later, unless
the supervisor has killed it by then.  Some hit the supervisor with -9 or SIGTERM, which ends all processes.  The other
shots are ``kill -9`` of one server.

``generation`` counts the deaths that clients could notice, so a client that loses an answer in an unchanged generation
lost it without a reason.  Unlike in a store of one process, a later generation does not say whether a lost call has
ended: a different server may still have the call (``cluster_asking``).
"""

from __future__ import annotations

import os
import random
import re
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from columnar.storage.data_folder import SERVERS
from tests.proofs.killed_store import STOPPED, KilledStore, quiet_port
from tests.proofs.verdict import Plan
from tests.support.cluster_process import ClusterProcess, children, gone, reaped

SUPERVISOR: Final = 0.1  # of the shots
WORKER: Final = 0.2
PAUSED: Final = 0.15
PAUSE_S: Final = (0.2, 5.0)  # of a stopped server; after 3 s the supervisor kills it
LEFT_S: Final = 10.0  # processes of a killed supervisor end within so long, on a machine as busy as it may be
NOTICED_S: Final = 2.0  # between the end of a process and its supervisor's word on it
CLEARED_S: Final = 60.0  # what a start has for the logs of dead servers
LOOK_S: Final = 0.01


class KilledCluster(KilledStore):
    _process: ClusterProcess

    def _made(self, folder: Path, plan: Plan, flags: list[str]) -> ClusterProcess:
        self._known: set[int] = set()  # servers' processes that were seen and are not accounted for
        self._pauses: list[threading.Timer] = []
        self.starts = 0  # of supervisors; written under the lock
        return ClusterProcess(folder, plan.servers, *flags, port=quiet_port(random.Random()))

    def servers(self) -> list[int]:
        """The processes of the servers."""
        return self._process.servers()

    # --- shots -------------------------------------------------------------------------------------------

    def _shoot(self) -> None:
        self._account()
        chance, server = self._rng.random(), self._rng.random()
        if chance < SUPERVISOR:
            how = "SIGTERM" if self._rng.random() < STOPPED else "kill -9"
            self.shots[f"{how} of the supervisor"] += 1
            self._restart(how)
        elif servers := sorted(self._process.servers()):
            pid = servers[int(server * len(servers))]
            if chance < SUPERVISOR + WORKER and self._process.kill_workers_of(pid):
                self.shots["kill -9 of a trigger worker"] += 1
            elif chance > 1 - PAUSED:
                self._pause(pid)
            else:
                self._kill(pid)

    def _kill(self, pid: int) -> None:
        self.shots["kill -9 of a server"] += 1
        with suppress(ProcessLookupError):  # the supervisor killed it before
            os.kill(pid, signal.SIGKILL)
        reaped(pid)
        self._known.discard(pid)
        self.generation += 1

    def _pause(self, pid: int) -> None:
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            return
        self.shots["SIGSTOP of a server"] += 1
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(handle, signal.SIGSTOP)
        go_on = threading.Timer(self._rng.uniform(*PAUSE_S), _go_on, (handle,))
        self._pauses.append(go_on)
        go_on.start()

    def peace(self) -> None:
        super().peace()
        for pause in self._pauses:
            pause.join()
        self._pauses.clear()

    def _restart(self, how: str) -> None:
        """Restart the supervisor; no process of the old one is left when the new one starts."""
        self._account()
        family = self._process.family()
        self._known.clear()
        self.starts += 1
        self._left = [pid for pid in family if pid != self._process.pid]
        super()._restart(how)

    def _start(self) -> None:
        if self.starts and not gone(self._left, LEFT_S):
            self._give_up(f"{LEFT_S:.0f} s after the end of the supervisor processes of it are left")
        super()._start()
        self._known = set(self._process.servers())

    # --- what becomes of processes --------------------------------------------------------------------------

    def settle(self, generation: int, why: str = "") -> None:
        """Return when a supervisor serves.  Raises StoreBroken if nothing died since ``generation``."""
        deadline = time.monotonic() + NOTICED_S
        while True:
            with self._lock:
                self._check()
                if self._process.has_ended():
                    self._give_up("the supervisor ended, and nobody had killed it")
                self._account()
                if self.generation != generation:
                    return
                if time.monotonic() > deadline:
                    self._give_up(f"an answer was lost, and nothing had died: {why}")
            threading.Event().wait(LOOK_S)

    def _account(self) -> None:
        """Check that this proof, or the supervisor with a reason, killed each ended server.  Called under the lock."""
        has_ended = self._process.has_ended()
        now = set(self._process.servers()) if not has_ended else set()
        ended = self._known.difference(() if has_ended else children(self._process.pid))
        self._known = now
        for pid in ended:
            why = self._why_killed(pid)
            if not why:
                self._give_up(f"process {pid} of a server ended, and nobody had killed it")
            self.shots[f"servers that the supervisor killed: {why}"] += 1
            self.generation += 1

    def _why_killed(self, pid: int) -> str:
        """Return the supervisor's reason for a kill; wait for it, as its log line may come long after the reaping."""
        deadline = time.monotonic() + NOTICED_S
        while not (why := why_killed(self.log.read_text(), pid)) and time.monotonic() < deadline:
            threading.Event().wait(LOOK_S)
        return why

    def end(self) -> None:
        self.peace()
        with self._lock:
            self._check()
            self._account()
        super().end()

    def _clear_away(self) -> None:
        """Wait until the logs of dead servers are removed, after all regions have replayed them in the background."""
        deadline = time.monotonic() + CLEARED_S
        while len(left := list((self._process.folder / SERVERS).iterdir())) > self._process.count:
            if time.monotonic() > deadline:
                self._give_up(f"{CLEARED_S:.0f} s after a start there are {sorted(one.name for one in left)}")
            threading.Event().wait(LOOK_S)

    def give_up(self, why: str) -> None:
        """Mark the store as broken for a client, so that no further calls are made.  Raises StoreBroken."""
        with self._lock:
            self._check()
            self._give_up(why)


def why_killed(log: str, pid: int) -> str:
    """Return the supervisor's reason for killing the server with this process id, or an empty text."""
    ended = re.findall(rf"server (\S+) \(process {pid}\) has ended: by SIGKILL", log)
    why = re.findall(rf"server {re.escape(ended[-1])} is killed: (.*)", log) if ended else []
    return re.sub(r"[\d.,]+", "N", why[-1]) if why else ""


def _go_on(handle: int) -> None:
    try:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(handle, signal.SIGCONT)
    finally:
        os.close(handle)
