"""``columnar probe-root``: whether a folder can hold the data of a cluster of several machines."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import Any, Final

import click

from columnar.shell.connecting import Misused, output_of
from columnar.shell.numbers import Seconds
from columnar.shell.probe_link import (
    MountLink,
    accept_joined,
    joined,
    local_mount,
    new_code,
    serve,
    token_of,
)
from columnar.shell.shell_output import Output
from columnar.storage.probe_mount import MountOperations, MountUnavailable
from columnar.storage.probe_root import Finding, conclude, probe

LIMIT_S: Final = 30.0  # of one call; CephFS with its defaults takes up to 15 s
WAIT_S: Final = 600.0  # for the other machine
PORT: Final = 9097  # beside those of a node
REFUSED: Final = 1  # exit status
_WORDS: Final = {"ok": ("ok", "green"), "note": ("note", "yellow"), "fault": ("FAULT", "red")}


@click.command("probe-root")
@click.argument("folder", metavar="DIR")
@click.option("--also", metavar="DIR", help="A second mount of the same folder on this machine.")
@click.option(
    "--listen", metavar="[HOST:]PORT", is_flag=False, flag_value=str(PORT),
    help=f"Wait for a second machine there; without a value at {PORT}. Prints what to type on it.",
)  # fmt: skip
@click.option("--join", metavar="HOST:PORT/CODE", help="Be the second machine, as the first one printed it.")
@click.option(
    "--limit", default=LIMIT_S, show_default=True, type=Seconds(3_600.0, min_open=True), metavar="S",
    help="Seconds without an answer after which a mount is said to hang.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def probe_root(
    folder: str, also: str | None, listen: str | None, join: str | None, limit: float, as_json: bool
) -> None:
    """Try whether a folder can hold the data of a cluster of several machines.

    Two mounts of the folder are tried against each other: bytes that one has synced are whole at the other, a path
    below a renamed folder is refused, hard links, locks, listings. Each line of the report says what a fault would
    mean, and for known file systems the option that repairs it. Takes seconds, a slow file system minutes. A store
    may serve the folder meanwhile. On a file system that nobody has measured the command leaves a file PROBED after a
    pass, without which no node starts there, and removes it after a fault; otherwise it leaves nothing.

    Exit status: 0 it is suitable, 1 it is not, 2 it could not be tried.

    \b
    On two machines, a minute's work: type the first line on one, and on the other the line that it prints.
      columnar probe-root /srv/columnar --listen
      columnar probe-root /srv/columnar --join 10.0.0.1:9097/0123456789abcdef
    On one machine that has the folder mounted twice:
      columnar probe-root /mnt/a --also /mnt/b
    One mount alone shows whether the file system has the calls that are needed, and no stale cache:
      columnar probe-root /srv/columnar
    """
    if sum(option is not None for option in (also, listen, join)) > 1:
        raise click.UsageError("--also, --listen and --join exclude each other")
    output = output_of(as_json)
    if join is not None:
        report = _join(folder, *_address_and_code(join))
        list(_as_they_come(output, (Finding(**finding) for finding in report["findings"])))
    else:
        report = _probed(output, folder, also, listen, limit)
    if output.as_json:
        output.json(report)
    else:
        output.line("suitable" if report["suitable"] else "NOT SUITABLE for a cluster of several machines")
    if not report["suitable"]:
        raise SystemExit(REFUSED)


def _probed(output: Output, folder: str, also: str | None, listen: str | None, limit_s: float) -> dict[str, Any]:
    """Probe, and return the report.  Raises Misused if the folder cannot be tried at all."""
    code = new_code()
    with ExitStack() as stack:
        one = stack.enter_context(local_mount(folder, token_of(code), limit_s))
        if listen is not None:
            other = stack.enter_context(_other_machine(folder, listen, code, limit_s))
        else:
            other = stack.enter_context(local_mount(also or folder, token_of(code), limit_s))
        try:
            findings = list(_as_they_come(output, _findings(one, other)))
        except OSError as error:
            raise Misused(f"{folder} cannot be tried: {error.strerror or error}") from None
        report = _report(findings)
        if listen is not None:
            other.send_report(report)
    return report


def _findings(one: MountLink, other: MountLink) -> Iterator[Finding]:
    has_passed = True
    try:
        for finding in probe(one, other):
            has_passed = has_passed and finding.outcome != "fault"
            yield finding
    except MountUnavailable as gone:
        has_passed = False
        yield Finding("fault", "answers", gone.text)
    with suppress(MountUnavailable):  # a finding says so
        yield from conclude(one, other, has_passed=has_passed)


def _as_they_come(output: Output, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Show each finding as soon as it is known."""
    for finding in findings:
        _show(output, finding)
        yield finding


