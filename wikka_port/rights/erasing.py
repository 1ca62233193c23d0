"""Erasing within one visitor's rights: the entry point of ``files.erasing`` and ``moving.erasing`` for handlers.

Only administrators erase.  The audit gets its line before anything goes.

An object serves one request.
"""

from __future__ import annotations

from wikka_port.accounts.audit import Audit
from wikka_port.files.erasing import Erased, Erasure
from wikka_port.limits import REASON_CHARS_MAX
from wikka_port.moving.erasing import erase_revision
from wikka_port.moving.mover import By
from wikka_port.names import normalise
from wikka_port.pages import clock_ms
from wikka_port.rights.moving import GuardedMoves


class GuardedErasure:
    """Every method may raise NotAllowed, InvalidName and StoreUnavailable."""

    def __init__(self, moves: GuardedMoves) -> None:
        self._moves = moves
        self._audit = Audit(moves.rows, clock_ms)

    def erase_revision(self, name: str, number: int, *, reason: str = "") -> None:
        """Erase a revision for good.  Raises NotMoved."""
        self._moves.require_site()
        name = normalise(name)
        self._note("erase revision", f"{name}: revision {number}. {reason}")
        wiki = self._moves.wiki
        erase_revision(lambda: wiki.store, wiki.mover, name, number)

    def erase_file(self, name: str, file: str, number: int, *, reason: str = "") -> Erased:
        """Erase a version of a file for good.  Raises FileRefused."""
        self._moves.require_site()
        name = normalise(name)
        self._note("erase file version", f"{name}: {file}, version {number}. {reason}")
        visitor, wiki = self._moves.visitor, self._moves.wiki
        by = By(visitor.signature, visitor.signed, reason[:REASON_CHARS_MAX])
        return Erasure(wiki.files, wiki.rows).erase(name, file, number, by, allow=lambda _page, _rights: None)

    def _note(self, what: str, note: str) -> None:
        self._audit.note(what, user="", by=self._moves.visitor.name or "", note=note)
