"""(pure) Liveness of servers on one machine: which child is to be killed because it does not work any more.

A child's control thread reports every 0.5 s how often its loop has iterated.

    silent   no report for 3 s: the process is stopped, or its threads are
    stuck    reports, but no loop iteration for 10 s
    late     no report within 30 s of its start

False alarms:
    * The master itself was stopped, or busy, if ``look`` was not called for 1 s.  Reports may wait to be read, so that
      time does not count against anybody.
    * More than a third of the servers, and at least two, are silent at once: rather the machine is at fault.  They
      have 3 s more, and the verdict says so.

A child is named once; whoever kills it reports ``left``.  Time is an argument; knows nothing of processes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from columnar.model.owner import Incarnation

SILENT_MS: Final = 3_000
STUCK_MS: Final = 10_000
LATE_MS: Final = 30_000
LOOK_MS: Final = 250
PAUSED_MS: Final = 1_000
SUSPICIOUS_SHARE: Final = 3  # a third


@dataclass(frozen=True, slots=True)
class Verdict:
    kill: tuple[tuple[Incarnation, str], ...]  # and why
    remarks: tuple[str, ...]
    wake_at_ms: int


@dataclass(slots=True)
class _Child:
    heard_ms: int
    iterated_ms: int
    iterations: int = -1
    has_reported: bool = False
    is_named: bool = False


class Liveness:
    def __init__(self, now_ms: int) -> None:
        self._children: dict[Incarnation, _Child] = {}
        self._looked_ms = now_ms
        self._patient_until_ms: int | None = None  # many are silent at once

    def joined(self, server: Incarnation, now_ms: int) -> None:
        self._children[server] = _Child(now_ms, now_ms)

    def left(self, server: Incarnation) -> None:
        self._children.pop(server, None)

    def heard(self, server: Incarnation, iterations: int, now_ms: int) -> None:
        """A report of the control thread.  ``iterations``: of its loop, ever."""
        child = self._children.get(server)
        if child is None:
            return
        child.heard_ms = now_ms
        if iterations != child.iterations or not child.has_reported:
            child.iterated_ms, child.iterations = now_ms, iterations
        child.has_reported = True

    def look(self, now_ms: int) -> Verdict:
        """To be called again at the verdict's ``wake_at_ms``: when a child may be silent, in ``LOOK_MS`` at most."""
        remarks = []
        paused_ms, self._looked_ms = now_ms - self._looked_ms, now_ms
        if paused_ms >= PAUSED_MS:
            for child in self._children.values():
                child.heard_ms = min(now_ms, child.heard_ms + paused_ms)
                child.iterated_ms = min(now_ms, child.iterated_ms + paused_ms)
            if self._patient_until_ms is not None:
                self._patient_until_ms += paused_ms
            remarks.append(f"the master did not run for {paused_ms / 1000:.1f} s; servers have as much more time")
        found = [(server, why) for server, child in self._children.items() if (why := _wrong(child, now_ms))]
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
            self._children[server].is_named = True
        ends_ms = [child.heard_ms + SILENT_MS for child in self._children.values()]
        wake_at_ms = min([now_ms + LOOK_MS, *(one for one in ends_ms if one > now_ms)])
        return Verdict(tuple(found), tuple(remarks), wake_at_ms)

    def _is_suspicious(self, silent: int) -> bool:
        return silent >= 2 and silent * SUSPICIOUS_SHARE > len(self._children)


def _wrong(child: _Child, now_ms: int) -> str | None:
    if child.is_named:
        return None
    silent_ms, stuck_ms = now_ms - child.heard_ms, now_ms - child.iterated_ms
    if not child.has_reported:
        return f"it has not reported in {silent_ms / 1000:.1f} s since its start" if silent_ms >= LATE_MS else None
    if silent_ms >= SILENT_MS:
        return f"it has said nothing for {silent_ms / 1000:.1f} s"
    if stuck_ms >= STUCK_MS:
        return f"its loop has not iterated for {stuck_ms / 1000:.1f} s"
    return None
