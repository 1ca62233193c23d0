"""Exit statuses: each has one meaning, however a command ends.

0 done and every requirement met, 1 a requirement missed or B worse, 2 wrong usage or nothing to replay against, 3 the
run is not valid or a limit of a comparison cannot be told, 4 a fault of wikibench itself, 130 ended by Ctrl-C.  click
and Python exit with 1 for an uncaught exception, which would read as a missed requirement.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import click

from columnar.runtime.file_errors import end_with_line, is_of_file
from columnar.runtime.standard_streams import open_closed_streams

from .errors import WikibenchError

CONTEXT: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
MET, MISSED, WRONG_USAGE, NOT_VALID, FAULT, INTERRUPTED = 0, 1, 2, 3, 4, 130
_BROKEN_PIPE: Final = 141  # as a shell says it of a program that SIGPIPE ended


class Statuses(click.Group):
    """The group of commands; its ``main`` ends the process."""

    def main(  # type: ignore[override]  # click's has overloads of which one never returns
        self, args: Sequence[str] | None = None, prog_name: str | None = None, standalone_mode: bool = True, **more: Any
    ) -> Any:
        open_closed_streams()
        if not standalone_mode:
            return super().main(args, prog_name, standalone_mode=False, **more)
        sys.exit(self._status(args, prog_name, **more))

    def _status(self, args: Sequence[str] | None, prog_name: str | None, **more: Any) -> int:
        try:
            return self._ended(args, prog_name, **more)
        except OSError as error:
            end_with_line("wikibench", error)

    def _ended(self, args: Sequence[str] | None, prog_name: str | None, **more: Any) -> int:
        try:
            ended = super().main(args, prog_name, standalone_mode=False, **more)
        except click.ClickException as mistake:
            mistake.show()
            return WRONG_USAGE
        except (click.Abort, KeyboardInterrupt):
            click.echo("Aborted!", err=True)
            return INTERRUPTED
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains when it flushes
            return _BROKEN_PIPE
        except Exception as error:  # any exception, as none means a missed requirement
            if isinstance(error, OSError) and is_of_file(error):
                raise
            traceback.print_exc()
            return FAULT
        return ended if isinstance(ended, int) else MET


@contextmanager
def report_errors() -> Iterator[None]:
    """Report mistakes of the user and faults of files or hosts in one line, and exit with status 2."""
    try:
        yield
    except (WikibenchError, OSError) as error:
        if isinstance(error, OSError) and (isinstance(error, BrokenPipeError) or is_of_file(error)):
            raise  # of the output or of a file: ``Statuses`` says which
        raise click.UsageError(str(error)) from error
