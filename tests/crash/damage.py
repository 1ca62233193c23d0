"""Random damage to files of a data folder, of every kind, which must end in an error or in the right rows.

    python -m tests.crash.damage --count 1000 --seed N

Data folders are made as servers leave them: killed, and closed; regions with tables and logs of their own, a log of the
server, a snapshot.  One file of a copy is damaged: a bit is flipped, bytes are zeroed, cut off or doubled, or the file
is removed.  ``columnar check`` reads the copy; then a server is started on it, and all rows are read.  Either a region
or the store reports damage, which the check must have reported too, or all rows are right.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random, SystemRandom
from typing import Final

import click
from click.testing import CliRunner

from columnar.cli import main as columnar
from columnar.client import Connection
from columnar.client.errors import IOError
from columnar.errors import ColumnarError
from columnar.storage import commit
from tests.support.serving import Serving

TABLES: Final = (b"flushed", b"logged", b"mixed")
HOW: Final = ("flip", "cut", "zeros", "zero end", "double", "lost")
BESIDE: Final = ("LOG", "LOCK")
REPLACED: Final = ("MANIFEST-", "OPTIONS-", "CURRENT", "IDENTITY", "manifest.json")
SHARED_MEMORY: Final = Path("/dev/shm")
Rows = dict[bytes, dict[bytes, bytes]]


@dataclass(slots=True)
class Whole:
    """A data folder and its rows."""

    folder: Path
    tables: dict[bytes, Rows]


@dataclass(slots=True)
class Outcome:
    damage: str
    kind: str
    refused: list[str] = field(default_factory=list)  # what was an error
    wrong: list[str] = field(default_factory=list)


def scratch() -> Path:
    return Path(tempfile.mkdtemp(prefix="columnar-damage-", dir=SHARED_MEMORY if SHARED_MEMORY.is_dir() else None))


def make(root: Path, rng: Random) -> list[Whole]:
    """Return a folder as ``kill -9`` leaves it, with the server log in use, and the same folder closed in order."""
    live = root / "live"
    shared_from, commit.SHARED_FROM = commit.SHARED_FROM, 0  # type: ignore[misc]
    try:
        return _made(root, live, rng)
    finally:
        commit.SHARED_FROM = shared_from  # type: ignore[misc]


def _made(root: Path, live: Path, rng: Random) -> list[Whole]:
    store = Serving(live).start()
    rows: dict[bytes, Rows] = {table: {} for table in TABLES}
    try:
        connection = store.connect()
        for table in TABLES:
            connection.create_table(table, {"f": {"max_versions": 1}, "g": {"max_versions": 1}})
        for turn in range(3):
            for table in TABLES:
                _fill(connection, table, rows[table], rng, turn)
            connection.admin.flush(b"flushed" if turn == 2 else TABLES[turn])
        connection.admin.flush(b"flushed")
        connection.snapshots.take_snapshot("one", b"mixed")
        for number in range(20):
            row = b"last-%d" % number
            connection.table(b"mixed").put(row, {b"f:x": row})
            rows[b"mixed"][row] = {b"f:x": row}
        shutil.copytree(live, root / "killed", ignore=shutil.ignore_patterns("LOCK"))
    finally:
        store.stop()
    return [Whole(root / "killed", rows), Whole(live, rows)]


def _fill(connection: Connection, table: bytes, rows: Rows, rng: Random, turn: int) -> None:
    for number in range(15):
        row = b"%02d" % rng.randrange(40)
        cells = {b"f:x": rng.randbytes(rng.choice((5, 100, 2_000))), b"g:y": b"%d" % turn * 50}
        connection.table(table).put(row, cells)
        rows.setdefault(row, {}).update(cells)
        if number == 7 and turn:
            connection.table(table).delete(row, columns=[b"g:y"])
            del rows[row][b"g:y"]


def kind_of(path: Path) -> str:
    """Return the kind of a file; files of one kind are written and read by the same code."""
    name = path.name
    place = "snapshot " if "snapshots" in path.parts else "meta " if path.parent.name == "meta" else ""
    return place + ("N" + path.suffix if path.suffix in (".sst", ".log", ".segment") else name.partition("-")[0])


def files_of(folder: Path) -> dict[str, list[Path]]:
    kinds: dict[str, list[Path]] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name.split(".")[0] not in BESIDE:
            kinds.setdefault(kind_of(path.relative_to(folder)), []).append(path.relative_to(folder))
    return kinds


def _link_or_copy(source: str, target: str) -> None:
    """Link files that are written once or replaced whole; copy all other files."""
    if os.path.basename(source).startswith(REPLACED) or source.endswith(".sst"):
        os.link(source, target)
    else:
        shutil.copy2(source, target)


def damaged(path: Path, how: str, rng: Random) -> str:
    data = path.read_bytes()
    path.unlink()  # it may be a link
    first = rng.randrange(len(data) + 1)
    last = rng.randint(first, min(len(data), first + rng.choice((8, 300, 1 << 20))))
    if how == "lost" or not data:
        return f"{how}"
    if how == "flip":
        first, bit = rng.randrange(len(data)), rng.randrange(8)
        path.write_bytes(data[:first] + bytes([data[first] ^ 1 << bit]) + data[first + 1 :])
        return f"flip of bit {bit} at {first} of {len(data)}"
    changed = {
        "cut": data[:first],
        "zeros": data[:first] + bytes(last - first) + data[last:],
        "zero end": data[:first] + bytes(len(data) - first),
        "double": data[:last] + data[first:last] + data[last:],
    }[how]
    path.write_bytes(changed)
    return f"{how} from {first} to {last} of {len(data)}"


def look(whole: Whole, kind: str, path: Path, how: str, rng: Random, target: Path) -> Outcome:
    diaries = shutil.ignore_patterns("LOG", "LOG.old.*")
    shutil.copytree(whole.folder, target, ignore=diaries, copy_function=_link_or_copy)
    outcome = Outcome(f"{whole.folder.name}: {damaged(target / path, how, rng)}: {path}", kind)
    checked = CliRunner().invoke(columnar, ["check", "--data", str(target)])
    if checked.exception is not None and not isinstance(checked.exception, SystemExit):
        outcome.wrong.append(f"check ended with {checked.exception!r}")
    _serve(whole, target, outcome)
    if outcome.refused and checked.exit_code == 0:
        outcome.wrong.append(f"check finds nothing, and it is refused: {outcome.refused[0]}")
    return outcome


def _serve(whole: Whole, target: Path, outcome: Outcome) -> None:
    store = Serving(target)
    try:
        store.start()
    except ColumnarError as error:
        outcome.refused.append(error.wire_message)
        return
    try:
        connection = store.connect()
        for table, rows in whole.tables.items():
            try:
                found = {row: dict(cells) for row, cells in connection.table(table).scan()}
            except IOError as error:
                outcome.refused.append(str(error.message))
                continue
            if found != rows:
                differ = sorted(row for row in rows.keys() | found.keys() if rows.get(row) != found.get(row))
                outcome.wrong.append(f"{table!r} has other rows, without an error: {differ[:5]}")
    except IOError as error:
        outcome.refused.append(str(error.message))
    finally:
        store.stop()


def run(count: int, seed: int) -> list[Outcome]:
    """Damage each kind of file in turn."""
    rng = Random(seed)
    root = scratch()
    try:
        wholes = make(root, rng)
        kinds = [(whole, kind, paths) for whole in wholes for kind, paths in files_of(whole.folder).items()]
        outcomes = []
        for number in range(count):
            if number % len(kinds) == 0:
                rng.shuffle(kinds)
            whole, kind, paths = kinds[number % len(kinds)]
            # Each at a path of its own: an engine of the one before may still be closing, and it creates files by name.
            target = root / f"damaged-{number}"
            outcomes.append(look(whole, kind, rng.choice(paths), rng.choice(HOW), rng, target))
            shutil.rmtree(target)
        return outcomes
    finally:
        shutil.rmtree(root, ignore_errors=True)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--count", default=1_000, show_default=True, help="How many damages.")
@click.option("--seed", type=int, help="Repeats a run.  [default: a new one]")
def main(count: int, seed: int | None) -> None:
    """Damage files of a data folder, one at a time: an error or the right rows, and the check finds each error.

    The exit status is 1 if rows were wrong without an error, or the check missed an error.
    """
    seed = seed if seed is not None else SystemRandom().randrange(1, 1 << 32)
    click.echo(f"seed {seed}")
    logging.disable(logging.CRITICAL)
    outcomes = run(count, seed)
    told = Counter((outcome.kind, "an error" if outcome.refused else "the right rows") for outcome in outcomes)
    for (kind, what), number in sorted(told.items()):
        click.echo(f"{number:6}  {kind}: {what}")
    wrong = [outcome for outcome in outcomes if outcome.wrong]
    for outcome in wrong:
        click.echo(f"{outcome.damage}: {'; '.join(outcome.wrong)}")
    click.echo(f"{len(outcomes)} damages, {len(wrong)} of them wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
