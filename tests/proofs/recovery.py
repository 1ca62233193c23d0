"""python -m tests.proofs.recovery: the time without answers after a server is killed or stopped.

A table has ``regions`` regions for each server, and a client for each region (``region_clients``).  Before each shot
every server has its share of the regions, all of them were written since their owner opened them, nothing moves, and
the process that takes the place of a dead server waits.  Then one server gets ``kill -9``, or SIGSTOP, all clients call
at once, and for each the time counts until a call that it began afterwards is answered.  A shot's figure is the time of
its slowest region.

After its third death within five minutes a server gets no regions for a while.  So the supervisor is restarted before
that.  At the end every acknowledged write must be in the table.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import click

from columnar.client import ClusterAdmin, Connection
from columnar.client.cluster import RegionLocation
from columnar.client.errors import IOError
from columnar.roles.regionserver_process import SPARE
from tests.proofs.region_clients import FAMILY, Crowd, prefixes, quantile
from tests.support.cluster_process import ClusterProcess, children, shown_as

TABLE: Final = b"recovered"
DEATHS: Final = 2  # of a server, before the supervisor is started again
GIVE_UP_S: Final = 60.0  # a row that was not answered by then never is
READY_S: Final = 120.0  # for all regions to be where they belong
LOOK_S: Final = 0.05
FILLING_ROWS: Final = 40  # of a region, before each shot

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Plan:
    servers: int = 2
    regions: int = 64  # of each server
    kills: int = 100
    stops: int = 20
    per_second: float = 400.0  # calls of all clients
    written_bytes: int = 160 * 1024  # to each region before each shot
    seed: int = 1


DEFAULT: Final = Plan()


@dataclass(slots=True)
class Shot:
    how: str
    lost_regions: int  # of the server that was shot
    slowest_s: float
    median_s: float  # of the regions that it had


@dataclass(slots=True)
class Findings:
    shots: list[Shot] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def of(self, how: str) -> list[Shot]:
        return [shot for shot in self.shots if shot.how == how]


class Trial:
    def __init__(self, folder: Path, plan: Plan, tell: Tell) -> None:
        self._folder, self._plan, self._tell = folder, plan, tell
        self._rng = random.Random(f"recovery {plan.seed}")
        self._names = prefixes(plan.servers * plan.regions)
        self._crowd = Crowd(TABLE, self._names, plan.per_second, plan.seed)
        self._filling = os.urandom(max(1, plan.written_bytes // FILLING_ROWS))
        self.findings = Findings()

    async def run(self) -> Findings:
        shots = ["kill -9"] * self._plan.kills + ["SIGSTOP"] * self._plan.stops
        of_a_life = DEATHS * self._plan.servers
        for at in range(0, len(shots), of_a_life):
            await self._life(shots[at : at + of_a_life], is_first=not at)
        await self._verify()
        crowd = self._crowd
        self.findings.problems = crowd.problems
        self.findings.counts = {
            "calls answered": crowd.counts["answered"],
            "acknowledged writes": crowd.acknowledged(),
            "calls that lost their connection": crowd.counts["unanswered"],
            "writes of unknown outcome, as their server said": crowd.counts["outcome unknown"],
            "calls refused": crowd.counts["refused"],
        }
        return self.findings

    async def _life(self, shots: Sequence[str], *, is_first: bool) -> None:
        """Run the life of one supervisor."""
        store = ClusterProcess(self._folder / "data", self._plan.servers, "--log-level", "info")
        await asyncio.to_thread(store.start)
        try:
            if is_first:
                await asyncio.to_thread(self._create, store)
            self._crowd.begin(store.port)
            victims = [f"s{n % self._plan.servers + 1}" for n in range(len(shots))]
            self._rng.shuffle(victims)
            for how, victim in zip(shots, victims, strict=True):
                await asyncio.to_thread(self._prepare, store)
                await self._shoot(store, how, victim)
            await self._crowd.end()
            status = await asyncio.to_thread(store.stop)
            if status:
                self._crowd.problem(f"SIGTERM ended the supervisor with status {status}")
        finally:
            await self._crowd.cut_off()
            await asyncio.to_thread(store.kill)

    def _create(self, store: ClusterProcess) -> None:
        connection = store.connection()
        connection.create_table(TABLE, {FAMILY: {}, "w": {}}, splits=self._names[1:])
        connection.close()

    # --- before a shot -----------------------------------------------------------------------------------

    def _prepare(self, store: ClusterProcess) -> None:
        """Return when each server is up with its share of the regions, and each region was written."""
        connection = store.connection()
        admin = ClusterAdmin(connection)
        try:
            self._wait(lambda: self._all_open(admin))
            while moves := even_moves(admin.locations(TABLE), self._plan.servers):
                for region, server in moves:
                    try:
                        admin.move(region, server)
                    except IOError as error:  # it is on its way elsewhere
                        self._tell(f"not moved: {error.message!r}")
                self._wait(lambda: self._all_open(admin))
            self._fill(connection)
            self._wait(lambda: SPARE in map(shown_as, children(store.pid)))
        finally:
            connection.close()

    def _all_open(self, admin: ClusterAdmin) -> bool:
        status = admin.servers()
        up = sum(server.state == "up" for server in status.servers)
        return up == self._plan.servers and not status.unassigned and not status.transitions

    def _wait(self, is_so: Callable[[], bool]) -> None:
        deadline = time.monotonic() + READY_S
        while not is_so():
            if time.monotonic() > deadline:
                raise TimeoutError(f"the cluster is not at rest after {READY_S:.0f} s")
            time.sleep(LOOK_S)

    def _fill(self, connection: Connection) -> None:
        table = connection.table(TABLE)
        for name in self._names:
            with table.batch() as batch:
                for n in range(FILLING_ROWS):
                    batch.put(b"%s-%02d" % (name, n), {b"w:w": self._filling})

    # --- a shot ------------------------------------------------------------------------------------------

    async def _shoot(self, store: ClusterProcess, how: str, victim: str) -> None:
        pid, had = await asyncio.to_thread(self._victim, store, victim)
        os.kill(pid, signal.SIGKILL if how == "kill -9" else signal.SIGSTOP)
        self._crowd.mark()
        waits = await self._crowd.all_answered(GIVE_UP_S)
        shot = Shot(how, len(had), max(waits), quantile([waits[n] for n in had], 0.5))
        self.findings.shots.append(shot)
        for name, waited in zip(self._names, waits, strict=True):
            if waited == float("inf"):
                self._crowd.problem(f"{how} of {victim}: rows of {name.decode()} got no answer in {GIVE_UP_S:.0f} s")
        self._tell(f"{how} of {victim}, {shot.lost_regions} regions: slowest {shot.slowest_s:.2f} s")

    def _victim(self, store: ClusterProcess, name: str) -> tuple[int, list[int]]:
        """Return the server's process, and the clients whose regions it has."""
        connection = store.connection()
        try:
            admin = ClusterAdmin(connection)
            (pid,) = (server.pid for server in admin.servers().servers if server.name == name)
            located = admin.locations(TABLE)
            return pid, [n for n, region in enumerate(located) if region.server == name]
        finally:
            connection.close()

    async def _verify(self) -> None:
        def rows() -> list[str]:
            with ClusterProcess(self._folder / "data", self._plan.servers) as store:
                connection = store.connection()
                found = self._crowd.missing(connection.table(TABLE).scan(columns=[FAMILY]))
                connection.close()
                return found

        missing = await asyncio.to_thread(rows)
        self.findings.counts["acknowledged writes that are lost"] = len(missing)
        for one in missing:
            self._crowd.problem(f"LOST: {one}")


