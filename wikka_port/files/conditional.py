"""(pure) Conditional and partial requests (RFC 9110, sections 8.8, 13 and 14): ETag, If-None-Match, If-Range, Range.

A stored file never changes, so its ETag is strong: its digest.  A header that is malformed is ignored, as the RFC has
it for Range; an entity tag list stops at its first fault.  Dates are not compared: an ``If-Range`` with a date counts
as false, so the whole file is sent, which is always right.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

RANGES_MAX: Final = 16  # of one request; with more the whole file is sent (many small ones are an attack on servers)
_HEADER_CHARS: Final = 4_000  # of one of these headers; a longer one is ignored
_DIGITS: Final = 18  # a longer number is no offset in a file
_TAG: Final = re.compile(r'[ \t]*+(W/)?"([\x21\x23-\x7e\x80-\xff]*+)"[ \t]*+(?:,|$)')
_UNIT: Final = re.compile(r"bytes[ \t]*+=", re.IGNORECASE)
_SPEC: Final = re.compile(r"([0-9]*+)-([0-9]*+)")


def etag_of(digest: str, variant: str = "") -> str:
    """Return the strong entity tag of a file by its digest; ``variant`` is the width of a smaller picture."""
    return f'"{digest[:32]}-{variant}"' if variant else f'"{digest[:32]}"'


def _tags(header: str) -> list[tuple[bool, str]]:
    """Return the entity tags of a list, each with whether it is weak."""
    found: list[tuple[bool, str]] = []
    position = 0
    while position < len(header) and (tag := _TAG.match(header, position)):
        found.append((tag[1] is not None, f'"{tag[2]}"'))
        position = tag.end()
    return found


def is_unmodified(if_none_match: str, etag: str) -> bool:
    """Return whether a client has the file already, by weak comparison: the answer is 304."""
    if not if_none_match or len(if_none_match) > _HEADER_CHARS:
        return False
    return if_none_match.strip() == "*" or any(tag == etag for _, tag in _tags(if_none_match))


def is_matched(if_match: str, etag: str) -> bool:
    """Return whether the precondition ``If-Match`` is true, by strong comparison; if not, the answer is 412."""
    if not if_match:
        return True
    if len(if_match) > _HEADER_CHARS:
        return False
    return if_match.strip() == "*" or any(tag == etag and not weak for weak, tag in _tags(if_match))


def is_range_current(if_range: str, etag: str) -> bool:
    """Return whether ``If-Range`` allows a part of the file, by strong comparison; without the header it does."""
    return not if_range or if_range.strip() == etag


@dataclass(frozen=True, slots=True)
class ByteRange:
    """The bytes ``start`` to ``stop``; half-open."""

    start: int
    stop: int

    def content_range(self, size_bytes: int) -> str:
        return f"bytes {self.start}-{self.stop - 1}/{size_bytes}"


class NotSatisfiable(Exception):
    """No requested range lies in the file: the answer is 416 with ``content_range``."""

    def __init__(self, size_bytes: int) -> None:
        super().__init__(f"no such range in {size_bytes} bytes")
        self.content_range = f"bytes */{size_bytes}"


def ranges_in(header: str, size_bytes: int) -> tuple[ByteRange, ...]:
    """Return the requested ranges in ascending order, adjacent and overlapping ones merged.

    Returns () if the header is absent, malformed, of another unit, or has more than RANGES_MAX ranges: then the whole
    file is sent.  Raises NotSatisfiable if the header is well-formed and all its ranges lie beyond the file.
    """
    unit = _UNIT.match(header) if len(header) <= _HEADER_CHARS else None
    specs = [one.strip(" \t") for one in header[unit.end() :].split(",")] if unit else []
    specs = [one for one in specs if one]  # RFC 9110, 5.6.1: empty elements of a list are ignored
    if not specs or len(specs) > RANGES_MAX:
        return ()
    found: list[ByteRange] = []
    for spec in specs:
        parsed = _SPEC.fullmatch(spec)
        if parsed is None or not (parsed[1] or parsed[2]) or max(map(len, parsed.groups())) > _DIGITS:
            return ()
        if parsed[1] and parsed[2] and int(parsed[1]) > int(parsed[2]):
            return ()
        one = _resolved(parsed[1], parsed[2], size_bytes)
        if one.start < one.stop:
            found.append(one)
    if not found:
        raise NotSatisfiable(size_bytes)
    return _merged(found)


def _resolved(first: str, last: str, size_bytes: int) -> ByteRange:
    """Return a range within the file; it is empty if it lies beyond the file."""
    if not first:
        return ByteRange(max(0, size_bytes - int(last)), size_bytes)
    stop = min(int(last) + 1, size_bytes) if last else size_bytes
    return ByteRange(int(first), stop)


def _merged(ranges: list[ByteRange]) -> tuple[ByteRange, ...]:
    merged: list[ByteRange] = []
    for one in sorted(ranges, key=lambda one: one.start):
        if merged and one.start <= merged[-1].stop:
            merged[-1] = ByteRange(merged[-1].start, max(merged[-1].stop, one.stop))
        else:
            merged.append(one)
    return tuple(merged)
