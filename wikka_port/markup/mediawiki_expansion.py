"""(pure) Expansion of calls of the dump's own templates, and of parser functions (``mediawiki_functions``).

A template is simple if its braces are whole and it calls no functions but those that are known: it has text,
``{{{1}}}``, ``{{{x|default}}}``, functions, and calls of other templates.  ``<noinclude>`` is left out,
``<onlyinclude>`` is all that counts, and ``<includeonly>`` is text.  Its calls of other templates are expanded or
converted like those of a page, once its functions are evaluated.

Functions of a page are evaluated before it is scanned, but on the page of a template, whose source they are.

Invariants:
    I1. A page's expansions have EXPANDED_CHARS_MAX characters at most (``mediawiki_pieces``), and are DEPTH_MAX deep at
        most, so a template that calls itself ends.  To evaluate its functions GROUPS_MAX groups are read, NESTED_MAX
        within each other, and READ_CHARS_MAX characters of values.
    I2. A mark is in one place only (``mediawiki_pieces``): where a value is used again, its marks are plain text.  A
        value that decides a function is still there for the text.

Knows nothing of dumps (``dump_templates`` collects the texts) and of the positions of calls.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from wikka_port.markup.mediawiki_braces import CLOSING, Group, Nodes, parsed, source_of
from wikka_port.markup.mediawiki_functions import (
    ADDRESSES,
    BLANKS,
    EVALUATED,
    Reader,
    Undecided,
    divided,
    evaluated,
    function_of,
)
from wikka_port.markup.mediawiki_names import names_of
from wikka_port.markup.mediawiki_pieces import MARK, Draft, clean
from wikka_port.markup.mediawiki_raw import TAGS, Closings
from wikka_port.markup.mediawiki_titles import Dialect, spaced
from wikka_port.markup.mediawiki_values import ExpressionError
from wikka_port.markup.mediawiki_variables import value_of

BODY_CHARS_MAX: Final = 20_000  # of a template
CALL_CHARS_MAX: Final = 50_000  # of one call
DEPTH_MAX: Final = 8
TREES_KEPT: Final = 64  # of templates
TEMPLATE: Final = 10
BLOCKS: Final = ("*", "#", ":", ";", "{|")
_BAR: Final = "{{!}}"
_BLOCKS_TYPED: Final = (*BLOCKS, "{" + _BAR)

_ONLY: Final = re.compile(r"<onlyinclude\s*+>(.*?)(?:</onlyinclude\s*+>|\Z)", re.DOTALL | re.IGNORECASE)
# Parts of a template's text that are left out, or stay as typed.
_MARKED: Final = re.compile(
    rf"<(?P<raw>{'|'.join(TAGS)})(?:[\s/][^<>]*+)?>|(?P<comment><!--)|(?P<own><noinclude\s*+>)"
    r"|</?(?:includeonly|noinclude)\s*+/?>",
    re.IGNORECASE,
)
_SUBSTITUTED: Final = re.compile(r"(\{\{\s*+)(?:safe)?subst:\s*+", re.IGNORECASE)
PARAMETER_OF_WIKITEXT: Final = re.compile(r"\{\{\{([^{}|]{0,100})(?:\|([^{}]*+))?\}\}\}")
_FUNCTION: Final = re.compile(r"\{\{\s*+(#?[^\W\d_][\w ]{0,40}):")
_IN_ATTRIBUTE: Final = re.compile(r"""=\s*+(?:"[^"<>\n]*+|'[^'<>\n]*+|[^\s"'<>|]*+)\Z""")
_MARKUP: Final = re.compile(r"[\[\]{}<>|&'=]")  # of words that are none
_ATTRIBUTE_CHARS: Final = 200  # before a function, in which the beginning of an attribute is searched
_SIGNS: Final = {"!": "|", "=": "="}
_CALLING: Final = re.compile(  # what MediaWiki reads before functions, and no more in what they make
    rf"\{{\{{++|\}}\}}++|<(?=!--|/?(?:{'|'.join(sorted({*TAGS, 'ref', 'references', 'poem'}))})[\s/>])",
    re.IGNORECASE,
)


