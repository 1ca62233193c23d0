"""Secrets of the command line (pure): what may stand in a report, which is shown to others.

The value of each ``--header`` is left out, and so is what stands before the ``@`` of an address.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

LEFT_OUT: Final = "…"
SHORT: Final = 6  # characters; a shorter value is looked for in no other text, as it may be any word
_LOGIN: Final = re.compile(r"(?<=//)[^/\s?#]*@|^[^/\s?#:]+:[^/\s?#]*@")


def without_login(url: str) -> str:
    """The address without a name and a password."""
    return _LOGIN.sub("", url, count=1)


def shown_words(words: Sequence[str]) -> list[str]:
    """The words of a command line as a report shows them."""
    shown, is_value = [], False
    for word in words:
        if is_value:
            shown.append(_header(word))
        elif word.startswith("--header="):
            shown.append(f"--header={_header(word.removeprefix('--header='))}")
        elif word.startswith("--"):
            name, equals, value = word.partition("=")
            shown.append(f"{name}{equals}{without_login(value)}")
        else:
            shown.append(without_login(word))
        is_value = word == "--header"
    return shown


def _header(text: str) -> str:
    name, colon, _ = text.partition(":")
    return f"{name}: {LEFT_OUT}" if colon else LEFT_OUT


def redacted(value: Any, secrets: Iterable[str]) -> Any:
    """``value`` as JSON has it, without the ``secrets`` in any of its texts, as of an error that quotes a header."""
    wanted = sorted({secret for secret in secrets if len(secret) >= SHORT}, key=len, reverse=True)
    return _redacted(value, re.compile("|".join(map(re.escape, wanted)))) if wanted else value


def _redacted(value: Any, secrets: re.Pattern[str]) -> Any:
    if isinstance(value, str):
        return secrets.sub(LEFT_OUT, value)
    if isinstance(value, dict):
        return {key: _redacted(one, secrets) for key, one in value.items()}
    return [_redacted(one, secrets) for one in value] if isinstance(value, list | tuple) else value


def basic(name: str, password: str) -> str:
    """The value of the header that a browser sends for ``http://name:password@host``."""
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()
