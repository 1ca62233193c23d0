"""(pure) Attributes and bodies of messages: what SQS sends, their MD5 by AWS's rule, and the headers they become.

    String    header NAME = the text in UTF-8        Number   the same        Binary   header NAME = its bytes
    sqs:      header with what SQS alone knows, as JSON: {"types": {"size": "Number"}, "dedup": "a-1", "trace": "..."}

A header that was pushed by other means is shown as String, or as Binary if it is not text.  A body that is not UTF-8
is shown in base64, with the attribute ``encoding`` = ``base64``.

    MD5 of attributes := of each, by name: name, type, 1 (text) or 2 (bytes), value; but for the number length:u32 bytes

Knows nothing of queues.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from hashlib import md5
from typing import Any, Final

from columnar.queues.keys import SQS_HEADER
from columnar.sqs.errors import SqsError, invalid_value

OWN_HEADER: Final = SQS_HEADER  # no name of an attribute has a colon
ENCODING: Final = "encoding"
MOST_ATTRIBUTES: Final = 10
VALUE_BYTES: Final = 65_535  # of a header
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,256}")
_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,38}(\.[0-9]{1,38})?([eE][+-]?[0-9]{1,3})?|[+-]?\.[0-9]{1,38}")
_ALL: Final = frozenset({"All", ".*"})


@dataclass(frozen=True, slots=True)
class Attribute:
    name: str
    type: str  # String, Number or Binary, perhaps with a label behind a dot
    value: bytes

    @property
    def is_binary(self) -> bool:
        return self.type.startswith("Binary")

    @property
    def size_bytes(self) -> int:
        """Return the bytes that count towards the size of a message."""
        return len(self.name.encode()) + len(self.type.encode()) + len(self.value)

    def as_json(self) -> dict[str, str]:
        if self.is_binary:
            return {"DataType": self.type, "BinaryValue": b64encode(self.value).decode()}
        return {"DataType": self.type, "StringValue": self.value.decode("utf-8", "replace")}


@dataclass(frozen=True, slots=True)
class OwnFields:
    """Fields of a message that SQS alone knows."""

    dedup: str = ""  # MessageDeduplicationId
    trace: str = ""  # AWSTraceHeader
    sender: str = ""  # access key of the sender, which nobody has checked


_OWN: Final = tuple(one.name for one in fields(OwnFields))


def read_attributes(sent: Mapping[str, Any]) -> tuple[Attribute, ...]:
    """Return the attributes of a message that is sent.  Raises SqsError."""
    if len(sent) > MOST_ATTRIBUTES:
        raise invalid_value(
            f"Number of message attributes [{len(sent)}] exceeds the allowed maximum [{MOST_ATTRIBUTES}]."
        )
    return tuple(_read_attribute(name, value) for name, value in sent.items())


def _read_attribute(name: str, sent: Any) -> Attribute:
    is_reserved = name.lower().startswith(("aws.", "amazon.")) or name.startswith(".") or name.endswith(".")
    if not _NAME.fullmatch(name) or is_reserved or ".." in name:
        text = "can have letters, digits, _, - and single periods within, up to 256, and not begin with AWS. or Amazon."
        raise invalid_value(f"The message attribute name {name[:300]!r} is not valid: names {text}")
    kind = sent.get("DataType") if isinstance(sent, dict) else None
    if not isinstance(kind, str) or not kind:
        raise invalid_value(f"The message attribute '{name}' must contain non-empty message attribute type.")
    base = kind.partition(".")[0]
    if base not in ("String", "Number", "Binary") or not _NAME.fullmatch(kind):
        raise invalid_value(
            f"The message attribute '{name}' has an invalid message attribute type, the set of supported type prefixes "
            "is Binary, Number, and String."
        )
    value = _read_value(name, base, sent)
    if not value:
        raise invalid_value(f"The message attribute '{name}' must contain non-empty message attribute value "
                            f"for message attribute type '{kind}'.")  # fmt: skip
    if len(value) > VALUE_BYTES:
        raise invalid_value(f"The message attribute '{name}' has {len(value)} bytes, the limit is {VALUE_BYTES}.")
    return Attribute(name, kind, value)


def _read_value(name: str, base: str, sent: Mapping[str, Any]) -> bytes:
    found = sent.get("BinaryValue" if base == "Binary" else "StringValue")
    if not isinstance(found, str):
        return b""
    if base == "Binary":
        try:
            return b64decode(found, validate=True)
        except (NotBase64, ValueError):
            raise SqsError(
                "SerializationException", f"the value of the message attribute {name} is not base64"
            ) from None
    if _NOT_XML.search(found):
        raise invalid_value(f"The message attribute '{name}' has characters that are not allowed.")
    if base == "Number" and not _NUMBER.fullmatch(found):
        raise invalid_value(f"Can't cast the value of message (user) attribute '{name}' to a number.")
    return found.encode()


def checked_body(body: str) -> bytes:
    """Return the bytes of a body that is sent.  Raises SqsError."""
    if _NOT_XML.search(body):
        raise SqsError("InvalidMessageContents", "Invalid characters found. Valid unicode characters are "
                       "#x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF")  # fmt: skip
    return body.encode()


# --- headers -----------------------------------------------------------------------------------------


def headers_of(attributes: Iterable[Attribute], own: OwnFields) -> dict[bytes, bytes]:
    """Return the headers with which a message is stored."""
    attributes = tuple(attributes)
    headers = {one.name.encode(): one.value for one in attributes}
    kept: dict[str, Any] = {"types": {one.name: one.type for one in attributes if one.type != "String"}}
    kept |= asdict(own)
    if any(kept.values()):
        headers[OWN_HEADER] = json.dumps({key: value for key, value in kept.items() if value}).encode()
    return headers


def attributes_of(headers: Mapping[bytes, bytes]) -> tuple[tuple[Attribute, ...], OwnFields]:
    """Return the attributes of a stored message, whoever pushed it."""
    kept = _kept(headers.get(OWN_HEADER, b""))
    types = kept.get("types")
    known = types if isinstance(types, dict) else {}
    found = []
    for raw, value in headers.items():
        if raw != OWN_HEADER:
            name = raw.decode("utf-8", "backslashreplace")
            given = known.get(name)
            found.append(Attribute(name, given if isinstance(given, str) and given else _type_of(value), value))
    own = {name: kept[name] for name in _OWN if isinstance(kept.get(name), str)}
    return tuple(found), OwnFields(**own)


def _kept(data: bytes) -> dict[str, Any]:
    """Return what the own header says; whoever pushed it by other means may have written anything."""
    try:
        found = json.loads(data) if data else {}
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _type_of(value: bytes) -> str:
    return "String" if _text_of(value) is not None else "Binary"


def _text_of(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def text_of_body(body: bytes) -> tuple[str, tuple[Attribute, ...]]:
    """Return a body as text, and the attribute that says how, if it is not the text itself."""
    text = _text_of(body)
    if text is not None:
        return text, ()
    return b64encode(body).decode(), (Attribute(ENCODING, "String", b"base64"),)


def chosen(attributes: Iterable[Attribute], names: Sequence[str]) -> list[Attribute]:
    """Return the attributes that ``names`` ask for: names, ``All``, ``.*`` or ``prefix.*``."""
    if not names:
        return []
    wanted = set(names)
    if wanted & _ALL:
        return list(attributes)
    prefixes = tuple(name.removesuffix(".*") for name in names if name.endswith(".*"))
    return [one for one in attributes if one.name in wanted or (prefixes and one.name.startswith(prefixes))]


# --- digests -----------------------------------------------------------------------------------------


def md5_of_body(text: str) -> str:
    return md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


def md5_of_attributes(attributes: Iterable[Attribute]) -> str:
    digest = md5(usedforsecurity=False)
    for one in sorted(attributes, key=lambda one: one.name):
        for part in (one.name.encode(), one.type.encode()):
            digest.update(len(part).to_bytes(4, "big") + part)
        digest.update((b"\x02" if one.is_binary else b"\x01") + len(one.value).to_bytes(4, "big") + one.value)
    return digest.hexdigest()
