"""A job's work on one page, within the rights of the visitor who requested it; they are checked again for each page.

links     change the links to the old name into links to the new one; saved as an edit
subpages  rename Name/x to New/x
revert    return to the newest revision that is not the author's, or is older than ``since``; delete a page that the
          author began; give a page that he renamed its old name again, if he left a redirect there
delete    delete the page
rights    give the page an owner, lists, or take lists away
undo      of links: restore the former text if nobody has edited the page since, else change the links back;
          of subpages: rename each page back, unless a different page has its old name by now;
          of revert and delete: undelete a deleted page, unless a different page has its name by now;
          of revert: restore the former text if nobody has edited the page since;
          of rights: restore the former ones if nobody has changed them since
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from wikka_port.limits import JOB_PAGES_MAX, MAX_REVERTED_REVISIONS
from wikka_port.markup.links import redirect_target
from wikka_port.moving.jobs import LINKS, MASS_DELETE, MASS_RIGHTS, REVERT, SUBPAGES, UNDO, Act, Item, Job, Jobs
from wikka_port.moving.journal import Move
from wikka_port.moving.refusals import NotMoved
from wikka_port.moving.rewriting import rewritten
from wikka_port.names import InvalidName
from wikka_port.page_rows import Page, Revision, is_revision, reverted_language
from wikka_port.pages import Conflict, PageTooBig, Saved, Wiki
from wikka_port.rights.judging import NotAllowed
from wikka_port.rights.rules import RightsChange, parse_rights_change
from wikka_port.schema import folded
from wikka_port.texts import N_, _, _w

_TRIES: Final = 3
_STEP: Final = 200
MAY_NOT: Final = N_("you may not edit it")
EDITED: Final = N_("somebody else has edited it since")
NO_PAGE: Final = N_("it is no page any more")
AGAIN: Final = N_("it was edited again and again")


class Hands(Protocol):
    """Writes in the name of a visitor (``rights.moving.GuardedMoves``) or of a command."""

    def save_page(self, page: Page, body: str, note: str, markup: str, language: str = "") -> Saved:
        """Save a page; with ``language`` "" its language is unchanged."""
        ...

    def rename(self, name: str, new: str, *, redirect: bool, reason: str) -> Move: ...

    def restore_name(self, name: str, old: str, history: bytes) -> None: ...

    def delete(self, name: str, reason: str) -> Move: ...

    def undelete_page(self, name: str, row: bytes) -> None: ...

    def change_rights(self, name: str, change: RightsChange) -> bytes:
        """Change the rights of a page; return its former rights, packed, for ``restore_rights``."""
        ...

    def restore_rights(self, name: str, former: bytes) -> None: ...


@dataclass(frozen=True, slots=True)
class Reverted:
    """The work of a mass revert on one page."""

    name: str
    edits: int  # of the author, to be reverted
    to: int  # the revision to return to; 0: the page is deleted, since the author began it
    why: str = ""  # why the page is left unchanged; "": it is not
    current_name: str = ""  # if the page is a redirect that the author's rename left: the renamed page's present name


def act_of(wiki: Wiki, jobs: Jobs, job: Job, hands: Hands) -> Act:
    acts: dict[str, Callable[[str], Item]] = {
        LINKS: lambda name: _lead(wiki, job.source, job.target, name, hands),
        SUBPAGES: lambda name: _rename(job, name, hands),
        REVERT: lambda name: _revert(wiki, job, name, hands),
        MASS_DELETE: lambda name: _delete_page(name, job.reason, hands),
        MASS_RIGHTS: lambda name: Item(name, place=hands.change_rights(name, parse_rights_change(job.rights))),
        UNDO: lambda name: _undo(wiki, jobs, job, name, hands),
    }
    act = acts[job.kind]

    def one(name: str) -> Item:
        try:
            return act(name)
        except NotAllowed:
            return Item(name, why=_w(MAY_NOT))
        except (NotMoved, PageTooBig, InvalidName) as refused:
            return Item(name, why=str(refused))

    return one


def more_of(wiki: Wiki, job: Job) -> list[str]:
    """Return pages that a job of links must change, too, since they have new links to the old name."""
    return [name for name in linking(wiki, job.source) if name != job.source] if job.kind == LINKS else []


def linking(wiki: Wiki, name: str) -> Iterator[str]:
    found = wiki.linking([name]).get(name, [])
    yield from found[:JOB_PAGES_MAX]


def _lead(wiki: Wiki, old: str, new: str, name: str, hands: Hands) -> Item:
    for _attempt in range(_TRIES):
        page = wiki.page(name)
        if page is None:
            return Item(name, why=_w(NO_PAGE))
        body = rewritten(page.body, old, new, page.autolink, markup=page.markup)
        if body == page.body:
            return Item(name, why=_w("its link cannot be changed by itself"))
        try:
            note = _w("Links to {old} lead to {new}", old=old, new=new)
            return _saved_item(name, hands.save_page(page, body, note, page.markup))
        except Conflict:
            continue
    return Item(name, why=_w(AGAIN))


def _rename(job: Job, name: str, hands: Hands) -> Item:
    new = job.target + name[len(job.source) :]
    return Item(name, place=hands.rename(name, new, redirect=job.redirect, reason=job.reason).history)


def _saved_item(name: str, saved: Saved) -> Item:
    return Item(name, saved.number, token=saved.token)


def _delete_page(name: str, reason: str, hands: Hands) -> Item:
    return Item(name, place=hands.delete(name, reason).row)


# --- a mass revert -----------------------------------------------------------------------------


def edited_by(wiki: Wiki, author: str, since_ms: int) -> Iterator[str]:
    """Yield the names of the pages that ``author`` edited since ``since_ms``, each once, the newest edit first."""
    seen: set[str] = set()
    token = ""
    while len(seen) < JOB_PAGES_MAX:
        found, token = wiki.changes(before=token, limit=_STEP)
        for one in found:
            if one.time_ms < since_ms:
                return
            if folded(one.author) == folded(author) and one.name not in seen:
                seen.add(one.name)
                yield one.name
        if not token:
            return


def planned(wiki: Wiki, author: str, since_ms: int, name: str) -> Reverted:
    """Return the work that a revert of the page would have now."""
    edits, below = 0, None
    while edits <= MAX_REVERTED_REVISIONS:
        found = wiki.revisions(name, below=below, limit=50)
        for one in found:
            if not _is_his(one, author, since_ms):
                return Reverted(name, edits, one.number, "" if edits else _(EDITED))
            edits += 1
        if len(found) < 50:
            old_name = _renamed_to(wiki, name) if edits == 1 else ""
            return Reverted(name, edits, 0, "" if edits else _(NO_PAGE), old_name)
        below = found[-1].number
    return Reverted(name, edits, 0, _("it has more than {most} such edits", most=MAX_REVERTED_REVISIONS))


def _renamed_to(wiki: Wiki, name: str) -> str:
    """Return the name of the renamed page if ``name`` is the redirect that its rename left, else "".

    A rename gives the redirect the number after the page's newest revision; so that revision must bear this name.
    """
    page = wiki.page(name)
    to = redirect_target(page.body, markup=page.markup) if page is not None else None
    before = wiki.revision(to, page.number - 1) if page is not None and to is not None else None
    return to if to is not None and before is not None and before.name == name else ""


def _is_his(one: Revision, author: str, since_ms: int) -> bool:
    return folded(one.author) == folded(author) and one.time_ms >= since_ms


def _revert(wiki: Wiki, job: Job, name: str, hands: Hands) -> Item:
    is_upward = False
    for _attempt in range(_TRIES):
        page, plan = wiki.page(name), planned(wiki, job.author, job.since_ms, name)
        if plan.why == _(EDITED) and is_upward:
            return Item(name)
        if plan.why or page is None:
            return Item(name, why=plan.why or _w(NO_PAGE))
        if plan.current_name:
            hands.restore_name(plan.current_name, name, b"")
            is_upward = True
            continue
        if not plan.to:
            return _delete_page(name, job.reason or _w("All of {author}", author=job.author), hands)
        old = wiki.revision(name, plan.to)
        if old is None or old.body is None:
            return Item(name, why=_w("the revision before is not there"))
        try:
            note = f"{_revert_note(plan.to)}: {job.reason}".strip(": ")
            return _saved_item(name, hands.save_page(page, old.body, note, old.markup, reverted_language(page, old)))
        except Conflict:
            continue
    return Item(name, why=_w(AGAIN))


def _revert_note(number: int) -> str:
    return _w("Back to revision {number}", number=number)


def _undo(wiki: Wiki, jobs: Jobs, job: Job, name: str, hands: Hands) -> Item:
    undone = jobs.progress(job.of)
    item = next((one for one in undone.done if one.name == name), None) if undone else None
    if undone is None or item is None:
        return Item(name, why=_w("nothing is known of it any more"))
    if undone.job.kind == SUBPAGES:
        hands.restore_name(job.source + name[len(job.target) :], name, item.place)
        return Item(name)
    if undone.job.kind == MASS_RIGHTS:
        hands.restore_rights(name, item.place)
        return Item(name)
    if item.place:
        hands.undelete_page(name, item.place)
        return Item(name)
    restored = _restore_text(wiki, job, item, hands)
    if restored is not None:
        return restored
    pages = _pages_now(wiki, job, name)
    if undone.job.kind != LINKS:
        return Item(name, why=_w(EDITED if pages else NO_PAGE))
    led = [_lead(wiki, undone.job.target, undone.job.source, one.name, hands) for one in pages]
    return next((one for one in led if not one.why), led[0] if led else Item(name, why=_w(NO_PAGE)))


def _restore_text(wiki: Wiki, job: Job, item: Item, hands: Hands) -> Item | None:
    """Restore the text from before the job's edit; return None if somebody has edited the page since."""
    for _attempt in range(_TRIES):
        for page in _pages_now(wiki, job, item.name):
            if not item.number or not is_revision(page, item.number, item.token):
                continue
            before = wiki.revision(page.name, item.number - 1)
            if before is None or before.body is None:
                continue
            try:
                note, language = _revert_note(before.number), reverted_language(page, before)
                return _saved_item(page.name, hands.save_page(page, before.body, note, before.markup, language))
            except Conflict:
                continue
    return None


def _pages_now(wiki: Wiki, job: Job, name: str) -> list[Page]:
    """Return the page of that name, and the pages to whose names a rename, or its undoing, may have moved it."""
    names = [name]
    for now, then in ((job.source, job.target), (job.target, job.source)):
        if now and then and (name == now or name.startswith(f"{now}/")):
            names.append(then + name[len(now) :])
    return [page for one in names if (page := wiki.page(one)) is not None]
