"""The audit, the jobs and the sizes of the wiki, for administrators.

GET  /-/audit?what=status&user=Mia    the audit, the newest first
GET  /-/jobs                          the wiki's triggers with their lag, and their dead letters
POST retry, discard                   deliver dead letters again, or throw them away: of a row, or all of a trigger
GET  /-/sizes                         pages, revisions, files, accounts, the bytes of tables on disk, the last backup
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from werkzeug.wrappers import Request, Response

from wikka_port.accounts.audit import KINDS
from wikka_port.accounts.sign_in_form import client_of
from wikka_port.accounts.signing_in import Refused
from wikka_port.accounts.user_names import NAME_CHARS_MAX
from wikka_port.backup_report import LastBackup, NoReport, last_backup
from wikka_port.forms import answer_form, form_page
from wikka_port.limits import AUDIT_LISTED, AUDIT_SCANNED
from wikka_port.maintenance import Maintenance, amounts_of, bytes_on_disk
from wikka_port.maintenance import Refused as StoreRefused
from wikka_port.site import Site, redirect
from wikka_port.store import StoreUnavailable
from wikka_port.texts import N_, _
from wikka_port.urls import site_path

log = logging.getLogger(__name__)
TOKEN_CHARS: Final = 29  # of the audit: a time and an id
ROW_CHARS: Final = 4_000
SURE: Final = N_("Say that you are sure: what is thrown away is delivered no more, and an index may lack it.")
STATES: Final = {  # of a trigger
    "running": N_("running"),
    "paused": N_("paused"),
    "blocked": N_("held up"),
    "unreadable": N_("unreadable"),
}
_AMOUNTS: Final = {
    "pages": N_("Pages"),
    "revisions": N_("Revisions, with those of deleted pages"),
    "files": N_("Files, with their versions"),
    "contents": N_("Contents of files; equal files have one"),
    "comments": N_("Comments"),
    "accounts": N_("Accounts"),
}


def handle_audit(site: Site, request: Request, _name: str) -> Response:
    site.wiki.moves.require_site()
    given = request.args
    what, user = given.get("what", ""), " ".join(given.get("user", "").split())[:NAME_CHARS_MAX]
    found, token = site.accounts.audit.part(before=given.get("before", "")[:TOKEN_CHARS], what=what, user=user)
    return site.html(
        "audit.html",
        found=found,
        kinds={kind: _(words) for kind, words in KINDS.items()},
        what=what,
        user=user,
        onward=site_path("audit", what=what, user=user, before=token) if token else "",
        scanned=AUDIT_SCANNED if token and len(found) < AUDIT_LISTED else 0,
    )


# --- jobs --------------------------------------------------------------------------------------


def handle_jobs(site: Site, request: Request, _name: str) -> Response:
    maintenance = site.wiki.moves.maintenance()

    def form(status: int, problem: str) -> Response:
        try:
            triggers, letters = maintenance.triggers(), maintenance.letters()
        except StoreRefused as refused:
            triggers, letters, problem = [], [], problem or str(refused)
        values = {
            "has_triggers": maintenance.has_triggers,
            "triggers": triggers,
            "states": {state: _(words) for state, words in STATES.items()},
            "letters": [(one, one.row.hex(), one.page or one.row.decode(errors="replace")) for one in letters],
            "more": sum(one.dead_letters for one in triggers) - len(letters),
            "sure": (request.form.get("trigger", ""), request.form.get("row", "")) if "sure" in request.form else None,
            "problem": problem,
        }
        return form_page(site, request, "jobs.html", status=status, **values)

    def change() -> Response:
        _retry_or_discard(site, request, maintenance)
        return redirect(site_path("jobs"))

    return answer_form(site, request, form, change)


def _retry_or_discard(site: Site, request: Request, maintenance: Maintenance) -> None:
    trigger, row = request.form.get("trigger", ""), _row(request.form.get("row", ""))
    step: Callable[[str, bytes], int] = maintenance.retry
    what = "dead letters retried"
    if ("discard" in request.form) == ("retry" in request.form):
        raise Refused(_("Choose what to change."), 400)
    if "discard" in request.form:
        if "sure" not in request.form:
            raise Refused(_(SURE), 400)
        step, what = maintenance.discard, "dead letters discarded"
    try:
        count = step(trigger, row)
    except StoreRefused as refused:
        raise Refused(str(refused), 409) from None
    if not count:
        return
    by, note = site.visitor.signature, f"{trigger}: {count} {'of a row' if row else 'of all rows'}"
    try:
        site.accounts.audit.note(what, user="", by=by, note=note, network=client_of(request).network)
    except StoreUnavailable as away:
        log.warning("%s (%s) by %s is not in the audit: %s", what, note, by, away)


def _row(given: str) -> bytes:
    """Return the row in a form, b"" for all rows.  Raises Refused."""
    try:
        return bytes.fromhex(given[:ROW_CHARS])
    except ValueError:
        raise Refused(_("Choose what to change."), 400) from None


# --- sizes -------------------------------------------------------------------------------------


def handle_sizes(site: Site, request: Request, _name: str) -> Response:
    maintenance = site.wiki.moves.maintenance()
    amounts = amounts_of(site.accounts.rows, site.wiki.count_pages_roughly())
    problem, on_disk = "", dict[str, int]()
    try:
        on_disk = bytes_on_disk(maintenance)
    except StoreRefused as refused:
        problem = str(refused)
    named = [(_(words), amounts[kind]) for kind, words in _AMOUNTS.items()]
    backup, unknown = _last_backup(site)
    return site.html(
        "sizes.html",
        amounts=named,
        on_disk=on_disk,
        total=sum(on_disk.values()),
        problem=problem,
        backup=backup,
        unknown=unknown,
    )


def _last_backup(site: Site) -> tuple[LastBackup | None, str]:
    """Return the last backup, or why nothing is known of it; "" if the wiki has no file that says it."""
    if site.config.backup_report is None:
        return None, ""
    try:
        return last_backup(site.config.backup_report), ""
    except NoReport as why:
        return None, str(why)
