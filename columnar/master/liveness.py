"""(pure) Liveness of servers on one machine: decides which child is killed because it does not work any more.

A child's control thread reports every 0.5 s how often its loop has iterated.

    silent   no report for 3 s, and no work: the process or its threads are stopped
    stuck    reports, but no loop iteration for 10 s, or 60 s if the data are on a network folder, and no work.  A
             single slow file operation there is no stall of the folder: the others are answered meanwhile
    busy     as silent or stuck, but it works (``works``): a step blocks the loop, or the whole interpreter.  It lives,
             and its clients wait.  A step that takes BUSY_MS is taken for one that does not end
    late     no report within 30 s of its start

Waiting for a busy server is safe for data: it is the owner of its regions until it is fenced.  Killing it is not safe
for the other servers: its clients would repeat, at the next owner, the request that kept this server busy.

False alarms:
    * The master itself was stopped, or busy, if ``check_liveness`` was not called for 1 s.  Reports may wait to be
      read, so that time does not count against any server.
    * More than a third of the servers, and at least two, are silent at once: probably the machine is at fault.  These
      servers get 3 s more, and the verdict says so.
    * The data folder does not answer.  A server whose loop waits for a file does not iterate.  A server that opens a
      region meanwhile holds the interpreter, so that its control thread does not report.  The time of a stall counts
      against no server, whatever is wrong with the server, and all counts begin anew when the stall ends.

A verdict names a child once; the caller that kills the child calls ``left``.  Time is an argument; this module knows
nothing of processes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from columnar.model.owner import Incarnation

SILENT_MS: Final = 3_000
STUCK_MS: Final = 10_000
STUCK_ON_NETWORK_MS: Final = 60_000  # an operation may wait for a disk or a lock of a machine that hangs
BUSY_MS: Final = 120_000
QUIET_MS: Final = 1_000  # ``works`` is checked for a child without a report or an iteration for this long
LATE_MS: Final = 30_000
CHECK_INTERVAL_MS: Final = 250
PAUSED_MS: Final = 1_000
SUSPICIOUS_SHARE: Final = 3  # a third


@dataclass(frozen=True, slots=True)
class Verdict:
    kill: tuple[tuple[Incarnation, str], ...]  # and why
    remarks: tuple[str, ...]
    wake_at_ms: int
    busy: tuple[tuple[Incarnation, int], ...] = ()  # and since when its loop has not iterated


@dataclass(slots=True)
class _Child:
    heard_ms: int
    iterated_ms: int
    worked_ms: int = 0  # when it worked last, as seen while it was quiet
    iterations: int = -1
    has_reported: bool = False
    is_named: bool = False  # to be killed
    is_busy: bool = False  # and a remark has said so

    def report(self, iterations: int, now_ms: int) -> None:
        """Take a report of the control thread."""
        self.heard_ms = now_ms
        if iterations != self.iterations or not self.has_reported:
            self.iterated_ms, self.iterations = now_ms, iterations
        self.has_reported = True

    def excuse(self, passed_ms: int, now_ms: int) -> None:
        """Do not count the last ``passed_ms`` against the child."""
        self.heard_ms = min(now_ms, self.heard_ms + passed_ms)
        self.iterated_ms = min(now_ms, self.iterated_ms + passed_ms)
        self.worked_ms = min(now_ms, self.worked_ms + passed_ms)

    def begin_anew(self, now_ms: int) -> None:
        """Restart all counts at ``now_ms``."""
        self.heard_ms = self.iterated_ms = self.worked_ms = now_ms

    def note_work(self, now_ms: int) -> None:
        self.worked_ms = now_ms

    def name_to_kill(self) -> None:
        self.is_named = True

    def note_busy(self, is_busy: bool) -> None:
        self.is_busy = is_busy


def idles(_server: Incarnation) -> bool:
    """Return False: stands for ``works`` on a machine that does not report processor time."""
    return False


Works = Callable[[Incarnation], bool]  # whether it has used a processor since the last call


class Liveness:
    def __init__(self, now_ms: int, works: Works = idles, stuck_ms: int = STUCK_MS) -> None:
        """``works``: called for a server that is quiet.  ``stuck_ms``: STUCK_MS or STUCK_ON_NETWORK_MS."""
        self._works = works
        self._stuck_ms = stuck_ms
        self._children: dict[Incarnation, _Child] = {}
        self._checked_ms = now_ms
        self._patient_until_ms: int | None = None  # many are silent at once

    def joined(self, server: Incarnation, now_ms: int) -> None:
        self._children[server] = _Child(now_ms, now_ms)

    def left(self, server: Incarnation) -> None:
        self._children.pop(server, None)

    def heard(self, server: Incarnation, iterations: int, now_ms: int) -> None:
        """Take a report of the control thread.  ``iterations``: of the server's loop, since its start."""
        child = self._children.get(server)
        if child is not None:
            child.report(iterations, now_ms)

    def check_liveness(self, now_ms: int, *, is_folder_stalled: bool = False) -> Verdict:
        """Return the verdict.  ``is_folder_stalled``: the data folder does not answer.

        Call this again at the verdict's ``wake_at_ms``: when the next child may be silent, and in CHECK_INTERVAL_MS at
        the latest.
        """
        remarks = []
        paused_ms, self._checked_ms = now_ms - self._checked_ms, now_ms
        if paused_ms >= PAUSED_MS:
            for child in self._children.values():
                child.excuse(paused_ms, now_ms)
            if self._patient_until_ms is not None:
                self._patient_until_ms += paused_ms
            remarks.append(f"the master did not run for {paused_ms / 1000:.1f} s; servers have as much more time")
        if is_folder_stalled:
            for child in self._children.values():
                child.begin_anew(now_ms)
            self._patient_until_ms = None
            return Verdict((), tuple(remarks), now_ms + CHECK_INTERVAL_MS)
        for server, child in self._children.items():
            if _is_quiet(child, now_ms) and self._works(server):
                child.note_work(now_ms)
        found = [(server, why) for server, child in self._children.items() if (why := self._wrong(child, now_ms))]
        if self._is_suspicious(len(found)):
            if self._patient_until_ms is None:
                self._patient_until_ms = now_ms + SILENT_MS
                count = f"{len(found)} of {len(self._children)} servers"
                remarks.append(f"{count} are silent at once; they have {SILENT_MS / 1000:g} s more")
            if now_ms < self._patient_until_ms:
                found = []
        else:
            self._patient_until_ms = None
        for server, _ in found:
            self._children[server].name_to_kill()
        busy = [(server, child) for server, child in self._children.items() if self._is_busy(child, now_ms)]
        remarks += self._said_busy(now_ms)
        ends_ms = [child.heard_ms + SILENT_MS for child in self._children.values()]
        wake_at_ms = min([now_ms + CHECK_INTERVAL_MS, *(one for one in ends_ms if one > now_ms)])
        return Verdict(tuple(found), tuple(remarks), wake_at_ms, tuple((one, child.iterated_ms) for one, child in busy))

    def _said_busy(self, now_ms: int) -> list[str]:
        """Return remarks on servers that became busy, or are busy no longer."""
        remarks = []
        for server, child in self._children.items():
            is_busy = self._is_busy(child, now_ms)
            if is_busy and not child.is_busy:
                took_s, end_s = (now_ms - child.iterated_ms) / 1000, BUSY_MS / 1000
                text = f"server {server} is busy in one step for {took_s:.1f} s, and its clients wait"
                remarks.append(f"{text}; it is killed if the step takes {end_s:g} s")
            elif child.is_busy and not is_busy and not child.is_named:
                remarks.append(f"server {server} goes on after a step that kept it busy")
            child.note_busy(is_busy)
        return remarks

    def _is_suspicious(self, silent: int) -> bool:
        return silent >= 2 and silent * SUSPICIOUS_SHARE > len(self._children)

    def _is_busy(self, child: _Child, now_ms: int) -> bool:
        """Return whether the child would be killed if it did not work."""
        if not _is_quiet(child, now_ms) or now_ms - child.worked_ms >= SILENT_MS:
            return False
        return now_ms - child.heard_ms >= SILENT_MS or now_ms - child.iterated_ms >= self._stuck_ms

    def _wrong(self, child: _Child, now_ms: int) -> str | None:
        if child.is_named:
            return None
        silent_ms, stuck_ms, idle_ms = now_ms - child.heard_ms, now_ms - child.iterated_ms, now_ms - child.worked_ms
        if not child.has_reported:
            return f"it has not reported in {silent_ms / 1000:.1f} s since its start" if silent_ms >= LATE_MS else None
        if stuck_ms >= BUSY_MS:
            return f"it has been busy in one step for {stuck_ms / 1000:.1f} s, which is taken for one that does not end"
        if min(silent_ms, idle_ms) >= SILENT_MS:
            return f"it has said nothing for {silent_ms / 1000:.1f} s, and does not work"
        if min(stuck_ms, idle_ms) >= self._stuck_ms:
            return f"its loop has not iterated for {stuck_ms / 1000:.1f} s, and it does not work"
        return None


def _is_quiet(child: _Child, now_ms: int) -> bool:
    return child.has_reported and not child.is_named and now_ms - min(child.heard_ms, child.iterated_ms) >= QUIET_MS
