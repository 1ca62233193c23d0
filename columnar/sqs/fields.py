"""(pure) The fields of a request, checked as they are read: each is of the type that SQS's model gives it.

Numbers may come as text, as some clients send them.

Knows nothing of actions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from columnar.sqs.errors import SqsError, invalid_value, missing

_NUMBER: Final = re.compile(r"-?[0-9]{1,18}")
_BATCH_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,80}")
MOST_ENTRIES: Final = 10  # of a batch
MOST_LISTED: Final = 1_000  # names and attributes in one request


def read_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object that a request has as its body; an empty body is an empty one.  Raises SqsError."""
    if not body:
        return {}
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise SqsError("SerializationException", "the body of the request is not JSON in UTF-8") from None
    if not isinstance(found, dict):
        raise SqsError("SerializationException", "the body of the request is not a JSON object")
    return found


class Fields:
    """The fields of a request, or of an entry of a batch."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def required_text(self, name: str) -> str:
        """Return a text that must be there.  Raises SqsError."""
        found = self.optional_text(name)
        if not found:
            raise missing(name)
        return found

    def optional_text(self, name: str) -> str:
        """Return a text, or "" if it is not there.  Raises SqsError."""
        found = self._values.get(name)
        if found is None:
            return ""
        if not isinstance(found, str):
            raise _serialization(name, "a string")
        if not _is_unicode(found):
            raise _serialization(name, "text that UTF-8 can express")
        return found

    def number(self, name: str, least: int, most: int) -> int | None:
        """Return a whole number, or None if it is not there.  Raises SqsError."""
        found = self._values.get(name)
        if found is None:
            return None
        if isinstance(found, str) and _NUMBER.fullmatch(found):
            found = int(found)
        if isinstance(found, float) and found.is_integer():
            found = int(found)
        if not isinstance(found, int) or isinstance(found, bool):
            raise _serialization(name, "a whole number")
        if not least <= found <= most:
            raise invalid_value(
                f"Value {found} for parameter {name} is invalid. Reason: Must be between {least} and {most}, if "
                "provided."
            )
        return found

    def names(self, name: str) -> tuple[str, ...]:
        """Return a list of texts, empty if it is not there.  Raises SqsError."""
        found = self._values.get(name)
        if found is None:
            return ()
        if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
            raise _serialization(name, "a list of strings")
        if len(found) > MOST_LISTED:
            raise invalid_value(f"{name} has {len(found)} names, the limit is {MOST_LISTED}")
        return tuple(found)

    def attributes(self, name: str) -> dict[str, str]:
        """Return a map of texts to texts, empty if it is not there.  Raises SqsError."""
        found = {key: _written(value) for key, value in self.structures(name).items()}
        if not all(isinstance(value, str) and _is_unicode(value) for value in found.values()):
            raise _serialization(name, "a map of strings")
        return found

    def structures(self, name: str) -> dict[str, Any]:
        """Return a map of texts to whatever, empty if it is not there.  Raises SqsError."""
        found = self._values.get(name)
        if found is None:
            return {}
        if not isinstance(found, dict) or not all(map(_is_unicode, found)):
            raise _serialization(name, "a map")
        if len(found) > MOST_LISTED:
            raise invalid_value(f"{name} has {len(found)} entries, the limit is {MOST_LISTED}")
        return found

    def entries(self, kind: str) -> list[Fields]:
        """Return the entries of a batch, each with an Id of its own.  Raises SqsError."""
        found = self._values.get("Entries")
        if not isinstance(found, list | None) or not all(isinstance(one, dict) for one in found or ()):
            raise _serialization("Entries", "a list of structures")
        if not found:
            raise SqsError("EmptyBatchRequest", f"There should be at least one {kind} in the request.")
        if len(found) > MOST_ENTRIES:
            text = f"Maximum number of entries per request are {MOST_ENTRIES}. You have sent {len(found)}."
            raise SqsError("TooManyEntriesInBatchRequest", text)
        entries = [Fields(one) for one in found]
        ids = [one.required_text("Id") for one in entries]
        if not all(map(_BATCH_ID.fullmatch, ids)):
            text = (
                "A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most"
            )
            raise SqsError("InvalidBatchEntryId", f"{text} 80 letters long.")
        twice = next((one for number, one in enumerate(ids) if one in ids[:number]), None)
        if twice is not None:
            raise SqsError("BatchEntryIdsNotDistinct", f"Id {twice} repeated.")
        return entries


def _written(value: Any) -> Any:
    """Return numbers and booleans as some clients mean them: as text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else value


def _is_unicode(text: str) -> bool:
    """Return whether the text has no lone surrogate."""
    return text.isascii() or not any("\ud800" <= one <= "\udfff" for one in text)


def _serialization(name: str, what: str) -> SqsError:
    return SqsError("SerializationException", f"{name} is not {what}")
