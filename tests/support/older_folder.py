"""Data folders made by older versions, kept in ``tests/data``, for tests that today's program takes them over.

    python -m tests.support.older_folder            makes the folders of all older formats anew, from this repository
    python -m tests.support.older_folder --nodes    makes those of the last version before nodes

The older version's own program runs in the environment of this one.  Each store is killed once its rows are written, so
its logs are to be replayed.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from columnar.client import Connection, Source, View
from tests.support.ports import free_port

ROOT: Final = Path(__file__).parents[2]
DATA: Final = ROOT / "tests" / "data"
ARCHIVE: Final = DATA / "folders-before-nodes.tar.xz"
KINDS: Final = {"standalone": 1, "servers": 2}  # folder in the archive -> ``--servers``
BEFORE_NODES: Final = "0ff059e"
ARCHIVE_OF_FORMATS: Final = DATA / "folders-of-older-formats.tar.xz"
FORMATS: Final = {  # number in FORMAT -> the last version that began folders with it
    1: "c8416d6b",
    3: "1afe1aab",
    4: "ac9b8879",
    5: "2414267c",
    6: "51ae7744",
    7: "76f031b6",
    8: "68c1893e",
}
SEVERAL_SERVERS: Final = 7  # the format of a folder that two servers have served
HAS_VIEW: Final = 8  # the format of a folder with a view
VIEW: Final = View("values", Source("t", key=("f:q",)))  # one group for each value
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


def make(archive: Path, folders: Mapping[str, tuple[str, int]]) -> None:
    """Make the archive with a folder for each version (a commit) and number of servers.  Raises SystemExit."""
    with tempfile.TemporaryDirectory(prefix="columnar-older-folder-") as made, tarfile.open(archive, "w:xz") as tar:
        for name, (commit, servers) in folders.items():
            checkout, data = Path(made) / f"checkout-{commit}", Path(made) / name
            if not checkout.exists():
                _check_out(commit, checkout)
            _make_folder(checkout, data, servers, with_view=name == kind_of(HAS_VIEW))
            tar.add(data, name, filter=lambda one: None if one.name.endswith(("/LOG", "/run.json")) else one)
    if archive.stat().st_size > BYTES_MAX:
        raise SystemExit(f"{archive} is {archive.stat().st_size} bytes large, {BYTES_MAX} at most")


def _check_out(commit: str, folder: Path) -> None:
    folder.mkdir()
    sources = subprocess.run(["git", "archive", commit, "columnar"], cwd=ROOT, check=True, capture_output=True).stdout
    subprocess.run(["tar", "x"], cwd=folder, check=True, input=sources)


def _make_folder(checkout: Path, data: Path, servers: int, *, with_view: bool) -> None:
    port = free_port()
    options = ["--data", str(data), "--port", str(port), "--web-port", "-1"]
    if servers > 1:
        options += ["--servers", str(servers)]
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    with subprocess.Popen(
        [sys.executable, "-m", "columnar", "standalone", *options],
        cwd=checkout, env=environment, stdout=subprocess.PIPE, process_group=0,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        process.stdout.readline()
        connection = Connection("127.0.0.1", port)
        write(connection)
        if with_view:
            connection.views.add(VIEW)
            assert connection.views.wait(VIEW.name, timeout_ms=30_000)
        connection.close()
        os.killpg(process.pid, signal.SIGKILL)


def kind_of(number: int) -> str:
    """Return the name of the folder with this number in FORMAT, in the archive of all formats."""
    return f"format-{number}"


def unpack(kind: str, data: Path, archive: Path = ARCHIVE) -> None:
    """Make the data folder ``data``, which must not exist."""
    with tarfile.open(archive) as tar:
        tar.extractall(data.parent, [one for one in tar if one.name.split("/")[0] == kind], filter="data")
    (data.parent / kind).rename(data)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", action="store_true", help="those of the last version before nodes")
    if parser.parse_args().nodes:
        make(ARCHIVE, {name: (BEFORE_NODES, servers) for name, servers in KINDS.items()})
        return
    servers = {SEVERAL_SERVERS: 2}
    make(ARCHIVE_OF_FORMATS, {kind_of(one): (commit, servers.get(one, 1)) for one, commit in FORMATS.items()})


if __name__ == "__main__":
    main()
