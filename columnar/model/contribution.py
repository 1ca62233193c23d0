r"""(pure) Contributions: the bytes of the members that record them, and the effect of a contribution on its member.

    member  := version:u8(1) kind:u8 origin:u64 epoch:u32 n:u64 applied_ms:u64
               count:u8 (total:u16-bytes amount:i64)* ordered:u8-bytes order:u16-bytes carried           big-endian
             | version:u8(2) kind:u8 origin:u64 epoch:u32 n:u64 part:u32 applied_ms:u64 count:u8 ...     part above 0
    kind    := 1 gives | 2 gone: a guard, which gives no amount and makes late contributions ineffective
    carried := count:u16 (column:u16-bytes value:u32-bytes)*

A member is the cell ``family:source``: it records what one source contributes to the totals of a row.  ``total`` is
the column of a total; the totals ascend.  ``ordered`` is the family of the source's ordered cell, or empty if the
source has no such cell.  The qualifier of an ordered cell is ``order 00 01 source``, the order escaped
(``key_parts``); the cell's value is ``carried``.

A member names its totals.  So if a source changes its set of totals, the old amounts are subtracted from exactly the
old totals; and a withdrawal need not name any total.

Invariants:
    I1. A contribution whose (sequence, part) is not above the member's has no effect.
    I2. A total changes by the difference between the member's present and previous amounts.  So after any history a
        total is the sum over the existing members, modulo 2^64 as HBase's counters wrap.

Knows nothing of cells and clocks: ``regions.write.contributions`` reads and writes them.
Golden bytes: tests/golden/test_contribution_golden.py; the page: docs/formats/contributions.md.
"""

from __future__ import annotations

import struct
from struct import Struct
from typing import Final

from columnar.errors import DamagedData, IllegalArgument, abbreviate
from columnar.model.key_parts import SEPARATOR, escaped
from columnar.model.mutation import Contribute

TOTALS: Final = 255  # of one contribution
CARRIED: Final = 1_000  # columns
ORDER_BYTES: Final = 32_767
GUARD_KINDS: Final = (b"\x01\x02", b"\x02\x02")  # the first bytes of a guard

_HEAD: Final = Struct(">BBQIQQB")  # to the count of totals
_PART_HEAD: Final = Struct(">BBQIQIQB")
_SEQUENCE: Final = Struct(">QIQ")
_SHORT: Final = Struct(">H")
_LONG: Final = Struct(">I")
_AMOUNT: Final = Struct(">q")
_VERSION: Final = 1
_WITH_PART: Final = 2
_GIVES: Final = 1
_GONE: Final = 2
_PLAIN: Final = bytes((_VERSION, _GIVES))
_WRAP: Final = 1 << 64
_LOWEST: Final = -(1 << 63)
_MOST: Final = ((1 << 64) - 1, (1 << 32) - 1, (1 << 64) - 1)
PARTS: Final = 1 << 32  # of one change
NAMES: Final = 256  # sets of totals whose packed names are cached
NAMES_BYTES: Final = 4_096  # the largest such set
_NOTHING_MORE: Final = bytes(5)  # the end of a member without an order and carried cells
_NO_AMOUNTS: Final = b"\0" + _NOTHING_MORE
_GUARD_BYTES: Final = _HEAD.size + len(_NOTHING_MORE)

Sequence = tuple[int, int, int]  # origin, epoch, n
Carried = tuple[tuple[bytes, bytes], ...]  # column, value


class Member:
    """The contribution of one source.  Constant; a plain class for speed: a contribution makes one or two members."""

    __slots__ = ("amounts", "applied_ms", "carried", "is_gone", "order", "ordered", "part", "sequence")

    def __init__(
        self,
        sequence: Sequence,
        applied_ms: int,
        is_gone: bool,
        amounts: tuple[tuple[bytes, int], ...],
        ordered: bytes = b"",
        order: bytes = b"",
        carried: Carried = (),
        part: int = 0,
    ) -> None:
        self.sequence = sequence
        self.applied_ms = applied_ms  # by the clock of the region that applied it
        self.is_gone = is_gone
        self.amounts = amounts  # column of the total, ascending; amount
        self.ordered = ordered  # the family of its ordered cell; empty if it has none
        self.order = order
        self.carried = carried
        self.part = part  # of the source's change at ``sequence``

    def _as_tuple(self) -> tuple[object, ...]:
        return (
            self.sequence, self.part, self.applied_ms, self.is_gone, self.amounts, self.ordered, self.order,
            self.carried,
        )  # fmt: skip

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Member) and other._as_tuple() == self._as_tuple()

    def __hash__(self) -> int:
        return hash(self._as_tuple())

    def __repr__(self) -> str:
        return f"Member{self._as_tuple()!r}"


