"""Registration: by anybody, by invitation, or by the link that makes the first administrator."""

from __future__ import annotations

from werkzeug.wrappers import Request, Response

from wikka_port.accounts.directory import NameTaken
from wikka_port.accounts.entering import Entered, client_of
from wikka_port.accounts.records import Account
from wikka_port.accounts.registration import TAKEN, RegistrationForm
from wikka_port.accounts.session_store import visitor_of
from wikka_port.accounts.sessions import ticket_of
from wikka_port.accounts.signing_in import Refused
from wikka_port.accounts.user_names import PASSWORD_CHARS_MIN, Unsuitable
from wikka_port.forms import STALE_FORM, form_page, is_genuine
from wikka_port.site import Site, redirect
from wikka_port.texts import _
from wikka_port.urls import site_path


def handle(site: Site, request: Request, name: str) -> Response:
    """``?invitation=TOKEN`` and ``?administrator=TOKEN`` are links that were given to somebody."""
    typed = _read_form(request)
    if site.visitor.name and typed.administrator:
        return _become_administrator(site, request, typed.administrator)
    if request.method == "POST" and not is_genuine(site, request):
        return _form(site, request, typed, status=403, problem=_(STALE_FORM))
    try:
        if request.method == "POST":
            site.accounts.signing_in.check_rate(client_of(request))
            return _registered(site, request, typed)
        refusal = site.accounts.registration.refusal(typed)
    except Unsuitable as unsuitable:
        return _form(site, request, typed, status=400, problem=str(unsuitable))
    except NameTaken:
        return _form(site, request, typed, status=409, problem=_(TAKEN))
    except Refused as refused:
        return _form(site, request, typed, status=refused.status, problem=str(refused))
    return _form(site, request, typed, status=403, closed=refusal) if refusal else _form(site, request, typed)


def _read_form(request: Request) -> RegistrationForm:
    given = request.values
    return RegistrationForm(
        name=given.get("user", ""),
        password=request.form.get("password", ""),
        email=given.get("email", ""),
        invitation=given.get("invitation", ""),
        administrator=given.get("administrator", ""),
    )


def _registered(site: Site, request: Request, typed: RegistrationForm) -> Response:
    account = site.accounts.registration.register(typed, client_of(request))
    if account.status != "active":
        return site.html("registered.html", account=account, email=typed.email)
    return _entered(site, request, account)


def _entered(site: Site, request: Request, account: Account) -> Response:
    client = client_of(request)
    cookie = site.accounts.sessions.begin(account, network=client.network, agent=client.agent)
    ticket = ticket_of(cookie) if cookie else None
    if cookie is None or ticket is None:
        return redirect(site_path("login"))
    visitor = visitor_of(account, site.visitor.network_hash, ticket.column)
    return Entered(site.for_new_session(visitor), cookie, keep=False).let_in(request, redirect("/"))


def _become_administrator(site: Site, request: Request, token: str) -> Response:
    problem = ""
    if request.method == "POST":
        account = site.accounts.directory.account(site.visitor.name or "")
        if not is_genuine(site, request) or account is None:
            problem = _(STALE_FORM)
        else:
            try:
                site.accounts.registration.become_administrator(token, account, client_of(request))
                return redirect(site_path("settings"))
            except Refused as refused:
                problem = str(refused)
    return form_page(
        site, request, "administrator.html", status=403 if problem else 200, problem=problem, administrator=token
    )


def _form(
    site: Site, request: Request, typed: RegistrationForm, *, status: int = 200, problem: str = "", closed: str = ""
) -> Response:
    return form_page(
        site,
        request,
        "register.html",
        status=status,
        problem=problem,
        closed=closed,
        asked=typed,
        is_address_required=site.accounts.registration.is_address_required,
        waits=site.accounts.registration.policy == "approval" and not typed.invitation,
        names=site.config.user_names,
        password_min=PASSWORD_CHARS_MIN,
    )
