"""(pure) Changes and rows as messages of Debezium's JSON form, for what reads Debezium's topics.

    key    {"row": ROW}
    value  {"before": ROW AND CELLS | null, "after": ROW AND CELLS | null, "source": {...}, "op": "c" | "u" | "d" | "r",
            "ts_ms": NOW, "transaction": {"id", "total_order", "data_collection_order"} | null}

A row is an object with the field ``row`` and a field ``family:qualifier`` for each cell.  A cell's value is text,
base64 or JSON, as declared, never as it looks; a value that is not what its column declares raises NotDeclared.  Behind
a delete comes a message with the same key and null as value (a tombstone).

``op`` is of the row's wanted cells: c if there were none before, d if there are none after, r in a snapshot.  A change
that finds no wanted cell and leaves none makes no message.

A transaction is what one atomic step over several rows wrote.  Its records have neighbouring sequences; where the
reader leaves out a record of the step, the rest is a transaction of its own.

Knows nothing of streams, feeds and links.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from columnar.errors import CallerError, IllegalArgument
from columnar.version import VERSION

FORMS: Final = ("text", "base64", "json")
_CONNECTOR: Final = "columnar"


class NotDeclared(CallerError):
    """A value, a row's key or a column's name is not of the declared form, or the event has no such message."""


class Message(NamedTuple):
    key: dict[str, object]
    value: dict[str, Any] | None  # None: a tombstone


@dataclass(frozen=True, slots=True)
class ValueForms:
    """The declared forms of values."""

    default: str = "text"
    columns: Mapping[bytes, str] = field(default_factory=dict)  # of a column, or of a family
    row: str = "text"  # of the row's key: text or base64

    def value(self, column: bytes, value: bytes) -> object:
        """Raises NotDeclared."""
        form = self.columns.get(column) or self.columns.get(column.partition(b":")[0]) or self.default
        if form == "base64":
            return b64encode(value).decode()
        try:
            return json.loads(value, parse_constant=_refuse) if form == "json" else value.decode()
        except (ValueError, RecursionError):
            what = "JSON" if form == "json" else "text in UTF-8"
            raise NotDeclared(
                f"a value of column {column!r} is no {what}: declare another form, as --value "
                f"{column.decode(errors='replace')}=base64"
            ) from None

    def key(self, row: bytes) -> str:
        """Raises NotDeclared."""
        try:
            return b64encode(row).decode() if self.row == "base64" else row.decode()
        except UnicodeDecodeError:
            raise NotDeclared(f"the key of row {row!r} is no text in UTF-8: declare --value row=base64") from None


def forms_of(texts: Sequence[str]) -> ValueForms:
    """Parse FORM, row=FORM, FAMILY:=FORM and FAMILY:QUALIFIER=FORM, latin-1 of the bytes.  Raises IllegalArgument."""
    default, row, columns = "text", "text", {}
    for text in texts:
        name, equals, form = text.rpartition("=")
        if form not in FORMS or (name and name != "row" and ":" not in name) or (name == "row" and form == "json"):
            raise IllegalArgument(
                f"--value {text}: write text, base64 or json alone, or behind FAMILY:QUALIFIER= or FAMILY:=; the row's "
                "key is row=text or row=base64"
            )
        if name == "row":
            row = form
        elif equals:
            columns[name.encode("latin-1", "replace").removesuffix(b":")] = form
        else:
            default = form
    return ValueForms(default, columns, row)


def _refuse(constant: str) -> None:
    raise ValueError(constant)  # NaN and Infinity are no JSON


class _Step(NamedTuple):
    """An atomic step of several records, not yet ended."""

    id: str
    epoch: int
    n: int  # of its last record
    order: int


class ChangeImages(NamedTuple):
    """A change of a row, with its wanted cells before and after."""

    row: bytes
    before: Mapping[bytes, bytes]
    after: Mapping[bytes, bytes]
    stamp: int  # ms since 1970
    sequence: str  # as the token of a write
    more: bool  # the next record of the same atomic step follows


class Debezium:
    """Makes the messages of one reader, which passes events in their order."""

    def __init__(self, table: str, forms: ValueForms) -> None:
        self._forms = forms
        namespace, _, name = table.rpartition(":")
        self._source = {"version": VERSION, "connector": _CONNECTOR, "name": _CONNECTOR,
                        "db": namespace or "default", "table": name}  # fmt: skip
        self._steps: dict[str, _Step] = {}  # by origin: as many as regions are amid a step

    def messages_of_change(self, change: ChangeImages, now_ms: int) -> list[Message]:
        """Return the messages of a change: none, one, or a delete and its tombstone.

        Raises NotDeclared; then the change may be passed again with other forms.
        """
        transaction = self.transaction_of(change.sequence, more=change.more)
        if not change.before and not change.after:
            return []
        op = "c" if not change.before else "u" if change.after else "d"
        made = self._message(
            change.row, op, change.before or None, change.after or None, change.stamp, change.sequence, now_ms
        )
        assert made.value is not None, "only a tombstone has none"
        made.value["transaction"] = transaction
        return [made, Message(made.key, None)] if op == "d" else [made]

    def message_of_row(self, row: bytes, cells: Mapping[bytes, bytes], sequence: str, now_ms: int) -> Message:
        """Return the message of a row of a snapshot.  Raises NotDeclared."""
        return self._message(row, "r", None, cells, now_ms, sequence, now_ms)

    def _message(
        self,
        row: bytes,
        op: str,
        before: Mapping[bytes, bytes] | None,
        after: Mapping[bytes, bytes] | None,
        stamp_ms: int,
        sequence: str,
        now_ms: int,
    ) -> Message:
        key = {"row": self._forms.key(row)}
        source = {
            **self._source,
            "ts_ms": stamp_ms,
            "snapshot": "true" if op == "r" else "false",
            "sequence": sequence,
        }
        images = {"before": self._image(key, before), "after": self._image(key, after)}
        return Message(dict(key), {**images, "source": source, "op": op, "ts_ms": now_ms, "transaction": None})

    def _image(self, key: Mapping[str, object], cells: Mapping[bytes, bytes] | None) -> dict[str, object] | None:
        if cells is None:
            return None
        found = dict(key)
        for column, value in cells.items():
            try:
                found[column.decode()] = self._forms.value(column, value)
            except UnicodeDecodeError:
                raise NotDeclared(
                    f"the name of column {column!r} is no text in UTF-8, as a field's must be: leave it out with "
                    "--columns"
                ) from None
        return found

    def transaction_of(self, sequence: str, *, more: bool) -> dict[str, object] | None:
        """Return the transaction of a change, which is the next one of its origin."""
        origin, *place = sequence.split("-")
        epoch, n = map(int, place)
        step = self._steps.pop(origin, None)
        if step is None or (step.epoch, step.n + 1) != (epoch, n):
            if not more:
                return None
            step = _Step(sequence, epoch, n, 0)
        step = _Step(step.id, epoch, n, step.order + 1)
        if more:
            self._steps[origin] = step
        return {"id": step.id, "total_order": step.order, "data_collection_order": step.order}
