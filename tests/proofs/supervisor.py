"""python -m tests.proofs.supervisor: ``kill -9`` of the one process that everything needs, again and again.

A store serves clients that write and read each of its regions (``region_clients``), and a trigger.  Its first process
is killed: the supervisor, or with one server the standalone itself.  No process of the store may be left after a
second, whatever it was doing.  Then the next start serves the same folder, possibly with a different number of servers;
often a server is killed before the supervisor, too.  Each start must have every acknowledged write, and at the end the
trigger must have got each write, in the order of its row.
"""

from __future__ import annotations

import asyncio
import os
import random
import select
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import click

from columnar.client import Connection
from tests.proofs import noting
from tests.proofs.deliveries import delivered
from tests.proofs.region_clients import FAMILY, Crowd, prefixes, quantile
from tests.support.cluster_process import ClusterProcess

TABLE: Final = b"served"
TRIGGER: Final = "note"
GIVE_UP_S: Final = 20.0
CLIENTS: Final = 12
SERVES_S: Final = (0.2, 2.0)  # how long a start serves before it is killed
A_SERVER_TOO: Final = 0.5  # of the starts

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Plan:
    servers: Sequence[int] = (3,)  # of the starts, in turn
    kills: int = 50
    per_second: float = 200.0
    seed: int = 1
    left_s: float = 1.0  # what processes have to end


DEFAULT: Final = Plan()


@dataclass(slots=True)
class Findings:
    ends_s: list[float] = field(default_factory=list)  # from the kill to the end of the last process
    starts_s: list[float] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


class Trial:
    def __init__(self, folder: Path, plan: Plan, tell: Tell) -> None:
        self._folder, self._plan, self._tell = folder, plan, tell
        self._rng = random.Random(f"supervisor {plan.seed}")
        self._names = prefixes(CLIENTS)
        self._crowd = Crowd(TABLE, self._names, plan.per_second, plan.seed)
        self._servers_killed = 0
        self.findings = Findings()

    async def run(self) -> Findings:
        servers = self._plan.servers
        for turn in range(self._plan.kills + 1):
            store = self._store(servers[turn % len(servers)])
            begun = time.monotonic()
            await asyncio.to_thread(store.start)
            self.findings.starts_s.append(time.monotonic() - begun)
            try:
                await asyncio.to_thread(self._look, store, turn)
                if turn == self._plan.kills:
                    await asyncio.to_thread(self._deliver, store)
                    break
                await self._serve(store, turn)
            finally:
                await self._crowd.cut_off()
                await asyncio.to_thread(store.kill)
        crowd, found = self._crowd, self.findings
        found.counts |= {
            "calls answered": crowd.counts["answered"],
            "acknowledged writes": crowd.acknowledged(),
            "servers killed besides": self._servers_killed,
        }
        found.problems = crowd.problems
        return found

    def _store(self, servers: int) -> ClusterProcess:
        flags = ("--log-level", "info", "--trigger-modules", noting.__name__)
        return ClusterProcess(self._folder / "data", servers, *flags)

    def _look(self, store: ClusterProcess, turn: int) -> None:
        """Check that the writes acknowledged by earlier starts are stored."""
        connection = store.connection()
        if turn:
            missing = self._crowd.missing(connection.table(TABLE).scan())
            for one in missing:
                self._crowd.problem(f"LOST: {one}, at start {turn + 1}")
        else:
            connection.create_table(TABLE, {FAMILY: {}}, splits=self._names[1:])
            connection.create_table(noting.TABLE, {noting.COLUMN.partition(b":")[0]: {}}, splits=self._names[1::4])
            connection.triggers.add(TRIGGER, TABLE, noting.FUNCTION, [FAMILY])
        connection.close()

    async def _serve(self, store: ClusterProcess, turn: int) -> None:
        self._crowd.begin(store.port)
        serves_s, part = self._rng.uniform(*SERVES_S), self._rng.random()
        kills_server = self._rng.random() < A_SERVER_TOO
        which = self._rng.random()
        await asyncio.sleep(serves_s * part)
        if kills_server and store.count > 1:
            servers = store.servers()
            await asyncio.to_thread(store.kill_server, int(which * len(servers)))
            self._servers_killed += 1
        await asyncio.sleep(serves_s * (1 - part))
        took_s = await asyncio.to_thread(ended_within, store.family(), store.pid, GIVE_UP_S)
        self.findings.ends_s.append(took_s)
        if took_s > self._plan.left_s:
            self._crowd.problem(f"kill {turn + 1}: the last process ended after {took_s:.2f} s")
        self._tell(f"kill {turn + 1}, {store.count} servers: all processes ended after {1e3 * took_s:.0f} ms")

    def _deliver(self, store: ClusterProcess) -> None:
        connection: Connection = store.connection()
        found = delivered(connection, TRIGGER, self._crowd.clients, self._tell)
        connection.close()
        for problem in found.problems:
            self._crowd.problem(problem)
        self.findings.counts |= {
            "changes delivered": found.delivered,
            "changes not delivered": found.missing,
            "changes delivered again": found.repeats,
        }


