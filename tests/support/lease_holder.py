"""``python -m tests.support.lease_holder URL NAME NOTE``: a node reduced to its lease, for tests with a real service.

The process is a node's: it runs ``NodeCoordination``, prints each event as a line of JSON, and carries out commands,
each a line on its standard input: ``withdraw``, ``fence KEY``, ``lift EPOCH``, ``unlisted``.  Its child is a server: it
acknowledges as fast as the page of the lease lets it, and notes in the file NOTE when it worked last.

    note := answered:u64 renewed:u64 gap:u64 blank:u64      nanoseconds of ``boot_ns``, native order

    answered    the moment of the last work that was acknowledged
    gap, blank  the longest times between two renewals, and without a lease, since the note was last set to 0

``LeaseHolder`` is the other side: it starts the process, reads its events and sends signals to both.
"""

from __future__ import annotations

import asyncio
import json
import mmap
import os
import queue
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from columnar.coordination.api import NotLeading
from columnar.coordination.cas import CasUnavailable
from columnar.coordination.lease_page import LeasePage, boot_ns
from columnar.coordination.node_coordination import NodeCoordination, connect
from columnar.coordination.node_record import LeaderRecord, NodeRecord
from columnar.runtime.child_processes import die_with_parent
from columnar.runtime.log_lines import log_to_stderr

NOTE: Final = struct.Struct("=QQQQ")
SERVE_S: Final = 0.0005
PATIENCE_S: Final = 60.0


class PrintedEvents:
    """``CoordinationEvents`` as lines of JSON on the standard output."""

    def __init__(self, end: Callable[[], None]) -> None:
        self._end = end

    def nodes_changed(self, nodes: Mapping[str, NodeRecord]) -> None:
        say("nodes_changed", sorted(nodes))

    def node_ended(self, key: str, record: NodeRecord, *, is_by_time: bool) -> None:
        say("node_ended", key, is_by_time, record.servers)

    def leader_changed(self, leader: LeaderRecord | None) -> None:
        say("leader_changed", None if leader is None else leader.node)

    def elected(self, epoch: int) -> None:
        say("elected", epoch)

    def deposed(self, why: str) -> None:
        say("deposed", why)

    def lease_lost(self, why: str) -> None:
        say("lease_lost", why)
        self._end()

    def service_silent(self, since_ms: int, why: str) -> None:
        say("service_silent", why)

    def service_answers(self, silent_ms: int) -> None:
        say("service_answers", silent_ms)


def say(*event: Any) -> None:
    print(json.dumps(event), flush=True)


def serve(page: LeasePage, note: mmap.mmap) -> None:
    """Acknowledge as fast as the lease allows, and keep the note.  Ends with the parent."""
    die_with_parent()
    last_end_ns = blank_since_ns = 0
    while True:
        worked_ns = boot_ns()
        end_ns = page.read_end_ns()
        answered, renewed, gap, blank = NOTE.unpack(note[: NOTE.size])
        if end_ns != last_end_ns:
            gap = max(gap, worked_ns - renewed) if renewed else 0
            renewed, last_end_ns = worked_ns, end_ns
        if page.is_valid():
            answered = worked_ns
            blank = max(blank, worked_ns - blank_since_ns) if blank_since_ns else blank
            blank_since_ns = 0
        elif not blank_since_ns and answered:
            blank_since_ns = worked_ns
        note[: NOTE.size] = NOTE.pack(answered, renewed, gap, blank)
        time.sleep(SERVE_S)


async def hold(url: str, name: str, page: LeasePage) -> None:
    loop = asyncio.get_running_loop()
    commands: asyncio.Queue[str] = asyncio.Queue()
    events = PrintedEvents(lambda: commands.put_nowait("end"))
    while True:
        coordination = connect(url)
        try:
            number = await asyncio.to_thread(coordination.next_number)
            record = NodeRecord("", name, number, f"{name}:9096", (f"{name}-s1.{number}",))
            await coordination.start(record, page, events, may_lead=True, epoch_floor=0)
            break
        except CasUnavailable as error:
            say("not_started", str(error))  # the machine is busy; a service manager starts a node again, too
    say("started", record.key)

    def listen() -> None:
        for line in sys.stdin:
            loop.call_soon_threadsafe(commands.put_nowait, line.strip())
        loop.call_soon_threadsafe(commands.put_nowait, "end")

    threading.Thread(target=listen, daemon=True).start()
    while (command := await commands.get()) not in ("withdraw", "end"):
        say("done", command, await carry_out(coordination, command))
    await coordination.withdraw()
    say("withdrawn")


