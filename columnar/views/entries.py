"""(pure) The contribution of a source row to a group, as bytes that can be compared with those of the stored member.

    given   the bytes of a member after its head (``model.contribution``): totals and amounts, order, carried columns

Two entries are the same if group, member and given are.  The sequence of a member is no part of it.

Knows nothing of stores.
"""

from __future__ import annotations

from columnar.model.contribution import packed_given, wrapped
from columnar.model.mutation import Contribute
from columnar.model.view_definition import MEMBERS, ORDERED
from columnar.views.contributions import Rules, Share


class Entries:
    """The bytes of a source's shares.  Constant."""

    __slots__ = ("_has_order", "_names", "_rules")

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._names = [family + b":" + qualifier for family, qualifier in rules.totals]
        self._has_order = rules.order is not None

    def given(self, share: Share) -> bytes:
        """As the member's bytes have it.  The share is no withdrawal."""
        assert share.amounts is not None, "what is withdrawn gives nothing"
        amounts = tuple(sorted(zip(self._names, map(wrapped, share.amounts), strict=True)))
        ordered = ORDERED if self._has_order and share.order is not None else b""
        return packed_given(amounts, ordered, share.order or b"", share.carry)

    def contribution(self, share: Share, sequence: tuple[int, int, int]) -> Contribute:
        """The operation that says the share as of the sequence."""
        order_family = ORDERED if self._has_order else b""
        return Contribute(
            MEMBERS, share.member, sequence, share.amounts, self._rules.totals, order_family, share.order, share.carry
        )

    def withdrawal(self, member: bytes, sequence: tuple[int, int, int]) -> Contribute:
        """The operation that says that the member gives nothing any more."""
        return Contribute(MEMBERS, member, sequence, None, self._rules.totals, ORDERED if self._has_order else b"")
