"""Figures as a language writes them: 1,234.5 in English, 1.234,5 in German."""

from __future__ import annotations

from wikka_port.texts import _


def figure(number: float, decimals: int = 0) -> str:
    """``number`` with that many decimals, in the language that is spoken."""
    written = f"{number:,.{decimals}f}"
    if "," not in written and "." not in written:
        return written
    example = _("1,234.5")
    thousands, point = example[1 : example.index("2")], example[example.index("4") + 1 : -1]
    return written.translate({ord(","): thousands, ord("."): point})
