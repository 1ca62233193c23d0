"""All that somebody edited since a moment, taken back: shown first, then done; for administrators."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from werkzeug.wrappers import Request, Response

from wikka_port.forms import STALE_FORM, form_page, is_genuine
from wikka_port.limits import LISTED_QUICK, REASON_CHARS_MAX
from wikka_port.moving.jobs import MASS_DELETE, REVERT, Jobs, new_job
from wikka_port.moving.mass import edited_by, planned
from wikka_port.moving.runner import start
from wikka_port.names import MAX_NAME_BYTES
from wikka_port.pages import Wiki, clock_ms
from wikka_port.site import Site, redirect
from wikka_port.texts import _, _w
from wikka_port.urls import site_path

PREVIEWED = 200  # pages shown before it is done


def handle(site: Site, request: Request, _name: str) -> Response:
    """GET asks and shows what would happen (``?author=&since=``), POST does it."""
    moves = site.wiki.moves
    moves.require_site()
    given = request.form if request.method == "POST" else request.args
    author, since = given.get("author", "").strip()[:255], given.get("since", "").strip()[:30]
    since_ms = moment(since) if since else clock_ms() - 24 * 3600 * 1000
    problem = _("Write the moment as 2026-11-24 or 2026-11-24T15:00 (UTC).") if since_ms is None else ""
    status = 400 if problem else 200
    shown = since or datetime.fromtimestamp((since_ms or 0) / 1000, UTC).strftime("%Y-%m-%dT%H:%M")
    names = [] if problem or not author else list(_some(moves.wiki, author, since_ms or 0))
    if request.method == "POST" and not problem and author:
        if is_genuine(site, request):
            reason = _reason(request) or _w("All of {author} since {moment}", author=author, moment=shown)
            job = new_job(REVERT, site.visitor.signature, "account", reason, author=author, since_ms=since_ms or 0)
            Jobs(moves.rows, clock_ms).begin(job, edited_by(moves.wiki, author, since_ms or 0))
            start(moves.wiki, job)
            return redirect(site_path("moves", job=job.id.decode()))
        problem, status = _(STALE_FORM), 403
    plans = [planned(moves.wiki, author, since_ms or 0, name) for name in names]
    values = {"author": author, "since": shown, "plans": plans, "more": len(names) == PREVIEWED, "problem": problem}
    values |= {"reason": _reason(request), "is_moment": since_ms is not None}
    return form_page(site, request, "massrevert.html", status=status, **values)


def _some(wiki: Wiki, author: str, since_ms: int) -> list[str]:
    found = []
    for name in edited_by(wiki, author, since_ms):
        found.append(name)
        if len(found) == PREVIEWED:
            break
    return found


def _reason(request: Request) -> str:
    return request.form.get("reason", "")[:REASON_CHARS_MAX]


def moment(text: str) -> int | None:
    """Milliseconds; None for what is no moment."""
    if text == "yesterday":
        return clock_ms() - int(timedelta(days=1).total_seconds() * 1000)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)


def handle_delete(site: Site, request: Request, _name: str) -> Response:
    """Delete pages whose names begin alike: ``?prefix=`` shows them, POST does it."""
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
            job = new_job(MASS_DELETE, site.visitor.signature, "account", _reason(request), source=prefix)
            Jobs(moves.rows, clock_ms).begin(job, names)
            start(moves.wiki, job)
            return redirect(site_path("moves", job=job.id.decode()))
        problem, status = _("The pages were others a moment ago. Please look at them again."), 409
    values = {"prefix": prefix, "names": names, "problem": problem, "most": LISTED_QUICK, "reason": _reason(request)}
    return form_page(site, request, "massdelete.html", status=status, **values)


def handle_deleted(site: Site, request: Request, _name: str) -> Response:
    """Show all deleted pages, for administrators."""
    site.wiki.moves.require_site()
    return site.html("deleted.html", found=site.wiki.moves.deleted())
