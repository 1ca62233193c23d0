"""Requests of the status page whose length is said in one way (RFC 9112, 6.1).

A proxy that believes the other one would take the end of a body for the next request, so such a request is refused
with 400, and its connection is closed.  Imported with waitress, at the first visit.
"""

from __future__ import annotations

from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser, ParsingError


class _Parser(HTTPRequestParser):  # type: ignore[misc]  # waitress ships no types
    def parse_header(self, header_plus: bytes) -> None:
        """Raises ParsingError, which is answered with 400."""
        super().parse_header(header_plus)
        if self.chunked and "CONTENT_LENGTH" in self.headers:
            raise ParsingError("A request has either Content-Length or Transfer-Encoding, not both.")
        if "TRANSFER_ENCODING" in self.headers:  # removed if it is understood
            raise ParsingError("Transfer-Encoding needs HTTP/1.1.")


class StrictChannel(HTTPChannel):  # type: ignore[misc]
    parser_class = _Parser
