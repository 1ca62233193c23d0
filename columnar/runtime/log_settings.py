"""(pure) The settings of a process's log: the place of its lines, their form, and from which level there is one.

levels := LOGGER "=" LEVEL          a logger is named as in the lines, as columnar.wire, and has those below it;
                                    root is all of them
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from columnar.limits import LOG_FILE_BYTES, LOG_FILES

TEXT: Final = "text"
JSON: Final = "json"
AUTO: Final = "auto"  # the journal if standard error is its stream and the form is TEXT, else standard error
STDERR: Final = "stderr"
JOURNAL: Final = "journald"
LEVELS: Final = ("debug", "info", "warning", "error")
DEFAULT: Final = "default"  # of a change: the logger has no level of its own any more
AUDIT: Final = ("columnar.audit", "columnar.wire.audit")  # who signed in, what was refused, what administrators did
LOGGERS: Final = 64  # that may have a level of their own by changes while a process runs
_LOGGER: Final = re.compile(r"[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class LogSettings:
    level: str = "INFO"
    levels: tuple[str, ...] = ()  # of single loggers, as LOGGER=LEVEL; they have precedence over ``level``
    form: str = TEXT  # or JSON
    place: str = AUTO  # AUTO, STDERR or JOURNAL; without effect if there is a file
    file: str = ""  # absolute path; empty: no file
    file_bytes: int = LOG_FILE_BYTES  # a larger file is rotated; 0: never
    file_count: int = LOG_FILES  # rotated files that are kept

    @classmethod
    def of_settings(cls, settings: Mapping[str, Any]) -> LogSettings:
        """Return the settings that JSON has kept.  Raises TypeError if they are none of this version."""
        return cls(**{**settings, "levels": tuple(settings.get("levels", ()))})


DEFAULT_LOG: Final = LogSettings()


def parse_levels(said: Iterable[str], known: Sequence[str] = LEVELS) -> dict[str, str]:
    """Return the level of each logger.  Raises ValueError, with a text that says what to write."""
    found: dict[str, str] = {}
    for one in said:
        name, _, level = one.partition("=")
        if not _LOGGER.fullmatch(name) or level.lower() not in known:
            raise ValueError(
                f"{one!r} is no level of a logger; write for example columnar.wire=debug, one of {', '.join(known)}"
            )
        if name in found:
            raise ValueError(f"{name} has two levels: leave one of them out")
        found[name] = level.upper()
    return found


def parse_changes(said: Iterable[str], held: Mapping[str, str]) -> dict[str, str]:
    """Return the levels of single loggers after a change of those that are ``held``.

    Raises ValueError, as above, and for a change by which the audit log would fall silent: an administrator of the
    store is not the operator who keeps that log, and whose settings file may do it.
    """
    wanted = parse_levels(said, (*LEVELS, DEFAULT))
    silenced = next((f"{name}={level.lower()}" for name, level in wanted.items() if _silences(name, level)), "")
    if silenced:
        raise ValueError(f"{silenced} would silence {AUDIT[0]}; log-levels in the settings file may do that")
    found = {**held, **wanted}
    found = {name: level for name, level in found.items() if level != DEFAULT.upper()}
    if len(found) > LOGGERS:
        raise ValueError(
            f"{len(found)} loggers would have a level of their own, and {LOGGERS} may; set some to {DEFAULT}"
        )
    return found


def _silences(name: str, level: str) -> bool:
    if level in ("DEBUG", "INFO"):
        return False
    is_above = name == "root" or any(one.startswith(f"{name}.") for one in AUDIT)
    return name in AUDIT or (is_above and level != DEFAULT.upper())
