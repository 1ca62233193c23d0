"""python -m tests.crash.zombies: owners that are stopped, lose their regions, and wake.

It looks at bytes and at losses only: its owners have no clients and no lease.  Acknowledgements after a fence and stale
reads are attacked by ``tests.simulation --world lease``, ``tests.proofs linearizable --nodes 3`` and
``tests.proofs.anchors``.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path

import click

from tests.crash.zombies.trial import linked_logs, run_trial
from tests.support.many_machines import missing, shared_folder


@contextmanager
def _mounts(kind: str, root: Path) -> Iterator[tuple[Path, Path]]:
    """Yield a folder as the first owner sees it, and as the next one does."""
    if kind == "ext4":
        yield root, root
        return
    if lacking := missing(kind):
        sys.exit(f"{kind} DID NOT RUN: {', '.join(lacking)} is missing")
    with shared_folder(kind, 2) as shared:
        yield shared.mounts[0], shared.mounts[1]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--seeds", default=200, show_default=True, help="Number of owners.")
@click.option("--first", default=1, show_default=True, help="The first seed.")
@click.option(
    "--folder",
    default="ext4",
    type=click.Choice(["ext4", "ceph", "gluster"]),
    show_default=True,
    help="File system of the folder; ceph and gluster are started here, with a mount for each of two machines.",
)
@click.option(
    "--at", type=click.Path(path_type=Path, file_okay=False), help="Parent folder. [default: a temporary one]"
)
@click.option("--processes", default=2, show_default=True, help="Trials at the same time.")
@click.option(
    "--linked-logs", "linked_logs_", is_flag=True, help="Link logs in takeovers: the run must find the zombies' bytes."
)
def main(seeds: int, first: int, folder: str, at: Path | None, processes: int, linked_logs_: bool) -> None:
    """Stop a region's owner amid its writes, take its folder over, wake it, and look at the next owner's store.

    The owner is a process with RocksDB that writes, syncs, flushes and compacts.  It is stopped by SIGSTOP at a random
    moment and woken before or after the next owner has opened the folder.  No batch that it had synced may be lost, and
    none that it wrote after the takeover may be in the next owner's store.
    """
    failed = written = before = 0
    with (
        tempfile.TemporaryDirectory(prefix="columnar-zombies-", dir=at) as root,
        _mounts(folder, Path(root)) as (one, other),
        linked_logs() if linked_logs_ else nullcontext(),
        ThreadPoolExecutor(processes) as pool,
    ):
        for outcome in pool.map(
            lambda seed: run_trial(one / str(seed), seed, other / str(seed), Path(root) / f"{seed}.counters"),
            range(first, first + seeds),
        ):
            failed += bool(outcome.faults)
            written += outcome.woken
            before += outcome.wakes_before
            for fault in outcome.faults:
                click.echo(f"seed {outcome.seed}: {fault}")
    click.echo(
        f"{folder}: {seeds} owners stopped, {before} woken before the next owner had opened the folder; they began "
        f"{written:,} batches after they woke; {failed} of {seeds} broke a law"
    )
    if linked_logs_:
        sys.exit(0 if failed else "linked logs were not noticed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
