"""The functions of ``triggers``, run by the application if the store has no triggers.

Each effect is written at the timestamp of the page's revision.  An import may save pages with times that do not rise;
so when a family is deleted, each of its cells with a later timestamp is deleted at that timestamp.

Order: calls reach the disk one after another.  Within a call, of up to ROWS_PER_CALL rows of one table, effects have
no order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from columnar.client import Connection
from columnar.triggers.api import Change, Delete, Effect, Put
from wikka_port import triggers
from wikka_port.files import thumbnail_trigger
from wikka_port.files.file_rows import BLOBS
from wikka_port.limits import ROWS_PER_CALL


def run_indexes(connection: Connection, change: Change) -> None:
    """Write all index cells that follow from the change, and wait for the disk.  Raises the client's errors."""
    for one in triggers.REGISTRATIONS:
        carry_out(connection, triggers.alone(one.call([change], connection)), change.timestamp)


def make_smaller_pictures(connection: Connection, sha256: str, at_ms: int) -> None:
    """Make the smaller versions of a picture that has become live.  Raises the client's errors."""
    row = sha256.encode()
    change = Change(BLOBS, row, at_ms, "", (), connection.table(BLOBS).row(row), {})
    carry_out(connection, thumbnail_trigger.pictures(change, connection), at_ms)


def carry_out(connection: Connection, effects: Iterable[Effect], at_ms: int) -> None:
    """Write the effects in their order, and wait until all are on disk.  Raises the client's errors."""
    together: list[Put | Delete] = []
    for effect in effects:
        write = effect if isinstance(effect, Put | Delete) else None
        if together and (write is None or write.table != together[0].table or len(together) >= ROWS_PER_CALL):
            _write(connection, together, at_ms)
            together = []
        if write is not None:
            together.append(write)
    if together:
        _write(connection, together, at_ms)


def _write(connection: Connection, effects: list[Put | Delete], at_ms: int) -> None:
    """Write effects on one table."""
    table = connection.table(effects[0].table)
    later: dict[int, list[tuple[bytes, bytes]]] = {}
    with table.batch(timestamp=at_ms) as batch:
        for effect in effects:
            if isinstance(effect, Put):
                batch.put(effect.row, effect.cells)
                continue
            batch.delete(effect.row, effect.columns)
            for family in [column for column in effect.columns or () if b":" not in column]:
                stored: Mapping[bytes, tuple[bytes, int]] = table.row(effect.row, [family], include_timestamp=True)
                for column, (_, stamp) in stored.items():
                    if stamp > at_ms:
                        later.setdefault(stamp, []).append((effect.row, column))
    for stamp, cells in later.items():
        for row, column in cells:
            table.delete(row, [column], timestamp=stamp)
