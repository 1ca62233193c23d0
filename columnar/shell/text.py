"""(pure) Bytes in the form that a person reads and types, converted both ways without loss.

    bytes to text   printable characters of UTF-8 as they are; every other byte, and the backslash, as \\xNN
    text to bytes   \\xNN is that byte; everything else is its UTF-8

If data as a whole is not text (broken UTF-8, or control characters other than tab and line ends) only ASCII is shown as
letters, because two bytes of a number may look like a letter.

``typed(readable(data)) == data`` for all bytes; control characters never reach a terminal.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

from columnar.errors import IllegalArgument
from columnar.model.attributes import FAMILY_ATTRIBUTES, with_attributes
from columnar.model.inert_attributes import AS_THE_SERVER_SAYS, FAMILY_INERT, attribute_name, is_inert
from columnar.model.schema import Family
from columnar.model.written_amounts import TwoAmounts, bytes_written, seconds_written

_ESCAPE: Final = re.compile(rb"\\x([0-9A-Fa-f]{2})")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_SHORT_NAMES: Final = {"bloom": "BLOOMFILTER", "cache": "BLOCKCACHE"}


def readable(data: bytes, most: int | None = None) -> str:
    """Return ``data`` as text; with ``most`` it is cut after ``most`` bytes and its length is added."""
    encoding = "utf-8" if is_text(data) else "ascii"
    if most is not None and len(data) > most:
        kept = data[:most].decode(encoding, "ignore" if encoding == "utf-8" else "surrogateescape")
        return f"{_written(kept)}... ({len(data)} bytes)"
    return _written(data.decode(encoding, "surrogateescape"))


def is_text(data: bytes) -> bool:
    """Return whether ``data`` is UTF-8 without control characters other than tabs and line ends."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return False
    return _CONTROL.search(text) is None


def _written(text: str) -> str:
    return "".join(map(_escape_character, text))


def _escape_character(character: str) -> str:
    if character.isprintable() and character != "\\":
        return character
    return "".join(f"\\x{byte:02X}" for byte in character.encode("utf-8", "surrogateescape"))


def typed(text: str) -> bytes:
    """Return the typed text as bytes."""
    return _ESCAPE.sub(lambda found: bytes([int(found[1], 16)]), text.encode("utf-8", "surrogateescape"))


def column_and_value(text: str) -> tuple[bytes, str]:
    """Parse ``family:qualifier=value``; the value as it was typed.  A ``=`` in the qualifier is typed as \\x3D."""
    column, equals, value = text.partition("=")
    if not equals or ":" not in column:
        raise IllegalArgument(f"'{text}' is no cell: write FAMILY:QUALIFIER=VALUE, for example text:body='Hello'")
    return typed(column), value


def family_of(text: str) -> tuple[str, dict[str, str]]:
    """Parse ``name`` or ``name:versions=3,ttl=7d`` into name and attributes; ``ttl=`` means the default.

    A comma within a value is typed as \\x2C.
    """
    name, _, rest = text.partition(":")
    attributes: dict[str, str] = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = part.partition("=")
        attribute = _SHORT_NAMES.get(key.lower(), attribute_name(key))
        if not equals or (attribute not in FAMILY_ATTRIBUTES and not is_inert(FAMILY_INERT, attribute)):
            names = ", ".join(name.lower() for name in FAMILY_ATTRIBUTES)
            raise IllegalArgument(
                f"'{part}' in '{text}': a family takes KEY=VALUE of {names}, and attributes of HBase that change "
                "nothing here (docs/administration.md)"
            )
        value = typed(value).decode(errors="replace")
        if attribute == "TTL" and value and value.lower() != "forever":
            value = str(seconds_of(value))
        elif attribute == "BLOCKSIZE" and value:
            value = str(bytes_of(value))
        attributes[attribute] = value
    if not name:
        raise IllegalArgument(f"'{text}' names no family: write FAMILY or FAMILY:KEY=VALUE,...")
    with_attributes(Family(name), attributes)  # a mistake is reported before any call of a server
    return name, attributes


def attribute_of(text: str) -> tuple[str, str]:
    """Parse ``KEY=VALUE`` of a table; ``KEY=`` removes the key.  Sizes may be written as ``10g``, times as ``7d``."""
    key, equals, value = text.partition("=")
    if not equals:
        raise IllegalArgument(f"'{text}' is no attribute: write KEY=VALUE, for example DELETE_MARKERS=3600000")
    key = attribute_name(key)
    if key in ("MAX_FILESIZE", "CHANGE_LOG_BYTES") and value not in ("", AS_THE_SERVER_SAYS):
        value = str(bytes_of(value))
    elif key == "CHANGE_LOG" and value:
        value = str(seconds_of(value))
    return key, value


def seconds_of(text: str) -> int:
    """Parse ``90``, ``90s``, ``15m``, ``12h`` or ``7d``, or a time as HBase's ``describe`` writes it."""
    try:
        return seconds_written(text)
    except TwoAmounts as error:
        raise IllegalArgument(f"a time or a size {error.text}") from None
    except IllegalArgument:
        raise IllegalArgument(
            f"'{text}' is no duration: write seconds, or a number with s, m, h or d, for example 7d"
        ) from None


def moment_of(text: str, now_ms: int) -> int:
    """Parse a time into milliseconds since 1970: a number, a date and time (local without a zone), or an age."""
    if re.fullmatch(r"\d{1,18}", text, re.ASCII):
        return int(text)
    if re.fullmatch(r"\d{1,9}[smhd]", text, re.ASCII):
        return max(0, now_ms - seconds_of(text) * 1_000)
    try:
        return round(datetime.fromisoformat(text).timestamp() * 1_000)
    except (ValueError, OverflowError, OSError):
        raise IllegalArgument(
            f"'{text}' is no time: write milliseconds since 1970, 2026-01-31T12:00, or 15m for 15 minutes ago"
        ) from None


def bytes_of(text: str) -> int:
    """Parse ``65536``, ``64k``, ``16m`` or ``10g``, or a size as HBase's ``describe`` writes it."""
    try:
        return bytes_written(text)
    except TwoAmounts as error:
        raise IllegalArgument(f"a time or a size {error.text}") from None
    except IllegalArgument:
        raise IllegalArgument(
            f"'{text}' is no size: write bytes, or a number with k, m or g, for example 64k"
        ) from None


def bytes_text(size: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1_000:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.1f} {unit}"
        size /= 1_000
    return f"{size:.1f} TB"


def age_text(age_ms: int) -> str:
    """Return an age as text; - if it is unknown."""
    if age_ms < 0:
        return "-"
    if age_ms < 60_000:
        return f"{age_ms / 1_000:.1f} s"
    minutes, seconds = divmod(age_ms // 1_000, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"
