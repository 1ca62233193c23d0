"""Damage to the remains of dead servers: it is named, no wrong data is served, and the named command repairs it.

    python -m tests.proofs.dead_server_damage --rounds 200 --seed N

All processes of a store of three servers are killed after writes.  In half of the rounds the power fails, too: only the
synced parts of the regions' own logs are left, so acknowledged writes stand in the servers' logs alone.  Then a file or
a folder below ``servers`` is damaged.  Each round:

    the next start    of three servers, or of one process
                      every acknowledged row is served, or its region or the store refuses with a reason that names a
                      command
    the check         has errors if anything was refused
    the command       carried out as it stands in the reason; then the store starts, every region answers, and a row is
                      missing only if the command said that something was lost
"""

from __future__ import annotations

import re
import shlex
import shutil
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

import click
from click.testing import CliRunner

from columnar.cli import main as columnar
from columnar.client import ClusterAdmin, Connection
from columnar.client.errors import IOError
from columnar.storage.rocks_manifest import Records, batch_head
from columnar.storage.server_folders import LOGGED
from columnar.storage.synced_bound import read_bound
from tests.crash.damage import HOW, damaged
from tests.support.cluster_process import ClusterProcess, until

TABLE: Final = b"t"
PARTS: Final = [b"%x" % number for number in range(12)]  # first bytes of rows, one for each region
WRITERS: Final = 8
SETTLED_S: Final = 30.0
LOOK_S: Final = 0.05
FOLDERS: Final = ("folder lost", "folder empty", "log lost", "log empty", "another's log", "a segment twice")
_COMMAND: Final = re.compile(r"'columnar (repair --data [^']+)'")


@dataclass(slots=True)
class Killed:
    """A data folder without a process, and the acknowledged rows."""

    folder: Path
    rows: set[bytes]


@dataclass(slots=True)
class Round:
    damage: str
    refused: list[str] = field(default_factory=list)  # reasons
    lost: int = 0  # rows, after the command said so
    wrong: list[str] = field(default_factory=list)


def killed_store(folder: Path, seconds: float) -> Killed:
    store = ClusterProcess(folder, 3)
    store.start()
    try:
        connection = store.connection()
        connection.create_table(TABLE, {"f": {}}, splits=PARTS[1:])
        connection.close()
        acknowledged: list[set[bytes]] = [set() for _ in range(WRITERS)]
        is_enough = threading.Event()
        writers = [
            threading.Thread(target=_write, args=(store, writer, acknowledged[writer], is_enough))
            for writer in range(WRITERS)
        ]
        for thread in writers:
            thread.start()
        threading.Event().wait(seconds)
        until(lambda: len(list(folder.glob("servers/*/log/*.segment"))) > 1)
        is_enough.set()
        for thread in writers:
            thread.join()
    finally:
        store.kill()
    return Killed(folder, set().union(*acknowledged))


def _write(store: ClusterProcess, writer: int, acknowledged: set[bytes], is_enough: threading.Event) -> None:
    connection = store.connection()
    number = 0
    while not is_enough.is_set():
        number += 1
        rows = [b"%s-%d-%d" % (part, writer, number) for part in PARTS]
        batch = connection.table(TABLE).batch()
        for row in rows:
            batch.put(row, {b"f:v": row})
        batch.send()
        acknowledged.update(rows)
    connection.close()


def lose_power(folder: Path) -> int:
    """Cut the regions' own logs behind their synced bound; return the number of bytes cut."""
    gone = 0
    for region in (folder / "regions").iterdir():
        bound = read_bound(str(region)) if region.name != "meta" else None
        if bound is None:
            continue
        for log in sorted(region.glob("*.log")):
            records = Records(log.read_bytes())
            keep = 0
            for record in records:
                sequence, count = batch_head(record)
                if sequence + count - 1 > bound.sequence:
                    break
                keep = records.end
            else:
                continue
            gone += log.stat().st_size - keep
            with log.open("r+b") as file:
                file.truncate(keep)
    return gone


def damage(folder: Path, rng: Random) -> str:
    """Damage something that a dead server left; return its description."""
    used = sorted(one for one in (folder / "servers").iterdir() if (one / LOGGED).exists())
    server = rng.choice(used)
    how = rng.choice((*HOW, *FOLDERS))
    if how == "folder lost":
        shutil.rmtree(server)
    elif how == "folder empty":
        shutil.rmtree(server)
        server.mkdir()
    elif how == "another's log":
        other = rng.choice([one for one in used if one != server] or used)
        if other != server:
            shutil.rmtree(server / "log")
            shutil.copytree(other / "log", server / "log")
    elif how == "a segment twice":
        for segment in sorted((server / "log").glob("*.segment"))[:1]:
            shutil.copy(segment, server / "log" / "00000090.segment")
    elif how == "log lost":
        shutil.rmtree(server / "log")
    elif how == "log empty":
        for file in (server / "log").iterdir():
            file.unlink()
    else:
        segments = sorted((server / "log").glob("*.segment"))
        file = (
            rng.choice(segments) if segments and rng.random() < 0.7 else rng.choice(sorted((server / "log").iterdir()))
        )
        return f"{server.name}/log/{file.name}: {damaged(file, how, rng)}"
    return f"{server.name}: {how}"


