"""The wiki's tables and triggers in a store: made where they are missing, and brought to this version's form.

    a new store             the tables, and the trigger from the beginning
    families missing        added to their tables (``older_tables``)
    another registration    changed where it is: it keeps its place in the logs, and changes that wait are delivered by
                            the new one (until then the function of the old registration delivers them)
    format 0                pages that include others are listed as linking there (``older_includes``)
    triggers of OLDER       the trigger is added from the beginning, which shows it every page; then each of them goes
                            when it has delivered what it has, and stays if that takes longer than OLDER_WAIT_MS

Old and new triggers may run side by side: they lead to the same tables (``triggers``).  The folder's format
(``folder_format``) is checked first and written last.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Final

from columnar.client import Connection
from columnar.client.errors import AlreadyExists
from wikka_port import folder_format, schema, triggers
from wikka_port.accounts.tables import TABLES as ACCOUNT_TABLES
from wikka_port.editing.rows import TABLES as DRAFT_TABLES
from wikka_port.editing.suggestions import TABLES as SUGGESTION_TABLES
from wikka_port.moving.journal import TABLES as MOVE_TABLES
from wikka_port.older_includes import list_includes
from wikka_port.older_tables import add_missing_families

OLDER_WAIT_MS: Final = 10_000
TABLES: Final = (*schema.TABLES, *ACCOUNT_TABLES, *DRAFT_TABLES, *SUGGESTION_TABLES, *MOVE_TABLES)


def prepare(connection: Connection, *, with_triggers: bool) -> list[str]:
    """Returns the names of older triggers that stay.  Changes nothing the second time.  Raises NewerFolder."""
    folder = folder_format.read_folder(connection, TABLES)
    _make_tables(connection)
    if with_triggers:
        _register(connection)
    if folder.number < folder_format.INCLUDES_LISTED and schema.PAGES.decode() not in folder.missing:
        list_includes(connection)
    folder_format.note(connection)
    return _older_that_stay(connection) if with_triggers else []


def _make_tables(connection: Connection) -> None:
    there = set(connection.tables())
    add_missing_families(connection, [table for table in TABLES if table.name in there])
    for table in TABLES:
        if table.name in there:
            continue
        attributes, families = None, table.families
        if connection.is_columnar:
            attributes = table.attributes
            families = {name: {**options, **table.family_attributes} for name, options in families.items()}
        with contextlib.suppress(AlreadyExists):  # another one prepares at the same time
            connection.create_table(table.name, families, attributes=attributes)


def _register(connection: Connection) -> None:
    """A sync, and not an add: it changes a trigger that is there with other settings, which keeps its place."""
    present = {one.name: one.registration for one in connection.triggers.list()}
    registrations = [one.store_registration for one in triggers.REGISTRATIONS]
    for wanted in registrations:
        there = present.get(wanted.name)
        if there is None or there != replace(wanted, from_where=there.from_where):
            connection.triggers.sync(registrations)
            return


def _older_that_stay(connection: Connection) -> list[str]:
    stay = []
    for one in connection.triggers.list():
        if one.name not in triggers.OLDER:
            continue
        if connection.triggers.wait(one.name, timeout_ms=OLDER_WAIT_MS):
            connection.triggers.remove(one.name)
        else:
            stay.append(one.name)
    return stay
