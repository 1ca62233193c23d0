"""(pure) From when until when a certificate is valid, out of its DER bytes.

    Certificate := SEQUENCE { TBSCertificate ... }
    TBSCertificate := SEQUENCE { [0] version?  serial  algorithm  issuer  validity  ... }
    validity := SEQUENCE { notBefore  notAfter }, each a UTCTime (YYMMDDhhmmssZ) or GeneralizedTime (YYYY...)

Nothing is verified here: OpenSSL has taken the certificate already.  The ssl module tells these dates of a
peer's certificate only, not of our own.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final, NamedTuple

_SEQUENCE: Final = 0x30
_VERSION: Final = 0xA0
_UTC_TIME: Final = 0x17
_GENERALIZED_TIME: Final = 0x18


class Validity(NamedTuple):
    begins: datetime
    ends: datetime


class _Element(NamedTuple):
    tag: int
    start: int  # of its contents
    end: int


def validity_of(der: bytes) -> Validity:
    """ValueError where this is no certificate."""
    certificate = _element(der, 0, _SEQUENCE)
    part = _element(der, _element(der, certificate.start, _SEQUENCE).start)
    if part.tag == _VERSION:
        part = _element(der, part.end)
    algorithm = _element(der, part.end, _SEQUENCE)  # behind the serial number
    issuer = _element(der, algorithm.end, _SEQUENCE)
    dates = _element(der, issuer.end, _SEQUENCE)
    begins = _element(der, dates.start)
    ends = _element(der, begins.end)
    return Validity(_moment(der, begins), _moment(der, ends))


def _element(der: bytes, at: int, expected: int | None = None) -> _Element:
    if at + 2 > len(der):
        raise ValueError("the certificate ends too early")
    tag, size, start = der[at], der[at + 1], at + 2
    if size & 0x80:
        width = size & 0x7F
        size = int.from_bytes(der[start : start + width], "big")
        start += width
    if start + size > len(der) or (expected is not None and tag != expected):
        raise ValueError(f"no certificate: tag {tag} of {size} bytes at byte {at}")
    return _Element(tag, start, start + size)


def _moment(der: bytes, element: _Element) -> datetime:
    text = der[element.start : element.end].decode("ascii")
    if element.tag == _UTC_TIME:
        century = "19" if text[:2] >= "50" else "20"  # RFC 5280, 4.1.2.5.1
        text = century + text
    elif element.tag != _GENERALIZED_TIME:
        raise ValueError(f"no date: tag {element.tag}")
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)
