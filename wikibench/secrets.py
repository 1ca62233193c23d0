"""(pure) Secrets of the command line, which must not stand in a report, because reports are shown to others.

The value of each ``--header`` is left out, and so are the name and password before the ``@`` of an address.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

LEFT_OUT: Final = "…"
SHORT: Final = 6  # characters; a shorter value is searched for in no other text, as it may be any word
_LOGIN: Final = re.compile(r"(?<=//)[^/?#]*@|^[^/?#:]+:[^/?#]*@")
_LOGIN_OF_TARGET: Final = re.compile(r"(?<=//)[^/?#]*@|^[^/?#]*@")  # a token without a password stands there, too
_BEFORE_LAST_AT: Final = re.compile(r"(?<=//).*@|^(?!\w+://).*@", re.DOTALL)


def without_login(url: str) -> str:
    """Return the address without a name and a password."""
    return _LOGIN.sub("", url, count=1)


def of_target(url: str) -> str:
    """Return the address of a --target without the name and password that are sent as a login."""
    return _LOGIN_OF_TARGET.sub("", url, count=1)


def of_no_address(text: str) -> str:
    """Return the part of a malformed address after its last ``@``, because a password may have any character."""
    return _BEFORE_LAST_AT.sub("", text, count=1)


def redact_words(words: Sequence[str]) -> list[str]:
    """Return the words of a command line as a report shows them."""
    shown, option = [], ""
    for word in words:
        if option or not word.startswith("--"):
            shown.append(_REDACTED_OPTIONS.get(option, without_login)(word))
            option = ""
            continue
        name, equals, value = word.partition("=")
        shown.append(f"{name}={_REDACTED_OPTIONS.get(name, without_login)(value)}" if equals else word)
        option = name if name in _REDACTED_OPTIONS and not equals else ""
    return shown


def _header(text: str) -> str:
    name, colon, _ = text.partition(":")
    return f"{name}: {LEFT_OUT}" if colon else LEFT_OUT


_REDACTED_OPTIONS: Final = {"--header": _header, "--target": of_target}


def redacted(value: Any, secrets: Iterable[str]) -> Any:
    """Return the JSON ``value`` with the ``secrets`` removed from all texts, such as errors that quote a header."""
    wanted = sorted({secret for secret in secrets if len(secret) >= SHORT}, key=len, reverse=True)
    return _redacted(value, re.compile("|".join(map(re.escape, wanted)))) if wanted else value


def _redacted(value: Any, secrets: re.Pattern[str]) -> Any:
    if isinstance(value, str):
        return secrets.sub(LEFT_OUT, value)
    if isinstance(value, dict):
        return {key: _redacted(one, secrets) for key, one in value.items()}
    return [_redacted(one, secrets) for one in value] if isinstance(value, list | tuple) else value


def basic(name: str, password: str) -> str:
    """Return the value of the header that a browser sends for ``http://name:password@host``."""
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()
