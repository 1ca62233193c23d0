"""Signing in by a form with a name and a password, and signing out: sessions and cookies of a browser."""

from __future__ import annotations

from dataclasses import dataclass, replace

from werkzeug.wrappers import Request, Response

from wikka_port import cookies
from wikka_port.accounts.sessions import ticket_of, visitor_of
from wikka_port.accounts.signing_in import Client, Refused
from wikka_port.accounts.tables import SESSION_LONGEST_S
from wikka_port.site import Site
from wikka_port.texts import _, speak


@dataclass(frozen=True, slots=True)
class Entered:
    site: Site  # for the new session's visitor
    cookie: str
    keep: bool  # whether the session outlives the browser's window

    def let_in(self, request: Request, response: Response) -> Response:
        """Return ``response`` with the cookies of the new session, which replace the old ones."""
        age_s = SESSION_LONGEST_S if self.keep else None
        cookies.set_cookie(response, request, cookies.SESSION, self.cookie, max_age_s=age_s)
        cookies.set_cookie(response, request, cookies.BROWSER, self.site.browser)
        return response


def client_of(request: Request) -> Client:
    return Client(request.remote_addr or "", request.user_agent.string)


def enter(site: Site, request: Request) -> Entered:
    """Sign in by the fields ``user``, ``password`` and ``keep`` of a form.  Raises Refused, StoreUnavailable.

    The caller has checked that the form is genuine.
    """
    form = request.form
    if not form.get("user") or not form.get("password"):
        raise Refused(_("Please give your name and your password."), 400)
    try:
        account, cookie = site.accounts.signing_in.sign_in(form["user"], form["password"], client_of(request))
    except Refused as refused:
        site.counters.sign_in_done("limited" if refused.wait_s else "refused")
        raise
    site.counters.sign_in_done("ok")
    _end(site, request)  # one session of a browser at a time
    ticket = ticket_of(cookie)
    assert ticket is not None, "it was made a moment ago"
    visitor = replace(visitor_of(account, site.visitor.network_hash, ticket.column), address=site.visitor.address)
    speak(site.language_of(visitor))
    return Entered(site.for_new_session(visitor), cookie, form.get("keep") == "1")


def leave(site: Site, request: Request, response: Response) -> Response:
    """End the browser's session and drop its cookies."""
    _end(site, request)
    cookies.drop_cookie(response, request, cookies.SESSION)
    cookies.drop_cookie(response, request, cookies.BROWSER)
    return response


def _end(site: Site, request: Request) -> None:
    ticket = ticket_of(cookies.cookie(request, cookies.SESSION)) if site.visitor.session else None
    if ticket is not None:
        site.accounts.sessions.end(ticket.row, ticket.column)
