"""Keys of the visitor's account for programs that call the API: make one, list them, end one.

A new key needs the password, so that who finds an open browser cannot keep the account.  Its token is shown once.
"""

from __future__ import annotations

from typing import Final

from werkzeug.wrappers import Request, Response

from wikka_port.accounts.api_keys import DAYS_MAX, FEED, KEYS_MAX, LABEL_CHARS_MAX, SCOPES, KeyNotMade
from wikka_port.accounts.factory import public_address
from wikka_port.accounts.records import Account
from wikka_port.accounts.sign_in_form import client_of
from wikka_port.accounts.signing_in import Refused
from wikka_port.drafts import number_in
from wikka_port.forms import answer_form, form_page
from wikka_port.handlers.settings import confirm_password
from wikka_port.site import Site, redirect
from wikka_port.texts import _
from wikka_port.urls import site_path

_DAYS: Final = (7, 30, 90, 365, DAYS_MAX)


def handle_keys(site: Site, request: Request, name: str) -> Response:
    account = site.accounts.directory.account(site.visitor.name or "")
    if site.visitor.name is None or account is None:
        return redirect(site_path("login", next=site_path("keys")))

    def form(status: int, problem: str) -> Response:
        return _form(site, request, account, status=status, problem=problem)

    def change() -> Response:
        ended = request.form.get("end", "")
        if not ended:
            return _make(site, request, account)
        site.accounts.keys.end_key(account.row, ended)
        _note(site, request, "key ended", ended[:8])
        return redirect(site_path("keys"))

    return answer_form(site, request, form, change)


def _make(site: Site, request: Request, account: Account) -> Response:
    scopes = [scope for scope in SCOPES if request.form.get(f"scope_{scope}")]
    days = number_in(request.form, "days")
    if not scopes:
        raise Refused(_("Choose what the key may do."), 400)
    if not 1 <= days <= DAYS_MAX:
        raise Refused(_("A key ends after 1 to {most} days.", most=DAYS_MAX), 400)
    confirm_password(site, request, account)
    try:
        label = request.form.get("label", "")[:LABEL_CHARS_MAX]
        token = site.accounts.keys.issue(account, label=label, scopes=scopes, days=days)
    except KeyNotMade as refused:
        raise Refused(str(refused), 409) from None
    _note(site, request, "key made", f"{' '.join(scopes)}, {days} days: {label}")
    feed = public_address(site.config) + site_path("inbox.xml", key=token) if FEED in scopes else ""
    return _form(site, request, account, token=token, feed=feed)


def _note(site: Site, request: Request, what: str, said: str) -> None:
    site.accounts.audit.note(what, user=site.visitor.name or "", note=said, network=client_of(request).network)


def _form(
    site: Site,
    request: Request,
    account: Account,
    *,
    status: int = 200,
    problem: str = "",
    token: str = "",
    feed: str = "",
) -> Response:
    typed = request.form if problem else {}
    now = site.accounts.clock_ms()
    return form_page(
        site,
        request,
        "keys.html",
        status=status,
        account=account,
        keys=[(one.id, one.key, one.key.expires_ms <= now) for one in site.accounts.keys.of(account.row)],
        most=KEYS_MAX,
        scopes=SCOPES,
        days=_DAYS,
        label_chars=LABEL_CHARS_MAX,
        typed=typed,
        chosen={scope for scope in SCOPES if typed.get(f"scope_{scope}")} if typed else {"read"},
        chosen_days=number_in(typed, "days") if typed else 90,
        token=token,
        feed=feed,
        problem=problem,
    )
