"""(pure) Rows of the catalogue that hold triggers (``model.trigger_set``).

    row ``tr/NAME``       info:registration = JSON of the registration, info:state = adding | running | paused,
                          info:number = decimal; none of a trigger of an earlier version,
                          info:replay = JSON {"from_ms": ..., "number": ...}; absent without a replay request
    row ``tr/#numbers``   info:numbers = JSON of the record of numbers; ``#`` begins no trigger's name

A row that cannot be read stays as it is until its trigger is removed.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable
from typing import Final

from columnar.errors import DamagedData
from columnar.master import catalogue_rows
from columnar.master.catalogue_rows import Cells, numbers_from, numbers_rows
from columnar.model import trigger_registration
from columnar.model.follower_numbers import Numbers
from columnar.model.mutation import RowMutation
from columnar.model.trigger_registration import Registration
from columnar.model.trigger_set import STATES, Replay, State, Trigger, Triggers

_log = logging.getLogger(__name__)

PREFIX: Final = b"tr/"
NUMBERS_ROW: Final = b"tr/#numbers"
TRIGGERS_TABLE: Final = "columnar:triggers"  # it held triggers in folders of format 5 and older (``older_triggers``)


def trigger_row(name: str) -> bytes:
    return PREFIX + name.encode()


def triggers_from(rows: Iterable[tuple[bytes, Cells]], tables: Collection[str]) -> Triggers:
    """The triggers that ``rows``, all with PREFIX, say.  ``tables``: names of those that there are."""
    found: list[Trigger] = []
    numbers: Numbers | None = Numbers()
    numbers_data = b""
    for row, cells in rows:
        if row == NUMBERS_ROW:
            numbers, numbers_data = numbers_from(cells, "trigger")
        else:
            found.append(_trigger(row.removeprefix(PREFIX).decode(), cells, tables))
    return Triggers(tuple(sorted(found, key=lambda one: one.name)), numbers, numbers_data)


def _trigger(name: str, cells: Cells, tables: Collection[str]) -> Trigger:
    number, state = cells.get(b"info:number", b""), _state(cells.get(b"info:state", b""))
    rests, data = "", cells.get(b"info:registration", b"")
    try:
        registration = trigger_registration.from_json(data)
        if registration.name != name:
            raise DamagedData(f"registration of a trigger: it is another's, {registration.name}")
        data = b""
        if registration.table not in tables:
            rests = f"there is no table {registration.table}"
    except DamagedData as error:
        registration, rests = Registration(name, "", "", ()), error.text
    if rests:
        _log.warning("trigger %s rests, and its place in the logs is kept: %s", name, rests)
    known_number = int(number) if number.isdigit() else 0
    return Trigger(registration, state, known_number, rests, data, _replay(name, cells.get(b"info:replay", b"")))


def _replay(name: str, data: bytes) -> Replay | None:
    try:
        fields = json.loads(data) if data else None
        return None if fields is None else Replay(int(fields["number"]), int(fields["from_ms"]))
    except (ValueError, KeyError, TypeError) as error:
        _log.warning("trigger %s: the replay that was wished cannot be read: %s", name, error)
        return None


def _state(data: bytes) -> State:
    return STATES.get(data.decode("latin-1"), "running")


def rows_of(triggers: Triggers) -> dict[bytes, dict[bytes, bytes]]:
    rows = {trigger_row(one.name): _cells(one) for one in triggers.all}
    return rows | numbers_rows(NUMBERS_ROW, triggers.numbers, triggers.numbers_data)


def _cells(trigger: Trigger) -> dict[bytes, bytes]:
    data = trigger.data or trigger_registration.to_json(trigger.registration)
    cells = {b"info:registration": data, b"info:state": trigger.state.encode()}
    if trigger.number:
        cells[b"info:number"] = b"%d" % trigger.number
    if trigger.replay is not None:
        replay = {"from_ms": trigger.replay.from_ms, "number": trigger.replay.number}
        cells[b"info:replay"] = json.dumps(replay, sort_keys=True).encode()
    return cells


def changes(stored: Triggers, wanted: Triggers) -> list[RowMutation]:
    """Return the mutations that turn the rows of ``stored`` into those of ``wanted``."""
    return catalogue_rows.changes(rows_of(stored), rows_of(wanted))
