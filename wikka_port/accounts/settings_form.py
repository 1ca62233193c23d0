"""Settings as a person types them (pure): what cannot be set is refused, not left out."""

from __future__ import annotations

from collections.abc import Mapping

from wikka_port.accounts.settings import ROWS_MAX, ROWS_MIN, Settings, rows_of, settings_of, zones
from wikka_port.accounts.user_names import Unsuitable
from wikka_port.texts import _


def checked_settings(given: Mapping[str, str], base: Settings) -> Settings:
    """Return the settings from a form of a person: what cannot be set is refused.  Raises Unsuitable."""
    zone = given.get("zone", "").strip()
    if zone and zone not in zones():
        raise Unsuitable(
            _("There is no time zone “{zone}”. Write it like Europe/Berlin, or nothing for UTC.", zone=zone)
        )
    for field in ("changes", "revisions"):
        typed = given.get(field, "").strip()
        if typed and str(rows_of(typed, ROWS_MIN - 1)) != typed.lstrip("0"):
            raise Unsuitable(_("A list has {least} to {most} rows.", least=ROWS_MIN, most=ROWS_MAX))
    return settings_of({field: value.strip() for field, value in given.items()}, base)
