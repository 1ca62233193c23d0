"""(pure but for one file) Payloads that try to run a script in a reader's browser; each calls ``__ran(its number)``.

Written for this wiki in ``tests/data/wiki_payloads.txt``: embedded HTML, SVG and MathML, styles, entities and Unicode,
markup of Wikka, MediaWiki and Markdown, access lists, names like files, schemes of addresses, and texts that break out
of scripts, headers and feeds.  Attributes and addresses in links are made here from these texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from html import escape
from itertools import product
from pathlib import Path
from typing import Final
from urllib.parse import quote

_FILE: Final = Path(__file__).parents[2] / "data" / "wiki_payloads.txt"
_EVENTS: Final = [
    *("onerror", "onload", "onfocus", "onmouseover", "ontoggle", "onanimationstart", "onbegin", "onpointerenter"),
    *("onscroll", "oncut", "onpaste", "onwheel", "onauxclick", "onbeforeinput", "onformdata", "onslotchange"),
    *("onbeforetoggle", "onpageshow", "onhashchange", "onmessage", "ontransitionrun", "onfocusin", "onclick"),
]
_BEFORE: Final = ('"', "'", "`", '">', "'/", '" x=y ')
_AS_LINKS: Final[list[Callable[[str], str]]] = [
    lambda url: f"[[{url} | x]]",
    lambda url: f'<a href="{escape(url)}">x</a>',
    lambda url: f"[x]({url})",
    lambda url: f"[{url} x]",
    lambda url: f'{{{{image url="{url}"}}}}',
    lambda url: f'<img src="{url}">',
]


@cache
def families() -> dict[str, tuple[str, ...]]:
    """Return templates by family: ``@`` stands for the call, ``(#)`` for the number in a differently written call."""
    found: dict[str, list[str]] = {}
    for line in _FILE.read_text(encoding="ascii").splitlines()[1:]:
        if line.startswith("## "):
            written = found.setdefault(line[3:], [])
        elif line:
            written.append(line.encode().decode("unicode_escape"))
    return {name: tuple(templates) for name, templates in found.items()}


def _attributes() -> Iterator[str]:
    for before, event in product(_BEFORE, _EVENTS):
        yield f"{before} {event}={before[0]}@"


def _made() -> Iterator[str]:
    yield from _attributes()
    for number, url in enumerate(families()["addresses"]):
        yield _AS_LINKS[number % len(_AS_LINKS)](url)
    for template in families()["html"][9:40:3]:
        yield quote(template.replace("@", "__ran(#)"), safe="()#")


@cache
def payloads() -> tuple[str, ...]:
    """Return all payloads, each once; ``payloads()[n]`` calls ``__ran(n)``."""
    templates = dict.fromkeys([one for family in families().values() for one in family] + list(_made()))
    return tuple(one.replace("@", f"__ran({n})").replace("(#)", f"({n})") for n, one in enumerate(templates))
