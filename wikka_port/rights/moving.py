"""Renaming and deleting within one visitor's rights: the entry point of ``moving`` for handlers.

Each check uses the rights that the step itself finds in the page's row, and the step fails if these change.  A rename
that would put a page under a different list for reading needs the right to change its rights, since the page's history
moves along.

An object serves one request, or one job.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from wikka_port.accounts.audit import Audit
from wikka_port.accounts.rows import Rows
from wikka_port.limits import DELETED_PAGES_SCANNED, REASON_CHARS_MAX
from wikka_port.maintenance import Maintenance
from wikka_port.markup.links import redirect_target
from wikka_port.moving.erasing import check_not_erased
from wikka_port.moving.journal import Deleted, Move, deleted, one_deleted
from wikka_port.moving.mover import Allow, By
from wikka_port.moving.refusals import NotDeleted, NothingThere, NotMoved, OtherPage
from wikka_port.names import normalise, page_key
from wikka_port.page_rows import Page, head_of, is_there
from wikka_port.pages import Saved, Wiki, clock_ms
from wikka_port.rights.judging import Decision, NotAllowed
from wikka_port.rights.rules import (
    NO_RIGHTS,
    PageRights,
    Privilege,
    RightsChange,
    effective,
    pack_former,
    page_rights,
    parse_former,
)
from wikka_port.rights.stored import RightsChanged
from wikka_port.schema import OWNER
from wikka_port.texts import _, _w
from wikka_port.visitors import Visitor

_TRIES: Final = 3
Decide = Callable[[str, PageRights, bool, Privilege], Decision]


class GuardedMoves:
    """Moves of pages within one visitor's rights; implements ``moving.mass.Hands``."""

    def __init__(self, wiki: Wiki, visitor: Visitor, decide: Decide, job: bytes = b"") -> None:
        """``job`` is the job in which the pages are moved."""
        self.visitor = visitor
        self.wiki = wiki
        self._decide = decide
        self._job = job
        self._audit = Audit(wiki.rows, clock_ms)

    def of_job(self, job: bytes) -> GuardedMoves:
        return GuardedMoves(self.wiki, self.visitor, self._decide, job)

    @property
    def rows(self) -> Rows:
        return self.wiki.rows

    def _by(self, reason: str) -> By:
        return By(self.visitor.signature, self.visitor.signed, reason[:REASON_CHARS_MAX], self._job)

    def _allow(self, name: str, privilege: Privilege, exists: bool = True) -> Allow:
        def allow(rights: PageRights) -> None:
            decision = self._decide(name, rights, exists, privilege)
            if not decision:
                raise NotAllowed(name, privilege, decision)

        return allow

    def require_site(self) -> None:
        """Raise NotAllowed if the visitor is no administrator."""
        self._allow("", Privilege.ADMINISTER)(NO_RIGHTS)

    def maintenance(self) -> Maintenance:
        """Return the wiki's triggers and tables.  Raises NotAllowed if the visitor is no administrator."""
        self.require_site()
        return self.wiki.maintenance

    # --- moves -------------------------------------------------------------------------------------

    def rename(
        self,
        name: str,
        new: str,
        *,
        redirect: bool,
        reason: str = "",
        history: bytes = b"",
        newest: tuple[int, str] | None = None,
    ) -> Move:
        """Rename a page, which ``history`` and ``newest`` identify (``Mover.rename``).

        Raises NotAllowed, NotMoved, InvalidName.
        """
        source, target = normalise(name), normalise(new)
        over = self._allow(target, Privilege.WRITE, exists=False)
        if not history:  # else it is a name that the page had before
            self._check_no_group(target)
        return self.wiki.mover.rename(
            source,
            target,
            self._by(reason),
            redirect=redirect,
            allow=self._allow_rename(source, target),
            over=over,
            history=history,
            newest=newest,
        )

    def _check_no_group(self, name: str) -> None:
        """Raise NotMoved if lists mean a group by the name, unless the visitor is an administrator."""
        if not (self.visitor.admin and self.visitor.is_active) and self.wiki.rights.means_group(name):
            said = _("Lists of rights mean a group by {name}: an administrator can make the page.", name=name)
            raise NotMoved(name, said)

    def _allow_rename(self, source: str, target: str) -> Allow:
        def allow(rights: PageRights) -> None:
            self._allow(source, Privilege.RENAME)(rights)
            rules = self.wiki.rights.rules()
            before = effective(source, rights, rules, Privilege.READ)[0]
            if effective(target, rights, rules, Privilege.READ)[0].text != before.text:
                self._allow(source, Privilege.CHANGE_RIGHTS)(rights)

        return allow

    def delete(self, name: str, reason: str, *, newest: tuple[int, str] | None = None) -> Move:
        """Delete a page, which ``newest`` identifies (``Mover.rename``).  Raises NotAllowed, NotMoved, InvalidName."""
        allow = self._allow(normalise(name), Privilege.DELETE)
        move = self.wiki.mover.delete(name, self._by(reason), allow=allow, newest=newest)
        self._note("delete page", move.source, reason)
        return move

    def undelete(self, one: Deleted, new: str = "") -> Move:
        """Bring back a deleted page, under its own name or ``new``.  Raises NotAllowed, NotMoved, InvalidName."""
        target = normalise(new) if new else one.name
        if target != one.name:
            self._check_no_group(target)
        over = self._allow(target, Privilege.WRITE, exists=False)
        allow = self._allow(one.name, Privilege.DELETE)
        move = self.wiki.mover.undelete(one.name, one.row, self._by(""), new=target, allow=allow, over=over)
        self._note("undelete page", one.name, "")
        return move

    def purge(self, one: Deleted) -> int:
        """Erase a deleted page; the audit gets its line first.  Raises NotAllowed, NotMoved."""
        self.require_site()
        self._note("purge page", one.name, f"{one.number} revisions")
        return self.wiki.mover.purge(one.name, one.row, self._by(""))

    def hide(self, name: str, number: int, *, hidden: bool, reason: str = "") -> None:
        """Hide a revision, or show it again.  Raises NotAllowed, NotMoved."""
        self.require_site()
        name = normalise(name)
        if not hidden:
            check_not_erased(lambda: self.wiki.store, self.wiki.mover, name, number)
        self.wiki.mover.hide(name, number, hidden=hidden)
        self._note("hide revision" if hidden else "show revision", name, f"revision {number}. {reason}")

    def _note(self, what: str, name: str, reason: str) -> None:
        self._audit.note(what, user="", by=self.visitor.name or "", note=f"{name}: {reason}" if reason else name)

    # --- the trash ---------------------------------------------------------------------------------

    def deleted(self, name: str = "") -> list[Deleted]:
        """Return the deleted pages that the visitor may bring back."""
        return [one for one in deleted(self.rows, name) if self.may_undelete(one)]

    def may_undelete_any(self, name: str) -> bool:
        """Return whether the visitor may bring back one of the first DELETED_PAGES_SCANNED deleted pages of ``name``.

        Costs one scan.
        """
        return any(map(self.may_undelete, deleted(self.rows, name, limit=DELETED_PAGES_SCANNED)))

    def may_undelete(self, one: Deleted) -> bool:
        return bool(self._decide(one.name, one.rights, True, Privilege.DELETE))

    # --- one page of a job -------------------------------------------------------------------------

    def save_page(self, page: Page, body: str, note: str, markup: str, language: str = "") -> Saved:
        """Save an edit of the visitor.  Raises NotAllowed, Conflict, PageTooBig."""

        def allow(rights: PageRights, exists: bool) -> None:
            self._allow(page.name, Privilege.WRITE, exists)(rights)

        by = self._by("")
        return self.wiki.save(
            page.name,
            body,
            author=by.name,
            note=note,
            base=page.number,
            base_token=page.token,
            signed=by.signed,
            markup=markup,
            language=language or None,
            allow=allow,
        )

    def restore_name(self, name: str, old: str, history: bytes) -> None:
        """Give the page ``name`` its ``old`` name again, and delete an unedited redirect under the old name.

        ``history`` identifies the page; a different page of its name is left alone.  Raises NotAllowed, NotMoved.
        """
        row, there = self.wiki.mover.page_row(name), self.wiki.mover.page_row(old)
        if history and is_there(there) and head_of(there).place(page_key(old)) == history:
            return  # it has its old name already
        if not is_there(row):
            raise NothingThere(name)
        if history not in (b"", head_of(row).place(page_key(name))):
            raise OtherPage(name)
        self._allow_rename(name, old)(page_rights(row, row.get(OWNER, b"")))
        if is_there(there):
            self._delete_redirect(old, name)
        self.rename(name, old, redirect=False, history=history)

    def _delete_redirect(self, name: str, to: str) -> None:
        """Delete the redirect that a rename left; raise NotMoved if it is no redirect to ``to``, or was edited.

        Deleting it needs only the right to rename it.
        """
        page = self.wiki.page(name)
        leads = page is not None and redirect_target(page.body, markup=page.markup) == to
        if not leads or len(self.wiki.revisions(name, limit=2)) != 1:
            raise NotMoved(
                name, _("{name} is a page of its own by now. Delete it first, or choose another name.", name=name)
            )
        by = replace(self._by(_w("Renamed back")), quiet=True)
        self.wiki.mover.delete(name, by, allow=self._allow(normalise(name), Privilege.RENAME))

    def change_rights(self, name: str, change: RightsChange) -> bytes:
        """Change the rights of a page; return its former ones, packed.

        The lists of ``change`` are correct; others, which an import may have brought with mistakes, stay as they are.
        Raises NotAllowed, NotMoved.
        """
        for _attempt in range(_TRIES):
            before = self._rights_to_change(name)
            owner, lists = change.onto(before)
            if (owner, lists) == (before.owner, dict(before.lists)):
                raise NotMoved(name, _("it has these rights already"))
            try:
                after = self.wiki.rights.change(name, before, owner, lists, token=secrets.token_hex(8))
            except RightsChanged:
                continue
            self._note("rights", name, "")
            return pack_former(before, after.revision)
        raise NotMoved(name, _("its rights were changed again and again"))

    def restore_rights(self, name: str, former: bytes) -> None:
        """Give a page the rights back that ``change_rights`` replaced.  Raises NotAllowed, NotMoved."""
        if not former:
            raise NotMoved(name, _("its former rights were not kept: they were too long"))
        revision, change = parse_former(former)
        present = self._rights_to_change(name)
        try:
            if present.revision != revision:
                raise RightsChanged(name)
            self.wiki.rights.change(name, present, *change.onto(present), token=secrets.token_hex(8))
        except RightsChanged:
            raise NotMoved(name, _("its rights were changed since")) from None
        self._note("rights", name, "")

    def _rights_to_change(self, name: str) -> PageRights:
        page = self.wiki.page(name)
        if page is None:
            raise NothingThere(name)
        self._allow(page.name, Privilege.CHANGE_RIGHTS)(page.rights)
        return page.rights

    def undelete_page(self, name: str, row: bytes) -> None:
        """Bring back the deleted page of a row.  Raises NotAllowed, NotMoved."""
        one = one_deleted(self.rows, row)
        if one is None:
            raise NotDeleted(name)
        self.undelete(one)
