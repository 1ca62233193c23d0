"""(pure) ``@Name`` and ``@[Ada Lovelace]`` in a text: the accounts that are notified of it.

A name without brackets is a word of letters, digits, "_", "-" and "."; no mention follows a letter or a digit, as in a
mail address.
"""

from __future__ import annotations

import re
from typing import Final

from wikka_port.limits import MENTIONS_MAX
from wikka_port.schema import folded

_MENTION: Final = re.compile(r"(?<![\w@.])@(?:\[([^\[\]\n]{1,75})\]|(\w(?:[\w.-]{0,62}\w)?))")


def mentioned(text: str, before: str = "") -> tuple[str, ...]:
    """Return the folded names in ``text`` that were not mentioned ``before``, the first MENTIONS_MAX of them."""
    if "@" not in text:
        return ()
    old = _names(before)
    return tuple(name for name in _names(text) if name not in old)[:MENTIONS_MAX]


def _names(text: str) -> dict[str, None]:
    found = (" ".join((bracketed or word).split()) for bracketed, word in _MENTION.findall(text))
    return dict.fromkeys(folded(name) for name in found if name)
