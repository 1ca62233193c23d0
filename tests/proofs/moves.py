"""python -m tests.proofs.moves: moves, splits and merges under load, and their effect on clients and a trigger.

A table with a trigger has a client for each of its key ranges (``region_clients``).  One after the other regions are
moved, split and merged.  Meanwhile the clients of the rows concerned call all the time; the pause of a change is the
longest of these calls.  No call may fail.  At the end every acknowledged write must be in the table, and the trigger
must have got each write once, in the order of its row (``deliveries``).

With ``nodes`` the servers are those of several nodes over a real etcd, one of each node; regions move between nodes.
Meanwhile every node gets a call each PING_S that needs no region: the longest of them says how long a loop was held.

With ``readers`` change streams are read beside it, from the beginning and on, again and again (``stream_readers``).

With ``group_members`` they share the changes as a group, whose members leave, join and die (``group_readers``).

With ``kills`` servers are killed in between, and calls may fail; the counts say how many calls failed, and how many
deliveries came twice.
"""

from __future__ import annotations

import asyncio
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import click

from columnar.wire.idl import hbase
from tests.proofs import noting
from tests.proofs.deliveries import delivered
from tests.proofs.group_readers import GroupLedger, GroupMember
from tests.proofs.region_clients import (
    FAMILY,
    AsyncConnection,
    Crowd,
    RegionClient,
    Unanswered,
    prefixes,
    quantile,
    row_of,
)
from tests.proofs.stream_readers import StreamReader
from tests.support.cluster_process import ClusterProcess
from tests.support.many_machines import missing
from tests.support.many_nodes import NodesStore

TABLE: Final = b"moved"
TRIGGER: Final = "note"
MOST_REGIONS: Final = 2  # for each client
UP_S: Final = 60.0  # for a server that was killed
LOOK_S: Final = 0.2
PING_S: Final = 0.05
TOLD_S: Final = 10.0
EXAMPLES: Final = 5

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Plan:
    servers: int = 2
    nodes: int = 0  # with one server each; 0: one machine with ``servers``
    folder: str = "ext4"  # of nodes (``many_machines``)
    clients: int = 16  # each with a region of its own at first
    moves: int = 1_000
    splits: int = 200
    merges: int = 200
    kills: int = 0
    readers: int = 0  # of a change stream, each of which takes one snapshot after the other
    group_members: int = 0  # that share the changes of the table, as one group
    per_second: float = 200.0  # calls of all clients, but for those of a change's rows
    seed: int = 1


DEFAULT: Final = Plan()


@dataclass(slots=True)
class Findings:
    pauses_s: dict[str, list[float]] = field(default_factory=dict)
    answers_s: list[float] = field(default_factory=list)  # of calls that need no region
    counts: dict[str, int] = field(default_factory=dict)
    refusals: Counter[str] = field(default_factory=Counter)  # of changes
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Region:
    name: bytes
    start: bytes
    end: bytes

    def holds(self, row: bytes) -> bool:
        return self.start <= row and (not self.end or row < self.end)


