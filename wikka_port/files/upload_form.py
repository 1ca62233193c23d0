"""(pure) A form with files, read as it arrives: fields first, then each file piece by piece.

    form      := dash-boundary part* close            multipart/form-data (RFC 7578, RFC 2046)
    part      := CRLF header* CRLF content CRLF "--" boundary
    close     := "--"

``Request.form`` and ``Request.files`` of Werkzeug must not be touched for such a request: they write each file whole
into a temporary file before the handler runs.  The handler sets ``Request.max_content_length`` to the site's bound of
an upload and FIELDS_BYTES_MAX, reads ``Request.stream`` in pieces of READ_BYTES and feeds this reader.  Its buffer has
the piece and less than a boundary, or the headers of a part up to HEADERS_BYTES_MAX.

Werkzeug's own decoder (3.1.9, ``sansio.multipart``) is not used: it adds the byte CR to the last file if a piece of the
stream ends between the two dashes of ``close``, so one upload in some ten thousands would be damaged.

The fields that decide whether a file is taken (token, note, choices) stand before the first file in the wiki's forms,
as browsers send them in the order of the page; so a refused upload is refused before its bytes are read.

Knows nothing of requests, rights and the store.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from werkzeug.http import parse_options_header

READ_BYTES: Final = 65_536
HEADERS_BYTES_MAX: Final = 8_192  # of one part
PARTS_MAX: Final = 120  # fields and files of one form
FIELD_BYTES_MAX: Final = 16_384  # a note, an alt text, a token
FIELDS_BYTES_MAX: Final = 131_072
BOUNDARY_BYTES_MAX: Final = 200  # RFC 2046 allows 70
_PREAMBLE_BYTES_MAX: Final = 1_024  # before the first boundary; browsers send nothing there


class BadForm(ValueError):
    """The request is no form, or breaks off, or has more than the bounds allow."""


@dataclass(frozen=True, slots=True)
class FileBegins:
    """A file follows; ``fields`` has the fields before it, of equal ones the first."""

    field: str
    name: str  # as the browser gave it; "" for a form that was sent without a file
    fields: dict[str, str]


@dataclass(frozen=True, slots=True)
class FilePiece:
    content: bytes


@dataclass(frozen=True, slots=True)
class FileEnds:
    pass


Event = FileBegins | FilePiece | FileEnds


class UploadForm:
    """Reads one form.  ``fields`` has all fields so far."""

    def __init__(self, content_type: str) -> None:
        """Raises BadForm unless ``content_type`` is that of a form with a boundary."""
        kind, options = parse_options_header(content_type)
        boundary = options.get("boundary", "").encode("utf-8", "replace")
        if kind != "multipart/form-data" or not 0 < len(boundary) <= BOUNDARY_BYTES_MAX:
            raise BadForm("it is no multipart/form-data with a boundary")
        self.fields: dict[str, str] = {}
        self._delimiter = b"\r\n--" + boundary
        self._buffer = bytearray(b"\r\n")  # so that the first boundary is like all others
        self._state: Literal["preamble", "boundary", "headers", "content", "end"] = "preamble"
        self._field = ""
        self._value: bytearray | None = None  # of a field that is being read; None within a file
        self._parts = 0
        self._passed_bytes = 0  # of the preamble
        self._fields_bytes = 0

    def feed(self, piece: bytes) -> Iterator[Event]:
        """Yield what ``piece`` completes.  Raises BadForm."""
        self._buffer += piece
        while (event := self._step()) is not False:
            if event is not True:
                yield event

    def finish(self) -> None:
        """Raise BadForm if the form broke off."""
        if self._state != "end":
            raise BadForm("the form broke off")

    def _step(self) -> Event | bool:
        """Read on; return an event, or True if more may follow, or False if the buffer has no more of use."""
        if self._state == "headers":
            return self._headers()
        if self._state == "boundary":
            return self._boundary_ends()
        if self._state == "end":
            self._buffer.clear()  # an epilogue
            return False
        return self._up_to_boundary()

    def _up_to_boundary(self) -> Event | bool:
        """Read the preamble or a part's content."""
        place = self._buffer.find(self._delimiter)
        most = len(self._buffer) - len(self._delimiter) + 1 if place < 0 else place
        if most > 0:
            content = bytes(self._buffer[:most])
            del self._buffer[:most]
            return self._content(content)
        if place < 0:
            return False
        del self._buffer[: len(self._delimiter)]
        before, self._state = self._state, "boundary"
        return before == "preamble" or self._part_ends()

    def _boundary_ends(self) -> bool:
        """Read the two bytes that say whether another part follows; blanks before them are allowed."""
        blanks = len(self._buffer) - len(self._buffer.lstrip(b" \t"))
        if len(self._buffer) < blanks + 2:
            if blanks > BOUNDARY_BYTES_MAX:
                raise BadForm("blanks follow a boundary")
            return False
        mark = bytes(self._buffer[blanks : blanks + 2])
        if mark not in (b"--", b"\r\n"):
            raise BadForm("a boundary does not end its line")
        self._state = "end" if mark == b"--" else "headers"
        del self._buffer[
            : blanks if mark == b"\r\n" else blanks + 2
        ]  # an empty line ends the headers, if there are none
        return True

    def _headers(self) -> Event | bool:
        end = self._buffer.find(b"\r\n\r\n")
        if (len(self._buffer) if end < 0 else end) > HEADERS_BYTES_MAX:
            raise BadForm("the headers of a part are too long")
        if end < 0:
            return False
        lines = bytes(self._buffer[:end]).split(b"\r\n")
        del self._buffer[: end + 4]
        self._parts += 1
        if self._parts > PARTS_MAX:
            raise BadForm("the form has too many parts")
        self._state = "content"
        return self._part_begins(lines)

    def _part_begins(self, lines: list[bytes]) -> Event | bool:
        stated = [line.partition(b":")[2] for line in lines if line[:20].lower() == b"content-disposition:"]
        kind, options = parse_options_header(stated[0].decode(errors="replace").strip() if stated else "")
        if len(stated) != 1 or kind != "form-data" or "name" not in options:
            raise BadForm("a part of the form has no name")
        if "filename" in options:
            self._value = None
            return FileBegins(options["name"], options["filename"], dict(self.fields))
        self._field, self._value = options["name"], bytearray()
        return True

    def _content(self, content: bytes) -> Event | bool:
        if self._state == "preamble":
            self._passed_bytes += len(content)
            if self._passed_bytes > _PREAMBLE_BYTES_MAX:
                raise BadForm("the form does not begin with its boundary")
            return True
        if self._value is None:
            return FilePiece(content)
        self._value += content
        self._fields_bytes += len(content)
        if len(self._value) > FIELD_BYTES_MAX or self._fields_bytes > FIELDS_BYTES_MAX:
            raise BadForm("a field of the form is too large")
        return True

    def _part_ends(self) -> Event | bool:
        if self._value is None:
            return FileEnds()
        self.fields.setdefault(self._field, self._value.decode(errors="replace"))
        return True
