"""A second evaluator of access lists, written from WikkaWiki's description alone and by a different method than ours.

It works on the whole text from its end: it begins with the rights of a visitor whom no line names, and each line
changes them.  It knows nothing of ``wikka_port.rights``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import reduce
from unicodedata import combining, normalize


def alike(one: str, other: str) -> bool:
    def bare(text: str) -> str:
        return "".join(c for c in normalize("NFD", text.casefold()) if not (combining(c) and "\u0300" <= c <= "\u036f"))

    return bare(one) == bare(other)


def is_member(body: str, name: str) -> bool:
    return any(alike(found, name) for found in re.findall(r"(?<=\+)[^+\n]+(?=\+)", body) if found == found.strip())


def lets_in(text: str, user: str | None, pages: Mapping[str, str]) -> bool:
    """Return whether the list lets the user in; ``pages`` has the texts of pages by name."""

    def wrap(behind: bool, line: str) -> bool:
        if line.strip() in ("", "!") or re.match(r"\s*!?#", line):
            return behind
        turned = line.strip().startswith("!")
        who = line.strip()[turned:]
        if who.startswith("*"):
            return not turned
        if who.startswith("+"):
            return (user is None) if turned else (user is not None)
        if user is None or not (alike(who, user) or is_member(pages.get(who, ""), user)):
            return behind
        return not turned

    return reduce(wrap, reversed(text.split("\n")), False)