class Trial:
    """Owned by the loop."""

    def __init__(self, folder: Path, plan: Plan, tell: Tell) -> None:
        self._plan, self._tell = plan, tell
        self._rng = random.Random(f"moves {plan.seed}")
        self._names = prefixes(plan.clients)
        self._crowd = Crowd(TABLE, self._names, plan.per_second, plan.seed)
        flags = ("--log-level", "info", "--trigger-modules", noting.__name__)
        self._store: ClusterProcess | NodesStore = (
            NodesStore(folder / "nodes", plan.nodes, *flags, kind=plan.folder)
            if plan.nodes
            else ClusterProcess(folder / "data", plan.servers, *flags)
        )
        self._admin = AsyncConnection(lambda: self._store.port)
        self._readers = [
            StreamReader(self._crowd, n, lambda: self._store.port, may_fail=bool(plan.kills))
            for n in range(plan.readers)
        ]
        self._ledger = GroupLedger(self._crowd, may_fail=bool(plan.kills))
        self._members = [GroupMember(self._ledger, n, lambda: self._store.port) for n in range(plan.group_members)]
        self._left = Counter({"move": plan.moves, "split": plan.splits, "merge": plan.merges, "kill": plan.kills})
        self.findings = Findings()

    async def run(self) -> Findings:
        await asyncio.to_thread(self._store.start)
        try:
            await asyncio.to_thread(self._create)
            self._crowd.begin(self._store.port)
            pings = [asyncio.ensure_future(self._ping(port)) for port in self._ports()]
            reads = [asyncio.ensure_future(one.run()) for one in (*self._readers, *self._members)]
            try:
                await self._change_all()
            finally:
                for ping in pings:
                    ping.cancel()
                await asyncio.wait(pings)
            self._admin.close()
            await self._crowd.end()
            for reader in (*self._readers, *self._members):
                reader.is_over = True
            await asyncio.gather(*reads)
            await asyncio.to_thread(self._verify)
        finally:
            await self._crowd.cut_off()
            await asyncio.to_thread(self._store.kill)
        crowd, found = self._crowd, self.findings
        if not self._plan.kills and crowd.failed:
            crowd.problem(f"{crowd.failed} calls failed: {crowd.failures}")
        found.problems = crowd.problems + found.problems
        return found

    def _ports(self) -> list[int]:
        return self._store.ports() if isinstance(self._store, NodesStore) else [self._store.port]

    async def _ping(self, port: int) -> None:
        """Call a server all the time; an answer that comes late was held up by its loop, or by this one."""
        loop, connection = asyncio.get_running_loop(), AsyncConnection(lambda: port)
        try:
            while True:
                await asyncio.sleep(PING_S)
                begun_s = loop.time()
                try:
                    await connection.ask("getColumnDescriptors", TABLE)
                except (hbase.IOError, Unanswered, TimeoutError):
                    continue  # calls that fail are the crowd's to count
                self.findings.answers_s.append(loop.time() - begun_s)
        finally:
            connection.close()

    def _create(self) -> None:
        connection = self._store.connection()
        kept = {"CHANGE_LOG": "3600"} if self._readers or self._members else {}
        connection.create_table(TABLE, {FAMILY: {}}, splits=self._names[1:], attributes=kept)
        connection.create_table(noting.TABLE, {noting.COLUMN.partition(b":")[0]: {}}, splits=self._names[1::4])
        connection.triggers.add(TRIGGER, TABLE, noting.FUNCTION, [FAMILY])
        connection.close()

    # --- changes -----------------------------------------------------------------------------------------

    async def _change_all(self) -> None:
        refusals, most_refused = self.findings.refusals, 10 + self._left.total()
        while self._left.total():
            (kind,) = self._rng.choices(list(self._left), list(self._left.values()))
            if kind == "kill":
                await self._kill()
                done = True
            else:
                done = await self._changed(kind)
            if done:
                self._left[kind] -= 1
                self._tell(f"left: {dict(self._left)}")
                continue
            if refusals.total() > most_refused:
                self._crowd.problem("more changes were refused than asked for")
                break

    async def _changed(self, kind: str) -> bool:
        """Make a change; return False if it was refused."""
        try:
            found = await self._admin.ask("getTableRegions", TABLE)
            regions = [Region(one.name, one.startKey, one.endKey) for one in found]
            concerned, method, *arguments = self._chosen(kind, regions)
        except Unanswered as error:
            self.findings.refusals[str(error)] += 1
            return False
        clients = [client for client in self._crowd.clients if any(_touches(one, client) for one in concerned)]
        await asyncio.gather(*(client.heat() for client in clients))
        try:
            await self._admin.ask(method, *arguments)
        except (hbase.IOError, hbase.IllegalArgument, Unanswered, TimeoutError) as error:
            text = error.message.decode() if hasattr(error, "message") else repr(error)
            self.findings.refusals[f"{kind}: {re.sub('[0-9a-f]{32}', 'R', text)}"] += 1
            return False
        finally:
            pauses = await asyncio.gather(*(client.cool() for client in clients))
        self.findings.pauses_s.setdefault(kind, []).append(max(pauses, default=0.0))
        return True

    def _chosen(self, kind: str, regions: Sequence[Region]) -> tuple[Any, ...]:
        """Return the regions concerned, and the call."""
        if kind == "split" and len(regions) < MOST_REGIONS * len(self._names):
            client = self._rng.choice(self._crowd.clients)
            row = b"%s-%04d" % (row_of(client.prefix, client.journal.sent), self._rng.randrange(10_000))
            return [one for one in regions if one.holds(row)], "columnarSplit", TABLE, row
        if kind == "merge" and len(regions) > 1:
            left, right = self._rng.choice(list(pairwise(regions)))
            return [left, right], "columnarMerge", left.name, right.name
        region = self._rng.choice(regions)
        return [region], "columnarMove", region.name, "", False

    async def _kill(self) -> None:
        servers, count = self._store.servers(), self._plan.nodes or self._plan.servers
        await asyncio.to_thread(self._store.kill_server, self._rng.randrange(len(servers)))
        deadline = time.monotonic() + UP_S
        while time.monotonic() < deadline:
            with suppress(Unanswered, TimeoutError):
                found = await self._admin.ask("columnarServers")
                if sum(one.state == b"up" for one in found.servers) == count and not found.unassigned:
                    return
            await asyncio.sleep(LOOK_S)
        self._crowd.problem(f"not every server is up {UP_S:.0f} s after a kill")

    # --- in the end --------------------------------------------------------------------------------------

    def _verify(self) -> None:
        connection, crowd = self._store.connection(), self._crowd
        missing = crowd.missing(connection.table(TABLE).scan())
        for one in missing[:EXAMPLES]:
            crowd.problem(f"LOST: {one}")
        found = delivered(connection, TRIGGER, crowd.clients, self._tell)
        for problem in found.problems:
            crowd.problem(problem)
        if found.repeats and not self._plan.kills:
            crowd.problem(f"{found.repeats} changes were delivered again, and nothing had died")
        connection.close()
        self.findings.counts |= {
            "calls answered": crowd.counts["answered"],
            "calls failed": crowd.failed,
            "of them writes of unknown outcome": crowd.counts["outcome unknown"],
            "acknowledged writes": crowd.acknowledged(),
            "acknowledged writes that are lost": len(missing),
            "changes delivered": found.delivered,
            "changes not delivered": found.missing,
            "changes delivered again": found.repeats,
        }
        read: Counter[str] = sum((one.counts for one in self._readers), Counter())
        if self._readers:
            names = ("snapshots", "rows", "changes", "writes seen", "gaps", "repeats", "failed requests")
            self.findings.counts |= {f"of change streams: {name}": read[name] for name in names}
        if self._members:
            self._find_missing()

    def _find_missing(self) -> None:
        ledger = self._ledger
        for key in sorted(ledger.missing()):
            ledger.note_problem("missing", key)
        names = ("pulls", "commits", "writes committed", "missing", "after commit", "repeats", "refused commits")
        more = ("leaves", "deaths", "failed requests")
        self.findings.counts |= {f"of the group: {name}": ledger.counts[name] for name in (*names, *more)}


