"""Accounts, for administrators: listed, made, invited, changed; the same as ``wikka user``.

    GET  /-/users?q=Mi&state=pending&from=mia   a part of the list, by name
    GET  /-/users?name=Mia                      one account, with its sessions, keys and groups
    POST do=add, do=invite                      a new account, a link for whoever registers by it
    POST do=status, administrator, email        changes of one account
    POST do=reset, mail, sessions, keys         a link for a new password, shown or mailed; the end of what signs it in

A link is in the answer to its POST alone, and in no address.  Administrators cannot change the status or the rights of
their own account here, so a wiki does not lose its last one by a slip.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from werkzeug.wrappers import Request, Response

from wikka_port.accounts.administration import ADMINISTRATORS, SETTABLE, AccountChanges, NotChanged, account_part
from wikka_port.accounts.api_keys import SCOPES
from wikka_port.accounts.deactivation import neutral_name
from wikka_port.accounts.factory import public_address
from wikka_port.accounts.links import LIFE_S
from wikka_port.accounts.records import STATUSES, Account
from wikka_port.accounts.sign_in_form import client_of
from wikka_port.accounts.signing_in import Refused
from wikka_port.accounts.user_names import ADDRESS_CHARS_MAX, NAME_CHARS_MAX
from wikka_port.forms import answer_form, form_page
from wikka_port.limits import ACCOUNTS_LISTED, ACCOUNTS_SCANNED
from wikka_port.request_queues import run_in_slow_lane
from wikka_port.rights.groups import groups_with
from wikka_port.site import Site, redirect
from wikka_port.texts import N_, _
from wikka_port.urls import site_path

STATE_WORDS: Final = {
    "active": N_("active"),
    "pending": N_("waits to be let in"),
    "invited": N_("has not set a password yet"),
    "signed-up": N_("has not confirmed the address yet"),
    "suspended": N_("suspended"),
    "banned": N_("banned"),
    "deleted": N_("deleted"),
}
assert STATE_WORDS.keys() == STATUSES, "each status has its words"
OWN: Final = N_("This is your own account: another administrator can change its status and its rights.")
ANOTHER: Final = N_("This account was made anew meanwhile. Please look at it again.")
SURE: Final = N_("Say that you are sure: an account that is deleted does not come back.")


def handle_users(site: Site, request: Request, _name: str) -> Response:
    site.wiki.moves.require_site()
    given = request.form if request.method == "POST" else request.args
    name = given.get("name", "")[:ADDRESS_CHARS_MAX]
    changes = AccountChanges(site.wiki.edits, site.accounts, site.visitor.signature, client_of(request).network)
    if name and given.get("do") != "add":
        return _one(site, request, changes, name)

    def form(status: int, problem: str) -> Response:
        return _listed(site, request, status=status, problem=problem)

    return answer_form(site, request, form, lambda: _made(site, request, changes))


# --- the list ----------------------------------------------------------------------------------


def _listed(site: Site, request: Request, *, status: int = 200, problem: str = "", **shown: str) -> Response:
    given = request.values
    begins, state = given.get("q", "").strip()[:NAME_CHARS_MAX], given.get("state", "")
    start = given.get("from", "")[:ADDRESS_CHARS_MAX].encode("utf-8", "replace")
    found, onward = account_part(site.accounts.rows, begins=begins, state=state, start=start)
    query = {"q": begins, "state": state}
    values = {
        "link": "",
        "whose": "",
        **shown,
        "found": found,
        "begins": begins,
        "state": state,
        "states": {**_states(), ADMINISTRATORS: _("administrators")},
        "onward": site_path("users", **query, **{"from": onward.decode(errors="replace")}) if onward else "",
        "scanned": ACCOUNTS_SCANNED if onward and len(found) < ACCOUNTS_LISTED else 0,
        "typed": {
            "name": request.form.get("name", "")[:ADDRESS_CHARS_MAX],
            "email": request.form.get("email", "")[:ADDRESS_CHARS_MAX],
            "admin": "admin" in request.form,
        },
        "problem": problem,
    }
    return form_page(site, request, "users.html", status=status, **values)


def _states() -> dict[str, str]:
    return {state: _(words) for state, words in STATE_WORDS.items()}


def _made(site: Site, request: Request, changes: AccountChanges) -> Response:
    fields = request.form
    if fields.get("do") == "invite":
        return _listed(site, request, link=_link(site, "register", invitation=changes.invitation()))
    try:
        account = changes.add(fields.get("name", ""), email=fields.get("email", ""), admin="admin" in fields)
    except NotChanged as refused:
        raise Refused(str(refused), 409) from None
    token = changes.reset_token(account, LIFE_S["invitation"])
    return _listed(site, request, link=_link(site, "reset", token=token), whose=account.name)


def _link(site: Site, handler: str, **query: str) -> str:
    return public_address(site.config) + site_path(handler, **query)


# --- one account -------------------------------------------------------------------------------


def _one(site: Site, request: Request, changes: AccountChanges, name: str) -> Response:
    account = site.accounts.directory.account(name)
    if account is None:
        return _listed(site, request, status=404, problem=_("There is no user “{name}”.", name=name))

    def form(status: int, problem: str) -> Response:
        return _account_form(site, request, account, status=status, problem=problem)

    return answer_form(site, request, form, lambda: _changed(site, request, changes, account))


def _account_form(
    site: Site, request: Request, account: Account, *, status: int = 200, problem: str = "", link: str = ""
) -> Response:
    typed = request.form if problem else {}
    known, more = groups_with(site.accounts.rows, site.wiki.rights, account.name)
    values: dict[str, Any] = {
        "account": account,
        "is_own": account.name == site.visitor.name,
        "states": _states(),
        "settable": SETTABLE,
        "neutral": neutral_name(account),
        "has_mail": site.accounts.registration.is_address_required,
        "sessions": [one.session for one in site.accounts.sessions.of(account.row)],
        "keys": [one.key for one in site.accounts.keys.of(account.row)],
        "scopes": SCOPES,
        "groups": known,
        "more_groups": more,
        "typed": {
            "status": typed.get("status", account.status),
            "admin": "admin" in typed if typed.get("do") == "administrator" else account.admin,
            "email": typed.get("email", account.email)[:ADDRESS_CHARS_MAX],
            "sure": "sure" in typed,
        },
        "link": link,
        "done": _("The change is made; it counts with the next request.") if request.args.get("done") else "",
        "problem": problem,
    }
    return form_page(site, request, "user.html", status=status, **values)


def _changed(site: Site, request: Request, changes: AccountChanges, account: Account) -> Response:
    fields = request.form
    if fields.get("id", "") != account.id:
        raise Refused(_(ANOTHER), 409)
    steps: dict[str, Callable[[], object]] = {
        "status": lambda: _set_status(site, request, changes, account),
        "administrator": lambda: _set_administrator(site, changes, account, "admin" in fields),
        "email": lambda: changes.set_email(account, fields.get("email", "")),
        "mail": lambda: changes.mail_reset(account),
        "sessions": lambda: changes.end_sessions(account),
        "keys": lambda: changes.end_keys(account),
    }
    try:
        if fields.get("do") == "reset":
            link = _link(site, "reset", token=changes.reset_token(account))
            return _account_form(site, request, account, link=link)
        step = steps.get(fields.get("do", ""))
        if step is None:
            raise Refused(_("Choose what to change."), 400)
        step()
    except NotChanged as refused:
        raise Refused(str(refused), 409) from None
    return redirect(site_path("users", name=account.name, done=1))


def _set_status(site: Site, request: Request, changes: AccountChanges, account: Account) -> None:
    wanted = next((one for one in SETTABLE if one == request.form.get("status", "")), None)
    if wanted is None:
        raise Refused(_("Choose a status."), 400)
    _require_other(site, account)
    if wanted == "deleted":
        if "sure" not in request.form:
            raise Refused(_(SURE), 400)
        run_in_slow_lane(request.environ)
    changes.set_status(account, wanted)


def _set_administrator(site: Site, changes: AccountChanges, account: Account, admin: bool) -> None:
    _require_other(site, account)
    changes.set_administrator(account, admin)


def _require_other(site: Site, account: Account) -> None:
    if account.name == site.visitor.name:
        raise Refused(_(OWN), 409)