# --- bytes -------------------------------------------------------------------------------------------


def pack(member: Member) -> bytes:
    kind = _GONE if member.is_gone else _GIVES
    count = len(member.amounts)
    if member.part:
        head = _PART_HEAD.pack(_WITH_PART, kind, *member.sequence, member.part, member.applied_ms, count)
    else:
        head = _HEAD.pack(_VERSION, kind, *member.sequence, member.applied_ms, count)
    return head[:-1] + packed_given(member.amounts, member.ordered, member.order, member.carried)


def packed_given(amounts: tuple[tuple[bytes, int], ...], ordered: bytes, order: bytes, carried: Carried) -> bytes:
    """Encode a member's amounts, order and carried cells: the bytes that ``given_bytes`` returns."""
    parts = [bytes((len(amounts),))]
    for total, amount in amounts:
        parts += [_SHORT.pack(len(total)), total, _AMOUNT.pack(amount)]
    parts += [bytes((len(ordered),)), ordered, _SHORT.pack(len(order)), order, pack_carried(carried)]
    return b"".join(parts)


def unpack(data: bytes) -> Member:
    """Decode a member.  Raises DamagedData if the bytes are no member, or one of a newer version."""
    try:
        if data[:1] == bytes((_WITH_PART,)):
            version, kind, origin, epoch, n, part, applied_ms, count = _PART_HEAD.unpack_from(data)
            at = _PART_HEAD.size
        else:
            version, kind, origin, epoch, n, applied_ms, count = _HEAD.unpack_from(data)
            at, part = _HEAD.size, 0
        if version not in (_VERSION, _WITH_PART) or kind not in (_GIVES, _GONE):
            raise DamagedData(f"a member of version {version}, kind {kind}; this program knows version {_WITH_PART}")
        amounts = []
        for _ in range(count):
            total, at = _short(data, at)
            amounts.append((total, int(_AMOUNT.unpack_from(data, at)[0])))
            at += _AMOUNT.size
        ordered, at = data[at + 1 : at + 1 + data[at]], at + 1 + data[at]
        order, at = _short(data, at)
        carried = unpack_carried(data[at:])
    except (struct.error, IndexError) as error:
        raise DamagedData(f"a member of {len(data)} bytes: {error}") from error
    return Member((origin, epoch, n), applied_ms, kind == _GONE, tuple(amounts), ordered, order, carried, part)


def pack_carried(carried: Carried) -> bytes:
    parts = [_SHORT.pack(len(carried))]
    for column, value in carried:
        parts += [_SHORT.pack(len(column)), column, _LONG.pack(len(value)), value]
    return b"".join(parts)


def unpack_carried(data: bytes) -> Carried:
    """Decode the value of an ordered cell.  Raises DamagedData if the bytes are no such value."""
    try:
        (count,), at, found = _SHORT.unpack_from(data), 2, []
        for _ in range(count):
            column, at = _short(data, at)
            (length,) = _LONG.unpack_from(data, at)
            found.append((column, data[at + 4 : at + 4 + length]))
            at += 4 + length
    except struct.error as error:
        raise DamagedData(f"carried cells of {len(data)} bytes: {error}") from error
    if at != len(data):
        raise DamagedData(f"carried cells: {at} bytes are said, {len(data)} are there")
    return tuple(found)


def _short(data: bytes, at: int) -> tuple[bytes, int]:
    (length,) = _SHORT.unpack_from(data, at)
    return data[at + 2 : at + 2 + length], at + 2 + length


def guard_made_ms(data: bytes) -> int | None:
    """Return the time at which the guard ``data`` was made, or None if the bytes are no guard."""
    try:
        member = unpack(data)
    except DamagedData:
        return None
    return member.applied_ms if member.is_gone else None


def order_qualifier(order: bytes, source: bytes) -> bytes:
    return escaped(order) + SEPARATOR + source


