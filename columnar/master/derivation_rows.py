"""(pure) Rows of the catalogue that hold derivations (``model.derivations``), each kind under a prefix.

    row ``tr/NAME``       info:registration = JSON of the registration, info:state = adding | running | paused,
                          info:number = decimal; missing for a trigger of an earlier version,
                          info:replay = JSON {"from_ms": ..., "number": ...}; absent without a replay request
    row ``vw/NAME``       info:view = JSON of the definition, info:state = adding | building | live,
                          info:reads = JSON [[table, [family, ...]], ...], info:number = decimal
    row ``fd/NAME``       info:feed = JSON of the definition (``model.feeds``), info:state = adding | running,
                          info:number = decimal
    row ``alias/NAME``    info:alias = JSON of a swap (``model.view_generations``): the live table and the kept one
    row ``PREFIX#numbers``  info:numbers = JSON of the record of numbers; no name of a derivation begins with ``#``

A row that cannot be read stays as it is until its derivation is removed.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from columnar.errors import DamagedData
from columnar.master.catalogue_rows import Cells
from columnar.master.catalogue_rows import changes as row_changes
from columnar.model import feeds, trigger_registration, view_generations
from columnar.model.derivations import (
    TRIGGER_STATES,
    VIEW_STATES,
    DerivationSet,
    KeptView,
    Numbers,
    Reads,
    Replay,
    RowCells,
    Trigger,
    Triggers,
    ViewSet,
    numbers_from_json,
    numbers_to_json,
)
from columnar.model.feeds import FEED_STATES, Feed, FeedSet
from columnar.model.mutation import RowMutation
from columnar.model.trigger_registration import Registration
from columnar.model.view_generations import Swap, without_tables

_log = logging.getLogger(__name__)

TRIGGERS_TABLE: Final = "columnar:triggers"  # held triggers in data folders of format 5 and older (``older_triggers``)
ALIAS: Final = b"alias/"
_NUMBERS: Final = b"#numbers"

AnySet = DerivationSet[Any]
Stored = dict[bytes, dict[bytes, bytes]]  # row -> column -> value


class _Kind(NamedTuple):
    prefix: bytes
    parse: Callable[[str, Cells, Collection[str]], Any]  # name, cells, names of all tables
    cells: Callable[[Any], dict[bytes, bytes]]


def sets_from(rows: Iterable[tuple[bytes, Cells]], tables: Collection[str]) -> dict[type[AnySet], AnySet]:
    """Return the set of each kind.  ``rows``: all whose keys begin with PREFIXES; ``tables``: names of all tables."""
    by_row = dict(rows)
    found = {kind: _set_from(kind, by_row, tables) for kind in KINDS}
    swaps = [_swap(row.removeprefix(ALIAS).decode(), by_row[row], tables) for row in sorted(by_row) if _is_alias(row)]
    views = found[ViewSet]
    found[ViewSet] = ViewSet(views.all, views.numbers, views.numbers_data, tuple(one for one in swaps if one))
    return found


def _is_alias(row: bytes) -> bool:
    return row.startswith(ALIAS)


def _set_from(kind: type[AnySet], rows: Mapping[bytes, Cells], tables: Collection[str]) -> AnySet:
    form = KINDS[kind]
    names = {row: row.removeprefix(form.prefix) for row in rows if row.startswith(form.prefix)}
    all_ = [form.parse(name.decode(), rows[row], tables) for row, name in names.items() if name != _NUMBERS]
    for one in all_:
        if one.unusable_reason:
            _log.warning("%s %s rests, and its place in the logs is kept: %s", kind.noun, one.name, one.unusable_reason)
    record = rows.get(form.prefix + _NUMBERS)
    numbers, data = (Numbers(), b"") if record is None else _numbers_from(record, kind.noun)
    return kind(tuple(sorted(all_, key=lambda one: str(one.name))), numbers, data)


def _numbers_from(cells: Cells, noun: str) -> tuple[Numbers | None, bytes]:
    data = cells.get(b"info:numbers", b"")
    try:
        return numbers_from_json(data), b""
    except DamagedData as error:
        _log.error("no %s can be added or dropped: %s", noun, error.text)
        return None, data


def _number_of(cells: Cells) -> int:
    number = cells.get(b"info:number", b"")
    return int(number) if number.isdigit() else 0


def rows_of(derivations: AnySet) -> Stored:
    form = KINDS[type(derivations)]
    rows = {form.prefix + one.name.encode(): dict(one.row_cells) or form.cells(one) for one in derivations.all}
    if isinstance(derivations, ViewSet):
        rows |= {ALIAS + one.name.encode(): {b"info:alias": view_generations.to_json(one)} for one in derivations.swaps}
    if derivations.numbers is None:
        rows[form.prefix + _NUMBERS] = {b"info:numbers": derivations.numbers_data}
    elif derivations.numbers != Numbers():
        rows[form.prefix + _NUMBERS] = {b"info:numbers": numbers_to_json(derivations.numbers)}
    return rows


def changes(stored: AnySet, wanted: AnySet) -> list[RowMutation]:
    """Return the mutations that turn the rows of ``stored`` into the rows of ``wanted``."""
    return row_changes(rows_of(stored), rows_of(wanted))


def _as_on_disk(cells: Cells) -> RowCells:
    return tuple(cells.items())


# --- triggers ----------------------------------------------------------------------------------------


def _trigger(name: str, cells: Cells, tables: Collection[str]) -> Trigger:
    state, rests = TRIGGER_STATES.get(cells.get(b"info:state", b"").decode("latin-1"), "running"), ""
    try:
        registration = trigger_registration.from_json(cells.get(b"info:registration", b""))
        if registration.name != name:
            raise DamagedData(f"registration of a trigger: it is another's, {registration.name}")
        if registration.table not in tables:
            rests = f"there is no table {registration.table}"
    except DamagedData as error:
        registration, rests = Registration(name, "", "", ()), error.text
    replay = _replay(name, cells.get(b"info:replay", b""))
    return Trigger(registration, state, _number_of(cells), rests, _as_on_disk(cells) if rests else (), replay)


def _replay(name: str, data: bytes) -> Replay | None:
    try:
        fields = json.loads(data) if data else None
        return None if fields is None else Replay(int(fields["number"]), int(fields["from_ms"]))
    except (ValueError, KeyError, TypeError) as error:
        _log.warning("trigger %s: the replay that was wished cannot be read: %s", name, error)
        return None


def _cells_of_trigger(trigger: Trigger) -> dict[bytes, bytes]:
    registration = trigger_registration.to_json(trigger.registration)
    cells = {b"info:registration": registration, b"info:state": trigger.state.encode()}
    if trigger.number:
        cells[b"info:number"] = b"%d" % trigger.number
    if trigger.replay is not None:
        replay = {"from_ms": trigger.replay.from_ms, "number": trigger.replay.number}
        cells[b"info:replay"] = json.dumps(replay, sort_keys=True).encode()
    return cells


# --- views -------------------------------------------------------------------------------------------


def _view(name: str, cells: Cells, tables: Collection[str]) -> KeptView:
    state = VIEW_STATES.get(cells.get(b"info:state", b"").decode("latin-1"))
    reads, rests = (), ""  # type: tuple[Reads, ...], str
    try:
        reads = _reads_from_json(cells.get(b"info:reads", b""))
        missing = [table for table in (name, *(one.table for one in reads)) if table not in tables]
        if missing:
            rests = f"there is no table {missing[0]}"
    except DamagedData as error:
        rests = error.text
    if state is None:
        rests = rests or "it is in a state that this version does not know: upgrade"
    definition, row_cells = cells.get(b"info:view", b""), _as_on_disk(cells) if rests else ()
    return KeptView(name, definition, reads, state or "live", _number_of(cells), rests, row_cells)


def _feed(name: str, cells: Cells, tables: Collection[str]) -> Feed:
    state, rests, row_cells = FEED_STATES.get(cells.get(b"info:state", b"").decode("latin-1")), "", _as_on_disk(cells)
    try:
        feed = feeds.from_json(cells.get(b"info:feed", b""))
        if feed.name != name:
            raise DamagedData(f"definition of a feed: it is another's, {feed.name}")
        if feed.table not in tables:
            rests = f"there is no table {feed.table}"
    except DamagedData as error:
        feed, rests = Feed(name), error.text
    if state is None:
        rests = rests or "it is in a state that this version does not know: upgrade"
    return replace(
        feed, state=state or "running", number=_number_of(cells), unusable_reason=rests,
        row_cells=row_cells if rests else (),
    )  # fmt: skip


def _cells_of_feed(feed: Feed) -> dict[bytes, bytes]:
    return {
        b"info:feed": feeds.to_json(feed),
        b"info:state": feed.state.encode(),
        b"info:number": b"%d" % feed.number,
    }


def _reads_from_json(data: bytes) -> tuple[Reads, ...]:
    try:
        return tuple(Reads(str(table), tuple(map(str, families))) for table, families in json.loads(data))
    except (ValueError, TypeError) as error:
        raise DamagedData(f"sources of a view: {error}") from error


def _cells_of_view(view: KeptView) -> dict[bytes, bytes]:
    return {
        b"info:view": view.definition,
        b"info:reads": json.dumps([[one.table, list(one.families)] for one in view.reads]).encode(),
        b"info:state": view.state.encode(),
        b"info:number": b"%d" % view.number,
    }


def _swap(name: str, cells: Cells, tables: Collection[str]) -> Swap | None:
    """Decode a swap.  Returns None if it cannot be used: then the name means the table of that name, if any."""
    try:
        swap = view_generations.from_json(name, cells.get(b"info:alias", b""))
    except DamagedData as error:
        _log.error("the name %s means its own table: %s", name, error.text)
        return None
    return next(iter(without_tables([swap], {swap.live, swap.kept} - set(tables))), None)


KINDS: Final[dict[type[AnySet], _Kind]] = {
    Triggers: _Kind(b"tr/", _trigger, _cells_of_trigger),
    ViewSet: _Kind(b"vw/", _view, _cells_of_view),
    FeedSet: _Kind(b"fd/", _feed, _cells_of_feed),
}
PREFIXES: Final = (*(form.prefix for form in KINDS.values()), ALIAS)
