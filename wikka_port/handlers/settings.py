"""Settings of a signed-in user: looks, mail address, password and sessions; and the deletion of the account.

A reader without an account can choose the colours of the browser.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Final
from urllib.parse import urlsplit

from werkzeug.wrappers import Request, Response

from wikka_port import cookies
from wikka_port.accounts.deactivation import leave, neutral_name
from wikka_port.accounts.directory import LastAdministrator, LeaseTaken
from wikka_port.accounts.records import Account
from wikka_port.accounts.settings import FLAGS, ROWS_MAX, ROWS_MIN, THEMES, Settings, rows_of, settings_of, zones
from wikka_port.accounts.sign_in_form import client_of
from wikka_port.accounts.signing_in import WRONG_PASSWORD, Refused
from wikka_port.accounts.tables import SESSION, user_row
from wikka_port.accounts.user_names import ADDRESS_CHARS_MAX, PASSWORD_CHARS_MIN, Unsuitable, checked_password
from wikka_port.forms import answer_form, form_page, is_same_origin, origin_of
from wikka_port.handlers.sign_in import login_form
from wikka_port.schema import folded
from wikka_port.site import Site, redirect
from wikka_port.texts import N_, _
from wikka_port.urls import site_path
from wikka_port.visitors import unregistered

SENT: Final = N_("A link was sent to the new address; it counts once you have followed it.")
CHANGED: Final = N_("The new password is set, and all sessions and keys were ended. Sign in with it.")
SAVED: Final = N_("The settings are saved.")
_HASH_CHARS: Final = 64  # of a session
_THEME_S: Final = 365 * 24 * 3600


def handle_settings(site: Site, request: Request, name: str) -> Response:
    account = site.accounts.directory.account(site.visitor.name or "")
    if site.visitor.name is None or account is None:
        return redirect(site_path("login", next=site_path("settings")))

    def form(status: int, problem: str) -> Response:
        done = _(SAVED) if request.method != "POST" and request.args.get("saved") else ""
        return _form(site, request, account, status=status, problem=problem, done=done)

    def change() -> Response:
        what = request.form.get("do", "")
        if what == "password":
            return _password(site, request, account)
        if what == "mail":
            return _mail(site, request, account)
        given = {**dict.fromkeys(FLAGS, ""), **request.form}
        settings = _checked_settings(given, account.settings)
        # The watches come first: a crash in between leaves a form that shows the former settings, to be saved again.
        site.wiki.notices.take_settings(settings)
        site.accounts.directory.set_settings(account, settings)
        response = redirect(site_path("settings", saved=1))
        cookies.drop_cookie(response, request, cookies.THEME)
        return response

    return answer_form(site, request, form, change)


def confirm_password(site: Site, request: Request, account: Account) -> None:
    """Raise Refused if the typed password is wrong, or too many were tried.  Accounts of a sign-on proxy have none."""
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
        values |= {
            **dict.fromkeys(FLAGS, False),
            **{field: value for field, value in typed.items() if field not in numbers},
        }
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


def handle_sessions(site: Site, request: Request, name: str) -> Response:
    """List the user's sessions, and end one of them, or all except this one."""
    if site.visitor.name is None:
        return redirect(site_path("login", next=site_path("sessions")))
    row = user_row(site.visitor.name)

    def form(status: int, problem: str) -> Response:
        found = site.accounts.sessions.of(row)
        shown = [(one.column.decode()[len(SESSION) :], one.session) for one in found]
        values = {"sessions": shown, "here": site.visitor.session[len(SESSION) :], "problem": problem}
        return form_page(site, request, "sessions.html", status=status, **values)

    def end() -> Response:
        _end(site, row, request.form.get("end", ""))
        return redirect(site_path("sessions"))

    return answer_form(site, request, form, end)


def _end(site: Site, row: bytes, which: str) -> None:
    """End the session with the hash ``which``; with "others" end all sessions except the visitor's present one."""
    if which == "others":
        for one in site.accounts.sessions.of(row):
            if one.column.decode() != site.visitor.session:
                site.accounts.sessions.end(row, one.column)
    elif which.isascii() and which.isalnum() and len(which) <= _HASH_CHARS:
        site.accounts.sessions.end(row, SESSION + which.encode())
    site.accounts.audit.note("sessions ended", user=site.visitor.name or "", note=which[:8])


def handle_account(site: Site, request: Request, name: str) -> Response:
    """Delete the user's account: its data is erased, and its edits stay under a neutral name."""
    account = site.accounts.directory.account(site.visitor.name or "")
    if site.visitor.name is None or account is None:
        return redirect(site_path("login", next=site_path("account")))

    def form(status: int, problem: str) -> Response:
        values = {"account": account, "neutral": neutral_name(account), "problem": problem}
        return form_page(site, request, "account.html", status=status, **values)

    def leave_wiki() -> Response:
        confirm_password(site, request, account)
        return _leave(site, request, account)

    return answer_form(site, request, form, leave_wiki)


def _leave(site: Site, request: Request, account: Account) -> Response:
    try:
        leave(site.wiki.edits, site.accounts.directory, account)
    except (LastAdministrator, LeaseTaken) as refused:
        raise Refused(str(refused), 409) from None
    site.accounts.audit.note("delete", user=neutral_name(account), network=client_of(request).network)
    gone = site.for_new_session(unregistered(site.visitor.network_hash))
    message = _("The account is deleted. Its edits stay, signed “{name}”.", name=neutral_name(account))
    response = gone.html("error.html", title=_("Good-bye"), message=message, back="")
    cookies.drop_cookie(response, request, cookies.SESSION)
    cookies.drop_cookie(response, request, cookies.BROWSER)
    return response


def _checked_settings(given: Mapping[str, str], base: Settings) -> Settings:
    """Return the settings in a user's form.  Raises Unsuitable if a value cannot be set."""
    zone = given.get("zone", "").strip()
    if zone and zone not in zones():
        raise Unsuitable(
            _("There is no time zone “{zone}”. Write it like Europe/Berlin, or nothing for UTC.", zone=zone)
        )
    for field in ("changes", "revisions"):
        typed = given.get(field, "").strip()
        if typed and str(rows_of(typed, ROWS_MIN - 1)) != typed.lstrip("0"):
            raise Unsuitable(_("A list has {least} to {most} rows.", least=ROWS_MIN, most=ROWS_MAX))
    return settings_of({field: value.strip() for field, value in given.items()}, base)


def handle_theme(site: Site, request: Request, name: str) -> Response:
    """Set the colours of a browser (``?theme=dark``), and lead back to the page with the link.

    The link needs neither script nor a token: a request that another site sends changes nothing.  In this browser it
    wins over an account's setting, until that is saved anew.
    """
    back = _sender(site, request)
    response = redirect(back or "/")
    theme = request.args.get("theme", "")
    if back and theme in THEMES:
        is_default = theme == THEMES[0] and site.visitor.name is None
        cookies.set_cookie(response, request, cookies.THEME, theme, max_age_s=0 if is_default else _THEME_S)
    return response


def _sender(site: Site, request: Request) -> str:
    """Return path and query of the wiki's page that sent the request, or "" if none did."""
    referrer = request.headers.get("Referer", "")
    try:
        parts, origin = urlsplit(referrer), origin_of(referrer)
    except ValueError:  # brackets that are no address of IPv6
        return ""
    path = "/" + parts.path.lstrip("/\\")
    if not referrer.isascii() or not parts.netloc or not is_same_origin(site, request, origin):
        return ""
    return "/" if path == site_path("theme") else f"{path}?{parts.query}" if parts.query else path
