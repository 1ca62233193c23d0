"""Replies to calls that failed, were refused or are unknown: one place for calls of connections and of other servers.

    an error that the method declares, or that the service translates to one     the method's own exception
    an error that is none to clients, says the service                           a reply without a result
    any other error of a call                                                    INTERNAL_ERROR, with a line in the log
    a method that is not served; a message that is no call                       UNKNOWN_METHOD; INVALID_MESSAGE_TYPE

Knows nothing of connections.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from columnar.wire.codec import (
    CALL,
    INTERNAL_ERROR,
    INVALID_MESSAGE_TYPE,
    ONEWAY,
    UNKNOWN_METHOD,
    Request,
    ServiceCodec,
    application_error,
)
from columnar.wire.detect import Protocol
from columnar.wire.framing import Refusal
from columnar.wire.service import NO_ERROR, Service

log = logging.getLogger("columnar.wire")


class ErrorReplies:
    """Constant."""

    def __init__(self, codec: ServiceCodec, service: Service, unknown: Callable[[str], str]) -> None:
        """``unknown``: the text for a method that is not served."""
        self._codec = codec
        self._service = service
        self._unknown = unknown

    def failed(self, peer: str, request: Request, protocol: Protocol, error: Exception) -> bytes:
        """``peer``: the client, for the log."""
        method = request.method
        assert method is not None, "a call was begun"
        declared = self._declared(method.name, error)
        if declared is NO_ERROR:
            return method.reply(protocol, request.seqid, None)
        if declared is not None and method.declares(declared):
            return method.declared_error(protocol, request.seqid, declared)
        log.error("%s: %s failed", peer, method.name, exc_info=error)
        text = f"Internal error processing {method.name}"
        return application_error(request.name, protocol, request.seqid, INTERNAL_ERROR, text)

    def not_served(self, request: Request, protocol: Protocol) -> bytes:
        if request.kind not in (CALL, ONEWAY):
            kind, text = INVALID_MESSAGE_TYPE, f"a message of kind {request.kind} is no call"
        else:
            kind, text = UNKNOWN_METHOD, self._unknown(request.name.decode(errors="replace"))
        return application_error(request.name, protocol, request.seqid, kind, text)

    def refused(self, peer: str, refusal: Refusal, protocol: Protocol) -> bytes:
        error, method = refusal.error, refusal.method
        log.warning("%s: %s", peer, error)
        declared = self._declared(method.name, error) if method is not None else None
        if method is not None and declared is not None and method.declares(declared):
            return method.declared_error(protocol, refusal.seqid, declared)
        kind = INTERNAL_ERROR if method else UNKNOWN_METHOD
        return application_error(refusal.name, protocol, refusal.seqid, kind, error.wire_message)

    def _declared(self, method: str, error: Exception) -> Any | None:
        if self._codec.methods[method].declares(error):
            return error  # a handler may raise what its method declares
        return self._service.translate(method, error)
