"""``python -m tests.measure.leases``: what a lease costs over etcd and ZooKeeper, and how long a dead holder has it.

Three servers of the service on loopback.  A holder is two processes, as a node's: a supervisor that renews, and a
server that reads the page of the lease and notes when it acknowledged last.  This process is the candidate that fences.

    renewal, poll                 milliseconds of one call
    kill -9, SIGSTOP to fenced    seconds from the signal to both processes until the record is deleted
    acknowledged after the fence  of work that was done after it, also once the stopped processes run again
    servers of the service        each in turn is killed, or frozen, or all are killed; the longest time between two
                                  renewals, the longest time without a lease, and living holders that were fenced

    --services etcd,zookeeper  --rounds 10
"""

from __future__ import annotations

import argparse
import mmap
import os
import secrets
import signal
import statistics
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from columnar.coordination.cas import CasStore
from columnar.coordination.cas_etcd import CasEtcd
from columnar.coordination.election import Candidate
from columnar.coordination.lease import Done, HolderState, LeaseHolder, LeaseTimes, PollRecords, PutRecord
from columnar.coordination.lease_page import LeasePage, boot_ms, boot_ns
from columnar.coordination.lease_requests import PolledRecords, make_request
from columnar.coordination.node_record import LeaderRecord, NodeRecord, encode_record
from tests.support.coordination_services import Service, missing, running

TIMES: Final = LeaseTimes.of_lease()
FROZEN_S: Final = 8.0
AWAY_S: Final = 5.0
_GAPS: Final = struct.Struct("=QQ")  # of a holder's note: the longest times between renewals, and without a lease
NOTE_BYTES: Final = 8 + _GAPS.size  # before them the moment of the last acknowledged work
_processes = get_context("fork")


@dataclass(frozen=True, slots=True)
class Trial:
    fenced_s: float
    late_answers: int