def _touches(region: Region, client: RegionClient) -> bool:
    first, behind = client.prefix + b"/", client.prefix + b"0"  # the character behind a slash
    return region.start < behind and (not region.end or first < region.end)


def report(findings: Findings) -> list[str]:
    lines = []
    for kind, pauses in sorted(findings.pauses_s.items()):
        p50, p99 = quantile(pauses, 0.5), quantile(pauses, 0.99)
        lines.append(
            f"{len(pauses):10,} {kind}s; a client waited {1e3 * p50:.0f} ms (p50), {1e3 * p99:.0f} ms (p99),"
            f" {1e3 * max(pauses):.0f} ms (longest)"
        )
    if findings.answers_s:
        p50, p99, longest = (1e3 * quantile(findings.answers_s, share) for share in (0.5, 0.99, 1.0))
        text = f"took {p50:.0f} ms (p50), {p99:.0f} ms (p99), {longest:.0f} ms (longest)"
        lines.append(f"{len(findings.answers_s):10,} calls that need no region {text}")
    lines += [f"{count:10,} {name}" for name, count in findings.counts.items()]
    lines += [f"{count:10,} times refused: {text}" for text, count in findings.refusals.most_common(EXAMPLES)]
    return [*lines, *(f"WRONG  {problem}" for problem in findings.problems)]


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--servers", default=DEFAULT.servers, show_default=True, type=click.IntRange(2, 16))
@click.option("--nodes", default=DEFAULT.nodes, show_default=True, type=click.IntRange(0, 16), help="0: one machine.")
@click.option(
    "--folder", default=DEFAULT.folder, show_default=True, type=click.Choice(("ext4", "ceph")), help="Of the nodes."
)
@click.option("--clients", default=DEFAULT.clients, show_default=True, type=click.IntRange(2, 999))
@click.option("--moves", default=DEFAULT.moves, show_default=True, type=click.IntRange(0))
@click.option("--splits", default=DEFAULT.splits, show_default=True, type=click.IntRange(0))
@click.option("--merges", default=DEFAULT.merges, show_default=True, type=click.IntRange(0))
@click.option("--kills", default=DEFAULT.kills, show_default=True, type=click.IntRange(0), help="Of servers.")
@click.option("--readers", default=DEFAULT.readers, show_default=True, type=click.IntRange(0, 100), help="Of streams.")
@click.option(
    "--group-members", default=0, show_default=True, type=click.IntRange(0, 100), help="Of a group of readers."
)
@click.option("--per-second", default=DEFAULT.per_second, show_default=True, help="Calls of all clients.")
@click.option("--seed", default=DEFAULT.seed, show_default=True)
def main(seed: int, **options: Any) -> None:
    """Move, split and merge regions under load, and say what clients and a trigger notice of it."""
    plan = Plan(seed=seed, **options)
    if plan.folder != "ext4" and not plan.nodes:
        raise click.UsageError("--folder is that of nodes: say --nodes 3 too")
    if lacking := missing(plan.folder):
        raise click.ClickException(f"{plan.folder} DID NOT RUN: {', '.join(lacking)} is missing")
    where = f"{plan.nodes} nodes on {plan.folder}" if plan.nodes else f"{plan.servers} servers"
    print(f"seed {seed}, {where}, {plan.clients} clients, {plan.per_second:g} calls a second", flush=True)
    with tempfile.TemporaryDirectory(prefix="columnar-moves-") as folder:
        findings = asyncio.run(Trial(Path(folder), plan, told_at_times()).run())
    print(*report(findings), sep="\n")
    sys.exit(bool(findings.problems))


def told_at_times() -> Tell:
    """Return a function that prints a line every TOLD_S."""
    last = 0.0

    def tell(text: str) -> None:
        nonlocal last
        if time.monotonic() > last + TOLD_S:
            last = time.monotonic()
            print(text, flush=True)

    return tell


if __name__ == "__main__":
    main()
