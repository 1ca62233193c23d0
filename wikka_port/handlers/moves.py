"""Renaming a page, and jobs on many pages, which the user who requested them can watch, stop, continue and undo."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, Final

from werkzeug.wrappers import Request, Response

from wikka_port.accounts.sign_in_form import client_of
from wikka_port.accounts.signing_in import Refused
from wikka_port.antispam.submissions import words_refusal
from wikka_port.forms import STALE_FORM, answer_form, form_page, is_genuine, reason_in, take_edit
from wikka_port.limits import JOB_PAGES_MAX, LISTED_QUICK
from wikka_port.moving.jobs import LINKS, MASS_DELETE, REVERT, SUBPAGES, UNDO, UNDOABLE, Job, Jobs, Progress, new_job
from wikka_port.moving.journal import Move
from wikka_port.moving.mass import edited_by, linking, planned
from wikka_port.moving.runner import begin, start
from wikka_port.names import MAX_NAME_BYTES, normalise
from wikka_port.pages import StoreUnavailable, clock_ms
from wikka_port.refusals import missing_page, name_refusal
from wikka_port.rights.judging import NotAllowed
from wikka_port.rights.rules import Privilege
from wikka_port.site import Site, redirect
from wikka_port.texts import N_, _, _w
from wikka_port.urls import page_path, page_url, site_path

log = logging.getLogger(__name__)

NOT_ALONG: Final = N_(
    "The page is {name} now. The store went away before its subpages were renamed, or links of other pages were led to "
    "the new name: rename it once more when the store is there, or change them by hand."
)
BAD_NAME: Final = N_("Change the new name or the reason. {why}")
PREVIEWED: Final = 200  # pages shown before a mass revert is done
_MAX_LISTED: Final = 500  # names


def handle_rename(site: Site, request: Request, name: str) -> Response:
    """Rename a page; the form selects its subpages and the links of other pages to change along.

    The links are rewritten after the move, as edits of the visitor.
    """
    page = site.wiki.page(name)
    if page is None:
        return missing_page(site, name)
    site.wiki.access.require(name, Privilege.RENAME)

    def form(status: int, problem: str) -> Response:
        return _rename_form(site, request, name, status=status, problem=problem)

    def rename() -> Response:
        new = normalise(request.form.get("new", ""))
        odd = name_refusal(site, new, leaving=page.name)
        if odd:
            raise Refused(odd, 400)
        take_edit(site, request)
        if why := words_refusal(site, request, reason_in(request), name=new, former_name=page.name):
            raise Refused(_(BAD_NAME, why=why), 400)
        try:
            move = site.wiki.moves.rename(name, new, redirect="redirect" in request.form, reason=reason_in(request))
        except NotAllowed as refused:
            is_of_page = refused.name == page.name
            this, that = _("You may not give this page that name."), _("You may not make a page of that name.")
            raise Refused(this if is_of_page else that) from None
        return _renamed(site, request, move, new)

    return answer_form(site, request, form, rename)


def _renamed(site: Site, request: Request, move: Move, new: str) -> Response:
    """Begin the selected jobs after the page was moved, and answer."""
    wanted = {"subpages", "links"} & request.form.keys()
    try:
        last = begin_jobs(site, wanted, move)
    except StoreUnavailable as away:
        if not wanted:
            return redirect(page_path(new))
        log.warning("the links to %s were not rewritten: %s", move.source, away)
        title, message = _("Renamed, and not all that goes along"), _(NOT_ALONG, name=move.target)
        return site.html("error.html", status=503, title=title, message=message, back=page_url(new))
    return redirect(site_path("moves", job=last) if last else page_path(new))


def begin_jobs(site: Site, wanted: Collection[str], move: Move) -> str:
    """Begin the jobs "subpages" and "links" after the page was moved; return the id of the last, or "" if none began.

    Raises StoreUnavailable.
    """
    wiki, visitor, old = site.wiki.moves.wiki, site.visitor, move.source
    given: dict[str, Any] = {"source": old, "target": move.target, "redirect": move.redirect, "history": move.history}
    jobs, last = Jobs(wiki.rows, clock_ms), b""
    wiki.settle("", site.config.settle_s)
    chosen = []
    if "subpages" in wanted:
        below = [one for one in wiki.names(prefix=f"{old}/", limit=JOB_PAGES_MAX) if one.startswith(f"{old}/")]
        chosen.append((SUBPAGES, below))
    if "links" in wanted:
        chosen.append((LINKS, [one for one in islice(linking(wiki, old), JOB_PAGES_MAX) if one != old]))
    for kind, found in chosen:
        names = sorted(site.wiki.access.listed(found))
        if names:
            job = new_job(kind, visitor.signature, visitor.signed, **given, along=last)
            jobs.begin(job, names)
            start(wiki, job)
            last = job.id
    return last.decode()


def _rename_form(site: Site, request: Request, name: str, *, status: int, problem: str) -> Response:
    given = request.form if request.method == "POST" else None
    values = {
        "new": given.get("new", "")[:MAX_NAME_BYTES] if given else name,
        "reason": reason_in(request),
        "leaves": given is None or "redirect" in given,
        "links": given is None or "links" in given,
        "subpages": given is not None and "subpages" in given,
        "below": site.wiki.names(prefix=f"{name}/", limit=5),
        "linking": site.wiki.backlinks(name, limit=6),
    }
    return form_page(site, request, "rename.html", status=status, page_name=name, problem=problem, **values)


def handle_moves(site: Site, request: Request, _name: str) -> Response:
    """Show the job ``?job=ID`` to the user who requested it and to administrators; without an id, list recent jobs.

    While the job runs, a script shows in its place how far it is; without it, a link shows the page anew.  The page
    never reloads itself: that would take a keyboard's focus and a screen reader's place away, and a refusal's message.
    """
    moves = site.wiki.moves
    jobs = Jobs(moves.rows, clock_ms)
    wanted = request.args.get("job", "")
    if not wanted:
        moves.require_site()
        return form_page(site, request, "moves.html", running=jobs.recent(), progress=None, problem="")
    progress = jobs.progress(wanted.encode("utf-8", "replace"))
    if progress is None or not _may_see(site, progress):
        moves.require_site()
        message = _("There is no such work.")
        return site.html("error.html", status=404, title=_("Not found"), message=message, back="")

    def form(status: int, problem: str) -> Response:
        return _progress_page(site, request, progress, status=status, problem=problem)

    def change() -> Response:
        try:
            return redirect(site_path("moves", job=_changed(site, request, jobs, progress)))
        except NotAllowed:
            raise Refused(_("You may not rename it back.")) from None

    return answer_form(site, request, form, change)


def _may_see(site: Site, progress: Progress) -> bool:
    visitor = site.visitor
    return visitor.is_active and (visitor.admin or visitor.name == progress.job.by)


def _changed(site: Site, request: Request, jobs: Jobs, progress: Progress) -> str:
    """Stop, undo or continue a job; return the id of the job to show next.  Raises NotMoved, NotAllowed, Refused."""
    job = progress.job
    if "stop" in request.form:
        jobs.stop(job.id)
    elif "undo" in request.form and job.kind in UNDOABLE:
        take_edit(site, request)
        jobs.stop(job.id)
        return _undone(site, request, jobs, progress)
    elif jobs.resume_job(job.id) or progress.is_open:
        start(site.wiki.moves.wiki, job)
    return job.id.decode()


def _undone(site: Site, request: Request, jobs: Jobs, progress: Progress) -> str:
    job, wiki = progress.job, site.wiki.moves.wiki
    undo = new_job(
        *(UNDO, site.visitor.signature, site.visitor.signed),
        source=job.target,
        target=job.source,
        of=job.id,
        redirect=False,
    )
    if job.kind == LINKS:
        site.wiki.moves.restore_name(job.target, job.source, job.history)
    begin(wiki, undo, [one.name for one in progress.done], of_kind=job.kind, network=client_of(request).network)
    start(wiki, undo)
    subpages = jobs.progress(job.along) if job.along else None
    if subpages is not None:
        jobs.stop(subpages.job.id)
        _undone(site, request, jobs, subpages)
    return undo.id.decode()


def _progress_page(site: Site, request: Request, progress: Progress, *, status: int, problem: str) -> Response:
    readable = site.wiki.access.readable([one.name for one in (*progress.done, *progress.left)][: 2 * _MAX_LISTED])
    values = {
        "progress": progress,
        "done": [one for one in progress.done if one.name in readable][:_MAX_LISTED],
        "left": [one for one in progress.left if one.name in readable][:_MAX_LISTED],
        "running": [],
    }
    return form_page(site, request, "moves.html", status=status, problem=problem, **values)


def handle_mass_revert(site: Site, request: Request, _name: str) -> Response:
    """Revert all edits of an author since a moment: GET shows them (``?author=&since=``), POST reverts."""
    moves = site.wiki.moves
    moves.require_site()
    given = request.form if request.method == "POST" else request.args
    author, since = given.get("author", "").strip()[:255], given.get("since", "").strip()[:30]
    since_ms = moment(since) if since else clock_ms() - 24 * 3600 * 1000
    problem = _("Write the moment as 2026-11-24 or 2026-11-24T15:00 (UTC).") if since_ms is None else ""
    status = 400 if problem else 200
    shown = since or datetime.fromtimestamp((since_ms or 0) / 1000, UTC).strftime("%Y-%m-%dT%H:%M")
    names = [] if problem or not author else list(islice(edited_by(moves.wiki, author, since_ms or 0), PREVIEWED))
    if request.method == "POST" and not problem and author:
        if is_genuine(site, request):
            reason = reason_in(request) or _w("All of {author} since {moment}", author=author, moment=shown)
            job = new_job(
                REVERT, site.visitor.signature, site.visitor.signed, reason, author=author, since_ms=since_ms or 0
            )
            return begin_mass(site, request, job, edited_by(moves.wiki, author, since_ms or 0))
        problem, status = _(STALE_FORM), 403
    plans = [planned(moves.wiki, author, since_ms or 0, name) for name in names]
    values = {"author": author, "since": shown, "plans": plans, "more": len(names) == PREVIEWED, "problem": problem}
    values |= {"reason": reason_in(request), "is_moment": since_ms is not None}
    return form_page(site, request, "massrevert.html", status=status, **values)


def begin_mass(site: Site, request: Request, job: Job, names: Iterable[str]) -> Response:
    """Begin a job of an administrator, which the audit notes, and lead to its page."""
    wiki = site.wiki.moves.wiki
    begin(wiki, job, names, network=client_of(request).network)
    start(wiki, job)
    return redirect(site_path("moves", job=job.id.decode()))


def moment(text: str) -> int | None:
    """Parse a moment; return milliseconds, or None if ``text`` is no moment."""
    if text == "yesterday":
        return clock_ms() - int(timedelta(days=1).total_seconds() * 1000)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)


def handle_mass_delete(site: Site, request: Request, _name: str) -> Response:
    """Delete all pages with a prefix of names: GET shows them (``?prefix=``), POST deletes them."""
    moves = site.wiki.moves
    moves.require_site()
    given = request.form if request.method == "POST" else request.args
    prefix = given.get("prefix", "").strip()[:MAX_NAME_BYTES]
    names = site.wiki.names(prefix=prefix, limit=LISTED_QUICK) if prefix else []
    problem, status = "", 200
    if request.method == "POST" and not is_genuine(site, request):
        problem, status = _(STALE_FORM), 403
    elif request.method == "POST" and names:
        if request.form.get("count") == str(len(names)):
            job = new_job(MASS_DELETE, site.visitor.signature, site.visitor.signed, reason_in(request), source=prefix)
            return begin_mass(site, request, job, names)
        problem, status = _("The pages were others a moment ago. Please look at them again."), 409
    values = {"prefix": prefix, "names": names, "problem": problem, "most": LISTED_QUICK, "reason": reason_in(request)}
    return form_page(site, request, "massdelete.html", status=status, **values)
