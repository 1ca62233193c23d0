"""SQL dumps as tests write them: the same rows in different manners of writing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

Table = tuple[Sequence[str], Sequence[Sequence[bytes | None]]]  # columns and rows

BY_ROW, LISTED, DOUBLED, HEXADECIMAL, SPACED = 1, 2, 4, 8, 16
_ESCAPED = {0: b"\\0", 10: b"\\n", 13: b"\\r", 26: b"\\Z", 34: b'\\"', 39: b"\\'", 92: b"\\\\"}


def pieces_of(data: bytes, size: int) -> Iterator[bytes]:
    for begin in range(0, len(data), size):
        yield data[begin : begin + size]


def name(text: str) -> bytes:
    return b"`%s`" % text.replace("`", "``").encode()


def literal(value: bytes | None, style: int = 0) -> bytes:
    if value is None:
        return b"NULL"
    if style & HEXADECIMAL and value:
        return b"0x" + value.hex().encode()
    if style & DOUBLED:
        return b"'" + value.replace(b"\\", b"\\\\").replace(b"'", b"''") + b"'"
    return b"'" + b"".join(_ESCAPED.get(byte, bytes([byte])) for byte in value) + b"'"


def dump_of(tables: Mapping[str, Table], style: int = 0, charset: str = "utf8mb4") -> bytes:
    """Write the tables; ``style`` is a sum of the constants above."""
    return b"".join(lines_of(tables, style, charset))


def lines_of(tables: Mapping[str, Table], style: int = 0, charset: str = "utf8mb4") -> Iterable[bytes]:
    blank = b"\n  " if style & SPACED else b""
    yield b"-- MySQL dump 10.13\n/*!40101 SET NAMES %s */;\n" % charset.encode()
    for table, (columns, rows) in tables.items():
        defined = b",\n".join(b"  %s text" % name(column) for column in columns)
        yield b"CREATE TABLE %s (\n%s,\n  KEY (%s)\n);\n" % (name(table), defined, name(columns[0]))
        listed = b" (%s)" % b", ".join(map(name, columns)) if style & LISTED else b""
        insert = b"INSERT INTO %s%s VALUES " % (name(table), listed)
        written = [b"(%s)" % (b"," + blank).join(literal(value, style) for value in row) for row in rows]
        if style & BY_ROW:
            yield from (insert + row + b";\n" for row in written)
        elif written:
            yield insert + (b"," + blank).join(written) + b";\n"
    yield b"-- Dump completed on 2026-11-01 12:00:00\n"
