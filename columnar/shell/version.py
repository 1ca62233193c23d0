"""``columnar version``: the program that this command is, its libraries, and the formats that it knows."""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from importlib import metadata
from tempfile import TemporaryDirectory
from typing import Any, Final

import click

from columnar.runtime import compiled
from columnar.shell.connecting import output_of
from columnar.version import PYTHON, UNKNOWN, VERSION, build

LIBRARIES: Final = (  # data passes through them: to disk, over the wire, between processes
    "rocksdict", "google-crc32c", "msgpack", "msgspec", "thriftpy2", "happybase", "httptools", "uvloop",
)  # fmt: skip
MISSING: Final = "missing"
_ROCKSDB: Final = "rocksdb_version="


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def version(as_json: bool) -> None:
    """Say which program this is: version, build, Python, compiled modules, libraries, and the formats that it knows.

    The build is the commit of the sources, with -dirty if they were changed since. 'columnar status' says the same of
    the store, and 'columnar servers' of each of its servers.

    \b
      columnar version
      columnar version --json
    """
    found = describe_program()
    output = output_of(as_json)
    if as_json:
        output.json(found)
        return
    libraries: dict[str, str] = found["libraries"]
    formats: dict[str, dict[str, int]] = found["formats"]
    output.facts(
        {
            "version": found["version"],
            "build": found["build"],
            "python": f"{found['implementation']} {found['python']}",
            "platform": found["platform"],
            "hot_modules": found["hot_modules"],
            **libraries,
            **{f"{name}_format": known["newest"] for name, known in formats.items()},
        }
    )


def describe_program() -> dict[str, Any]:
    """Return the facts of this program as plain values.  Blocks for some 50 ms, in a checkout with git's time."""
    found = build()
    return {
        "version": VERSION,
        "build": found.text,
        "commit": found.commit or None,
        "clean": found.is_clean,
        "python": PYTHON,
        "implementation": platform.python_implementation(),
        "platform": platform.platform(),
        "hot_modules": compiled.state,
        "compiled_modules": sorted(compiled.HOT) if compiled.state == "compiled" else [],
        "libraries": {**{name: version_of(name) for name in LIBRARIES}, "rocksdb": rocksdb_version()},
        "formats": known_formats(),
    }


def version_of(library: str) -> str:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return MISSING


def rocksdb_version() -> str:
    """Return the version of the RocksDB within ``rocksdict``, which states it only in the files of a database."""
    with suppress(OSError, ImportError), TemporaryDirectory(prefix="columnar-version-") as folder:
        from rocksdict import Rdict

        Rdict(folder).close()
        for name in os.listdir(folder):
            if name.startswith("OPTIONS-"):
                with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                    lines = [line.strip() for line in file]
                return next((line.removeprefix(_ROCKSDB) for line in lines if line.startswith(_ROCKSDB)), UNKNOWN)
    return UNKNOWN


def known_formats() -> dict[str, dict[str, int]]:
    """Return the oldest and the newest version of each format that the program reads (docs/formats)."""
    from columnar.backup import repository, table_export  # of the storage engine, which --help does not need
    from columnar.cluster import hello
    from columnar.coordination import node_record
    from columnar.master import snapshot_manifest
    from columnar.model import view_definition
    from columnar.storage import data_folder, server_log

    return {
        "folder": {"oldest": data_folder.FORMAT_VERSIONS[0], "newest": data_folder.FORMAT_VERSIONS[-1]},
        "server_log": {
            "oldest": _number_in(server_log.HEAD_1.decode()),
            "newest": _number_in(server_log.HEAD.decode()),
        },
        "backup": {"oldest": repository.FORMAT_VERSIONS[0], "newest": repository.FORMAT_VERSIONS[-1]},
        **{
            name: {"oldest": number, "newest": number}
            for name, number in (
                ("snapshot", _number_in(snapshot_manifest.FORMAT)),
                ("export", _number_in(table_export.FORMAT)),
                ("view", view_definition.VERSION),
                ("node_record", node_record.FORMAT),
                ("peers", hello.PROTOCOL_VERSION),
            )
        },
    }


def _number_in(line: str) -> int:
    """Return the number in a line such as ``columnar-backup 1``."""
    return int(line.split()[1])