def play(whole: Killed, target: Path, rng: Random) -> Round:
    shutil.copytree(whole.folder, target, symlinks=True)
    has_power_failed = rng.random() < 0.5
    if has_power_failed:
        lose_power(target)
    found = Round(f"{damage(target, rng)}{', after a power cut' if has_power_failed else ''}")
    servers = rng.choice((3, 3, 1))
    rows = _started(target, servers, whole.rows, found)
    if rows is not None and not found.refused:
        _judge(rows, whole.rows, found)
        return found
    checked = CliRunner().invoke(columnar, ["check", "--data", str(target)])
    if checked.exit_code != 1:
        found.wrong.append(f"the check found nothing: {checked.output}")
    commands = {command for reason in found.refused for command in _COMMAND.findall(reason)}
    if len(commands) != 1:
        found.wrong.append(f"no command ends {found.refused}")
        return found
    said = CliRunner().invoke(columnar, shlex.split(commands.pop()))
    if said.exit_code not in (0, 1):
        found.wrong.append(f"the command failed: {said.output}")
    found.refused.append("after the command:")
    refusals = len(found.refused)
    rows = _started(target, servers, whole.rows, found)
    if rows is None or len(found.refused) > refusals:
        found.wrong.append(f"the command does not end it: {found.refused[refusals:]}; it said {said.output}")
        return found
    found.lost = len(whole.rows - rows.keys())
    if found.lost and "may lack acknowledged writes" not in said.output:
        found.wrong.append(f"{found.lost} rows are lost, and the command said nothing: {said.output}")
    _judge({**dict.fromkeys(whole.rows - rows.keys(), b""), **rows} if found.lost else rows, whole.rows, found)
    return found


def _started(folder: Path, servers: int, acknowledged: set[bytes], found: Round) -> dict[bytes, bytes] | None:
    """Return the rows that are served now, or None if the store does not start.

    The reasons for rows that are not served are put into ``found``.
    """
    log = folder.with_suffix(".log")
    log.unlink(missing_ok=True)
    store = ClusterProcess(folder, servers)
    try:
        store.start()
    except AssertionError:
        store.kill()
        found.refused.append(log.read_text())
        return None
    try:
        return _read(store, servers, acknowledged, found)
    finally:
        if store.stop() != 0:
            found.wrong.append("it did not stop in order")


def _read(store: ClusterProcess, servers: int, acknowledged: set[bytes], found: Round) -> dict[bytes, bytes]:
    connection = store.connection()
    try:
        if servers > 1:
            _settle(connection)
        rows = dict[bytes, bytes]()
        for part in PARTS:
            try:
                scanned = connection.table(TABLE).scan(row_prefix=part)
                there = {row: cells[b"f:v"] for row, cells in scanned}
            except IOError as refusal:
                found.refused.append(str(refusal))
                continue
            missing = {row for row in acknowledged if row.startswith(part)} - there.keys()
            if missing and "after the command:" not in found.refused:
                found.wrong.append(f"{len(missing)} rows of region {part!r} are gone in silence")
            rows |= there
        return rows
    finally:
        connection.close()


def _settle(connection: Connection) -> None:
    """Wait until every region is open, or stays closed for good."""
    admin, until_s = ClusterAdmin(connection), time.monotonic() + SETTLED_S
    while any(one.kind != "failed" for one in admin.transitions()) and time.monotonic() < until_s:
        threading.Event().wait(LOOK_S)


def _judge(rows: dict[bytes, bytes], acknowledged: set[bytes], found: Round) -> None:
    wrong = [row for row, value in rows.items() if value and value != row]
    if wrong:
        found.wrong.append(f"rows with values of nobody: {wrong[:3]}")
    if acknowledged - rows.keys():
        found.wrong.append(f"{len(acknowledged - rows.keys())} rows are gone in silence")


def run(rounds: int, seed: int, *, seconds: float = 0.5, folder: Path | None = None) -> list[Round]:
    """Run the rounds; each prints its seed, and ``--seed N --rounds 1`` repeats the damage of seed N."""
    root = folder or Path(tempfile.mkdtemp(prefix="columnar-dead-"))
    played = []
    try:
        whole = killed_store(root / "whole", seconds)
        for number in range(rounds):
            target = root / f"round-{number}"
            one = play(whole, target, Random(f"{seed} {number}"))
            print(f"seed {seed} round {number}: {one.damage}; refused {len(one.refused)}, lost {one.lost}", flush=True)
            for text in one.wrong:
                print(f"WRONG  {text}", flush=True)
            played.append(one)
            shutil.rmtree(target, ignore_errors=True)
    finally:
        if folder is None:
            shutil.rmtree(root, ignore_errors=True)
    return played


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--rounds", default=100, show_default=True, type=click.IntRange(min=1))
@click.option("--seed", default=1, show_default=True)
def main(rounds: int, seed: int) -> None:
    """Damage what dead servers left, at random; see that it is named, and that the command that is named ends it."""
    played = run(rounds, seed)
    bad = sum(bool(one.wrong) for one in played)
    print(f"{rounds} rounds, {sum(bool(one.refused) for one in played)} refused something; {bad} broke a promise")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