async def carry_out(coordination: NodeCoordination, command: str) -> object:
    what, _, argument = command.partition(" ")
    try:
        if what == "fence":
            coordination.request_fence(argument)
        elif what == "lift":
            return await coordination.lift_epoch(int(argument))
        elif what == "unlisted":
            return sorted(await coordination.wait_unlisted_over())
    except NotLeading as error:
        return str(error)
    return None


def main() -> None:
    log_to_stderr("INFO")
    url, name, note_path = sys.argv[1:]
    page = LeasePage.create()
    with Path(note_path).open("r+b") as file:
        note = mmap.mmap(file.fileno(), NOTE.size)
    server = os.fork()
    if not server:
        serve(page, note)
    say("server", server)
    asyncio.run(hold(url, name, page))
    os.kill(server, signal.SIGKILL)
    os.waitpid(server, 0)


class LeaseHolder:
    """The processes of a node, and the events that they have printed."""

    def __init__(self, name: str, process: subprocess.Popen[str], note: mmap.mmap) -> None:
        self.name = name
        self.events: list[list[Any]] = []
        self._process = process
        self._note = note
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._server = 0

    @classmethod
    def start(cls, url: str, name: str, folder: Path) -> LeaseHolder:
        """Start the node; returns at once."""
        path = folder / f"{name}.note"
        path.write_bytes(bytes(NOTE.size))
        with path.open("r+b") as file:
            note = mmap.mmap(file.fileno(), NOTE.size)
        with (folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.lease_holder", url, name, str(path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        holder = cls(name, process, note)
        holder._reader.start()
        return holder

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def heard(self, name: str) -> list[list[Any]]:
        """Return the events of this name that were printed until now."""
        while not self._lines.empty():
            self._take(self._lines.get(), is_end_expected=True)
        return [event for event in self.events if event[0] == name]

    def until(self, name: str, count: int = 1) -> list[Any]:
        """Wait for the ``count``-th event of this name, and return it."""
        end_s = time.monotonic() + PATIENCE_S
        while len(found := self.heard(name)) < count:
            try:
                self._take(self._lines.get(timeout=max(0.0, end_s - time.monotonic())))
            except queue.Empty:
                raise AssertionError(f"{self.name} heard no {name}: {self.events}") from None
        return found[count - 1]

    def _take(self, line: str, *, is_end_expected: bool = False) -> None:
        assert line or is_end_expected, f"{self.name} has ended: {self.events}"
        if line:
            self.events.append(json.loads(line))

    @property
    def key(self) -> str:
        return str(self.until("started")[1])

    def command(self, text: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{text}\n")
        self._process.stdin.flush()

    def signal(self, number: int) -> None:
        """Signal both processes of the node."""
        server = self.until("server")[1]
        for pid in (self._process.pid, server):
            os.kill(pid, number)

    @property
    def answered_ns(self) -> int:
        return int(NOTE.unpack(self._note[: NOTE.size])[0])

    @property
    def gaps_s(self) -> tuple[float, float]:
        """Return the longest times between two renewals, and without a lease."""
        _, _, gap, blank = NOTE.unpack(self._note[: NOTE.size])
        return gap / 1e9, blank / 1e9

    def forget_gaps(self) -> None:
        self._note[16 : NOTE.size] = bytes(16)

    @property
    def lives(self) -> bool:
        return self._process.poll() is None

    def wait(self) -> int:
        """Wait for the end of the node; returns the exit status."""
        return self._process.wait(PATIENCE_S)

    def end(self) -> None:
        """Kill what is left, and close what this side has open."""
        if self.lives:
            self._process.kill()
        self._process.wait()
        self._reader.join()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()


if __name__ == "__main__":
    main()