def split_order_qualifier(qualifier: bytes) -> tuple[bytes, bytes]:
    """Return order and source.  Raises DamagedData if the qualifier is not that of an ordered cell."""
    order, separator, source = qualifier.partition(SEPARATOR)
    if not separator or order.count(b"\0") != order.count(b"\0\xff"):
        raise DamagedData(f"{abbreviate(qualifier)} is the qualifier of no ordered cell")
    return order.replace(b"\0\xff", b"\0"), source


# --- members of the plain form: known totals, no order, no carried columns, no part ---------------------


class Names:
    """The columns of a set of totals, prepared for packing and reading members.  Constant."""

    __slots__ = ("_amounts", "_end", "_heads", "_is_sorted", "columns")

    def __init__(self, totals: tuple[tuple[bytes, bytes], ...]) -> None:
        """Prepare the columns of ``totals``, at least one and each once."""
        columns = [family + b":" + qualifier for family, qualifier in totals]
        self.columns = tuple(sorted(columns))
        self._is_sorted = list(self.columns) == columns
        heads = [_SHORT.pack(len(column)) + column for column in self.columns]
        heads[0] = bytes((len(heads),)) + heads[0]
        at = _HEAD.size - 1
        self._heads: list[tuple[bytes, int, int]] = []  # bytes before an amount, their offset, the index in ``totals``
        for column, head in zip(self.columns, heads, strict=True):
            self._heads.append((head, at, columns.index(column)))
            at += len(head) + _AMOUNT.size
        self._end = at
        self._amounts = Struct(">" + "".join([f"{len(head)}xq" for head in heads]))

    def ordered(self, amounts: tuple[int, ...]) -> tuple[int, ...]:
        """Return ``amounts`` in the order of ``columns``, each wrapped to a signed 64-bit number."""
        assert len(amounts) == len(self._heads), "an amount for each total"
        for amount in amounts:
            if not _LOWEST <= amount < -_LOWEST:
                amounts = tuple([wrapped(one) for one in amounts])
                break
        return amounts if self._is_sorted else tuple([amounts[place] for _, _, place in self._heads])

    def pack(self, sequence: Sequence, applied_ms: int, amounts: tuple[int, ...]) -> bytes:
        """Encode the member that gives these amounts, which are in the order that ``ordered`` returns."""
        parts = [_HEAD.pack(_VERSION, _GIVES, *sequence, applied_ms, 0)[:-1]]
        for (head, _, _), amount in zip(self._heads, amounts, strict=True):
            parts.append(head)
            parts.append(_AMOUNT.pack(amount))
        parts.append(_NOTHING_MORE)
        return b"".join(parts)

    def amounts_in(self, data: bytes) -> tuple[int, ...] | None:
        """Return the amounts that the member gives to ``columns``, or None if the member has a different form."""
        end = self._end
        if len(data) != end + len(_NOTHING_MORE) or data[end:] != _NOTHING_MORE or data[:2] != _PLAIN:
            return None
        for head, at, _ in self._heads:
            if data[at : at + len(head)] != head:
                return None
        amounts: tuple[int, ...] = self._amounts.unpack_from(data, _HEAD.size - 1)
        return amounts


_names: Final[dict[tuple[tuple[bytes, bytes], ...], Names]] = {}  # at most NAMES


def names_of(totals: tuple[tuple[bytes, bytes], ...]) -> Names | None:
    """Return the prepared columns of these totals.

    Returns None if there are no totals, if one occurs twice, or if they are too many or too long to cache.
    """
    held = _names.get(totals)
    if held is not None:
        return held
    size = sum([len(family) + len(qualifier) for family, qualifier in totals])
    if not 0 < size <= NAMES_BYTES or len(set(totals)) != len(totals) or len(totals) > TOTALS:
        return None
    if len(_names) >= NAMES:
        _names.clear()
    names = _names[totals] = Names(totals)
    return names


def is_plain_guard(data: bytes) -> bool:
    return len(data) == _GUARD_BYTES and data[:2] == GUARD_KINDS[0] and data[_HEAD.size - 1 :] == _NO_AMOUNTS


def pack_plain_guard(sequence: Sequence, applied_ms: int) -> bytes:
    return _HEAD.pack(_VERSION, _GONE, *sequence, applied_ms, 0) + _NOTHING_MORE


def plain_sequence(data: bytes) -> Sequence:
    """Return the sequence of a member or guard of the plain form."""
    origin, epoch, n = _SEQUENCE.unpack_from(data, 2)
    return origin, epoch, n


# --- what a contribution does --------------------------------------------------------------------------


