"""The pages of the wiki for administrators: selected, and changed together; ``wikka pages`` does the same.

    GET  /-/pages?prefix=V&owner=Mia&author=Ann&lists=own&since=2026-11-01&until=2026-12-01&from=Name
                        a part of the list by name; a parameter that is empty takes every page
    POST look=WHAT      the pages that were ticked, or with ``all`` all that match, counted; nothing is changed
    POST sure=WHAT      a job that changes their owner and lists (``rights``), or deletes them (``delete``)

The second form has the count and a digest of the names of the first: if the pages are others by then, it is refused.
Each page's rights are asked again in the step that changes it (``moving.mass``).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Final

from werkzeug.wrappers import Request, Response

from wikka_port.accounts.signing_in import Refused
from wikka_port.accounts.user_names import NAME_CHARS_MAX
from wikka_port.forms import answer_form, form_page, reason_in
from wikka_port.handlers.moves import begin_mass, moment
from wikka_port.limits import JOB_PAGES_MAX, PAGES_LISTED, PAGES_SCANNED
from wikka_port.moving.jobs import MASS_DELETE, MASS_RIGHTS, new_job
from wikka_port.names import MAX_NAME_BYTES, normalise
from wikka_port.page_selection import (
    NOBODY,
    NONE,
    OWN,
    PageFilter,
    SelectedPage,
    pages_named,
    selected,
    selected_of_all,
)
from wikka_port.request_queues import run_in_slow_lane
from wikka_port.rights.acl import BadList
from wikka_port.rights.explaining import words_of
from wikka_port.rights.rules import LISTED, PUBLIC, Privilege, RightsChange
from wikka_port.rights.words import TITLES, checked_list
from wikka_port.site import Site
from wikka_port.texts import N_, _
from wikka_port.urls import site_path

_SIGNATURE_CHARS: Final = 255
_MOMENT_CHARS: Final = 30
INHERIT: Final = "inherit"  # in the place of a list
_MAX_LISTED: Final = 200  # names of pages that would be changed
_FILTERS: Final = ("prefix", "owner", "author", "lists", "since", "until")
_ACTIONS: Final = ("rights", "delete")
NO_MOMENT: Final = N_("Write the moment as 2026-11-24 or 2026-11-24T15:00 (UTC).")
NONE_CHOSEN: Final = N_("Tick pages, or choose all that match.")
OTHERS: Final = N_("The pages were others a moment ago. Please look at them again.")
STRANGER: Final = N_("There is no user “{owner}”. The owner is a registered user, {public}, or nobody.")
BOTH: Final = N_("A list is typed, and is to be taken away: choose one of both.")
NOT_DELETED: Final = N_("An owner or a list is typed, and pages that are deleted get none: empty these fields first.")


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The pages of a form, and what it would do with them."""

    action: str
    names: list[str]
    onward: str  # the name after the last that was looked at; "": all were
    change: RightsChange

    @property
    def digest(self) -> str:
        """A digest of the names."""
        return hashlib.sha256("\n".join(self.names).encode()).hexdigest()[:16]


def handle_pages(site: Site, request: Request, _name: str) -> Response:
    site.wiki.moves.require_site()

    def form(status: int, problem: str) -> Response:
        return _listed(site, request, status=status, problem=problem)

    return answer_form(site, request, form, lambda: _answer(site, request))


# --- the list ----------------------------------------------------------------------------------


def _listed(site: Site, request: Request, *, status: int, problem: str) -> Response:
    given = request.form if request.method == "POST" else request.args
    typed = _typed(request)
    try:
        wanted = _filter(typed)
    except Refused as refused:
        wanted, status, problem = None, refused.status, problem or str(refused)
    found, onward = list[SelectedPage](), ""
    if wanted is not None:
        start = given.get("from", "")[:MAX_NAME_BYTES]
        moves = site.wiki.moves
        found, onward = selected(moves.rows, moves.wiki, wanted, start=start)
    values: dict[str, Any] = {
        "typed": typed,
        "found": found,
        "start": given.get("from", "")[:MAX_NAME_BYTES],
        "onward": site_path("pages", **typed, **{"from": onward}) if onward else "",
        "scanned": PAGES_SCANNED if onward and len(found) < PAGES_LISTED else 0,
        "most": JOB_PAGES_MAX,
        "ticked": frozenset(request.form.getlist("page")),
        "privileges": [(one, _(TITLES[one])) for one in LISTED],
        "given": request.form,
        "titles": {one: _(TITLES[one]) for one in LISTED},
        "has_typed_lists": any(request.form.get(str(one), "") or request.form.get(f"how_{one}") for one in LISTED),
        "asked": None,
        "problem": problem,
    }
    return form_page(site, request, "many_pages.html", status=status, **values)


