"""Data folders made by an older checkout, kept in ``tests/data``, for tests that today's programs take them over.

    python -m tests.support.older_folder --checkout FOLDER      makes them anew

``FOLDER`` is a checkout of 0ff059e, a version before nodes; its own program runs in the environment of
this one.  Each store is killed once its rows are written, so its logs are to be replayed.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Final

from columnar.client import Connection
from tests.support.ports import free_port

ARCHIVE: Final = Path(__file__).parents[1] / "data" / "folders-before-nodes.tar.xz"
KINDS: Final = {"standalone": 1, "servers": 2}  # folder in the archive -> ``--servers``
BYTES_MAX: Final = 100_000
TABLE: Final = b"t"
ROWS: Final = 40
VERSIONS: Final = 2
DELETED: Final = 7  # the row
STRIPPED: Final = 17  # the row without its cell of ``f:q``
COUNTED: Final = 3  # one row in so many has a counter
Versions = dict[bytes, list[bytes]]  # of the cell ``f:q`` of each row, the newest first
Counters = dict[bytes, int]


def key(number: int) -> bytes:
    return b"%02d" % number


def contents() -> tuple[Versions, Counters]:
    """Return what a folder of the archive has."""
    values = {
        key(n): [b"value %d.%d" % (n, version) for version in reversed(range(VERSIONS))]
        for n in range(ROWS)
        if n not in (DELETED, STRIPPED)
    }
    return values, {key(n): n for n in range(COUNTED, ROWS, COUNTED)}


def found(connection: Connection) -> tuple[Versions, Counters]:
    """Return what a store has of it."""
    table = connection.table(TABLE)
    rows = dict(table.scan())
    values = {row: table.cells(row, b"f:q", versions=9) for row, cells in rows.items() if b"f:q" in cells}
    return values, {row: int.from_bytes(cells[b"n:count"]) for row, cells in rows.items() if b"n:count" in cells}


def write(connection: Connection) -> None:
    connection.create_table(TABLE, {"f": {"max_versions": 3}, "n": {}}, splits=[b"10", b"20", b"30"])
    table = connection.table(TABLE)
    for version in range(VERSIONS):
        for n in range(ROWS):
            table.put(key(n), {b"f:q": b"value %d.%d" % (n, version)}, timestamp=1_000 + version)
    for n in range(COUNTED, ROWS, COUNTED):
        table.counter_inc(key(n), b"n:count", n)
    table.delete(key(DELETED))
    table.delete(key(STRIPPED), [b"f:q"])


def make(checkout: Path, archive: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="columnar-older-folder-") as folder, tarfile.open(archive, "w:xz") as tar:
        for name, servers in KINDS.items():
            data, port = Path(folder) / name, free_port()
            options = ["--data", str(data), "--port", str(port), "--web-port", "-1", "--servers", str(servers)]
            environment = {**os.environ, "PYTHONPATH": str(checkout)}
            with subprocess.Popen(
                [sys.executable, "-m", "columnar", "standalone", *options],
                cwd=checkout, env=environment, stdout=subprocess.PIPE, process_group=0,
            ) as process:  # fmt: skip
                assert process.stdout is not None
                process.stdout.readline()
                connection = Connection("127.0.0.1", port)
                write(connection)
                connection.close()
                os.killpg(process.pid, signal.SIGKILL)
            tar.add(data, name, filter=lambda one: None if one.name.endswith(("/LOG", "/run.json")) else one)
    if archive.stat().st_size > BYTES_MAX:
        raise SystemExit(f"{archive} is {archive.stat().st_size} bytes large, {BYTES_MAX} at most")


def unpack(kind: str, data: Path) -> None:
    """Make the data folder ``data``, which must not exist."""
    with tarfile.open(ARCHIVE) as tar:
        tar.extractall(data.parent, [one for one in tar if one.name.split("/")[0] == kind], filter="data")
    (data.parent / kind).rename(data)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkout", type=Path, required=True)
    make(parser.parse_args().checkout.resolve(), ARCHIVE)


if __name__ == "__main__":
    main()
