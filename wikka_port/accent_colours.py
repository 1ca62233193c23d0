"""(pure) The site's own colour: whether it can be read on the wiki's pages, its form for dark pages, its style sheet.

Contrast is that of WCAG 2.2 (1.4.3): text needs LEAST between its luminance and that of its ground.  The colour is of
links and of the main button.  On light pages it must be dark enough as it is.  For dark pages it is mixed with white
until it is light enough.
"""

from __future__ import annotations

import re
from typing import Final

LEAST: Final = 4.5
_LIGHT_GROUNDS: Final = ("#fcfcfa", "#ffffff", "#f2f3f0")  # of static/wiki.css: paper, raised, sunken
_DARK_GROUNDS: Final = ("#14181b", "#1b2024", "#20262a")
_INKS: Final = ("#ffffff", "#0c1a1c")  # of the words on the button
_HEX: Final = re.compile("#[0-9a-f]{6}")
_STEPS: Final = 20  # of the mixture with white or black


def is_colour(text: str) -> bool:
    return _HEX.fullmatch(text) is not None


def contrast(one: str, other: str) -> float:
    """Return the ratio of two colours, from 1 to 21."""
    first, second = sorted((_luminance(one), _luminance(other)))
    return (second + 0.05) / (first + 0.05)


def least_contrast(colour: str) -> float:
    """Return the lowest contrast that the colour has on light pages."""
    return min(contrast(colour, ground) for ground in _LIGHT_GROUNDS)


def darker(colour: str) -> str:
    """Return the nearest mixture of the colour with black that can be read on light pages."""
    return _mixed_until(colour, "#000000", _LIGHT_GROUNDS)


def for_dark_pages(colour: str) -> str:
    return _mixed_until(colour, "#ffffff", _DARK_GROUNDS)


def style_sheet(colour: str) -> str:
    """Return the sheet that puts the colour in the place of the wiki's own, for light and for dark pages."""
    light, dark = _values(colour), _values(for_dark_pages(colour))
    return (
        f":root {{ {light} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root:not([data-theme=light]) {{ {dark} }} }}\n"
        f":root[data-theme=dark] {{ {dark} }}\n"
        f"@media print {{ :root:root {{ {light} }} }}\n"
    )


def _values(colour: str) -> str:
    ink = max(_INKS, key=lambda one: contrast(colour, one))
    return f"--accent: {colour}; --accent-ink: {ink};"


def _mixed_until(colour: str, other: str, grounds: tuple[str, ...]) -> str:
    for step in range(_STEPS + 1):
        mixed = _mixture(colour, other, step / _STEPS)
        if all(contrast(mixed, ground) >= LEAST for ground in grounds):
            return mixed
    return other


def _mixture(colour: str, other: str, share: float) -> str:
    pairs = zip(_channels(colour), _channels(other), strict=True)
    return "#" + "".join(f"{round(one + (two - one) * share):02x}" for one, two in pairs)


def _channels(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[place : place + 2], 16) for place in (1, 3, 5))


def _luminance(colour: str) -> float:
    red, green, blue = (_linear(channel / 255) for channel in _channels(colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(channel: float) -> float:
    return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4
