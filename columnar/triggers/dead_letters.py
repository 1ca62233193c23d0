"""(pure) Dead letters: changes whose trigger used up its attempts, as rows of ``columnar:dead_letters``.

row  := trigger 00 origin:u64 epoch:u32 n:u64        one trigger's letters stand together, oldest first
info:letter = JSON of DeadLetter (row and output as latin-1 and text)
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from columnar.model.mutation import Delete, Put, RowMutation
from columnar.regions.change_record import pack_key, parse_token

DEAD_LETTERS_TABLE: Final = "columnar:dead_letters"
INFO: Final = b"info"


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


def letter_row(trigger: str, sequence: str) -> bytes:
    return trigger.encode() + b"\x00" + pack_key(parse_token(sequence))


def trigger_of(row: bytes) -> str:
    return row.partition(b"\x00")[0].decode()


def rows_of(trigger: str) -> tuple[bytes, bytes]:
    """Start and stop of one trigger's letters; of all for an empty name."""
    return (trigger.encode() + b"\x00", trigger.encode() + b"\x01") if trigger else (b"", b"")


def writing(letter: DeadLetter) -> RowMutation:
    held: dict[str, Any] = {
        "trigger": letter.trigger,
        "table": letter.table,
        "row": letter.row.decode("latin-1"),
        "sequence": letter.sequence,
        "attempts": letter.attempts,
        "error": letter.error,
        "output": letter.output,
        "timestamp_ms": letter.timestamp_ms,
    }
    data = json.dumps(held, sort_keys=True).encode()
    return RowMutation(letter_row(letter.trigger, letter.sequence), (Put(INFO, b"letter", data),))


def removing(letter: DeadLetter) -> RowMutation:
    return RowMutation(letter_row(letter.trigger, letter.sequence), (Delete(INFO, None),))


def from_cell(data: bytes) -> DeadLetter:
    held: dict[str, Any] = json.loads(data)
    return DeadLetter(**{**held, "row": held["row"].encode("latin-1")})
