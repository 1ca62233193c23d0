"""The options of a store's log; the command gets them as one value, the fields of ``LogSettings``."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from columnar.limits import LOG_FILES
from columnar.runtime.log_settings import AUTO, JOURNAL, JSON, LEVELS, STDERR, TEXT, parse_levels
from columnar.settings.option_kinds import CommaList
from columnar.shell.coordination_options import StoreSetting

F = TypeVar("F", bound=Callable[..., Any])
_SIZE: Final = "64MiB"
_LEAST_BYTES: Final = 64 * 1024  # one line


def _check_size(_context: click.Context, _option: click.Parameter, said: str) -> int:
    """Return the bytes; 0 for no rotation."""
    from columnar.memory_plan import parse_bytes

    if said == "0":
        return 0
    try:
        size = parse_bytes(said)
    except ValueError:
        size = 0
    if size < _LEAST_BYTES:
        raise click.BadParameter(f"{said!r} is no size of a file; write for example {_SIZE}, 64KiB at least, or 0")
    return size


def _check_levels(_context: click.Context, _option: click.Parameter, said: tuple[str, ...]) -> tuple[str, ...]:
    try:
        parse_levels(said)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    return said


_OPTIONS: Final = (
    click.option(
        "--log-level",
        cls=StoreSetting,
        default="info",
        show_default=True,
        type=click.Choice(LEVELS, case_sensitive=False),
        help="What is worth a line of the log.",
    ),
    click.option(
        "--log-levels",
        cls=StoreSetting,
        default="",
        type=CommaList(),
        metavar="L=LEVEL,L=LEVEL",
        callback=_check_levels,
        help="Other levels of single loggers, as columnar.wire=debug.",
    ),
    click.option(
        "--log-format",
        cls=StoreSetting,
        default=TEXT,
        show_default=True,
        type=click.Choice([TEXT, JSON]),
        help="Lines of text, or of JSON; a record is one line in both.",
    ),
    click.option(
        "--log-to",
        cls=StoreSetting,
        default=AUTO,
        show_default=True,
        type=click.Choice([AUTO, STDERR, JOURNAL]),
        help="auto: the journal of systemd if stderr leads there and --log-format is text, else stderr.",
    ),
    click.option(
        "--log-file",
        cls=StoreSetting,
        default="",
        metavar="FILE",
        help="Write the log there instead, from all processes of the store; SIGHUP has it opened again.",
    ),
    click.option(
        "--log-file-bytes",
        cls=StoreSetting,
        default=_SIZE,
        show_default=True,
        metavar="SIZE",
        callback=_check_size,
        help="A larger log file is renamed to FILE.1, and that to FILE.2; 0: never, as for logrotate.",
    ),
    click.option(
        "--log-file-count",
        cls=StoreSetting,
        default=LOG_FILES,
        show_default=True,
        type=click.IntRange(1, 1_000),
        help="So many renamed log files are kept.",
    ),
)


def with_log(command: F) -> Callable[..., Any]:
    """Give a command the options; it gets them as ``log``, the fields of ``LogSettings``."""

    @functools.wraps(command)
    def run(
        log_level: str,
        log_levels: tuple[str, ...],
        log_format: str,
        log_to: str,
        log_file: str,
        log_file_bytes: int,
        log_file_count: int,
        **given: Any,
    ) -> Any:
        if log_file and log_to != AUTO:
            raise click.UsageError("--log-file and --log-to exclude each other: leave one of them out")
        if log_format == JSON and log_to == JOURNAL:
            raise click.UsageError("--log-format json is for stderr and files; the journal has fields of its own")
        log = {
            "level": log_level.upper(),
            "levels": log_levels,
            "form": log_format,
            "place": log_to,
            "file": os.path.abspath(log_file) if log_file else "",
            "file_bytes": log_file_bytes,
            "file_count": log_file_count,
        }
        return command(log=log, **given)

    for option in reversed(_OPTIONS):
        option(run)
    return run
