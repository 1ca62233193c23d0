"""(pure) Settings of a user: their values, the check of these, and their cells.

    settings:zone       name of a time zone, "" for UTC
    settings:theme      auto, light or dark
    settings:changes    rows of a list of changes
    settings:revisions  rows of a list of revisions
    settings:language   code of a language, "" for the wiki's
    settings:dblclick   1: a double click on a page opens its editor
    settings:watch      1: pages that the user edits are watched from then on
    settings:minor      1: minor edits of watched pages give notices, too
    settings:mail       when notices are mailed, "now" or "daily"; "" if they are not
    settings:comments   the order in which a page shows its comments (``comments.threads``), "" if it hides them

If a cell is absent, or has a value that this version of the wiki does not know, the default counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from wikka_port.accounts.tables import SETTINGS
from wikka_port.comments.threads import ORDERS
from wikka_port.texts.catalogue import is_language

THEMES: Final = ("auto", "light", "dark")
ROWS_MIN: Final = 10
ROWS_MAX: Final = 500


@dataclass(frozen=True, slots=True)
class Settings:
    zone: str = ""
    theme: str = "auto"
    changes: int = 100
    revisions: int = 50
    dblclick: bool = False
    language: str = ""
    comments: str = ""
    watch: bool = False
    minor: bool = False
    mail: str = ""

    @property
    def zone_info(self) -> ZoneInfo | None:
        """The user's time zone; None for UTC."""
        return ZoneInfo(self.zone) if self.zone else None


DEFAULT: Final = Settings()
MAILS: Final = ("", "now", "daily")
FLAGS: Final = ("dblclick", "watch", "minor")  # a form leaves out those that are off


def settings_of(given: Mapping[str, str], base: Settings = DEFAULT) -> Settings:
    """Return the settings in a form or in cells; those missing or invalid stay as in ``base``."""
    zone, theme = given.get("zone", base.zone), given.get("theme", base.theme)
    language, comments = given.get("language", base.language), given.get("comments", base.comments)
    mail = given.get("mail", base.mail)
    return Settings(
        zone=zone if zone == "" or zone in zones() else base.zone,
        theme=theme if theme in THEMES else base.theme,
        language=language if language == "" or is_language(language) else base.language,
        changes=rows_of(given.get("changes", ""), base.changes),
        revisions=rows_of(given.get("revisions", ""), base.revisions),
        mail=mail if mail in MAILS else base.mail,
        comments=comments if comments in ("", *ORDERS) else base.comments,
        **{flag: given.get(flag, "1" if getattr(base, flag) else "") == "1" for flag in FLAGS},
    )


def settings_in(cells: Mapping[bytes, bytes]) -> Settings:
    given = {
        column[len(SETTINGS) :].decode(errors="replace"): value.decode(errors="replace")
        for column, value in cells.items()
        if column.startswith(SETTINGS)
    }
    return settings_of(given) if given else DEFAULT


def settings_cells(settings: Settings) -> dict[bytes, bytes]:
    values = asdict(settings)
    values |= {flag: "1" if values[flag] else "" for flag in FLAGS}
    return {SETTINGS + key.encode(): str(value).encode() for key, value in values.items()}


@lru_cache(maxsize=1)
def zones() -> frozenset[str]:
    """Return the names of the time zones that this system knows, some 600."""
    return frozenset(
        name for name in available_timezones() if "/" in name and not name.startswith(("Etc/", "posix", "right"))
    )


def is_zone(name: str) -> bool:
    """Return whether this system knows a time zone of that name, also one that no list offers (CET)."""
    try:
        return bool(ZoneInfo(name).key)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # no such name, no name at all, a folder
        return False


def rows_of(text: str, base: int) -> int:
    """Return the typed number of rows, cut to its bounds, or ``base`` if ``text`` is no number."""
    if not (text.isascii() and text.isdigit() and len(text) <= 6):
        return base
    return min(max(int(text), ROWS_MIN), ROWS_MAX)
