"""A person's settings: the appearance of the wiki, their mail address, their password."""

from __future__ import annotations

from dataclasses import fields

from werkzeug.wrappers import Request, Response

from wikka_port.accounts.entering import client_of
from wikka_port.accounts.records import Account
from wikka_port.accounts.settings import ROWS_MAX, ROWS_MIN, zones
from wikka_port.accounts.settings_form import checked_settings
from wikka_port.accounts.signing_in import WRONG_PASSWORD, Refused
from wikka_port.accounts.user_names import ADDRESS_CHARS_MAX, PASSWORD_CHARS_MIN, Unsuitable, checked_password
from wikka_port.forms import STALE_FORM, form_page, is_genuine
from wikka_port.handlers.login import form as login_form
from wikka_port.schema import folded
from wikka_port.site import Site, redirect
from wikka_port.texts import N_, _
from wikka_port.urls import site_path
from wikka_port.visitors import unregistered

SENT = N_("A link was sent to the new address; it counts once you have followed it.")
CHANGED = N_("The new password is set, and all sessions were ended. Sign in with it.")
SAVED = N_("The settings are saved.")


def handle(site: Site, request: Request, name: str) -> Response:
    account = site.accounts.directory.account(site.visitor.name or "")
    if site.visitor.name is None or account is None:
        return redirect(site_path("login", next=site_path("settings")))
    if request.method != "POST":
        return _form(site, request, account, done=_(SAVED) if request.args.get("saved") else "")
    try:
        if not is_genuine(site, request):
            raise Refused(_(STALE_FORM))
        what = request.form.get("do", "")
        if what == "password":
            return _password(site, request, account)
        if what == "mail":
            return _mail(site, request, account)
        given = {"dblclick": "", **request.form}
        site.accounts.directory.set_settings(account, checked_settings(given, account.settings))
        return redirect(site_path("settings", saved=1))
    except Unsuitable as unsuitable:
        return _form(site, request, account, status=400, problem=str(unsuitable))
    except Refused as refused:
        return _form(site, request, account, status=refused.status, problem=str(refused))


def confirm_password(site: Site, request: Request, account: Account) -> None:
    """The person at the browser knows the password; one who has none came by the proxy.  Raises Refused."""
    site.accounts.signing_in.check_rate(client_of(request))
    if account.password and not site.accounts.signing_in.is_password(account, request.form.get("current", "")):
        raise Refused(_(WRONG_PASSWORD))


def _password(site: Site, request: Request, account: Account) -> Response:
    registration = site.accounts.registration
    password = checked_password(request.form.get("password", ""), name=account.name, address=account.email)
    confirm_password(site, request, account)
    registration.set_password(account, registration.passwords.hashed(password), client_of(request))
    return login_form(site.for_new_session(unregistered(site.visitor.network_hash)), request, done=_(CHANGED))


def _mail(site: Site, request: Request, account: Account) -> Response:
    confirm_password(site, request, account)
    email = request.form.get("email", "")
    if email.strip() and site.accounts.by_recipient.wait_s(folded(account.name)) > 0:
        raise Refused(_("These were many mails in a short time. Please try again later."), 429)
    site.accounts.registration.request_address_change(account, email)
    return _form(site, request, account, done=_(SENT))


def _form(
    site: Site, request: Request, account: Account, *, status: int = 200, problem: str = "", done: str = ""
) -> Response:
    typed = request.form if problem else {}
    values = {field.name: getattr(account.settings, field.name) for field in fields(account.settings)}
    if typed.get("do") == "looks":
        numbers = {field for field in ("changes", "revisions") if not typed.get(field, "").strip().isdecimal()}
        values |= {"dblclick": False, **{field: value for field, value in typed.items() if field not in numbers}}
    return form_page(
        site,
        request,
        "settings.html",
        status=status,
        account=account,
        settings=values,
        email=typed.get("email", account.email)[:ADDRESS_CHARS_MAX],
        zones=sorted(zones()),
        languages=site.languages.names,
        rows=(ROWS_MIN, ROWS_MAX),
        password_min=PASSWORD_CHARS_MIN,
        has_mail=site.accounts.registration.is_address_required,
        problem=problem,
        done=done,
    )
