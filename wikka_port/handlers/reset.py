"""A forgotten password: a link is requested, and with it a new password is set.

The answer to the first step is the same whether or not there is such an account.
"""

from __future__ import annotations

from werkzeug.wrappers import Request, Response

from wikka_port.accounts.entering import client_of
from wikka_port.accounts.registration import OUTDATED
from wikka_port.accounts.signing_in import Refused
from wikka_port.accounts.user_names import ADDRESS_CHARS_MAX, PASSWORD_CHARS_MIN, Unsuitable
from wikka_port.forms import STALE_FORM, form_page, is_genuine
from wikka_port.handlers.login import form as login_form
from wikka_port.schema import folded
from wikka_port.site import Site
from wikka_port.texts import N_, _
from wikka_port.visitors import unregistered

DONE = N_("The new password is set, and all sessions were ended. Sign in with it.")


def handle(site: Site, request: Request, name: str) -> Response:
    token = request.values.get("token", "")
    problem, status = "", 200
    try:
        if request.method == "POST":
            if not is_genuine(site, request):
                raise Refused(_(STALE_FORM))
            site.accounts.signing_in.check_rate(client_of(request))
            return _set(site, request, token) if token else _request_reset(site, request)
        if token and not _name(site, token):
            problem, status, token = _(OUTDATED), 403, ""
    except Unsuitable as unsuitable:
        problem, status = str(unsuitable), 400
    except Refused as refused:
        problem, status = str(refused), refused.status
    return _form(site, request, token=token, problem=problem, status=status)


def _name(site: Site, token: str) -> str:
    """Return the account whose password the link sets; "" if it is not good any more."""
    link = site.accounts.registration.links.find_link(token, "reset")
    account = site.accounts.registration.of_reset_link(link) if link else None
    return account.name if account else ""


def _request_reset(site: Site, request: Request) -> Response:
    given = request.form.get("user", "").strip()[:ADDRESS_CHARS_MAX]
    if not given:
        raise Refused(_("Please give your name, or your mail address."), 400)
    if site.accounts.by_recipient.wait_s(folded(given)) == 0:
        site.accounts.registration.request_reset(given)
    return _form(site, request, asked=given)


def _set(site: Site, request: Request, token: str) -> Response:
    site.accounts.registration.reset(token, request.form.get("password", ""), client_of(request))
    return login_form(site.for_new_session(unregistered(site.visitor.network_hash)), request, done=_(DONE))


def _form(
    site: Site, request: Request, *, token: str = "", problem: str = "", status: int = 200, asked: str = ""
) -> Response:
    name = _name(site, token) if token else ""
    user = request.form.get("user", "").strip()[:ADDRESS_CHARS_MAX]
    shown = {"name": name, "problem": problem, "asked": asked, "user": user}
    values = {"token": token, "password_min": PASSWORD_CHARS_MIN, **shown}
    has_mail = site.accounts.registration.is_address_required
    return form_page(site, request, "reset.html", status=status, has_mail=has_mail, **values)
