"""Answers longer than a screen, through the system's pager (``PAGER``, else ``less``)."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from types import TracebackType
from typing import TextIO

import click


class Pages:
    """A context: buffers text until it fills the screen; then the pager gets that, and the rest as it comes.

    A person who leaves the pager ends the ``with`` block, without an error.
    """

    def __init__(self, lines: int, columns: int) -> None:
        self._lines_left = lines - 1  # the prompt takes one
        self._columns = max(1, columns)
        self._buffered: list[str] = []
        self._pager: TextIO | None = None
        self._stack = ExitStack()

    @classmethod
    def of_terminal(cls) -> Pages:
        size = shutil.get_terminal_size()
        return cls(size.lines, size.columns)

    def write(self, text: str) -> None:
        if self._pager is not None:
            self._pager.write(text)
            return
        self._buffered.append(text)
        self._lines_left -= sum(self._height(line) for line in text.splitlines())
        if self._lines_left < 0:
            self._pager = self._stack.enter_context(click.get_pager_file())
            self._pager.write(self._taken())

    def _height(self, line: str) -> int:
        """Return the number of lines of the screen that it takes."""
        return 1 + max(0, len(click.unstyle(line)) - 1) // self._columns

    def _taken(self) -> str:
        text, self._buffered = "".join(self._buffered), []
        return text

    def __enter__(self) -> Pages:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if self._buffered:  # a short answer, or what there was before an error
            click.echo(self._taken(), nl=False)
        # click's pager takes the BrokenPipeError of a pager that was left
        return bool(self._stack.__exit__(kind, error, trace))
