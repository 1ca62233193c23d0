"""(pure) Finds the end of an unframed message in one pass, in however many pieces the message arrives.

An unframed message does not state its length; it ends with its outermost struct.  A walker goes from value to value.
It keeps its position and the enclosing structs and containers, and continues from there when more bytes have arrived,
so each byte is walked only once.  It builds no objects and trusts no length: a string's length only gives the position
to wait for.

The state is a stack.  An entry of None is a struct whose next field header begins at ``pos``.  A list ``[left, types]``
is a container with ``left`` values to come, whose types are taken from ``types`` alternately.  A map has an even number
of values, so an even ``left`` means that a key is next.

Knows nothing of methods and of bounds in bytes; ``framing`` checks ``pos`` for these.
"""

from __future__ import annotations

from typing import Final

from columnar.wire import codec_binary as binary
from columnar.wire import codec_compact as compact
from columnar.wire.faults import Malformed, Short

Buffer = bytes | bytearray
STEPS: Final = 20_000  # values walked in one loop iteration: some 10 ms


class Walker:
    """Walks one argument struct that begins at ``pos``; ``pos`` counts from the start of the buffer."""

    def __init__(self, pos: int) -> None:
        self.pos = pos
        self._stack: list[list[object] | None] = [None]

    @property
    def done(self) -> bool:
        return not self._stack

    def forget(self, count: int) -> None:
        """Adjust positions after the first ``count`` bytes of the buffer, all of them walked, were dropped."""
        self.pos -= count

    def walk(self, buf: Buffer, steps: int = STEPS) -> bool:
        """Walk to the end of the received bytes.  Returns False if ``steps`` were used up first.

        Afterwards ``done`` says whether the message's end was found.  Raises Malformed.
        """
        end = len(buf)
        stack = self._stack
        try:
            for _ in range(steps):
                if not stack:
                    return True
                if self.pos > end:
                    raise Short
                inside = stack[-1]
                if inside is None:
                    self._field(buf, end)
                else:
                    self._element(buf, end, inside)
        except Short:
            return True
        return self.done

    def _element(self, buf: Buffer, end: int, inside: list[object]) -> None:
        left, kinds = inside
        assert isinstance(left, int)
        assert isinstance(kinds, tuple)
        if not left:
            self._stack.pop()
            return
        kind = kinds[left % len(kinds)]
        inside[0] = left - 1
        try:
            self._value(buf, self.pos, end, kind)
        except Short:
            inside[0] = left
            raise

    def _enter(self, pos: int, entry: list[object] | None) -> None:
        if len(self._stack) > binary.DEPTH:
            raise Malformed(f"nested deeper than {binary.DEPTH}")
        self._stack.append(entry)
        self.pos = pos

    def _field(self, buf: Buffer, end: int) -> None:
        raise NotImplementedError

    def _value(self, buf: Buffer, pos: int, end: int, kind: int) -> None:
        """Walk over the value of type ``kind``.  Must leave the state unchanged if it raises Short."""
        raise NotImplementedError


class BinaryWalker(Walker):
    def _field(self, buf: Buffer, end: int) -> None:
        pos = self.pos
        if pos >= end:
            raise Short
        kind = buf[pos]
        if kind == binary.STOP:
            self._stack.pop()
            self.pos = pos + 1
        else:
            self._value(buf, pos + 3, end, kind)

    def _value(self, buf: Buffer, pos: int, end: int, kind: int) -> None:
        width = binary.WIDTHS.get(kind)
        if width is not None:
            self.pos = pos + width
        elif kind == binary.STRING:
            if end - pos < 4:
                raise Short
            self.pos = pos + 4 + int.from_bytes(buf[pos : pos + 4], "big")
        elif kind == binary.STRUCT:
            self._enter(pos, None)
        elif kind in (binary.LIST, binary.SET, binary.MAP):
            self._container(buf, pos, end, 2 if kind == binary.MAP else 1)
        else:
            raise Malformed(f"unknown type {kind}")

    def _container(self, buf: Buffer, pos: int, end: int, types: int) -> None:
        if end - pos < types + 4:
            raise Short
        kinds = tuple(buf[pos : pos + types])
        pos += types
        count = int.from_bytes(buf[pos : pos + 4], "big")
        widths = [binary.WIDTHS.get(kind) for kind in kinds]
        if None in widths:
            self._enter(pos + 4, [count * types, kinds])
        else:
            self.pos = pos + 4 + count * sum(width or 0 for width in widths)


class CompactWalker(Walker):
    """Walks the compact protocol.  Field ids are relative to the previous field's, which skipping does not need."""

    def _field(self, buf: Buffer, end: int) -> None:
        pos = self.pos
        if pos >= end:
            raise Short
        head = buf[pos]
        pos += 1
        if not head:
            self._stack.pop()
            self.pos = pos
            return
        if not head >> 4:
            _, pos = compact.varint(buf, pos, end, 3)
        kind = head & 0x0F
        if kind in (compact.C_TRUE, compact.C_FALSE):
            self.pos = pos
        else:
            self._value(buf, pos, end, kind)

    def _value(self, buf: Buffer, pos: int, end: int, kind: int) -> None:
        if not kind:
            raise Malformed("a value of no type")
        if kind <= compact.C_BYTE:
            self.pos = pos + 1
        elif kind <= compact.C_I64:
            _, self.pos = compact.varint(buf, pos, end)
        elif kind == compact.C_DOUBLE:
            self.pos = pos + 8
        elif kind == compact.C_BINARY:
            length, pos = compact.varint(buf, pos, end, 5)
            self.pos = pos + length
        elif kind == compact.C_STRUCT:
            self._enter(pos, None)
        elif kind in (compact.C_LIST, compact.C_SET):
            element, count, pos = compact.list_head(buf, pos, end)
            self._enter(pos, [count, (element,)])
        elif kind == compact.C_MAP:
            key, value, count, pos = compact.map_head(buf, pos, end)
            self._enter(pos, [count * 2, (key, value)])
        else:
            raise Malformed(f"unknown compact type {kind}")