def _as_text(made: str) -> str:
    """Return what a function makes as wikitext: braces call nothing, bars divide nothing, no comment or note begins."""
    text = clean(made)
    return _CALLING.sub(lambda found: f"&#{ord(found[0][0])};" * len(found[0]), text).replace("|", _BAR)


def _entity(found: re.Match[str]) -> str:
    return f"&#{ord(found[0])};"


class _TooLong(Exception):
    """A call's values are over CALL_CHARS_MAX, or its template's groups over the bounds."""


@dataclass(frozen=True, slots=True)
class _Template:
    nodes: Nodes
    is_functional: bool  # whether it calls functions


def simple_body(text: str, language: str = "") -> str | None:
    """Return the text that a page gets from a template, or None if the template is not simple.

    ``language`` is that of the site, whose functions have names in it.
    """
    if len(text) > 2 * BODY_CHARS_MAX or "\x02" in text:
        return None
    text = _without_marks(text)
    only = _ONLY.findall(text)
    body = _SUBSTITUTED.sub(r"\1", "".join(only) if only else text)
    return body if len(body) <= BODY_CHARS_MAX and _functions_in(parsed(body), language) is not None else None


def _without_marks(text: str) -> str:
    """Return a template's text without comments, ``<noinclude>`` and the tags ``<includeonly>``; in raw text they stay.

    O(len(text)).
    """
    out: list[str] = []
    closings, at = Closings(text, len(text)), 0
    while found := _MARKED.search(text, at):
        out.append(text[at : found.start()])
        at = found.end()
        if found["raw"]:
            is_whole = found[0].endswith("/>")
            closing = None if is_whole else closings.after(rf"</{found['raw'].lower()}\s*+>", at)
            at = closing.end() if closing else at
            out.append(text[found.start() : at])
        elif found["comment"] or found["own"]:
            closing = closings.after("-->" if found["comment"] else r"</noinclude\s*+>", at)
            at = closing.end() if closing else len(text)
    return "".join([*out, text[at:]])


def _functions_in(nodes: Nodes, language: str) -> int | None:
    """Return how many functions are called, or None if there are others than known ones, or unpaired braces."""
    waiting, functions = [*nodes], 0
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            if "{{" in node or "}}" in node:
                return None
            continue
        if node.kind == "<":
            continue
        if node.kind == "{{":
            head = "".join(part if isinstance(part, str) else "x" for part in node.parts[0]).strip()
            is_function = function_of(node, language) is not None
            if not head or (not is_function and (":" in head or head.startswith("#"))):
                return None
            functions += is_function
        waiting += (inner for part in node.parts for inner in part)
    return functions


@lru_cache(maxsize=TREES_KEPT)
def _template(body: str, language: str) -> _Template:
    nodes = parsed(body)
    return _Template(nodes, bool(_functions_in(nodes, language)))


def template_title(dialect: Dialect, name: str) -> str:
    """Return the title of the page that a call of ``name`` includes, or "" if none can be meant."""
    name = spaced(name)
    if name.startswith(":"):
        return dialect.title(name[1:].strip())
    prefix, colon, _ = name.partition(":")
    if colon and prefix.strip().lower() in dialect.numbers:
        return dialect.title(name)
    return dialect.title(f"{dialect.names.get(TEMPLATE, 'Template')}:{name}") if name and "\x02" not in name else ""


def expanded(draft: Draft, name: str, given: Mapping[str, str], *, functional: bool) -> str | None:
    """Return the wikitext in the place of a call, or None if it cannot be expanded.

    ``given`` has the values by their names as typed, positional ones by their numbers.  ``functional`` is whether a
    template that calls functions is wanted, or one that calls none.
    """
    found = _body_of(draft, name)
    if found is None:
        return None
    body, template = found
    if template.is_functional != functional or len(body) > draft.expansion.left:
        return None
    frame = _Frame(draft, body, given, min(draft.expansion.left - len(body), CALL_CHARS_MAX))
    try:
        text = frame.render(template.nodes)
    except _TooLong:
        draft.expansion.spend(len(body) + CALL_CHARS_MAX)
        return None
    if not draft.expansion.spend(len(body) + len(text)):
        return None
    return text.replace(_BAR, "|").strip("\n")


