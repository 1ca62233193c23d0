"""Figures as a language writes them: 1,234.5 in English, 1.234,5 in German."""

from __future__ import annotations

import re
from typing import Final

from wikka_port.texts import _

_EXAMPLE: Final = re.compile(r"1(\D*)234(\D*)5")


def figure(number: float, decimals: int = 0) -> str:
    """``number`` with that many decimals, in the language that is spoken."""
    written = f"{number:,.{decimals}f}"
    said = _EXAMPLE.search(_("1,234.5"))
    return written if said is None else written.translate({ord(","): said.group(1), ord("."): said.group(2)})