def _typed(request: Request) -> dict[str, str]:
    """Return the fields of the filter, which a form of changes has as ``f_...``."""
    is_post = request.method == "POST"
    given, mark = (request.form, "f_") if is_post else (request.args, "")
    return {key: given.get(mark + key, "").strip()[:MAX_NAME_BYTES] for key in _FILTERS}


def _filter(typed: dict[str, str]) -> PageFilter:
    """Return what a form selects.  Raises Refused."""
    since, until = (moment(typed[key][:_MOMENT_CHARS]) if typed[key] else 0 for key in ("since", "until"))
    if since is None or until is None:
        raise Refused(_(NO_MOMENT), 400)
    lists = typed["lists"] if typed["lists"] in (OWN, NONE) else ""
    owner, author = typed["owner"][:NAME_CHARS_MAX], typed["author"][:_SIGNATURE_CHARS]
    return PageFilter(typed["prefix"], owner, author, lists, max(since, 0), max(until, 0))


# --- changes -----------------------------------------------------------------------------------


def _answer(site: Site, request: Request) -> Response:
    fields = request.form
    action = fields.get("sure") or fields.get("look", "")
    change = _change(site, request)
    if action not in _ACTIONS or (action == "rights" and change == RightsChange()):
        raise Refused(_("Choose what to change."), 400)
    if action == "delete" and change != RightsChange():
        raise Refused(_(NOT_DELETED), 400)
    names, onward = _names(site, request)
    if not names:
        raise Refused(_(NONE_CHOSEN), 400)
    chosen = _Chosen(action, names, onward, change)
    if "sure" not in fields:
        return _confirmation(site, request, chosen)
    if fields.get("count") != str(len(names)) or fields.get("digest") != chosen.digest:
        return _confirmation(site, request, chosen, status=409, problem=_(OTHERS))
    kind, rights = (MASS_RIGHTS, change.pack()) if action == "rights" else (MASS_DELETE, "")
    job = new_job(kind, site.visitor.signature, site.visitor.signed, reason_in(request), rights=rights)
    return begin_mass(site, request, job, names)


def _names(site: Site, request: Request) -> tuple[list[str], str]:
    """Return the names of the pages that the form chooses, and where a search ended.  Raises Refused."""
    moves = site.wiki.moves
    if "all" in request.form:
        run_in_slow_lane(request.environ)
        found, onward = selected_of_all(moves.rows, moves.wiki, _filter(_typed(request)))
        return [one.name for one in found], onward
    ticked = list(dict.fromkeys(normalise(one) for one in request.form.getlist("page")[:PAGES_LISTED]))
    return [one.name for one in pages_named(moves.rows, ticked) if one is not None], ""


def _change(site: Site, request: Request) -> RightsChange:
    """Return the change of rights in the form.  Raises Refused."""
    typed = " ".join(request.form.get("new_owner", "").split())[:NAME_CHARS_MAX]
    if typed and typed not in (NOBODY, PUBLIC) and not site.wiki.rights.users([typed]):
        raise Refused(_(STRANGER, owner=typed, public=PUBLIC), 400)
    owner = "" if typed == NOBODY else typed
    lists = dict[Privilege, str | None]()
    for one in LISTED:
        text, how = request.form.get(str(one), ""), request.form.get(f"how_{one}", "")
        try:
            if how == INHERIT and text.strip():
                raise BadList(None, f"{_(TITLES[one])}: {_(BOTH)}")
            if how == INHERIT:
                lists[one] = None
            elif how == OWN or text.strip():
                lists[one] = checked_list(one, text)
        except BadList as bad:
            raise Refused(str(bad), 400) from None
    return RightsChange(owner if typed else None, lists)


def _confirmation(site: Site, request: Request, chosen: _Chosen, *, status: int = 200, problem: str = "") -> Response:
    lists = [
        (one, _(TITLES[one]), text, [] if text is None else words_of(site.wiki.rights, text).lines)
        for one, text in chosen.change.lists.items()
    ]
    values: dict[str, Any] = {
        "typed": _typed(request),
        "asked": chosen,
        "names": chosen.names[:_MAX_LISTED],
        "is_all": "all" in request.form,
        "lists": lists,
        "owner": NOBODY if chosen.change.owner == "" else chosen.change.owner,
        "start": request.form.get("from", "")[:MAX_NAME_BYTES],
        "reason": reason_in(request),
        "problem": problem,
    }
    return form_page(site, request, "many_pages.html", status=status, **values)
