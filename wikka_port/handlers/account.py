"""Delete my account: what it was is erased, and its edits stay under a neutral name."""

from __future__ import annotations

from werkzeug.wrappers import Request, Response

from wikka_port import cookies
from wikka_port.accounts.entering import client_of
from wikka_port.accounts.leaving import leave, neutral_name
from wikka_port.accounts.records import Account
from wikka_port.accounts.signing_in import Refused
from wikka_port.forms import STALE_FORM, form_page, is_genuine
from wikka_port.handlers.settings import confirm_password
from wikka_port.site import Site, redirect
from wikka_port.texts import N_, _
from wikka_port.urls import site_path
from wikka_port.visitors import unregistered

LAST = N_("You are the only administrator. Make somebody else one first; a wiki without one cannot be looked after.")


def handle(site: Site, request: Request, name: str) -> Response:
    account = site.accounts.directory.account(site.visitor.name or "")
    if site.visitor.name is None or account is None:
        return redirect(site_path("login", next=site_path("account")))
    problem, status = "", 200
    if request.method == "POST":
        try:
            if not is_genuine(site, request):
                raise Refused(_(STALE_FORM))
            confirm_password(site, request, account)
            return _leave(site, request, account)
        except Refused as refused:
            problem, status = str(refused), refused.status
    name = neutral_name(account)
    return form_page(site, request, "account.html", status=status, account=account, neutral=name, problem=problem)


def _leave(site: Site, request: Request, account: Account) -> Response:
    if account.admin and not any(_is_administrator(one) for one in site.accounts.directory.all() if one != account):
        raise Refused(_(LAST), 409)
    leave(site.wiki.edits, site.accounts.directory, account)
    site.accounts.audit.note("delete", user=neutral_name(account), network=client_of(request).network)
    gone = site.for_new_session(unregistered(site.visitor.network_hash))
    message = _("The account is deleted. Its edits stay, signed “{name}”.", name=neutral_name(account))
    response = gone.html("error.html", title=_("Good-bye"), message=message, back="")
    cookies.drop_cookie(response, request, cookies.SESSION)
    cookies.drop_cookie(response, request, cookies.BROWSER)
    return response


def _is_administrator(account: Account) -> bool:
    return account.admin and account.status == "active"
