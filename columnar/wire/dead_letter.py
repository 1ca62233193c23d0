"""(pure) A dead letter as clients receive it (``record_codec``): a change that a trigger gave up processing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LoggedCell:
    kind: str  # put, delete, delete family or delete version
    column: bytes
    timestamp: int
    value: bytes


@dataclass(frozen=True, slots=True)
class LetterChange:
    """The change that a dead letter keeps."""

    stamp: int
    client_timestamp: int
    hops: int
    steps: tuple[LoggedCell, ...]
    before: tuple[LoggedCell, ...]
    after: tuple[LoggedCell, ...]
    images: bool
    lacks_images: bool  # the row's images were too large to be kept


@dataclass(frozen=True, slots=True)
class DeadLetter:
    trigger: str
    table: bytes
    row: bytes
    sequence: str
    attempts: int
    error: str
    output: str
    timestamp_ms: int  # when the trigger gave the change up
    change: LetterChange | None = None  # None unless the change was requested, and kept
