"""(pure) What a session has written, as far as the generator must know it to stay out of HBase's accidents.

HBase hides deleted and surplus cells at once, but forgets them only when it compacts, and nobody can tell when
that is (its gateway's majorCompact runs a minor one).  Three kinds of call depend on it and are not generated, nor is a
fourth, which HBase counts wrongly:

    a put at or below a delete's timestamp     hidden until the delete's marker is compacted away
    a read in the past of a cell that has had more versions than its family keeps
                                               finds the surplus ones until they are compacted away
    a filter that seeks by hints, where a family's delete stands behind a newer cell with the empty qualifier
                                               seeks past the marker and finds what it hides
    a filter that counts columns, over several versions of a cell with the empty qualifier
                                               counts each of them

Timestamps by the server's clock count as ``NOW`` and the number of the write, so that they lie between the small
ones that are given and ``FAR``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

NOW: Final = 2_000_000_000_000
FAR: Final = 5_000_000_000_000  # beyond any clock (answers.CLOCK)

Column = tuple[bytes, bytes]  # family, qualifier


@dataclass(slots=True)
class WrittenRow:
    stamps: dict[Column, set[int]] = field(default_factory=dict)
    unsure: set[Column] = field(default_factory=set)  # whether the last write happened depends on values
    family_marks: dict[bytes, int] = field(default_factory=dict)  # the highest delete
    column_marks: dict[Column, int] = field(default_factory=dict)

    def mark(self, column: Column) -> int:
        """The highest timestamp at or below which a put of the column would be hidden."""
        return max(self.family_marks.get(column[0], -1), self.column_marks.get(column, -1))

    def delete_column(self, column: Column, at: int) -> None:
        self.column_marks[column] = max(at, self.column_marks.get(column, -1))
        self.stamps[column] = {stamp for stamp in self.stamps.get(column, ()) if stamp > at}

    def delete_family(self, family: bytes, at: int) -> None:
        self.family_marks[family] = max(at, self.family_marks.get(family, -1))
        for column, stamps in self.stamps.items():
            if column[0] == family:
                self.stamps[column] = {stamp for stamp in stamps if stamp > at}


@dataclass(slots=True)
class WrittenTable:
    name: bytes
    families: dict[bytes, int]  # VERSIONS
    rows: list[bytes]  # what calls are drawn from
    held: dict[bytes, WrittenRow] = field(default_factory=dict)
    enabled: bool = True

    def row(self, row: bytes) -> WrittenRow:
        return self.held.setdefault(row, WrittenRow())

    def put(self, row: bytes, column: Column, at: int) -> None:
        self.row(row).stamps.setdefault(column, set()).add(at)

    def reads_alike_at(self, timestamp: int, rows: Iterable[bytes] | None = None) -> bool:
        """Whether a read of what is older than ``timestamp`` is the same before and after a compaction."""
        for name in self.held if rows is None else rows:
            held = self.held.get(name)
            if held is not None and not self._row_reads_alike(held, timestamp):
                return False
        return True

    def seeks_alike(self) -> bool:
        """Whether no marker of a family's delete stands where a hint leads past it."""
        return not any(
            stamp > mark
            for held in self.held.values()
            for family, mark in held.family_marks.items()
            for stamp in held.stamps.get((family, b""), ())
        )

    def counts_alike(self) -> bool:
        """Whether no cell with the empty qualifier has several versions."""
        return not any(
            len(stamps) > 1 and not qualifier
            for held in self.held.values()
            for (_, qualifier), stamps in held.stamps.items()
        )

    def _row_reads_alike(self, held: WrittenRow, timestamp: int) -> bool:
        for column, stamps in held.stamps.items():
            keep = self.families[column[0]]
            falling = sorted(stamps, reverse=True)
            kept = [at for at in falling[:keep] if at < timestamp]
            found = [at for at in falling if at < timestamp][:keep]
            if kept != found or (column in held.unsure and found and timestamp <= max(stamps) + 1000):
                return False
        return True
