"""(pure) Dead letters: changes whose trigger used up its attempts, as rows of ``columnar:dead_letters``.

    row         := trigger 00 origin:u64 epoch:u32 n:u64        letters of one trigger are adjacent, oldest first
    info:letter := JSON of the first fields of DeadLetter (row and output as latin-1 and text)
    info:change := kept:u8 record                               none in letters of earlier versions
    kept        := 1 the record is whole | 2 its images were too large and are left out
    record      as in a change log (``regions.change_record``)

A value of ``info:change`` has at most CHANGE_BYTES.  If a change is larger, its images are left out; if it is still
larger, it is not kept.  A letter without its change can be retried as its row is now, not as it was.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from columnar.errors import DamagedData
from columnar.model.mutation import Delete, Put, RowMutation
from columnar.model.system_tables import DEAD_LETTERS_TABLE
from columnar.regions.log import change_record
from columnar.regions.log.change_record import ChangeRecord, pack_key, parse_token

INFO: Final = b"info"
LETTER_COLUMN: Final = b"info:letter"
CHANGE_COLUMN: Final = b"info:change"
CHANGE_BYTES: Final = 1024 * 1024
_TYPES: Final = {  # of the fields of ``info:letter``
    "trigger": str, "table": str, "row": str, "sequence": str, "attempts": int, "error": str, "output": str,
    "timestamp_ms": int,
}  # fmt: skip
_WHOLE: Final = b"\x01"
_WITHOUT_IMAGES: Final = b"\x02"


@dataclass(frozen=True, slots=True)
class DeadLetter:
    trigger: str
    table: str
    row: bytes
    sequence: str
    attempts: int
    error: str
    output: str
    timestamp_ms: int  # when it was given up
    change: ChangeRecord | None = None  # None: too large, of an earlier version, or not requested
    lacks_images: bool = False  # ``change`` had them, and was too large with them


def letter_row(trigger: str, sequence: str) -> bytes:
    return trigger.encode() + b"\x00" + pack_key(parse_token(sequence))


def trigger_of(row: bytes) -> str:
    """Return the trigger's name in a letter's row; of any other row all that stands before the first zero byte."""
    return row.partition(b"\x00")[0].decode(errors="replace")


def rows_of(trigger: str) -> tuple[bytes, bytes]:
    """Return start and stop of the rows of one trigger's letters, or of all letters if ``trigger`` is empty."""
    return (trigger.encode() + b"\x00", trigger.encode() + b"\x01") if trigger else (b"", b"")


def writing(letter: DeadLetter) -> RowMutation:
    fields: dict[str, Any] = {
        "trigger": letter.trigger,
        "table": letter.table,
        "row": letter.row.decode("latin-1"),
        "sequence": letter.sequence,
        "attempts": letter.attempts,
        "error": letter.error,
        "output": letter.output,
        "timestamp_ms": letter.timestamp_ms,
    }
    data = json.dumps(fields, sort_keys=True).encode()
    puts = [Put(INFO, b"letter", data)]
    change = _packed(letter.change)
    if change:
        puts.append(Put(INFO, b"change", change))
    return RowMutation(letter_row(letter.trigger, letter.sequence), tuple(puts))


def _packed(change: ChangeRecord | None) -> bytes:
    """Return the bytes of ``info:change``; none if there is no change, or it is too large even without its images."""
    if change is None:
        return b""
    data = _WHOLE + change_record.pack(change)
    if len(data) > CHANGE_BYTES:
        data = _WITHOUT_IMAGES + change_record.pack(change.but(before=(), after=(), images=None, touched=0))
    return data if len(data) <= CHANGE_BYTES else b""


def removing(letter: DeadLetter) -> RowMutation:
    return RowMutation(letter_row(letter.trigger, letter.sequence), (Delete(INFO, None),))


def from_cells(cells: Mapping[bytes, bytes]) -> DeadLetter:
    """Read a letter from all cells of its row, or from ``info:letter`` alone.

    Raises DamagedData if the cells hold no letter, or if the change in them cannot be read.
    """
    if LETTER_COLUMN not in cells:
        raise DamagedData(f"a row of {DEAD_LETTERS_TABLE} without {LETTER_COLUMN.decode()}")
    letter = from_cell(cells[LETTER_COLUMN])
    data = cells.get(CHANGE_COLUMN)
    if data is None:
        return letter
    if data[:1] not in (_WHOLE, _WITHOUT_IMAGES):
        raise DamagedData(f"dead letter of trigger {letter.trigger}: its change is kept in a way that is not known")
    return replace(letter, change=change_record.unpack(data[1:]), lacks_images=data[:1] == _WITHOUT_IMAGES)


def from_cell(data: bytes) -> DeadLetter:
    """Read a letter without its change.  Raises DamagedData if the bytes are no letter."""
    try:
        fields: Any = json.loads(data)
        if not isinstance(fields, dict) or {name: type(value) for name, value in fields.items()} != _TYPES:
            raise ValueError(f"its fields are {', '.join(_TYPES)}")
        parse_token(fields["sequence"])
        return DeadLetter(**{**fields, "row": fields["row"].encode("latin-1")})
    except (ValueError, RecursionError) as error:
        raise DamagedData(f"what is no dead letter: {error}") from error
