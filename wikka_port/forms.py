"""Forms that change something: their token, their cookie, and the check that a page of this wiki sent them.

    Sec-Fetch-Site   the site that sent the form: "same-origin", or "none" for an address that a person entered;
                     browsers send this header over TLS and to localhost
    Origin           scheme, host and port of the sender; compared if there is no ``Sec-Fetch-Site``
    neither          a program, or a browser from before 2020: the token of the form decides alone

Each of the three guards suffices alone: the check of these headers, the token (``security.FormTokens``) and the
cookie's SameSite.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from werkzeug.wrappers import Request, Response

from wikka_port import cookies
from wikka_port.accounts.signing_in import Refused
from wikka_port.accounts.user_names import Unsuitable
from wikka_port.limits import REASON_CHARS_MAX
from wikka_port.moving.refusals import NotMoved
from wikka_port.names import InvalidName
from wikka_port.security import is_visitor, new_visitor
from wikka_port.site import Site, unindexed, wait_before_s
from wikka_port.texts import N_, _

STALE_FORM = N_("This form could not be checked: it was open for very long, or cookies are off. Please send it again.")
_OURS: Final = frozenset({"same-origin", "none"})


def answer_form(
    site: Site, request: Request, form: Callable[[int, str], Response], act: Callable[[], Response]
) -> Response:
    """Answer a POST with ``act()``; answer any other method, or a refused POST, with ``form(status, problem)``.

    A POST is refused if the form is not genuine, or if ``act`` raises an exception with a sentence for the person.
    """
    if request.method != "POST":
        return form(200, "")
    if not is_genuine(site, request):
        return form(403, _(STALE_FORM))
    try:
        return act()
    except (InvalidName, Unsuitable) as unsuitable:
        return form(400, str(unsuitable))
    except NotMoved as not_moved:
        return form(409, str(not_moved))
    except Refused as refused:
        response = form(refused.status, str(refused))
        if refused.wait_s and response.status_code == 429:
            response.headers["Retry-After"] = str(refused.wait_s)
        return response


def take_edit(site: Site, request: Request) -> None:
    """Count a change as an edit of the visitor's network and account.  Raises Refused (429)."""
    wait_s = wait_before_s(site.pace.edits, site, request)
    if wait_s:
        said = _("These were many edits in a short time. The next one can come in {wait_s} s.", wait_s=wait_s)
        raise Refused(said, 429, wait_s)


def take_upload(site: Site, request: Request) -> None:
    """Count a change of a file as an upload of the visitor's network and account.  Raises Refused (429)."""
    wait_s = wait_before_s(site.pace.uploads, site, request)
    if wait_s:
        said = _("Too many files came at once. The next one can come in {wait_s} s.", wait_s=wait_s)
        raise Refused(said, 429, wait_s)


def reason_in(request: Request) -> str:
    return request.form.get("reason", "")[:REASON_CHARS_MAX]


def form_page(site: Site, request: Request, template: str, *, status: int = 200, **values: Any) -> Response:
    """Return ``template`` with a new token as ``csrf``; no cache may keep the page."""
    browser = _browser(site, request)
    csrf = site.tokens.issue(browser, site.visitor.session)
    response = site.html(template, status=status, csrf=csrf, begun=_begun(site, request) or csrf, **values)
    return _for(request, browser, response)


def _begun(site: Site, request: Request) -> str:
    """Return the token of the form that the person saw first, before previews and refusals; "" if there was none."""
    given = request.form.get("begun", "") if request.method == "POST" else ""
    browser = cookies.cookie(request, cookies.BROWSER)
    return given if site.tokens.accepts(given, browser, site.visitor.session) else ""


def form_age_s(site: Site, request: Request) -> float:
    """Return the seconds since the person saw the form first; the form is genuine."""
    return site.tokens.age_s(_begun(site, request) or request.form.get("csrf", ""))


def form_json(site: Site, request: Request, values: Mapping[str, Any], *, status: int, fresh: bool) -> Response:
    """Return ``values`` as JSON for a script of the wiki.

    With ``fresh`` a new ``token`` for the script's form is added, and the visitor's name as ``as``.
    """
    browser = _browser(site, request)
    given = {"token": site.tokens.issue(browser, site.visitor.session), "as": site.visitor.name or ""} if fresh else {}
    response = unindexed(json.dumps({**values, **given}), "application/json", status=status, cache="no-store")
    return _for(request, browser, response) if fresh else response


def _browser(site: Site, request: Request) -> str:
    browser = site.browser or cookies.cookie(request, cookies.BROWSER)
    return browser if is_visitor(browser) else new_visitor()


def _for(request: Request, browser: str, response: Response) -> Response:
    if browser != cookies.cookie(request, cookies.BROWSER):
        cookies.set_cookie(response, request, cookies.BROWSER, browser)
    response.headers["Cache-Control"] = "no-store"
    return response


def is_genuine(site: Site, request: Request, token: str | None = None) -> bool:
    """Return whether this wiki gave the form to this browser in this session, and a page of this wiki sent it.

    ``token`` is that of a form which ``Request.form`` must not read, since it has files.
    """
    if not is_same_origin(site, request, request.headers.get("Origin", "")):
        return False
    browser = cookies.cookie(request, cookies.BROWSER)
    given = request.form.get("csrf", "") if token is None else token
    return site.tokens.accepts(given, browser, site.visitor.session)


def is_same_origin(site: Site, request: Request, origin: str) -> bool:
    """Return whether a page of this wiki sent the request; ``origin`` is what the request says of that."""
    return not is_foreign(request.headers.get("Sec-Fetch-Site", ""), origin, _own_origins(site, request))


def _own_origins(site: Site, request: Request) -> frozenset[str]:
    """Return the wiki's origins.

    Returns none if a proxy may have replaced ``Host`` and no public address is configured.
    """
    public = site.config.public_url
    if site.config.proxies and not public:
        return frozenset()
    here = f"{request.scheme}://{request.host}".lower()
    return frozenset({here, origin_of(public)} if public else {here})


def is_foreign(fetch_site: str, origin: str, own: Collection[str]) -> bool:
    """Return whether a different site sent the form; ``fetch_site`` and ``origin`` are headers, "" if absent.

    ``own`` has the wiki's origins in lower case.  If a proxy hides them it is empty, and only ``fetch_site`` decides.
    """
    if fetch_site:
        return fetch_site not in _OURS
    return bool(origin) and bool(own) and origin.lower() not in own


def origin_of(url: str) -> str:
    """Return scheme, host and port of a URL: ``https://wiki.example/path`` -> ``https://wiki.example``."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}".lower()