def even_moves(regions: Sequence[RegionLocation], servers: int) -> list[tuple[bytes, str]]:
    """Return moves of regions to servers, so that all servers have equally many."""
    held: dict[str, list[bytes]] = {f"s{n + 1}": [] for n in range(servers)}
    for region in regions:
        held[region.server].append(region.name)
    share = len(regions) // servers
    over = [name for names in held.values() for name in names[share:]]
    room = [server for server, names in held.items() for _ in range(share - len(names))]
    return list(zip(over, room, strict=False))


def report(findings: Findings) -> list[str]:
    lines = []
    for how in ("kill -9", "SIGSTOP"):
        if shots := findings.of(how):
            slowest = [shot.slowest_s for shot in shots]
            figures = (quantile(slowest, 0.5), quantile(slowest, 0.9), max(slowest))
            lines.append(
                f"{how:8} {len(shots):4} times, {shots[0].lost_regions} regions each: every row answers again after"
                f" {figures[0]:.2f} s (median), {figures[1]:.2f} s (p90), {figures[2]:.2f} s (longest);"
                f" half of the regions after {quantile([shot.median_s for shot in shots], 0.5):.2f} s"
            )
    lines += [f"{count:10,} {name}" for name, count in findings.counts.items()]
    return [*lines, *(f"WRONG  {problem}" for problem in findings.problems)]


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--servers", default=DEFAULT.servers, show_default=True, type=click.IntRange(2, 16))
@click.option(
    "--regions", default=DEFAULT.regions, show_default=True, type=click.IntRange(1, 1024), help="Of each server."
)
@click.option("--kills", default=DEFAULT.kills, show_default=True, type=click.IntRange(0))
@click.option("--stops", default=DEFAULT.stops, show_default=True, type=click.IntRange(0), help="SIGSTOPs.")
@click.option("--per-second", default=DEFAULT.per_second, show_default=True, help="Calls of all clients.")
@click.option("--seed", default=DEFAULT.seed, show_default=True)
def main(servers: int, regions: int, kills: int, stops: int, per_second: float, seed: int) -> None:
    """Kill or stop a server under load again and again, and say when every row answers again."""
    plan = Plan(servers, regions, kills, stops, per_second, seed=seed)
    print(f"seed {seed}, {servers} servers with {regions} regions each, {per_second:g} calls a second", flush=True)
    with tempfile.TemporaryDirectory(prefix="columnar-recovery-") as folder:
        findings = asyncio.run(Trial(Path(folder), plan, lambda text: print(text, flush=True)).run())
    print(*report(findings), sep="\n")
    sys.exit(bool(findings.problems))


if __name__ == "__main__":
    main()