def ended_within(pids: Sequence[int], victim: int, limit_s: float) -> float:
    """Kill ``victim``; return the seconds until the last of ``pids`` has ended, or infinity after the limit.

    Watches descriptors of the processes, so that no new process with the same number is mistaken for an old one.
    """
    with ExitStack() as stack:
        poll, left = select.poll(), set()
        for pid in pids:
            with suppress(ProcessLookupError):
                handle = os.pidfd_open(pid)
                stack.callback(os.close, handle)
                poll.register(handle, select.POLLIN)
                left.add(handle)
        begun = time.monotonic()
        os.kill(victim, signal.SIGKILL)
        while left and (more_s := begun + limit_s - time.monotonic()) > 0:
            for handle, _ in poll.poll(1_000 * more_s):
                poll.unregister(handle)
                left.discard(handle)
        return time.monotonic() - begun if not left else float("inf")


def report(findings: Findings) -> list[str]:
    ends, starts = findings.ends_s, findings.starts_s
    lines = [
        f"{len(ends)} kills: no process was left after {1e3 * quantile(ends, 0.5):.0f} ms (median),"
        f" {1e3 * max(ends):.0f} ms (longest)",
        f"{len(starts)} starts: ready after {quantile(starts, 0.5):.2f} s (median), {max(starts):.2f} s (longest)",
    ]
    lines += [f"{count:10,} {name}" for name, count in findings.counts.items()]
    return [*lines, *(f"WRONG  {problem}" for problem in findings.problems)]


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--servers", default="3", show_default=True, help="Of the starts, in turn; as in 1,3,2.")
@click.option("--kills", default=DEFAULT.kills, show_default=True, type=click.IntRange(1))
@click.option("--per-second", default=DEFAULT.per_second, show_default=True, help="Calls of all clients.")
@click.option("--seed", default=DEFAULT.seed, show_default=True)
def main(servers: str, kills: int, per_second: float, seed: int) -> None:
    """Kill the supervisor under load, and serve its folder again.

    \b
      python -m tests.proofs.supervisor --kills 50
      python -m tests.proofs.supervisor --servers 1,3,2 --kills 12      a standalone, three servers, two, a standalone
    """
    plan = Plan([int(word) for word in servers.split(",")], kills, per_second, seed)
    print(f"seed {seed}, starts with {servers} servers, {per_second:g} calls a second", flush=True)
    with tempfile.TemporaryDirectory(prefix="columnar-supervisor-") as folder:
        findings = asyncio.run(Trial(Path(folder), plan, lambda text: print(text, flush=True)).run())
    print(*report(findings), sep="\n")
    sys.exit(bool(findings.problems))


if __name__ == "__main__":
    main()
