"""python -m tests.crash.cuts: the data folder as a power cut at any moment would leave it, opened and compared."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from random import Random, SystemRandom
from typing import NamedTuple

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from tests.crash.cuts.cutting import Cut, Found, chosen, run, run_in_processes
from tests.crash.cuts.disk import replay
from tests.crash.cuts.opening import scratch
from tests.crash.cuts.order import too_early
from tests.crash.cuts.recording import SERVER, SHARING, Recording, differences, record

console = Console(width=160)
SHOWN = 10


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--seed", type=int, help="Repeats what clients send and which cuts are chosen.  [default: a new one]")
@click.option("--calls", default=400, show_default=True, help="Calls of each of the four writers.")
@click.option("--cuts", default=3_000, show_default=True, help="How many cuts to look at.")
@click.option("--seconds", default=0, help="Stop after so long, whatever is left to do.  [default: do all]")
@click.option("--processes", default=2, show_default=True, help="That open what was left.")
@click.option(
    "--serve-every", default=50, show_default=True, help="Start the whole server on each so manyth cut; 0: never."
)
@click.option("--sharing", is_flag=True, help="Of a server all of whose writes go through the log of the server.")
@click.option("--copies", is_flag=True, help="Snapshots, clones, restores, exports, imports and backups besides.")
@click.option(
    "--keep", type=click.Path(path_type=Path), help="Keep the recording, with strace's own lines, in this folder."
)
@click.option(
    "--again", type=click.Path(path_type=Path), help="Take the recording that --keep left there, make no new one."
)
@click.option(
    "--cut", "only", metavar="EVENT:KIND:SEED", help="Look at this one cut, as a run before named it; with --again."
)
def main(
    seed: int | None,
    calls: int,
    cuts: int,
    seconds: int,
    processes: int,
    serve_every: int,
    sharing: bool,
    copies: bool,
    keep: Path | None,
    again: Path | None,
    only: str | None,
) -> None:
    """Record a store's system calls while clients write, then cut the power at any of them.

    A real server runs under strace; four clients put, delete, count, append and check, one makes, splits,
    flushes, compacts and drops tables, a trigger runs; in the middle the server is killed and started again.
    From the recording the data folder is made anew as a power cut at a moment would leave it:

    \b
      lost     all unsynced writes are lost
      kept     all unsynced writes are kept
      prefix   the writes before some earlier moment are kept, and all synced ones
      mixed    some are kept, by chance: files without names, names without bytes, torn writes, pages of zeros

    Each is opened with the store's own code and read: every write acknowledged before the cut must be there, each
    row in one of the states it went through, and 'columnar check' must find no error.  Beside that, no answer may
    leave before the fsync of its write.  With --copies every acknowledged snapshot, export, backup and restored
    folder must be there too, and each that is listed must be whole and have the rows of its source.

    \b
    Examples:
      python -m tests.crash.cuts                                a new recording, 3,000 cuts
      python -m tests.crash.cuts --cuts 20000 --calls 2000      a long one
      python -m tests.crash.cuts --sharing                      fsyncs that regions share
      python -m tests.crash.cuts --copies --calls 60            snapshots, exports and backups
      python -m tests.crash.cuts --keep rec --cuts 100          and repeat a cut that it reports:
      python -m tests.crash.cuts --again rec --cut 4711:mixed:0

    The exit status is 1 if a promise was broken.  The command needs strace.
    """
    number = seed if seed is not None else SystemRandom().randrange(1, 1 << 32)
    console.print(f"seed {number}")
    with tempfile.TemporaryDirectory(prefix="columnar-cuts-") as held:
        how = How(number, calls, SHARING if sharing else SERVER, copies)
        recording = _recording(Path(held), how, keep, again)
        wrong = _answered_too_early(recording)
        if only:
            found = run(recording, [Cut.named(only)], serve_every=1)
        else:
            picked = chosen(recording, cuts, Random(number))
            found = _run(recording, picked, processes, serve_every, seconds)
    _show_broken(found, recording)
    console.print(
        f"{found.cuts} cuts, {found.opened} different states of regions opened, {found.served} servers started; "
        f"{len(found.broken)} cuts broke a promise"
    )
    sys.exit(1 if wrong or found.broken else 0)


def _answered_too_early(recording: Recording) -> list[str]:
    """Print and return the answers that left before the fsync of their write."""
    wrong = too_early(recording)
    marked = sum(1 for call in recording.calls if call.mark)
    console.print(
        f"order of system calls: {marked - len(wrong)} of {marked} answers left after the fsync of their write"
    )
    for line in wrong[:SHOWN]:
        console.print(f"  [red]{line}")
    return wrong


def _show_broken(found: Found, recording: Recording) -> None:
    for cut, lines in found.broken[:SHOWN]:
        console.print(
            f"[red]cut {cut.name}[/] after {recording.events[cut.event - 1].__class__.__name__}", highlight=False
        )
        for line in lines[:SHOWN]:
            console.print(f"  {line}", markup=False, highlight=False)


class How(NamedTuple):
    """The options of a recording."""

    seed: int
    calls: int
    server: tuple[str, ...]
    copies: bool


def _recording(held: Path, how: How, keep: Path | None, again: Path | None) -> Recording:
    import pickle

    if again is not None:
        return pickle.loads((again / "recording.pickle").read_bytes())  # type: ignore[no-any-return]
    folder = keep if keep is not None else held
    folder.mkdir(parents=True, exist_ok=True)
    began_s = time.monotonic()
    with console.status("recording"):
        recording = record(
            folder.resolve() / "root", seed=how.seed, calls=how.calls, server=how.server, copies=how.copies
        )
    off = differences(replay(recording.events), folder.resolve() / "root")
    if off:
        console.print(f"[red]the disk that was followed is not the real one: {off[:SHOWN]}")
        sys.exit(2)
    if keep is not None:
        (keep / "recording.pickle").write_bytes(pickle.dumps(recording))
    console.print(
        f"recorded in {time.monotonic() - began_s:.0f} s: {len(recording.calls)} calls, "
        f"{len(recording.events)} events, {len(recording.cut_points)} points to cut at"
    )
    return recording


def _run(recording: Recording, picked: list[Cut], processes: int, serve_every: int, seconds: int) -> Found:
    total = Found()
    deadline_s = time.time() + (seconds or 10**9)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    folder, began_s = scratch(), time.monotonic()
    try:
        with Progress(*columns, console=console) as bar:
            task = bar.add_task("cutting", total=len(picked))
            for found in run_in_processes(
                recording,
                picked,
                processes=min(processes, os.cpu_count() or 1),
                scratch=folder,
                serve_every=serve_every,
                deadline_s=deadline_s,
            ):
                total.add(found)
                bar.advance(task, found.cuts)
                bar.update(task, description=f"cutting, {len(total.broken)} broken")
    finally:
        (folder / "recording.pickle").unlink(missing_ok=True)
        folder.rmdir()
    console.print(f"{total.cuts / (time.monotonic() - began_s):.0f} cuts a second")
    return total


if __name__ == "__main__":
    main()