def renew(store: CasStore, name: str, page: LeasePage, note: mmap.mmap, durations: str | None) -> None:
    """Renew a node's lease until it is lost, and note the longest gaps."""
    record = NodeRecord(secrets.token_hex(16), name, os.getpid(), "")
    holder = LeaseHolder(record.key, record.nonce, TIMES)
    renewed_ns = 0
    calls: list[float] = []
    while holder.state is not HolderState.LOST:
        request = holder.next_request(boot_ms())
        if request is None:
            time.sleep(max(0.0, holder.due_ms - boot_ms()) / 1_000)
            continue
        began_ns, until_ns = boot_ns(), page.read_end_ns()
        answer = make_request(store, request, partial(encode_record, record), PolledRecords())
        now_ns = boot_ns()
        holder.on_answer(answer, now_ns // 1_000_000)
        page.write_end(holder.until_ms)
        if isinstance(request, PutRecord) and isinstance(answer, Done):
            calls.append((now_ns - began_ns) / 1e6)
            if renewed_ns:
                gap_ns, blank_ns = _GAPS.unpack(note[8:24])
                note[8:24] = _GAPS.pack(max(gap_ns, now_ns - renewed_ns), max(blank_ns, now_ns - until_ns, 0))
            renewed_ns = now_ns
            if durations is not None and len(calls) % 10 == 0:
                Path(durations).write_text(" ".join(map(str, calls)))


def answer(descriptor: int, note: mmap.mmap) -> None:
    """Acknowledge as fast as the lease lets this process; note the moment of the last work."""
    page = LeasePage.open_inherited(descriptor)
    while True:
        worked_ns = boot_ns()
        if page.is_valid():
            note[:8] = worked_ns.to_bytes(8, sys.byteorder)
        time.sleep(0.0005)


class Holder:
    """The two processes of a node."""

    def __init__(self, connect: Callable[[], CasStore], name: str, durations: str | None = None) -> None:
        self._note = mmap.mmap(-1, NOTE_BYTES)
        self._page = LeasePage.create()
        self._supervisor = _processes.Process(target=self._renew, args=(connect, name, durations), daemon=True)
        self._server = _processes.Process(target=answer, args=(self._page.descriptor, self._note), daemon=True)
        self._supervisor.start()
        self._server.start()

    def _renew(self, connect: Callable[[], CasStore], name: str, durations: str | None) -> None:
        renew(connect(), name, self._page, self._note, durations)

    @property
    def answered_ns(self) -> int:
        return int.from_bytes(self._note[:8], sys.byteorder)

    @property
    def gaps_s(self) -> tuple[float, float]:
        """Return the longest times between two renewals, and without a lease."""
        gap_ns, blank_ns = _GAPS.unpack(self._note[8:])
        return gap_ns / 1e9, blank_ns / 1e9

    @property
    def lives(self) -> bool:
        return self._supervisor.is_alive()

    def forget_gaps(self) -> None:
        self._note[8:24] = bytes(16)

    def signal(self, number: int) -> None:
        for process in (self._supervisor, self._server):
            assert process.pid is not None
            if process.is_alive():
                os.kill(process.pid, number)

    def end(self) -> None:
        self.signal(signal.SIGKILL)
        self._supervisor.join()
        self._server.join()
        self._page.close()


class Leader:
    """The candidate of this process, led step by step."""

    def __init__(self, store: CasStore) -> None:
        self.candidate = Candidate(TIMES, lambda: secrets.token_hex(16))
        self.polls_ms: list[float] = []
        self._store = store
        self._records = PolledRecords()

    def step(self) -> None:
        request = self.candidate.next_request(boot_ms())
        if request is None:
            time.sleep(max(0.0, min(20, self.candidate.due_ms - boot_ms())) / 1_000)
            return
        record = LeaderRecord(self.candidate.nonce, "measure", self.candidate.epoch, "")
        began = time.perf_counter()
        answer = make_request(self._store, request, partial(encode_record, record), self._records)
        self.candidate.on_answer(answer, boot_ms())
        if isinstance(request, PollRecords):
            self.polls_ms.append((time.perf_counter() - began) * 1_000)

    def run_until(self, done: Callable[[], bool], limit_s: float = 60.0) -> None:
        end = time.monotonic() + limit_s
        while not done():
            assert time.monotonic() < end, "it did not happen"
            self.step()

    def run_for(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        self.run_until(lambda: time.monotonic() >= end, seconds + 60.0)

    def key_of(self, name: str) -> str | None:
        return next((key for key in self.candidate.members.versions if key.startswith(f"nodes/{name}.")), None)


def fencing(leader: Leader, connect: Callable[[], CasStore], number: int, kind: int) -> Trial:
    """Send the signal to a holder that renews; returns when it was fenced."""
    name = f"{'k' if kind == signal.SIGKILL else 's'}{number}"
    holder = Holder(connect, name)
    leader.run_until(lambda: leader.key_of(name) is not None and holder.answered_ns > 0)
    key = leader.key_of(name)
    assert key is not None
    leader.run_for(1.0)
    sent_ns = boot_ns()
    holder.signal(kind)
    leader.run_until(lambda: key in leader.candidate.members.ended)
    fenced_ns = boot_ns()
    if kind == signal.SIGSTOP:
        holder.signal(signal.SIGCONT)
        leader.run_for(1.0)
        assert not holder.lives, "a holder that was fenced ends"
    late = int(holder.answered_ns >= fenced_ns)
    holder.end()
    return Trial((fenced_ns - sent_ns) / 1e9, late)


def upheavals(leader: Leader, connect: Callable[[], CasStore], service: Service, rounds: int) -> list[str]:
    """Kill and freeze servers of the service under one living holder."""
    lines = []
    holder = Holder(connect, "living")
    leader.run_until(lambda: leader.key_of("living") is not None)

    def measured(name: str, trial: Callable[[int], None]) -> None:
        gaps, blanks, fenced = [], [], 0
        nonlocal holder
        for number in range(rounds):
            leader.run_for(1.5)
            holder.forget_gaps()
            trial(number)
            leader.run_for(3.0)
            if not holder.lives:
                fenced += 1
                holder.end()
                holder = Holder(connect, f"living{number}")
            gap, blank = holder.gaps_s
            gaps.append(gap)
            blanks.append(blank)
        lines.append(
            f"{name}, n {rounds}: renewals {spread(gaps)} s; without a lease {spread(blanks)} s; fenced {fenced}"
        )

    def kill_one(number: int) -> None:
        server = service.servers[number % len(service.servers)]
        server.kill()
        leader.run_for(3.0)
        server.start()

    def freeze_one(number: int) -> None:
        server = service.servers[number % len(service.servers)]
        server.freeze()
        leader.run_for(FROZEN_S)
        server.thaw()

    def kill_all(_number: int) -> None:
        service.kill()
        leader.run_for(AWAY_S)
        for server in service.servers:
            server.start()
        leader.run_for(10.0)

    measured("one server killed", kill_one)
    measured(f"one server frozen {FROZEN_S:g} s", freeze_one)
    measured(f"all servers killed, started after {AWAY_S:g} s", kill_all)
    holder.end()
    return lines


def spread(values: Sequence[float]) -> str:
    return f"{min(values):.2f} / {statistics.median(values):.2f} / {max(values):.2f}"


def percentiles(values: Sequence[float]) -> str:
    ordered = sorted(values)
    return f"{statistics.median(ordered):.1f} / {ordered[len(ordered) * 99 // 100]:.1f} / {ordered[-1]:.1f}"


def connected(service: Service, kind: str) -> CasStore:
    """Make a client with the product's own times."""
    if kind == "etcd":
        return CasEtcd(service.addresses, "measure")
    from columnar.coordination.cas_zookeeper import CasZookeeper

    return CasZookeeper.connect(service.addresses, "measure")


def measure(kind: str, rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder, running(kind, Path(folder), 3, is_quick=True) as service:
        connect = partial(connected, service, kind)
        leader = Leader(connect())
        leader.run_until(lambda: leader.candidate.leads(boot_ms()))
        durations = Path(folder) / "durations"
        holder = Holder(connect, "quiet", str(durations))
        leader.run_for(max(8.0, 3.0 * rounds))
        holder.end()
        renewals = [float(one) for one in durations.read_text().split()]
        print(f"{kind}, {os.getloadavg()[0]:.0f} waiting for processors at the start")
        print(f"  renewal, ms median / p99 / worst, n {len(renewals)}: {percentiles(renewals)}")
        print(f"  poll, ms median / p99 / worst, n {len(leader.polls_ms)}: {percentiles(leader.polls_ms)}")
        for signal_kind in (signal.SIGKILL, signal.SIGSTOP):
            trials = [fencing(leader, connect, number, signal_kind) for number in range(rounds)]
            late = sum(trial.late_answers for trial in trials)
            times = spread([trial.fenced_s for trial in trials])
            print(f"  {signal_kind.name} to fenced, s min / median / max, n {rounds}: {times}; answers after it {late}")
        for line in upheavals(leader, connect, service, min(rounds, 6)):
            print(f"  {line}", flush=True)


def main() -> int:
    asked = argparse.ArgumentParser(prog="python -m tests.measure.leases")
    asked.add_argument("--services", default="etcd,zookeeper")
    asked.add_argument("--rounds", type=int, default=10)
    options = asked.parse_args()
    for kind in options.services.split(","):
        what = missing(kind)
        if what is not None:
            print(f"NOT MEASURED: {what} is not installed")
            return 1
        measure(kind, options.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
