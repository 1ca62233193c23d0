"""(pure) Expansion of calls of the dump's own simple templates: text with ``{{{1}}}`` and ``{{{x|default}}}``.

A template is simple if its text has no parser function and no magic word with an argument.  ``<noinclude>`` is left
out, ``<onlyinclude>`` is all that counts, and ``<includeonly>`` is text.  Its calls of other templates are expanded or
converted like those of a page.

Invariants:
    I1. A page's expansions have EXPANDED_CHARS_MAX characters at most (``mediawiki_pieces``), and are DEPTH_MAX deep at
        most, so a template that calls itself ends.
    I2. A mark is in one place only (``mediawiki_pieces``): where a value is used again, its marks are plain text.

Knows nothing of dumps (``dump_templates`` collects the texts) and of the positions of calls.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from wikka_port.markup.mediawiki_pieces import Draft
from wikka_port.markup.mediawiki_titles import Dialect, spaced

BODY_CHARS_MAX: Final = 20_000  # of a template
CALL_CHARS_MAX: Final = 50_000  # of one call
DEPTH_MAX: Final = 8
_ROUNDS: Final = 6  # of parameters in the defaults of parameters
TEMPLATE: Final = 10

_COMMENT: Final = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_EXCLUDED: Final = re.compile(r"<noinclude\s*+>.*?(?:</noinclude\s*+>|\Z)", re.DOTALL | re.IGNORECASE)
_ONLY: Final = re.compile(r"<onlyinclude\s*+>(.*?)(?:</onlyinclude\s*+>|\Z)", re.DOTALL | re.IGNORECASE)
_INCLUDED: Final = re.compile(r"</?(?:includeonly|noinclude)\s*+/?>", re.IGNORECASE)
PARAMETER_OF_WIKITEXT: Final = re.compile(r"\{\{\{([^{}|]{0,100})(?:\|([^{}]*+))?\}\}\}")
_NOT_SIMPLE: Final = re.compile(r"\{\{\s*+(?:#|[^{}|\n:]*+:)|\{\{\{|\{\{\s*+(?:\||\}\})")
_BAR: Final = "{{!}}"


def simple_body(text: str) -> str | None:
    """Return the text that a page gets from a template, or None if the template is not simple."""
    if len(text) > 2 * BODY_CHARS_MAX:
        return None
    text = _EXCLUDED.sub("", _COMMENT.sub("", text))
    only = _ONLY.findall(text)
    body = _INCLUDED.sub("", "".join(only) if only else text)
    bare = body
    for _ in range(_ROUNDS):
        bare = PARAMETER_OF_WIKITEXT.sub("x", bare)
    if len(body) > BODY_CHARS_MAX or _NOT_SIMPLE.search(bare.replace(_BAR, "")) or "\x02" in body:
        return None
    return body if bare.count("{{") == bare.count("}}") else None


def template_title(dialect: Dialect, name: str) -> str:
    """Return the title of the page that a call of ``name`` includes, or "" if none can be meant."""
    name = spaced(name)
    if name.startswith(":"):
        return dialect.title(name[1:].strip())
    prefix, colon, _ = name.partition(":")
    if colon and prefix.strip().lower() in dialect.numbers:
        return dialect.title(name)
    return dialect.title(f"{dialect.names.get(TEMPLATE, 'Template')}:{name}") if name and "\x02" not in name else ""


@dataclass(slots=True)
class _Filling:
    """The values of one call, put into a template's text."""

    draft: Draft
    given: Mapping[str, str]
    left: int
    used: set[str] = field(default_factory=set)

    def value(self, found: re.Match[str]) -> str:
        name, default = found[1].strip(), found[2]
        if name not in self.given:
            value = found[0].replace("{{{", "&#123;&#123;&#123;").replace("}}}", "&#125;&#125;&#125;")
            value = default if default is not None else value
        else:
            value = self.given[name]
            if "\x02" in value:
                value = self.draft.plain(value) if name in self.used else value
                self.used.add(name)
        self.left -= len(value)
        return value if self.left >= 0 else ""


def expanded(draft: Draft, name: str, given: Mapping[str, str]) -> str | None:
    """Return the wikitext in the place of a call, or None if it cannot be expanded.

    ``given`` has the values by their names as typed, positional ones by their numbers.
    """
    templates, left = draft.dialect.templates, draft.expansion.left
    name = draft.title + name.strip() if name.strip()[:1] == "/" and draft.dialect.has_subpages(draft.title) else name
    body = templates.get(template_title(draft.dialect, name)) if templates else None
    if body is None or len(body) > left or draft.expansion.depth >= DEPTH_MAX:
        return None
    filling = _Filling(draft, given, min(left - len(body), CALL_CHARS_MAX))
    text = body
    for _ in range(_ROUNDS):
        if "{{{" not in text:
            break
        text = PARAMETER_OF_WIKITEXT.sub(filling.value, text)
    if not draft.expansion.spend(len(body) + len(text)) or filling.left < 0:
        return None
    return text.replace(_BAR, "|").strip("\n")
