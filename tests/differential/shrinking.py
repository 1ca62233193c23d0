"""The fewest calls after which the two still differ: the calls of one table, cut by halves (ddmin), on fresh tables.

Calls stay in their order.  An opening and the calls on its scanner stay together; the making of the table and the
call that differed always stay.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

from tests.differential.calls import Call, Scanner, renamed
from tests.differential.comparison import compare
from tests.differential.endpoint import Endpoint

_READS = ("get", "isTable", "compact", "majorCompact")
_fresh = itertools.count()


def of_one_table(calls: list[Call]) -> list[Call]:
    """What the last call can depend on: calls of its table since that was made, without reads."""
    last = calls[-1]
    table_of = {call.opens: call.table for call in calls if call.opens}
    table = table_of.get(last.scanner) if last.scanner else last.table
    kept = []
    for call in calls[:-1]:
        if call.scanner != last.scanner if call.scanner else (call.table != table or call.method.startswith(_READS)):
            continue
        if call.opens and call.opens != last.scanner:
            continue
        if call.method == "createTable" and call.kind == "tables":
            kept.clear()
        kept.append(call)
    return [*kept, last]


class Shrinker:
    def __init__(self, reference: Endpoint, ours: Endpoint, prefix: bytes, *, strict: bool, tries: int = 60) -> None:
        self._reference = reference
        self._ours = ours
        self._prefix = prefix
        self._strict = strict
        self._left = tries

    def shrink(self, calls: list[Call], told: Callable[[str], None] = lambda _: None) -> list[Call] | None:
        """``calls`` end with the one that differed; None where it does not differ again."""
        calls = of_one_table(calls)
        if not self._differs(calls):
            return None
        head, tail = self._fixed(calls)
        groups = _groups(calls[len(head) : len(calls) - len(tail)])
        parts = 2
        while groups and self._left > 0:
            size = max(1, len(groups) // parts)
            for start in range(0, len(groups), size):
                fewer = groups[:start] + groups[start + size :]
                if self._differs([*head, *itertools.chain(*fewer), *tail]):
                    groups, parts = fewer, max(2, parts - 1)
                    told(f"{len(groups)} groups of calls left")
                    break
            else:
                if size == 1:
                    break
                parts = min(len(groups), parts * 2)
        return [*head, *itertools.chain(*groups), *tail]

    @staticmethod
    def _fixed(calls: list[Call]) -> tuple[list[Call], list[Call]]:
        head = calls[:1] if calls[0].method == "createTable" else []
        scanner = calls[-1].scanner
        opened = next((n for n, call in enumerate(calls) if call.opens and call.opens == scanner), len(calls) - 1)
        return head, calls[opened:] if scanner else calls[-1:]

    def _differs(self, calls: list[Call]) -> bool:
        """Whether the last one does, on tables of their own."""
        if self._left <= 0:
            return False
        self._left -= 1
        names = {call.table for call in calls if call.table}
        made = {name: self._prefix + b"s%d" % next(_fresh) for name in names}
        again = [renamed(call, made) for call in calls]
        found = compare(again, self._reference, self._ours, strict=self._strict, most=len(again))
        for endpoint in (self._reference, self._ours):
            for name in made.values():
                endpoint.drop_tables(name)
        return any(one.number == len(again) - 1 for one in found.differences)


def _groups(calls: list[Call]) -> list[list[Call]]:
    groups: list[list[Call]] = []
    of_scanner: dict[Scanner, list[Call]] = {}
    for call in calls:
        scanner = call.scanner or call.opens
        if scanner in of_scanner:
            of_scanner[scanner].append(call)
            continue
        groups.append([call])
        if scanner:
            of_scanner[scanner] = groups[-1]
    return groups
