"""(pure) Resumable uploads by the tus protocol, version 1.0.0: headers in, a decision out.

    POST   Upload-Length, Upload-Metadata    -> 201, Location                      (extension creation)
    HEAD                                     -> 200, Upload-Offset, Upload-Length
    PATCH  Upload-Offset, a part of the file -> 204, Upload-Offset
    DELETE                                   -> 204                                (extension termination)

``Upload-Metadata`` is a list of ``key base64`` with commas: the file's name, and the fields of the form.

A part may end anywhere, also where its connection broke.  Its last chunk is then short; the next part begins with the
bytes of that chunk and writes its row again, longer.  ``u:stored`` is written after the chunks, so after a crash the
offset may be smaller than what is stored: the next part takes that many bytes of the short chunk, and no more.

Knows nothing of rights, rows and streams.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from wikka_port.files.chunks import CHUNK_BYTES

VERSION: Final = "1.0.0"
EXTENSIONS: Final = "creation,termination,expiration"
PART_TYPE: Final = "application/offset+octet-stream"
METADATA_CHARS_MAX: Final = 16_384  # of the header; servers bound all headers of a request by twice as much
KEYS_MAX: Final = 20
_NUMBER: Final = re.compile("[0-9]{1,15}")
_KEY: Final = re.compile("[!-+\\--~]{1,64}")  # ASCII without blank and comma


class Rejected(Exception):
    """The request does not fit: the answer has ``status``; ``str()`` says why, for the client's developer."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


def check_version(headers: Mapping[str, str]) -> None:
    """Raise Rejected (412) unless the client speaks this version."""
    if headers.get("Tus-Resumable", "") != VERSION:
        raise Rejected(412, f"Tus-Resumable must be {VERSION}")


def number_in(headers: Mapping[str, str], name: str) -> int:
    """Return the number in a header.  Raises Rejected (400) if it is absent or no number."""
    value = headers.get(name, "").strip()
    if _NUMBER.fullmatch(value) is None:
        raise Rejected(400, f"{name} must be a number of bytes")
    return int(value)


def length_in(headers: Mapping[str, str], most_bytes: int) -> int:
    """Return the announced length.  Raises Rejected: 400, 413 if it is more than ``most_bytes``."""
    length = number_in(headers, "Upload-Length")
    if length > most_bytes:
        raise Rejected(413, f"a file may have {most_bytes} bytes, and this one has {length}")
    return length


def metadata_in(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the metadata; a key without a value has "".  Raises Rejected (400, 413)."""
    header = headers.get("Upload-Metadata", "")
    if len(header) > METADATA_CHARS_MAX:
        raise Rejected(413, f"Upload-Metadata may have {METADATA_CHARS_MAX} characters")
    found: dict[str, str] = {}
    for pair in header.split(",") if header.strip() else []:
        key, _, value = pair.strip().partition(" ")
        if _KEY.fullmatch(key) is None or key in found or len(found) >= KEYS_MAX:
            raise Rejected(400, "Upload-Metadata must be a list of different keys with their values in base64")
        try:
            found[key] = base64.b64decode(value.strip(), validate=True).decode()
        except (binascii.Error, UnicodeDecodeError) as error:
            raise Rejected(400, f"the value of {key} must be UTF-8 in base64") from error
    return found


@dataclass(frozen=True, slots=True)
class Progress:
    """The part of an upload that is stored."""

    offset: int
    length_bytes: int

    @property
    def is_whole(self) -> bool:
        return self.offset == self.length_bytes

    @property
    def short_chunk(self) -> tuple[int, int]:
        """The number of the chunk with which the next part begins, and how many of its bytes are there."""
        return divmod(self.offset, CHUNK_BYTES)


def check_part(headers: Mapping[str, str], content_bytes: int | None, progress: Progress) -> None:
    """Check a PATCH before its body is read; ``content_bytes`` is its Content-Length, None if it has none.

    Raises Rejected: 415 for another type, 400, 409 for another offset than that of ``progress``, 411, 413.
    """
    if headers.get("Content-Type", "").partition(";")[0].strip().lower() != PART_TYPE:
        raise Rejected(415, f"Content-Type must be {PART_TYPE}")
    offset = number_in(headers, "Upload-Offset")
    if offset != progress.offset:
        raise Rejected(409, f"the stored part has {progress.offset} bytes, not {offset}")
    if content_bytes is None:
        raise Rejected(411, "the part must have a Content-Length")
    if offset + content_bytes > progress.length_bytes:
        raise Rejected(413, f"the part ends behind the {progress.length_bytes} bytes that were announced")
