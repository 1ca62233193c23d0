"""The way of a request to its operation: key, scope, parameters, body; and of a refusal to problem details.

Only the header ``Authorization`` signs a request in here, never a cookie, so a form of another site can do nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import msgspec
from werkzeug.exceptions import ClientDisconnected, HTTPException, RequestEntityTooLarge
from werkzeug.wrappers import Request, Response

from wikka_port.accounts.api_keys import READ
from wikka_port.api.call import JSON, Call, Rejected, problem, refusal_of, rejection
from wikka_port.api.openapi import description
from wikka_port.api.operations import BY_PATH, PREFIX, Operation
from wikka_port.files.refusals import MissingContent
from wikka_port.limits import QUICK_CHARS
from wikka_port.refusals import LOST, LOST_STATUS, unavailable
from wikka_port.request_queues import QueueFull, TooManyTransfers, run_in_slow_lane
from wikka_port.rights.judging import NotAllowed
from wikka_port.site import Site
from wikka_port.store import StoreUnavailable
from wikka_port.texts import _, speak
from wikka_port.visitors import unregistered

log = logging.getLogger(__name__)

DESCRIPTION: Final = f"{PREFIX}/openapi.json"
_SCHEME: Final = "bearer "
_QUICK_BYTES: Final = 3 * QUICK_CHARS


def answer_call(site: Site, request: Request) -> Response:
    """Answer a request below PREFIX; every refusal is problem details."""
    response = _answered(site, request)
    response.headers["X-Robots-Tag"] = "noindex"
    response.headers.setdefault("Cache-Control", "private, no-cache")
    response.headers["Vary"] = "Authorization"
    return response


def _answered(site: Site, request: Request) -> Response:
    network = site.networks.of(request.remote_addr or "")
    speak(site.language_of(unregistered(network)))
    try:
        if request.path == DESCRIPTION and request.method in ("GET", "HEAD"):
            return Response(description(), content_type=JSON)
        return _run(site, request, network)
    except StoreUnavailable as away:
        log.warning("%s %s: %s", request.method, request.path, away)
        return _later(f"{unavailable(away)} {_('Please try again shortly.')}", 5)
    except QueueFull as full:
        said = _("The wiki is busy with requests that take long. Please try again shortly.")
        if isinstance(full, TooManyTransfers):
            said = _("Many files are being sent and fetched at this moment. Please try again shortly.")
        return _later(said, full.retry_s)
    except MissingContent as lost:
        log.error("%s %s: %s", request.method, request.path, lost)
        return problem(LOST_STATUS, _(LOST))
    except (RequestEntityTooLarge, ClientDisconnected) as broken:
        status = 413 if isinstance(broken, RequestEntityTooLarge) else 400
        return problem(status, _("The body is too large, or it broke off."))
    except HTTPException:
        raise
    except Exception as error:
        rejected = refusal_of(site, error)
        if rejected is not None:
            return rejection(rejected)
        log.exception("%s %s", request.method, request.path)
        return problem(500, _("The mistake is ours, and it has been logged."))


def _later(detail: str, wait_s: int) -> Response:
    return rejection(Rejected(503, detail, wait_s=wait_s))


def _run(site: Site, request: Request, network: str) -> Response:
    methods = BY_PATH.get(request.path.removeprefix(PREFIX))
    if methods is None:
        raise Rejected(404, _("The API has no such address; {where} describes it.", where=DESCRIPTION))
    operation = methods.get("GET" if request.method == "HEAD" else request.method)
    if operation is None:
        response = problem(405, _("This address does not take such a request."))
        response.headers["Allow"] = ", ".join(sorted({*methods, *(("HEAD",) if "GET" in methods else ())}))
        return response
    visitor, scopes = unregistered(network), frozenset({READ})
    token = _token(request)
    if token is not None:
        caller = site.accounts.keys.caller(token, network)
        if caller is None:
            return _unauthorized(_("This key is unknown, or it has ended."), "invalid_token")
        visitor, scopes = caller.visitor, caller.scopes
    if operation.scope not in scopes or (token is None and operation.needs_key):
        if token is None:
            return _unauthorized(_("This needs a key: make one in the settings of your account."), "")
        raise Rejected(403, _("The key has not the scope “{scope}”.", scope=operation.scope))
    visitor = replace(visitor, address=request.remote_addr or "")
    speak(site.language_of(visitor))
    parameters = _parameters(operation, request)
    if operation.body is not None and (request.content_length or 0) > _QUICK_BYTES:
        run_in_slow_lane(request.environ)
    body = _body(operation, request)
    site = site.for_visitor(visitor, lambda: run_in_slow_lane(request.environ))
    call = Call(site, request, parameters, body, scopes)
    try:
        return operation.run(call)
    except NotAllowed as refused:
        raise refusal_of(site, refused) or refused from None


def _token(request: Request) -> str | None:
    """Return the token in ``Authorization``, or None if there is no such header.  Raises Rejected (401 is its like)."""
    given = request.headers.get("Authorization")
    if given is None:
        return None
    return given[len(_SCHEME) :].strip() if given.lower().startswith(_SCHEME) else ""


def _unauthorized(detail: str, error: str) -> Response:
    response = problem(401, detail)
    response.headers["WWW-Authenticate"] = f'Bearer error="{error}"' if error else "Bearer"
    return response


def _parameters(operation: Operation, request: Request) -> object:
    """Return the parameters of the query.  Raises Rejected (422)."""
    given: Mapping[str, list[str]] = dict(request.args.lists())
    twice = next((name for name, values in given.items() if len(values) > 1), None)
    if twice is not None:
        raise Rejected(422, _("The parameter {name} is there twice.", name=twice[:80]))
    try:
        return msgspec.convert({name: values[0] for name, values in given.items()}, operation.parameters, strict=False)
    except msgspec.ValidationError as wrong:
        raise Rejected(422, str(wrong)) from None


def _body(operation: Operation, request: Request) -> object:
    """Return the body of the operation's type, or None if it has none.  Raises Rejected (400, 415, 422)."""
    if operation.body is None:
        return None
    if request.mimetype != JSON:
        raise Rejected(415, _("The body is JSON: send Content-Type: application/json."))
    try:
        return msgspec.json.decode(request.get_data(cache=False), type=operation.body)
    except msgspec.ValidationError as wrong:
        raise Rejected(422, str(wrong)) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as wrong:
        raise Rejected(400, str(wrong)) from None
