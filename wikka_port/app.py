"""The wiki as a WSGI application: a request in, the answer of its handler out.

Every answer bears the headers of ``security``.  A fault is answered with a page that says so; only
the server loop here catches everything, logs it with the request, and answers 500.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound
from werkzeug.middleware.proxy_fix import ProxyFix
from werkzeug.wrappers import Request, Response

from wikka_port import cookies
from wikka_port.accounts.factory import public_address
from wikka_port.api.dispatch import DESCRIPTION, answer_call
from wikka_port.api.operations import OPERATIONS, PREFIX
from wikka_port.assets import compressed, language_of, texts_asset
from wikka_port.config import WikiConfig
from wikka_port.counters import NO_ROUTE, Counters
from wikka_port.edit_buckets import EditBuckets
from wikka_port.files.refusals import MissingContent
from wikka_port.handlers import HANDLERS, METHODS
from wikka_port.handlers.files_origin import answer_at_files, file_answer, is_at_files
from wikka_port.hosts import Hosts
from wikka_port.limits import QUICK_CHARS
from wikka_port.markup.code_blocks import use_renderers
from wikka_port.names import InvalidName
from wikka_port.old_addresses import SCRIPT, place_of_script
from wikka_port.pages import StoreUnavailable, Wiki
from wikka_port.refusals import LOST, LOST_STATUS, forbidden, unavailable
from wikka_port.request_queues import QueueFull, TooManyTransfers, run_in_slow_lane
from wikka_port.rights.guarded import GuardedWiki
from wikka_port.rights.judging import NotAllowed
from wikka_port.security import POLICY, headers
from wikka_port.site import Site, make_site, redirect, unindexed
from wikka_port.texts import N_, _, speak
from wikka_port.urls import API, Route, route, takes_upload
from wikka_port.visitors import NOBODY, Visitor, unregistered, with_theme

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

log = logging.getLogger(__name__)

_ROBOTS: Final = """\
User-agent: *
Allow: /-/static/
Disallow: /-/
Disallow: /*/edit
Disallow: /*/diff
Disallow: /*/history
"""
_TITLES_STEP: Final = 1_000
_EXPENSIVE_HANDLERS: Final = frozenset(
    {"diff", "history", "orphanedpages", "revert"}
)  # always expensive; other handlers are so for some pages only
# A POST to these handlers hashes a password.
_HASHING: Final = frozenset({"login", "register", "reset", "settings", "account", "keys"})
_TRANSFERRING: Final = frozenset({"files", "upload"})  # these handlers move to the transfers by themselves
_EXPENSIVE_FORM_BYTES: Final = 3 * QUICK_CHARS
_EXPENSIVE_DRAFT_BYTES: Final = 10 * _EXPENSIVE_FORM_BYTES  # a draft is only read and stored, never parsed
_FOREVER: Final = "public, max-age=31536000, immutable"
# Their answers say how long they took; how long a password's check took is nobody's concern.
_READING: Final = frozenset({"GET", "HEAD"})
_PROBLEMS: Final = {
    400: (N_("Bad Request"), N_("The browser (or proxy) sent a request that this server could not understand.")),
    404: (N_("Not found"), N_("There is nothing at this address.")),
    405: (N_("Not possible"), N_("This address does not take such a request.")),
    413: (
        N_("Too large"),
        N_("What was sent is larger than the wiki takes. Your browser's back button leads to your text."),
    ),
}


class Application:
    def __init__(self, site: Site, hosts: Hosts) -> None:
        self._site = site
        self._hosts = hosts
        self._headers = headers(site.pictures)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        request, began = Request(environ), time.monotonic()
        name, response = self._response(request)
        has_policy = POLICY in response.headers  # a file has one of its own
        response.headers.extend(self._headers[has_policy:])
        took_s = time.monotonic() - began
        if request.method in _READING:
            response.headers.add("Server-Timing", f"page;dur={took_s * 1_000:.1f}")
        self._site.counters.request_done(name, response.status_code, took_s)
        return response(environ, start_response)

    def _response(self, request: Request) -> tuple[str, Response]:
        """Return the name of the request's route, and the answer, also to what cannot be answered."""
        name = NO_ROUTE
        speak(self._site.language_of(NOBODY))
        config = self._site.config
        is_upload = takes_upload(request.method, request.path)
        request.max_content_length = config.max_upload_bytes if is_upload else config.max_request_bytes
        request.max_form_memory_size = config.max_request_bytes
        refusal = self._hosts.refusal(request.environ.get("HTTP_HOST"))
        try:
            if refusal:
                return name, _error(self._site, 403, _("Not by this name"), refusal)
            where = route(request.path, self._site.config.root_page)
            name = where.handler
            if is_at_files(self._site, request):
                response = self._answer_at_files(request, where)
            else:
                response = self._answer(request, where)
        except InvalidName as problem:
            response = _error(self._site, 400, _("Not a page name"), str(problem))
        except StoreUnavailable as away:
            log.warning("%s %s: %s", request.method, request.path, away)
            message = f"{unavailable(away)} {_('Please try again shortly.')}"
            response = _error(self._site, 503, _("One moment, please"), message)
            response.headers["Retry-After"] = "5"
        except MissingContent as lost:
            log.error("%s %s: %s", request.method, request.path, lost)
            response = _error(self._site, LOST_STATUS, _("The content is lost"), _(LOST))
            response.headers["Cache-Control"] = "no-store"
        except QueueFull as full:
            message = _("The wiki is busy with requests that take long. Please try again shortly.")
            if isinstance(full, TooManyTransfers):
                message = _("Many files are being sent and fetched at this moment. Please try again shortly.")
            response = _error(self._site, 503, _("One moment, please"), message)
            response.headers["Retry-After"] = str(full.retry_s)
        except HTTPException as problem:
            code = problem.code or 500
            title, message = _PROBLEMS.get(code, (problem.name, problem.description or ""))
            response = _error(self._site, code, _(title), message and _(message))
            if isinstance(problem, MethodNotAllowed):
                response.allow.update(problem.valid_methods or ())
        except Exception:
            log.exception("%s %s", request.method, request.path)
            message = _("The mistake is ours, and it has been logged.")
            response = _error(self._site, 500, _("Something went wrong"), message)
        return name, response

    def _answer_at_files(self, request: Request, where: Route) -> Response:
        if where.kind == "reserved" and where.handler == "health":
            return _reserved(self._site, where.handler)
        address = request.remote_addr or ""
        visitor = replace(unregistered(self._site.networks.of(address)), address=address)
        return answer_at_files(self._site, request, where, visitor)

    def _answer(self, request: Request, where: Route) -> Response:
        site = self._site
        if request.path.endswith(SCRIPT) and request.method in ("GET", "HEAD"):
            old = place_of_script(request.path, request.args, site.config.root_page)
            if old is not None:
                return redirect(old, status=301)
        if where.kind == "api":
            return _api(site, request)
        allowed = ("GET", "HEAD", *METHODS.get(where.handler, ()))
        if request.method not in allowed:
            raise MethodNotAllowed(allowed)
        if where.kind == "file":
            site = site.for_visitor(_visitor(site, request))
            speak(site.language_of(site.visitor))
            try:
                return file_answer(site, request, where)
            except NotAllowed as refused:
                return forbidden(site, refused)
        if where.kind in ("page", "site"):
            hashes = request.method == "POST" and where.handler in _HASHING
            quick_bytes = _EXPENSIVE_DRAFT_BYTES if where.handler == "draft" else _EXPENSIVE_FORM_BYTES
            is_long = (request.content_length or 0) > quick_bytes and where.handler not in _TRANSFERRING
            if hashes or where.handler in _EXPENSIVE_HANDLERS or is_long:
                run_in_slow_lane(request.environ)
            site = site.for_visitor(_visitor(site, request), lambda: run_in_slow_lane(request.environ))
            speak(site.language_of(site.visitor))
            return _without_lapsed(site, request, _handled(site, request, where))
        if where.kind == "static":
            return _static(site, request, where.name)
        if where.kind == "titles":
            return _titles(site.for_visitor(_visitor(site, request)).wiki)
        return _reserved(site, where.handler)


def make_application(
    wiki: Wiki,
    config: WikiConfig,
    clock: Callable[[], float] = time.time,
    buckets: EditBuckets | None = None,
    counters: Counters | None = None,
) -> WSGIApplication:
    use_renderers(dict(config.files.renderers))
    own = [config.files.origin.partition("://")[2].partition(":")[0]] if config.files.origin else []
    site, hosts = make_site(wiki, config, clock, buckets, counters), Hosts.of(config.host, (*config.allow_host, *own))
    application: WSGIApplication = Application(site, hosts)
    return ProxyFix(application, x_for=config.proxies, x_proto=config.proxies) if config.proxies else application


def _handled(site: Site, request: Request, where: Route) -> Response:
    try:
        return HANDLERS[where.handler](site, request, where.name)
    except NotAllowed as refused:
        return forbidden(site, refused)


def _visitor(site: Site, request: Request) -> Visitor:
    """Return who sends the request.  Calls the store only for a session cookie.  Raises StoreUnavailable."""
    address = request.remote_addr or ""
    network_hash = site.networks.of(address)
    found = None
    name = site.accounts.sign_on.name(request)
    if name:
        found = site.accounts.sign_on.visitor(name, network_hash)
    elif session := cookies.cookie(request, cookies.SESSION):
        found = site.accounts.sessions.visitor(session, network_hash)
    seen = unregistered(network_hash, address) if found is None else replace(found, address=address)
    return with_theme(seen, cookies.cookie(request, cookies.THEME))


def _without_lapsed(site: Site, request: Request, response: Response) -> Response:
    """Drop a session cookie that signs nobody in: it would cost a call of the store with each request."""
    lapsed = site.visitor.name is None and cookies.cookie(request, cookies.SESSION)
    if lapsed and not any(cookies.SESSION in one for one in response.headers.getlist("Set-Cookie")):
        cookies.drop_cookie(response, request, cookies.SESSION)
    return response


def _error(site: Site, status: int, title: str, message: str) -> Response:
    return site.html("error.html", status=status, title=title, message=message, back="")


def _static(site: Site, request: Request, name: str) -> Response:
    code = language_of(name)
    asset = texts_asset(site.assets, site.languages.catalogue(code)) if code else site.assets.get(name)
    if asset is None:
        raise NotFound
    is_compressed = request.accept_encodings.quality("gzip") > 0
    content = compressed(asset.content) if is_compressed else asset.content
    response = Response(content, content_type=asset.mimetype)
    response.headers["Vary"] = "Accept-Encoding"
    if is_compressed:
        response.headers["Content-Encoding"] = "gzip"
    # An address with the hash of a different version still gets the file, but no cache may keep it.
    response.headers["Cache-Control"] = _FOREVER if request.path == asset.url else "no-cache"
    return response


def _api(site: Site, request: Request) -> Response:
    if request.path != API:
        return answer_call(site, request)
    if request.method not in ("GET", "HEAD"):
        raise MethodNotAllowed(("GET", "HEAD"))
    site = site.for_visitor(_visitor(site, request))
    speak(site.language_of(site.visitor))
    public = public_address(site.config)
    return site.html("api.html", operations=OPERATIONS, prefix=PREFIX, description=DESCRIPTION, public_url=public)


def _titles(wiki: GuardedWiki) -> Response:
    """Stream the names of all pages that the visitor may read, one a line."""
    first = wiki.names_part(limit=_TITLES_STEP)

    def lines() -> Iterator[str]:
        names, following = first
        yield "".join(name + "\n" for name in names)
        while following:
            names, following = wiki.names_part(start=following, limit=_TITLES_STEP)
            yield "".join(name + "\n" for name in names)

    return unindexed(lines(), "text/plain", cache="no-store")


def _reserved(site: Site, name: str) -> Response:
    if name == "favicon.ico":
        return Response(site.assets["icon.svg"].content, content_type="image/svg+xml")
    if name == "robots.txt":
        return Response(_ROBOTS, content_type="text/plain; charset=utf-8")
    up = site.wiki.is_up()
    text, status = ("ok\n", 200) if up else ("the store is away\n", 503)
    return unindexed(text, "text/plain", status=status, cache="no-store")
