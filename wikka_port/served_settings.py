"""The settings of a wiki that serves: they are read again at SIGHUP, and the log says what changed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from columnar.runtime.log_lines import set_level
from columnar.settings.changes import Changes
from wikka_port.commands.settings import RESTART
from wikka_port.config import WikiConfig

_log = logging.getLogger("wikka_port.settings")
_log.setLevel(logging.INFO)  # whatever the level of other lines: an operator asked


class UnusableSettings(Exception):
    """The text says what is wrong with them."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The settings of one reading."""

    config: WikiConfig
    log_level: str
    values: Mapping[str, Any]  # by key


class ServedSettings:
    """The settings in force.  Owned by the parent of the workers."""

    def __init__(self, file: str, reading: Reading, read: Callable[[], Reading]) -> None:
        """Pass the ``reading`` in force, and how to ``read`` the file again, which raises UnusableSettings."""
        self._file = file
        self._reading = self._before = reading
        self._read = read
        self._lines: list[tuple[bool, str]] = []  # of the log, for settings that are not in force yet

    def read_again(self, config: WikiConfig) -> WikiConfig | None:
        """Return ``config`` with the settings that have changed; None if no worker needs them.

        Host, port and number of workers stay, as does the secret of the forms if no file keeps it.  ``confirm`` or
        ``revert`` follows.
        """
        try:
            found = self._read()
        except Exception as error:  # noqa: BLE001 - whatever a file leads to: the wiki that serves must go on
            kind = "" if isinstance(error, UnusableSettings | OSError) else f"{type(error).__name__}: "
            _log.error("no setting is changed, for the settings cannot be read: %s%s", kind, error)
            return None
        before = self._reading.values
        changes = Changes.between(before, found.values, found.values.keys() - RESTART)
        self._lines = list(changes.lines(self._file))
        if not changes.taken:
            self.confirm()
            return None
        self._before, self._reading = self._reading, replace(found, values={**before, **changes.taken})
        set_level(found.log_level)
        return replace(
            found.config,
            host=config.host,
            port=config.port,
            workers=config.workers,
            secret=found.config.secret or config.secret,
        )

    def confirm(self) -> None:
        """Say in the log what the last reading has changed: all workers have it."""
        for is_warning, line in self._lines:
            _log.log(logging.WARNING if is_warning else logging.INFO, "%s", line)

    def revert(self) -> None:
        """Return to the settings before the last reading, because a worker could not start with it."""
        self._reading = self._before
        set_level(self._reading.log_level)
