"""Work on many pages, shown to who requested it and to administrators: ``?job=ID``; stopped, continued, undone.

The page reloads itself every few seconds while the job runs; no script is needed.
"""

from __future__ import annotations

from werkzeug.wrappers import Request, Response

from wikka_port.forms import STALE_FORM, form_page, is_genuine
from wikka_port.moving.jobs import LINKS, MASS_DELETE, REVERT, SUBPAGES, UNDO, Jobs, Progress, new_job
from wikka_port.moving.refusals import NotMoved
from wikka_port.moving.runner import start
from wikka_port.names import page_key
from wikka_port.pages import clock_ms
from wikka_port.rights.judging import NotAllowed
from wikka_port.site import Site, redirect
from wikka_port.texts import _
from wikka_port.urls import site_path

REFRESH_S = 2
_MAX_LISTED = 500  # names


def handle(site: Site, request: Request, _name: str) -> Response:
    moves = site.wiki.moves
    jobs = Jobs(moves.rows, clock_ms)
    wanted = request.args.get("job", "")
    if not wanted:
        moves.require_site()
        return form_page(site, request, "moves.html", running=jobs.recent(), progress=None, problem="", refresh=0)
    progress = jobs.progress(wanted.encode("utf-8", "replace"))
    if progress is None or not _may_see(site, progress):
        moves.require_site()
        message = _("There is no such work.")
        return site.html("error.html", status=404, title=_("Not found"), message=message, back="")
    if request.method != "POST":
        return _progress_page(site, request, progress)
    if not is_genuine(site, request):
        return _progress_page(site, request, progress, status=403, problem=_(STALE_FORM))
    try:
        return redirect(site_path("moves", job=_changed(site, request, jobs, progress)))
    except NotMoved as refused:
        return _progress_page(site, request, progress, status=409, problem=str(refused))
    except NotAllowed:
        return _progress_page(site, request, progress, status=403, problem=_("You may not rename it back."))


def _may_see(site: Site, progress: Progress) -> bool:
    visitor = site.visitor
    return visitor.is_active and (visitor.admin or visitor.name == progress.job.by)


def _changed(site: Site, request: Request, jobs: Jobs, progress: Progress) -> str:
    """Return the id of the job to be shown then.  Raises NotMoved, NotAllowed."""
    job = progress.job
    if "stop" in request.form:
        jobs.stop(job.id)
    elif "undo" in request.form and job.kind in (LINKS, SUBPAGES, REVERT, MASS_DELETE):
        jobs.stop(job.id)
        return _undone(site, jobs, progress)
    elif jobs.resume_job(job.id) or progress.is_open:
        start(site.wiki.moves.wiki, job)
    return job.id.decode()


def _undone(site: Site, jobs: Jobs, progress: Progress) -> str:
    job, wiki = progress.job, site.wiki.moves.wiki
    undo = new_job(
        *(UNDO, site.visitor.signature, "account"), source=job.target, target=job.source, of=job.id, redirect=False
    )
    if job.kind == LINKS:
        site.wiki.moves.restore_name(job.target, job.source, job.history)
    jobs.begin(undo, [one.name for one in progress.done])
    start(wiki, undo)
    subpages = jobs.progress(job.along) if job.along else None
    if subpages is not None:
        jobs.stop(subpages.job.id)
        _undone(site, jobs, subpages)
    return undo.id.decode()


def _progress_page(
    site: Site, request: Request, progress: Progress, *, status: int = 200, problem: str = ""
) -> Response:
    readable = site.wiki.readable([one.name for one in (*progress.done, *progress.left)][: 2 * _MAX_LISTED])
    values = {
        "progress": progress,
        "done": [one for one in progress.done if one.name in readable][:_MAX_LISTED],
        "left": [one for one in progress.left if one.name in readable][:_MAX_LISTED],
        "running": [],
        "refresh": REFRESH_S if progress.is_open else 0,
        "key": page_key,
    }
    response = form_page(site, request, "moves.html", status=status, problem=problem, **values)
    if progress.is_open:
        response.headers["Refresh"] = str(REFRESH_S)
    return response
