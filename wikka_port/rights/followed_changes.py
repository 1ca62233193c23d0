"""Changes since a place, the oldest first: edits, renames, deletions and undeletions, as a visitor may know of them.

A name in a move is shown to who may read a page of that name that has the moved page's own list: the present one, or
if the page is there no more, that of its last move, which the journal keeps.  A rename to a name that the visitor may
not know is a deletion for him; a rename from such a name tells him only the new one.  The reason of such a rename may
have the other name, so he does not learn it either.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import islice
from typing import Final

from wikka_port import schema
from wikka_port.limits import LISTED_QUICK, LISTED_SCANNED, LISTED_STEP
from wikka_port.listings import ChangeKind, RecentChange
from wikka_port.maintenance import LISTING
from wikka_port.moving.journal import DELETE, UNDELETE, Move
from wikka_port.moving.moved_list import DecidedMove, last_moves, moves_since
from wikka_port.names import page_key
from wikka_port.page_rows import head_of, is_there
from wikka_port.pages import Wiki
from wikka_port.rights.access import PageAccess
from wikka_port.rights.rules import FAMILY, PageRights, Privilege, page_rights

_COLUMNS: Final = (FAMILY, schema.OWNER, schema.VERSIONCOUNT)
_Placed = tuple[bytes, RecentChange | DecidedMove]


@dataclass(frozen=True, slots=True)
class FollowedChanges:
    changes: list[RecentChange]  # the oldest first
    place: bytes  # to go on after
    more: bool
    is_visible: bool  # whether the place is that of the last of the changes; else it may be that of a hidden page


class Followed:
    """The changes of a wiki for one visitor.  An object serves one request.  Methods may raise StoreUnavailable."""

    __slots__ = ("_access", "_before_expensive_read", "_wiki")

    def __init__(
        self, wiki: Wiki, access: PageAccess, before_expensive_read: Callable[[], object] = lambda: None
    ) -> None:
        self._wiki = wiki
        self._access = access
        self._before_expensive_read = before_expensive_read

    def lag_ms(self) -> int:
        """Return for how long the oldest change has waited for the trigger that lists it; 0 without triggers."""
        lags = [one.lag_s for one in self._wiki.maintenance.triggers() if one.name == LISTING]
        return int(max(lags, default=0.0) * 1000)

    def since(self, place: bytes, *, limit: int, decided_ms: int = 0) -> FollowedChanges:
        """Return changes after ``place``; moves of up to ``decided_ms`` that are not decided are finished.

        At most LISTED_SCANNED changes are read, unless ``limit`` is more.  Costs two or three calls for a step of
        them, and if there are moves that may have to be hidden, three more.
        """
        shown: list[RecentChange] = []
        last, looked, step = place, 0, limit
        while True:
            found, onward = self._step(place, step, decided_ms)
            for number, (at, change) in enumerate(self._readable(found), 1):
                if change is not None:
                    shown.append(change)
                    last = at
                if len(shown) == limit:
                    return FollowedChanges(shown, last, bool(onward) or number < len(found), is_visible=True)
            if not onward:
                return FollowedChanges(shown, last, False, is_visible=bool(shown))
            place, looked, step = onward, looked + step, LISTED_STEP
            if looked >= max(limit, LISTED_SCANNED):
                return FollowedChanges(shown, place, True, is_visible=place == last)
            if looked > LISTED_QUICK:
                self._before_expensive_read()

    def _step(self, place: bytes, limit: int, decided_ms: int) -> tuple[list[_Placed], bytes]:
        """Return the next ``limit`` changes, and the place to go on after, b"" at the end."""
        edits, more = self._wiki.changes_since(place, limit=limit)
        finish = self._wiki.mover.finish
        moves, onward = moves_since(self._wiki.rows, place, limit=limit, decided_ms=decided_ms, finish=finish)
        # Beyond the end of a list that goes on, the other one has changes that come later.
        ends = [*([edits[-1][0]] if more else []), *([onward] if onward else [])]
        end = max(ends, default=b"")
        placed: list[list[_Placed]] = [[(one.place, one) for one in moves], list(edits)]
        merged = merge(*placed, key=lambda one: one[0], reverse=True)
        found = [one for one in islice(merged, limit + 1) if one[0] >= end]
        if len(found) > limit:
            return found[:limit], found[limit - 1][0]
        return found, end

    def _readable(self, found: Sequence[_Placed]) -> list[tuple[bytes, RecentChange | None]]:
        """Return for each change what the visitor may know of it, or None."""
        kept = self._access.listed(one.name for _, one in found if isinstance(one, RecentChange))
        rights = self._rights_of([one for _, one in found if isinstance(one, DecidedMove)])
        return [
            (at, (one if one.name in kept else None))
            if isinstance(one, RecentChange)
            else (at, self._move_for(one.move, rights.get(one.move.history)))
            for at, one in found
        ]

    def _rights_of(self, moves: Collection[DecidedMove]) -> dict[bytes, PageRights]:
        """Return the rights of the moved pages by history; none for somebody who may read every page."""
        if not moves or self._access.sees_all():
            return {}
        newest = {one.move.history: one for one in moves}
        rights = self._there([one.move for one in newest.values()])
        left = [history for history in newest if history not in rights]
        newest |= last_moves(self._wiki.rows, left)
        rights |= self._there([newest[history].move for history in left])
        return {history: rights.get(history, one.rights) for history, one in newest.items()}

    def _there(self, moves: Collection[Move]) -> dict[bytes, PageRights]:
        """Return the rights of those pages that have the names that they got by the moves."""
        keys = {one.history: page_key(one.target) for one in moves}
        rows = self._wiki.rows.rows(schema.PAGES, sorted(set(keys.values())), _COLUMNS)
        found = {}
        for history, key in keys.items():
            row = rows.get(key, {})
            if is_there(row) and head_of(row).place(key) == history:
                found[history] = page_rights(row, row.get(schema.OWNER, b""))
        return found

    def _move_for(self, move: Move, rights: PageRights | None) -> RecentChange | None:
        """Return what the visitor may know of a move of a page of these ``rights``; None: he may read every page."""
        is_old_seen = rights is None or self._may_read(move.source, rights)
        is_new_seen = rights is None or self._may_read(move.target, rights)
        if move.kind == DELETE:
            return _change(move, "deleted", move.source, note=move.reason) if is_old_seen else None
        if move.kind == UNDELETE:
            return _change(move, "restored", move.target, note=move.reason) if is_new_seen else None
        if is_old_seen and is_new_seen:
            return _change(move, "renamed", move.target, former=move.source, note=move.reason)
        if is_old_seen:
            return _change(move, "deleted", move.source)
        return _change(move, "renamed", move.target) if is_new_seen else None

    def _may_read(self, name: str, rights: PageRights) -> bool:
        return bool(self._access.decide(name, rights, True, Privilege.READ))


def _change(move: Move, kind: ChangeKind, name: str, *, former: str = "", note: str = "") -> RecentChange:
    number = move.head.number
    given = (name, number, move.at_ms, move.by, note, False, move.signed)
    return RecentChange(*given, kind=kind, former=former)