def page_text(draft: Draft, text: str) -> str:
    """Return the text of a page with its parser functions evaluated, as far as what decides them is known."""
    names, dialect = names_of(draft.dialect.language), draft.dialect
    if dialect.namespace(draft.title) == TEMPLATE:
        return text
    if not any(names.function(found[1]) in EVALUATED for found in _FUNCTION.finditer(text)):
        return text
    return _Frame(draft, text, None, 0).render(parsed(text))


def _body_of(draft: Draft, name: str) -> tuple[str, _Template] | None:
    """Return the text of a template that may be expanded here, and its tree."""
    dialect, templates = draft.dialect, draft.dialect.templates
    if not templates or draft.expansion.depth >= DEPTH_MAX:
        return None
    name = draft.title + name.strip() if name.strip()[:1] == "/" and dialect.has_subpages(draft.title) else name
    body = templates.get(template_title(dialect, name))
    return None if body is None else (body, _template(body, dialect.language))


class _Frame:
    """A text and the values of its parameters; without values, it is that of a page.

    Its two ways to read: ``render`` makes the wikitext, in which calls of templates stay; ``text`` makes the text that
    decides a function, for which calls are expanded.
    """

    def __init__(self, draft: Draft, text: str, given: Mapping[str, str] | None, left: int) -> None:
        self.language = draft.dialect.language
        self._draft = draft
        self._text = text
        self._given = given
        self._left = left  # characters that values may still have
        self._used: set[str] = set()  # values with marks that are in the text already
        shared = Reader(
            draft.dialect,
            draft.title,
            self.text,
            self.exact,
            str,
            self.is_empty,
            draft.expansion.now,
            self.read,
        )
        self._deciding = shared
        self._rendering = replace(shared, written=_as_text, render=self.render)

    def render(self, nodes: Nodes) -> str:
        out: list[str] = []
        last = "\n"
        for node in nodes:
            if isinstance(node, str):
                made = node
            else:
                made = self._rendered(node)
                is_block = made.startswith(_BLOCKS_TYPED) and node.kind == "{{"
                if is_block and out and not last.endswith("\n") and not _IN_ATTRIBUTE.search(last[-_ATTRIBUTE_CHARS:]):
                    made = "\n" + made  # as MediaWiki does, so that a block begins a line
            out.append(made)
            last = made or last
        return "".join(out)

    def text(self, nodes: Nodes) -> str:
        return self._unmarked(self.read(nodes))

    def _unmarked(self, text: str) -> str:
        """Return a text with the words of its marks, which are no markup."""
        pieces = self._draft.pieces
        return MARK.sub(lambda found: _MARKUP.sub(_entity, pieces[int(found[1])].plain), text)

    def exact(self, nodes: Nodes) -> str:
        """Return the text that the nodes make as it is typed, without those whose content is no markup.

        Raises as ``text``, and Undecided if a construct in it has been converted to more than words.
        """
        text = self.read(tuple(node for node in nodes if isinstance(node, str) or node.kind[0] != "<"))
        pieces = [self._draft.pieces[int(number)] for number in MARK.findall(text)]
        if any(piece.inline != piece.plain or piece.page for piece in pieces):
            raise Undecided("it is converted already")
        return MARK.sub(lambda found: self._draft.pieces[int(found[1])].plain, text)

    def is_empty(self, nodes: Nodes) -> bool:
        return not MARK.sub(self._seen, self.read(nodes)).strip(BLANKS)

    def _seen(self, mark: re.Match[str]) -> str:
        """Return "x" for a mark, but for that of a call that shows nothing; a category is no blank to MediaWiki."""
        is_call = bool(self._draft.pieces[int(mark[1])].typed)
        return "" if is_call and not self._draft.edges(mark[0])[0].strip() else "x"

    def read(self, nodes: Nodes) -> str:
        """Return the text that the nodes make, in which values have their marks.  Raises as ``text``."""
        return "".join(node if isinstance(node, str) else self._read(node) for node in nodes)

    # -- the wikitext

    def _rendered(self, group: Group) -> str:
        if group.kind == "<" or group.is_plain:
            return source_of(self._text, group)
        if not self._draft.expansion.enter_group():
            self._draft.expansion.leave_group()
            if self._given is not None:
                raise _TooLong
            return source_of(self._text, group)
        try:
            if group.kind == "{{{" and self._given is not None:
                return self._value(group, self._given)
            made = self._evaluated(group) if group.kind == "{{" else None
            return self._as_typed(group) if made is None else made
        finally:
            self._draft.expansion.leave_group()

    def _evaluated(self, group: Group) -> str | None:
        """Return what a function makes, or None if the group calls none or nobody knows its value."""
        function = function_of(group, self.language)
        if function is None or function.name not in EVALUATED:
            return None
        try:
            made = evaluated(function, self._rendering)
        except (Undecided, ExpressionError):
            return None
        grown = len(made) - (group.source[1] - group.source[0])
        if self._given is None and grown > 0 and not self._draft.expansion.spend(grown):
            return None
        self._draft.converted["parser function"] += 1
        is_in_page = self._given is None and self._draft.expansion.nested == 1  # in no call, whose bars would be others
        return made.replace(_BAR, "|") if is_in_page else made

    def _as_typed(self, group: Group) -> str:
        """Return a group with its functions evaluated and its parameters filled.

        A positional value of a template stays one, though a value in it may have a sign "=".
        """
        parts = [self.render(part) for part in group.parts]
        if group.kind == "<>":
            return parts[0]
        is_template = group.kind == "{{" and function_of(group, self.language) is None
        number = 0
        for place, part in enumerate(group.parts[1:], 1):
            if not is_template or divided(part) is not None:
                continue
            number += 1
            if "=" in parts[place]:
                parts[place] = f"{number}={parts[place]}"
        return f"{group.kind}{'|'.join(parts)}{CLOSING[group.kind]}"

    def _value(self, group: Group, given: Mapping[str, str]) -> str:
        """Return the value of a parameter, or its default."""
        name = self.render(group.parts[0]).strip()
        if name in given:
            value = given[name]
            if "\x02" in value:
                value = self._unmarked(value) if name in self._used else value
                self._used.add(name)
        elif len(group.parts) > 1:
            value = self.render(group.parts[1])
        else:
            value = f"&#123;&#123;&#123;{name}&#125;&#125;&#125;"
        self._left -= len(value)
        if self._left < 0:
            raise _TooLong
        return value

    # -- what decides

    def _read(self, group: Group) -> str:
        if group.kind == "<":
            source = source_of(self._text, group)
            return "" if source.startswith("<!--") else source
        entered = self._draft.expansion.enter_group()
        try:
            if not entered:
                raise Undecided("it is nested too deeply")
            if group.kind in ("[[", "<>"):
                text = "|".join(self.read(part) for part in group.parts)
                return text if group.kind == "<>" else f"[[{text}]]"
            if group.kind == "{{{":
                return self._read_value(group)
            function = function_of(group, self.language)
            if function is not None and function.name not in ADDRESSES:
                return evaluated(function, self._deciding)
            return self._read_call(group)
        finally:
            self._draft.expansion.leave_group()

    def _read_value(self, group: Group) -> str:
        name = self.read(group.parts[0]).strip()
        if self._given is not None and name in self._given:
            value = self._given[name]
        else:
            value = self.read(group.parts[1]) if len(group.parts) > 1 else f"{{{{{{{name}}}}}}}"
        if not self._draft.expansion.spend_read(len(value)):
            raise Undecided("the values are too long")
        return value

    def _read_call(self, group: Group) -> str:
        """Return what a call of a variable or a template makes."""
        title = self.read(group.parts[0]).strip()
        if title in _SIGNS:
            return _SIGNS[title]
        given = self._read_values(group)
        if (value := value_of(self._draft, title, given)) is not None:
            return value
        found, expansion = _body_of(self._draft, title), self._draft.expansion
        if found is None or not expansion.spend(len(found[0])):
            raise Undecided(title)
        body, template = found
        frame = _Frame(self._draft, body, given, min(expansion.left, CALL_CHARS_MAX))
        expansion.enter_template()
        try:
            return frame.read(template.nodes).strip("\n")
        finally:
            expansion.leave_template()

    def _read_values(self, group: Group) -> dict[str, str]:
        given: dict[str, str] = {}
        number = 0
        for part in group.parts[1:]:
            parts = divided(part)
            if parts is None:
                number += 1
                given[str(number)] = self.read(part)
            else:
                given[self.read(parts[0]).strip()] = self.read(parts[1]).strip()
        return given
