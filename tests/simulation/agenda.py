"""Virtual time of a simulated machine: processes that may be stopped and killed at any step, and links between them.

A step is one event of one process.  A stopped process runs nothing; its events wait in order until it continues.  A
dead process runs nothing any more.  Messages of a link keep their order; messages of a process that died still arrive,
and then the other side is notified that the link has ended.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from random import Random

MS = 1_000  # microseconds, the unit of time

Step = Callable[[], None]


class Process:
    def __init__(self, name: str) -> None:
        self.name = name
        self.is_dead = False
        self.is_stopped = False
        self.held: list[Step] = []  # while it is stopped
        self.peers: dict[Process, Step] = {}  # called at these when this process has died

    def __repr__(self) -> str:
        return self.name


class Agenda:
    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.now_us = 0
        self.steps = 0
        self.after_step: Callable[[], None] = lambda: None
        self._heap: list[tuple[int, int, Process | None, Step]] = []
        self._sequence = 0
        self._arrivals: dict[tuple[Process, Process], int] = {}  # of the last message of each link

    @property
    def now_ms(self) -> int:
        return self.now_us // MS

    def later(self, process: Process | None, delay_us: int, what: Step) -> None:
        self._sequence += 1
        heappush(self._heap, (self.now_us + delay_us, self._sequence, process, what))

    def drawn(self, low_us: int, high_us: int) -> int:
        return low_us + int(self.rng.random() * (high_us - low_us))

    def run(self, until_us: int) -> None:
        heap = self._heap
        while heap and heap[0][0] <= until_us:
            self.now_us, _, process, what = heappop(heap)
            if process is not None:
                if process.is_dead:
                    continue
                if process.is_stopped:
                    process.held.append(what)
                    continue
            self.steps += 1
            what()
            self.after_step()
        self.now_us = max(self.now_us, until_us)

    # --- processes -----------------------------------------------------------------------------------

    def stop(self, process: Process) -> None:
        process.is_stopped = True

    def go_on(self, process: Process) -> None:
        process.is_stopped = False
        held, process.held = process.held, []
        for what in held:
            self.later(process, 0, what)

    def kill(self, process: Process) -> None:
        """Kill a process, which runs nothing any more; its peers are notified."""
        if process.is_dead:
            return
        process.is_dead = True
        process.held.clear()
        for peer, heard in process.peers.items():
            peer.peers.pop(process, None)
            if not peer.is_dead:
                self._deliver(process, peer, heard)
            self._arrivals.pop((process, peer), None)
            self._arrivals.pop((peer, process), None)

    # --- links ---------------------------------------------------------------------------------------

    def link(self, one: Process, other: Process, one_ended: Step, other_ended: Step) -> None:
        """Link two processes; ``one_ended`` is called at ``other`` when ``one`` has died, and the other way round."""
        one.peers[other] = one_ended
        other.peers[one] = other_ended

    def send(self, sender: Process, receiver: Process, what: Step) -> None:
        """Send to a linked process; messages to a dead process are lost."""
        if not receiver.is_dead:
            self._deliver(sender, receiver, what)

    def _deliver(self, sender: Process, receiver: Process, what: Step) -> None:
        delay_us = self.drawn(50, 400) if self.rng.random() < 0.95 else self.drawn(1 * MS, 20 * MS)
        link = sender, receiver
        at_us = max(self.now_us + delay_us, self._arrivals.get(link, 0) + 1)
        self._arrivals[link] = at_us
        self.later(receiver, at_us - self.now_us, what)