def follow(held: Member | None, said: Contribute, now_ms: int) -> Member | None:
    """Return the member after the contribution, or None if the contribution has no effect (I1)."""
    if held is not None and (said.sequence, said.part) <= (held.sequence, held.part):
        return None
    if said.amounts is None:
        return Member(said.sequence, now_ms, True, (), part=said.part)
    ordered = said.order_family if said.order is not None else b""
    names = names_of(said.totals) if held is None or not said.relative else None
    if names is not None:
        named = tuple(zip(names.columns, names.ordered(said.amounts), strict=True))
        return Member(said.sequence, now_ms, False, named, ordered, said.order or b"", said.carry, said.part)
    columns = [family + b":" + qualifier for family, qualifier in said.totals]
    amounts = dict(zip(columns, said.amounts, strict=True))
    if said.relative and held is not None:
        amounts = {**dict(held.amounts), **{one: amounts[one] + amount_of(held, one) for one in columns}}
    given = tuple(sorted((one, wrapped(amount)) for one, amount in amounts.items()))
    return Member(said.sequence, now_ms, False, given, ordered, said.order or b"", said.carry, said.part)


def amount_of(member: Member, total: bytes) -> int:
    for name, amount in member.amounts:
        if name == total:
            return amount
    return 0


def differences(held: Member | None, member: Member) -> list[tuple[bytes, int]]:
    """Return the totals that change and the amount to add to each (I2)."""
    if held is None:
        return [one for one in member.amounts if one[1]]
    if held.amounts == member.amounts:
        return []
    found = dict(member.amounts)
    for total, amount in held.amounts:
        found[total] = wrapped(found.get(total, 0) - amount)
    return [(total, difference) for total, difference in found.items() if difference]


def wrapped(amount: int) -> int:
    """Return the amount wrapped to a signed 64-bit number, as Java's ``long`` wraps."""
    return (amount - _LOWEST) % _WRAP + _LOWEST


# --- checks ------------------------------------------------------------------------------------------


def checked(said: Contribute) -> Contribute:
    """Return ``said`` unchanged.  Raises IllegalArgument if a field is invalid or could not be stored exactly."""
    totals, amounts = said.totals, said.amounts
    if not said.source:
        raise IllegalArgument("a contribution names its source; an empty name is none")
    if amounts is None and said.relative:
        raise IllegalArgument("a contribution that withdraws is not relative; say its amounts, or leave relative out")
    if amounts is not None and (len(amounts) != len(totals) or not totals):
        raise IllegalArgument(f"a contribution gives one amount to each total, not {len(amounts)} to {len(totals)}")
    if len(totals) > TOTALS or len(set(totals)) != len(totals):
        raise IllegalArgument(f"a contribution names at most {TOTALS} totals, each once")
    if any(not _LOWEST <= amount < -_LOWEST for amount in amounts or ()):
        raise IllegalArgument("an amount of a contribution is a signed number of 64 bits")
    if any(not 0 <= number <= most for number, most in zip(said.sequence, _MOST, strict=True)):
        raise IllegalArgument(f"the sequence of a contribution is origin, epoch and n, unsigned, not {said.sequence}")
    if not 0 <= said.part < PARTS:
        raise IllegalArgument(f"the part of a contribution has 32 bits, unsigned; {said.part} is none")
    if said.order is not None and (not said.order_family or len(said.order) > ORDER_BYTES):
        raise IllegalArgument(f"an order of a contribution has a family, and at most {ORDER_BYTES} bytes")
    families = [said.family, *{family for family, _ in totals}, *((said.order_family,) if said.order_family else ())]
    if len(set(families)) != len(families):
        raise IllegalArgument(
            f"members, totals and ordered cells stand in families of their own; {abbreviate(said.family)} holds members"
        )
    names = [column for column, _ in said.carry] + [family + b":" + qualifier for family, qualifier in totals]
    if len(said.carry) > CARRIED or any(len(name) > ORDER_BYTES for name in names):
        raise IllegalArgument(f"a contribution carries at most {CARRIED} columns, of {ORDER_BYTES} bytes each")
    return said


def given_bytes(data: bytes) -> bytes:
    """Return the bytes of a member after its head: members that give the same amounts differ only in their heads."""
    head = _PART_HEAD if data[:1] == bytes((_WITH_PART,)) else _HEAD
    return data[head.size - 1 :]
