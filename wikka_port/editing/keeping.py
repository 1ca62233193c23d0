"""Drafts in the store: kept, found again by their owner, thrown away; and who is writing a page right now.

Rules:
    D1. A draft is read and thrown away by its owner alone; ``owners`` takes the owner from the session or a cookie.
    D2. ``keep`` returns only after the store's answer.
    D3. An owner has at most KEPT_PER_PAGE drafts of a page; another one displaces the one that was kept longest ago.

The entry point of this module is ``rights.guarded``, which says who may edit the page.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from wikka_port.accounts.rows import Rows
from wikka_port.editing.rows import AT, DRAFTS, KeptDraft, draft_row, owner_in, pack, prefix, unpack
from wikka_port.limits import KEPT_PER_PAGE, PRESENT_DRAFTS_SCANNED, PRESENT_MS


@dataclass(frozen=True, slots=True)
class Other:
    """Somebody else who is writing."""

    name: str
    since_ms: int


class Drafts:
    """Thread-safe.  Everything may raise StoreUnavailable and InvalidName."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def keep(self, name: str, draft: KeptDraft) -> KeptDraft:
        """``draft`` as it stands in the store now; a spell of writing that continues keeps its beginning."""
        own = {one.id: one for one in self._found(prefix(name, draft.owner), 2 * KEPT_PER_PAGE)}
        before = own.pop(draft.id, None)
        if before is not None and draft.time_ms - before.time_ms < PRESENT_MS:
            draft = replace(draft, since_ms=before.since_ms)
        self._rows.put(DRAFTS, draft_row(name, draft.owner, draft.id), pack(draft))
        surplus = len(own) + 1 - KEPT_PER_PAGE
        for one in sorted(own.values(), key=lambda one: one.time_ms)[: max(0, surplus)]:
            self.delete_draft(name, draft.owner, one.id)
        return draft

    def is_kept(self, name: str, owner: str, draft_id: str) -> bool:
        return bool(self._rows.row(DRAFTS, draft_row(name, owner, draft_id), (AT,)))

    def own(self, name: str, owners: Collection[str]) -> list[KeptDraft]:
        """Return the drafts of ``owners`` with their texts, the newest first; of two with the same id the newer one."""
        wanted = [
            draft_row(name, owner, one.id)
            for owner in owners
            for one in self._found(prefix(name, owner), 2 * KEPT_PER_PAGE)
        ]
        read = (unpack(row, cells) for row, cells in self._rows.rows(DRAFTS, wanted).items())
        found: dict[str, KeptDraft] = {}
        for one in sorted((one for one in read if one is not None), key=lambda one: -one.time_ms):
            if one.text is not None:
                found.setdefault(one.id, one)
        return list(found.values())

    def delete_draft(self, name: str, owner: str, draft_id: str) -> None:
        self._rows.delete(DRAFTS, draft_row(name, owner, draft_id))

    def others(self, name: str, owners: Collection[str], now_ms: int) -> list[Other]:
        """Return the owners of drafts kept within PRESENT_MS, but for ``owners``; in the order in which they began."""
        found: dict[str, KeptDraft] = {}
        for one in self._found(prefix(name), PRESENT_DRAFTS_SCANNED):
            if one.owner in owners or not one.who or now_ms - one.time_ms >= PRESENT_MS:
                continue
            known = found.get(one.owner)
            if known is None or one.since_ms < known.since_ms:
                found[one.owner] = one
        return [Other(one.who, one.since_ms) for one in sorted(found.values(), key=lambda one: one.since_ms)]

    def forget(self, owner: str) -> int:
        """Throw away all that ``owner`` kept; how many.  O(all drafts)."""
        count = 0
        for row, _ in self._rows.scan(DRAFTS, columns=(AT,)):
            if owner_in(row) == owner:
                self._rows.delete(DRAFTS, row)
                count += 1
        return count

    def _found(self, start: bytes, most: int) -> Iterator[KeptDraft]:
        """Drafts whose rows begin with ``start``, without their texts."""
        for row, cells in self._rows.scan(DRAFTS, start, columns=(AT,), limit=most):
            if not row.startswith(start):
                return
            one = unpack(row, cells)
            if one is not None:
                yield one
