"""Colours that authors name (pure): each becomes the nearest of a few colours that are readable on the wiki's pages.

A page cannot bring a style of its own (the Content-Security-Policy forbids it), and a colour that is readable on white
is not readable on black.  So a colour is a class, ``ink-red`` or ``paper-red``, whose values for light and dark are in
the style sheet.
"""

from __future__ import annotations

import colorsys
import re
from typing import Final

HUES: Final = (("red", 0), ("orange", 30), ("yellow", 52), ("green", 120), ("teal", 175), ("blue", 220),
               ("purple", 275), ("pink", 315), ("red", 360))  # fmt: skip
INKS: Final = ("red", "orange", "yellow", "green", "teal", "blue", "purple", "pink", "grey", "ink")
_GREY: Final = 0.15  # of saturation: less is no colour
_HEX: Final = re.compile(r"#?([0-9a-f]{6}|[0-9a-f]{3})")
_NAMES: Final = {
    "red": "red", "maroon": "red", "crimson": "red", "darkred": "red", "firebrick": "red", "brown": "orange",
    "orange": "orange", "darkorange": "orange", "coral": "orange", "tomato": "red", "chocolate": "orange",
    "yellow": "yellow", "gold": "yellow", "khaki": "yellow", "olive": "yellow", "green": "green", "lime": "green",
    "darkgreen": "green", "lightgreen": "green", "teal": "teal", "aqua": "teal", "cyan": "teal", "turquoise": "teal",
    "blue": "blue", "navy": "blue", "lightblue": "blue", "darkblue": "blue", "steelblue": "blue", "royalblue": "blue",
    "purple": "purple", "violet": "purple", "indigo": "purple", "fuchsia": "pink", "magenta": "pink", "pink": "pink",
    "grey": "grey", "gray": "grey", "silver": "grey", "black": "ink", "white": "grey",
}  # fmt: skip


def nearest(typed: str) -> str | None:
    """Return the name in INKS nearest to the colour ``typed``, or None if ``typed`` is no colour."""
    word = typed.strip().lower()
    if word in _NAMES:
        return _NAMES[word]
    found = _HEX.fullmatch(word)
    if found is None:
        return None
    digits = found[1] if len(found[1]) == 6 else "".join(digit * 2 for digit in found[1])
    red, green, blue = (int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4))
    hue, light, saturation = colorsys.rgb_to_hls(red, green, blue)
    if saturation < _GREY or not 0.04 < light < 0.97:
        return "ink" if light < 0.25 else "grey"
    return min(HUES, key=lambda entry: abs(entry[1] - hue * 360))[0]
