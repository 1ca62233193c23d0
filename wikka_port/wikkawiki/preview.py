"""(pure) What will look different here: a page's text, compared with the abilities of this wiki.

    actions      those that this wiki lacks, and those of the old wiki's own making, which are PHP
    HTML         elements and attributes between pairs of double quotes that the sanitiser removes
    bounds       a page with more links, cells or marks than are shown

Knows nothing of the store and of pages beside the one that it is given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any, Final

from wikka_port.actions import ACTIONS
from wikka_port.actions.unsupported_actions import UNSUPPORTED
from wikka_port.markup.bounds import over_bounds
from wikka_port.markup.document import parse
from wikka_port.markup.embedded import clean
from wikka_port.markup.formats import WIKKA, tokens
from wikka_port.markup.tokens import Embedded

_OF_THE_MARKUP: Final = frozenset({"toc", "notoc", "redirect"})
_TAG: Final = re.compile(r"<([A-Za-z][A-Za-z0-9]*)([^<>]*)>")
_ATTRIBUTE: Final = re.compile(r"([A-Za-z][A-Za-z0-9:-]*)\s*=")
_NAMED_MAX: Final = 12  # elements and attributes of one page


def differences(body: str) -> list[str]:
    """Return a line for each thing in a text of WikkaWiki that will look different here."""
    found = [_of_action(name) for name in sorted({call.name for call in parse(body).actions})]
    html = sorted(set(_removed(body)))
    if html:
        more = ", ..." if len(html) > _NAMED_MAX else ""
        found.append(f"embedded HTML without {', '.join(html[:_NAMED_MAX])}{more}")
    over = over_bounds(body, autolink=True)
    return [line for line in (*found, over or "") if line]


def _of_action(name: str) -> str:
    if name in ACTIONS or name in _OF_THE_MARKUP:
        return ""
    why = UNSUPPORTED.get(name)
    return f"{{{{{name}}}}}: not here, {why}" if why else f"{{{{{name}}}}}: there is no such action here"


def _removed(body: str) -> Iterator[str]:
    """Yield the elements and attributes that are removed from embedded HTML."""
    if '""' not in body:
        return
    for embedded in _embedded(tokens(body, autolink=False, markup=WIKKA)):
        safe = clean(embedded.source)[0]
        kept = {(tag[1].lower(), name.lower()) for tag in _TAG.finditer(safe) for name in _ATTRIBUTE.findall(tag[2])}
        elements = {tag[1].lower() for tag in _TAG.finditer(safe)}
        for tag in _TAG.finditer(embedded.source):
            element = tag[1].lower()
            if element not in elements:
                yield f"<{element}>"
                continue
            for name in _ATTRIBUTE.findall(tag[2]):
                if (element, name.lower()) not in kept:
                    yield f"{name.lower()} of <{element}>"


def _embedded(value: Any) -> Iterator[Embedded]:
    if isinstance(value, Embedded):
        yield value
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _embedded(one)
    elif is_dataclass(value) and not isinstance(value, type):
        for one in fields(value):
            yield from _embedded(getattr(value, one.name))
