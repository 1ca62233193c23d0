"""The functions of ``wikka_port.notices.fan_out``, run over rows in a dictionary at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from columnar.triggers.api import Change, ChangedCell, Delete, Put
from tests.support.memory_rows import MemoryRows
from wikka_port import schema
from wikka_port.editing.suggestions import REVIEW, SUGGESTIONS
from wikka_port.names import page_key
from wikka_port.notices import fan_out
from wikka_port.notices.notice_rows import pack_notify
from wikka_port.page_rows import Page
from wikka_port.schema import Head, revision_row

Cells = Mapping[bytes, bytes]


class RowsTable:
    """As much of a client's table as ``fan_out`` needs."""

    def __init__(self, rows: MemoryRows, name: bytes) -> None:
        self._rows, self._name = rows, name

    def row(self, row: bytes, columns: list[bytes] | None = None) -> Cells:
        return self._rows.row(self._name, row, columns)

    def rows(self, rows: Collection[bytes], columns: list[bytes]) -> list[tuple[bytes, Cells]]:
        return list(self._rows.rows(self._name, rows, columns).items())

    def scan(self, *, row_start: bytes, row_stop: bytes, limit: int, batch_size: int) -> Iterator[tuple[bytes, Cells]]:
        rows = self._rows.row_keys(self._name, row_start, row_stop, limit=limit)
        yield from ((row, self.row(row)) for row in rows)


class RowsClient:
    def __init__(self, rows: MemoryRows) -> None:
        self._rows = rows

    def table(self, name: bytes) -> RowsTable:
        return RowsTable(self._rows, name)


def carry_out(rows: MemoryRows, effects: Iterable[Any]) -> None:
    for effect in effects:
        if isinstance(effect, Put):
            rows.put(effect.table, effect.row, effect.cells)
        elif isinstance(effect, Delete):
            rows.delete(effect.table, effect.row, effect.columns)


def derive_watchers(rows: MemoryRows, changed: Mapping[bytes, Cells]) -> None:
    for row, now in changed.items():
        carry_out(rows, fan_out.watcher_effects(row, now))


def change_of(
    key: bytes, put: Cells, *, at_ms: int = 1, now: Cells | None = None, before: Cells | None = None, **given: Any
) -> Change:
    cells = tuple(ChangedCell("put", column, at_ms, value) for column, value in put.items())
    return Change(schema.PAGES, key, 1, "", cells, now or put, before or {}, **given)


def notify_watchers(rows: MemoryRows, page: Page, head: Head, notify: str, mentions: Collection[str] = ()) -> None:
    """Store the page's newest revision, and notify those who watch the page."""
    key, minor = page_key(page.name), b"yes" if page.minor else b"no"
    cells = {
        schema.REVISION_AUTHOR: page.author.encode(),
        schema.REVISION_NOTE: page.note.encode(),
        schema.SIGNED: page.signed.encode(),
        schema.MINOR: minor,
    }
    rows.data.setdefault(schema.REVISIONS, {})[revision_row(key, head)] = cells
    is_new = page.number == 1
    cell = pack_notify(
        notify, name=page.name, head=head, time_ms=page.time_ms, is_new=is_new, minor=page.minor, mentions=mentions
    )
    change = change_of(key, {schema.NOTIFY: cell}, at_ms=page.time_ms)
    carry_out(rows, fan_out.notices(change, RowsClient(rows)))  # type: ignore[arg-type]


def notify_of_comment(rows: MemoryRows, key: bytes, row: Cells, put: Cells) -> None:
    change = change_of(key, put, now={**row, **put}, before=row)
    carry_out(rows, fan_out.notices(change, RowsClient(rows)))  # type: ignore[arg-type]


def notify_author(rows: MemoryRows, row: bytes, now: Cells) -> None:
    """Notify the author of a text under review of the decision, at the time 1."""
    cells = (ChangedCell("put", REVIEW, 1, now[REVIEW]),)
    change = Change(SUGGESTIONS, row, 1, "", cells, now)
    carry_out(rows, fan_out.notice_of_decision(change, RowsClient(rows)))  # type: ignore[arg-type]
