"""Signing in and out, registration, and the links that are sent by mail."""

from __future__ import annotations

from typing import Final

from werkzeug.wrappers import Request, Response

from wikka_port.accounts.directory import NameTaken
from wikka_port.accounts.records import Account
from wikka_port.accounts.registration import OUTDATED, TAKEN, RegistrationForm
from wikka_port.accounts.sessions import ticket_of, visitor_of
from wikka_port.accounts.sign_in_form import Entered, client_of, enter, leave
from wikka_port.accounts.signing_in import Refused
from wikka_port.accounts.user_names import ADDRESS_CHARS_MAX, NAME_CHARS_MAX, PASSWORD_CHARS_MIN
from wikka_port.antispam.submissions import words_refusal
from wikka_port.forms import STALE_FORM, answer_form, form_page, is_genuine
from wikka_port.refusals import block_sentence
from wikka_port.schema import folded
from wikka_port.site import Site, redirect
from wikka_port.texts import N_, _
from wikka_port.urls import site_path
from wikka_port.visitors import unregistered

PASSWORD_SET: Final = N_("The new password is set, and all sessions were ended. Sign in with it.")


def handle_login(site: Site, request: Request, name: str) -> Response:
    """Sign a visitor in and redirect to ``?next=/Page``, which must be an address of this wiki."""
    onward = within(request.values.get("next", ""))

    def form(status: int, problem: str) -> Response:
        return login_form(site, request, onward, status=status, problem=problem)

    return answer_form(site, request, form, lambda: enter(site, request).let_in(request, redirect(onward)))


def login_form(
    site: Site, request: Request, onward: str = "/", *, status: int = 200, problem: str = "", done: str = ""
) -> Response:
    return form_page(
        site,
        request,
        "login.html",
        status=status,
        registration=site.accounts.registration.policy,
        has_mail=site.accounts.registration.is_address_required,
        onward=onward,
        problem=problem,
        user=request.form.get("user", ""),
        stays=request.form.get("keep") == "1",
        done=done,
    )


def within(address: str) -> str:
    """Return ``address`` if it is a path of this wiki in ASCII, else "/"."""
    if not (address.isascii() and address.isprintable()) or "\\" in address or not address.startswith("/"):
        return "/"
    return "/" if address.startswith("//") else address


def handle_logout(site: Site, request: Request, name: str) -> Response:
    """Sign the visitor out by a button, so that no picture or link of a different site can do it."""
    if request.method == "POST" and is_genuine(site, request):
        if site.visitor.name:
            site.accounts.audit.note("sign-out", user=site.visitor.name, network=client_of(request).network)
        return leave(site, request, redirect("/"))
    return form_page(site, request, "logout.html", status=403 if request.method == "POST" else 200)


def handle_register(site: Site, request: Request, name: str) -> Response:
    """Register an account; ``?invitation=TOKEN`` and ``?administrator=TOKEN`` come from links given to a person."""
    typed = _read_form(request)
    if site.visitor.name and typed.administrator:
        return _become_administrator(site, request, typed.administrator)

    def form(status: int, problem: str) -> Response:
        closed = (request.method != "POST" and site.accounts.registration.refusal(typed)) or ""
        return _register_form(site, request, typed, status=403 if closed else status, problem=problem, closed=closed)

    def register() -> Response:
        site.accounts.signing_in.check_rate(client_of(request))
        block = site.wiki.rights.rules().blocks.of_address(site.visitor.address)
        if block is not None and not typed.administrator:
            raise Refused(block_sentence(site, block))
        name = typed.name[:NAME_CHARS_MAX]
        if not typed.administrator and (why := words_refusal(site, request, name=name, is_account=True)):
            raise Refused(_("Choose another name. {why}", why=why), 400)
        try:
            return _registered(site, request, typed)
        except NameTaken:
            raise Refused(_(TAKEN), 409) from None

    return answer_form(site, request, form, register)


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
    def form(_status: int, problem: str) -> Response:
        values = {"problem": problem, "administrator": token}
        return form_page(site, request, "administrator.html", status=403 if problem else 200, **values)

    def become_administrator() -> Response:
        account = site.accounts.directory.account(site.visitor.name or "")
        if account is None:
            raise Refused(_(STALE_FORM))
        site.accounts.registration.become_administrator(token, account, client_of(request))
        return redirect(site_path("settings"))

    return answer_form(site, request, form, become_administrator)


def _register_form(
    site: Site, request: Request, typed: RegistrationForm, *, status: int, problem: str, closed: str
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


def handle_confirm(site: Site, request: Request, name: str) -> Response:
    """Confirm a mail address; the link opens a page with a button, since programs that scan mails follow links."""
    token = request.values.get("token", "")

    def form(_status: int, problem: str) -> Response:
        values = {"token": token, "problem": problem}
        return form_page(site, request, "confirm.html", status=403 if problem else 200, **values)

    def confirm() -> Response:
        site.accounts.signing_in.check_rate(client_of(request))
        account = site.accounts.registration.confirm(token, client_of(request))
        done = _("Your mail address is confirmed.")
        if account.status == "pending":
            done = f"{done} {_('An administrator has to let you in now.')}"
        return login_form(site, request, done=done)

    return answer_form(site, request, form, confirm)


def handle_reset(site: Site, request: Request, name: str) -> Response:
    """Request a link for a forgotten password; with the link, set a new one.

    The answer to the first step is the same whether or not there is such an account.
    """
    token = request.values.get("token", "")

    def form(status: int, problem: str) -> Response:
        if request.method != "POST" and token and not _name(site, token):
            return _reset_form(site, request, problem=_(OUTDATED), status=403)
        return _reset_form(site, request, token=token, problem=problem, status=status)

    def request_or_set() -> Response:
        site.accounts.signing_in.check_rate(client_of(request))
        return _set_password(site, request, token) if token else _request_reset(site, request)

    return answer_form(site, request, form, request_or_set)


def _name(site: Site, token: str) -> str:
    """Return the name of the account whose password the link sets, or "" if the link is not valid any more."""
    link = site.accounts.registration.links.find_link(token, "reset")
    account = site.accounts.registration.of_reset_link(link) if link else None
    return account.name if account else ""


def _request_reset(site: Site, request: Request) -> Response:
    given = request.form.get("user", "").strip()[:ADDRESS_CHARS_MAX]
    if not given:
        raise Refused(_("Please give your name, or your mail address."), 400)
    if site.accounts.by_recipient.wait_s(folded(given)) == 0:
        site.accounts.registration.request_reset(given)
    return _reset_form(site, request, asked=given)


def _set_password(site: Site, request: Request, token: str) -> Response:
    site.accounts.registration.reset(token, request.form.get("password", ""), client_of(request))
    return login_form(site.for_new_session(unregistered(site.visitor.network_hash)), request, done=_(PASSWORD_SET))


def _reset_form(
    site: Site, request: Request, *, token: str = "", problem: str = "", status: int = 200, asked: str = ""
) -> Response:
    name = _name(site, token) if token else ""
    user = request.form.get("user", "").strip()[:ADDRESS_CHARS_MAX]
    shown = {"name": name, "problem": problem, "asked": asked, "user": user}
    values = {"token": token, "password_min": PASSWORD_CHARS_MIN, **shown}
    has_mail = site.accounts.registration.is_address_required
    return form_page(site, request, "reset.html", status=status, has_mail=has_mail, **values)
