"""``columnar bundle``: an archive for people who help, without data and secrets."""

from __future__ import annotations

import os
import time
from contextlib import suppress

import click

from columnar.diagnosis.archive import folder_name, pack
from columnar.diagnosis.bundle import gather_bundle
from columnar.diagnosis.diagnosis import Subject
from columnar.shell.connecting import Misused
from columnar.shell.doctor import with_subject
from columnar.shell.shell_output import Output


@click.command()
@with_subject
@click.option("--output", "file", metavar="FILE", help="The archive.  [default: columnar-bundle-TIME.tar.gz, here]")
@click.option("--log", default="", metavar="FILE", help="The store's log.  [default: the file to which it writes]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def bundle(subject: Subject, output: Output, file: str | None, log: str) -> None:
    """Gather what people need who help with a store: a .tar.gz without data and secrets.

    It has the findings of 'columnar doctor' with their facts, version and build, settings and environment, status,
    servers, regions, transitions, decisions, metrics, slow requests and the last lines of the log; and MANIFEST.json,
    which says what was left out and why. Never in it: values, row keys (regions have hashes of their bounds),
    passwords, keys, tokens. Texts keep only words that the program itself has. Look into it before you send it.

    \b
      columnar bundle
      columnar bundle --data /srv/columnar --log /var/log/columnar.log --output case.tar.gz
    """
    if log and not os.path.isfile(log):
        raise Misused(f"there is no file {log}; --log must name the store's log")
    made_s = time.time()
    data = pack(made_s, *gather_bundle(subject, log))
    path = file if file is not None else f"{folder_name(made_s)}.tar.gz"
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise Misused(f"{path} exists; name another file with --output") from None
    try:
        with open(handle, "wb") as archive:
            archive.write(data)
    except OSError:
        with suppress(OSError):
            os.unlink(path)  # a part of an archive is of no use
        raise
    output.done(f"{path} is made; look into it before you send it", {"file": path, "bytes": len(data)})