def _show(output: Output, finding: Finding) -> None:
    if output.as_json:
        return
    word, colour = _WORDS[finding.outcome]
    if output.is_terminal:
        output.line(f"{click.style(word.ljust(6), fg=colour)}{finding.name.ljust(17)}{finding.text}")
    else:
        output.line(f"{word}\t{finding.name}\t{finding.text}")


def _report(findings: list[Finding]) -> dict[str, Any]:
    return {
        "suitable": all(finding.outcome != "fault" for finding in findings),
        "findings": [{"outcome": one.outcome, "name": one.name, "text": one.text} for one in findings],
    }


# --- two machines ------------------------------------------------------------------------------------------


@contextmanager
def _other_machine(folder: str, listen: str, code: str, limit_s: float) -> Iterator[MountLink]:
    host, port = _listening(listen)
    try:
        listener = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except socket.gaierror as error:
        raise Misused(f"cannot listen on {listen}: {error.strerror}") from None
    except OSError as error:
        raise Misused(f"cannot listen on {listen}: {os.strerror(error.errno or 0)}") from None
    with listener:
        shown = host if host not in ("", "::", "0.0.0.0") else socket.gethostname()  # noqa: S104 - compared only
        address = f"{shown}:{listener.getsockname()[1]}"
        click.echo(f"on the other machine: columnar probe-root {folder} --join {address}/{code}", err=True)
        try:
            connection, peer = accept_joined(listener, code, WAIT_S, lambda why: click.echo(why, err=True))
        except TimeoutError:
            raise Misused(f"no other machine has joined for {WAIT_S:g} s") from None
    with connection:
        yield MountLink(f"{folder} at {peer}", connection, limit_s)


def _listening(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise click.UsageError(f"--listen {text}: expected PORT or HOST:PORT")
    return host.strip("[]"), int(port)


def _address_and_code(text: str) -> tuple[tuple[str, int], str]:
    address, _, code = text.partition("/")
    host, _, port = address.rpartition(":")
    if not host or not code or not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise click.UsageError(f"--join {text}: expected HOST:PORT/CODE, as the first machine printed it")
    return (host.strip("[]"), int(port)), code


def _join(folder: str, address: tuple[str, int], code: str) -> dict[str, Any]:
    """Serve this machine's mount until the first machine sends the report."""
    try:
        with joined(address, code) as connection, closing(MountOperations(folder, token_of(code))) as mount:
            report = serve(connection, mount)
    except (OSError, ValueError) as error:  # TimeoutError is an OSError
        raise Misused(f"cannot join {address[0]}:{address[1]}: {error}") from None
    if report is None:
        raise Misused(f"the probe at {address[0]}:{address[1]} ended without a report; does the code match?")
    if not _is_report(report):
        raise Misused(f"the probe at {address[0]}:{address[1]} has another version")
    return report


def _is_report(message: dict[str, Any]) -> bool:
    findings = message.get("findings")
    return (
        isinstance(message.get("suitable"), bool)
        and isinstance(findings, list)
        and all(
            isinstance(one, dict) and one.keys() == {"outcome", "name", "text"} and one["outcome"] in _WORDS
            for one in findings
        )
    )
