"""A mail address is confirmed: the link leads to a button, since programs that look through mails follow links."""

from __future__ import annotations

from werkzeug.wrappers import Request, Response

from wikka_port.accounts.entering import client_of
from wikka_port.accounts.signing_in import Refused
from wikka_port.forms import STALE_FORM, form_page, is_genuine
from wikka_port.handlers.login import form as login_form
from wikka_port.site import Site
from wikka_port.texts import _


def handle(site: Site, request: Request, name: str) -> Response:
    token, problem = request.values.get("token", ""), ""
    if request.method == "POST":
        try:
            if not is_genuine(site, request):
                raise Refused(_(STALE_FORM))
            site.accounts.signing_in.check_rate(client_of(request))
            account = site.accounts.registration.confirm(token, client_of(request))
        except Refused as refused:
            problem = str(refused)
        else:
            done = _("Your mail address is confirmed.")
            if account.status == "pending":
                done = f"{done} {_('An administrator has to let you in now.')}"
            return login_form(site, request, done=done)
    return form_page(site, request, "confirm.html", status=403 if problem else 200, token=token, problem=problem)
