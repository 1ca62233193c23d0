"""(pure) The check of a text against the bounds of a page, and the message to its author.

The bounds apply to the tokens from which the page would be rendered and indexed.  Knows nothing of the consequences:
a save is refused (``drafts``), and a stored page is shown up to the bound (``compiler``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from wikka_port.limits import (
    ACTIONS_MAX,
    ADDRESSES_MAX,
    CELLS_MAX,
    LINK_STEPS,
    LINKS_MAX,
    MARKDOWN_STEPS,
    QUICK_CHARS,
    QUICK_STEPS,
    STEPS_MAX,
)
from wikka_port.markup.formats import MARKDOWN, WIKKA, tokens
from wikka_port.markup.tokens import ActionCall, Bound, Rest
from wikka_port.texts import N_, _, figure

_SAID: Final[Mapping[Bound, str]] = {
    "links": N_("This page links to more than {most} pages."),
    "cells": N_("The tables of this page have more than {most} cells."),
    "addresses": N_("The addresses of links and pictures have more than {most} characters, with references."),
    "steps": N_("This page has more markup than can be shown in good time (too many marks)."),
}
_MOST: Final[Mapping[Bound, int]] = {"links": LINKS_MAX, "cells": CELLS_MAX, "addresses": ADDRESSES_MAX, "steps": 0}
REMEDY: Final = N_("Please divide it into several pages and save again; your text is below.")
AS_TYPED: Final = N_("From here on it is shown as it was typed.")
_CHARS_PER_LINK: Final = 4  # at least, as in "AaB "
_MARKS: Final = ("\n", "[[", "[^", "||", "**", "//", "''", '""', "%%", ":", "{{", "<", "&", "~", "==", "--", "#", "@@")
_MARKDOWN_MARKS: Final = "\n*_`[]!<&\\~|{$"
_CAPITAL: Final = re.compile("[A-Z][a-z]+[A-Z]")


def said_of(over: Bound) -> str:
    return _(_SAID[over], most=figure(_MOST[over]))


def over_bounds(text: str, *, autolink: bool = True, markup: str = WIKKA) -> str | None:
    """Return a sentence on the first bound that ``text`` exceeds, or None if it exceeds none."""
    is_short = len(text) <= min(LINKS_MAX, CELLS_MAX, STEPS_MAX) * _CHARS_PER_LINK
    if is_short and text.count("{{") <= ACTIONS_MAX and not (markup == MARKDOWN and "]:" in text):
        return None
    read = tokens(text, autolink=autolink, markup=markup)
    if read and isinstance(read[-1], Rest):
        return said_of(read[-1].over)
    actions = sum(1 for token in read if isinstance(token, ActionCall) and token.name not in ("toc", "notoc"))
    if actions > ACTIONS_MAX:
        return _("This page has {actions} actions and {most} are the most.", actions=actions, most=ACTIONS_MAX)
    return None


def is_expensive(text: str, *, markup: str = WIKKA) -> bool:
    """Estimate whether parsing ``text`` may cost more than QUICK_STEPS, in a fraction of that time."""
    if markup == MARKDOWN:
        return len(text) > QUICK_STEPS // MARKDOWN_STEPS and _markdown_steps(text) + _links_in(text) > QUICK_STEPS
    if len(text) <= QUICK_CHARS:
        return False
    marks = sum(text.count(mark) for mark in _MARKS)
    marks += LINK_STEPS * text.count("[[")
    return marks > QUICK_STEPS or marks + _links_in(text) > QUICK_STEPS


def _markdown_steps(text: str) -> int:
    marks = sum(text.count(mark) for mark in _MARKDOWN_MARKS)
    return MARKDOWN_STEPS * marks + LINK_STEPS * text.count(":") + len(text) // 100


def _links_in(text: str) -> int:
    """Estimate the cost of the text's CamelCase words, in steps."""
    return LINK_STEPS * sum(1 for _ in _CAPITAL.finditer(text, 0, 500_000))
