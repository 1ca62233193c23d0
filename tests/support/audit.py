"""A reader of the deliveries that ``trigger_functions.note`` wrote."""

from __future__ import annotations

from dataclasses import dataclass

from columnar.client import Connection


@dataclass(frozen=True, slots=True)
class Seen:
    sequence: str
    attempt: int
    timestamp: int
    is_backfill: bool
    changes: tuple[tuple[str, bytes, int, bytes], ...]  # kind, column, timestamp, value
    now: dict[bytes, bytes]
    before: dict[bytes, bytes]


def seen(connection: Connection, row: bytes, table: bytes = b"audit") -> list[Seen]:
    """Return the deliveries of ``row``, in their order."""
    log = connection.table(table).row(row).get(b"a:log", b"")
    return [_seen(line.decode()) for line in log.splitlines()]


def _seen(line: str) -> Seen:
    sequence, attempt, timestamp, is_backfill, changes, now, before = line.split(";")
    steps = []
    for step in filter(None, changes.split(",")):
        kind, column, at, value = step.split("|")
        steps.append((kind, column.encode(), int(at), bytes.fromhex(value)))
    return Seen(sequence, int(attempt), int(timestamp), is_backfill == "1", tuple(steps), _cells(now), _cells(before))


def _cells(text: str) -> dict[bytes, bytes]:
    pairs = (cell.split("=") for cell in filter(None, text.split(",")))
    return {column.encode(): bytes.fromhex(value) for column, value in pairs}
