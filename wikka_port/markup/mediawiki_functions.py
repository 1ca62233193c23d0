"""(pure) MediaWiki's parser functions whose value follows from what they are given.

    {{#if: text | yes | no}}  {{#ifeq: a | b | yes | no}}  {{#ifexpr: 1 < 2 | yes | no}}  {{#iferror: text | yes | no}}
    {{#switch: a | a = one | b | c = two | #default = other}}
    {{#expr: 1 + 1}}  {{formatnum: 1234}}  {{plural: 2 | form | forms}}
    {{lc: Text}}  {{uc: Text}}  {{lcfirst: Text}}  {{ucfirst: text}}
    {{padleft: 7 | 3 | 0}}  {{padright: 7 | 3 | 0}}  {{#titleparts: A/b | 1}}
    {{#tag: ref | text | name = x}}

Only the branch that is taken is read; so a note or a category in another one is none of the page's.  A branch may have
anything in it.  Its decision needs values that are known: text, parameters, names of the page, and the text of
templates that are known.  For an unknown one ``Undecided`` is raised, and the function is shown like the call of a
template that nobody knows; so it is for a wrong expression (ExpressionError).

KEPT have no value here: they need other pages, a clock or a language's grammar.  They are shown like such calls, too.

Knows nothing of texts and braces (``mediawiki_expansion``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from wikka_port.markup.mediawiki_braces import Group, Node, Nodes
from wikka_port.markup.mediawiki_names import names_of
from wikka_port.markup.mediawiki_raw import TAGS
from wikka_port.markup.mediawiki_values import (
    ExpressionError,
    expression,
    form_of,
    formatted,
    is_same,
    number_of,
    number_text,
    padded,
    title_part,
    unformatted,
)
from wikka_port.markup.mediawiki_words import words_of

KEPT: Final = frozenset(
    ("#ifexist", "#time", "#timel", "#language", "#formatdate", "#dateformat", "#rel2abs", "grammar", "gender")
)
ADDRESSES: Final = frozenset(  # their values: ``mediawiki_variables``
    ("fullurl", "fullurle", "canonicalurl", "canonicalurle", "localurl", "localurle", "urlencode", "ns")
)
_TAGS: Final = frozenset((*TAGS, "ref", "references", "poem"))
_BLANKS: Final = " \t\r\n"  # not those that break no line


class Undecided(Exception):
    """A function's value depends on something that is not known here."""


@dataclass(frozen=True, slots=True)
class Reader:
    """How the nodes of a text are read.  Its functions raise Undecided and ExpressionError."""

    language: str  # of the site
    plain: Callable[[Nodes], str]  # the text that nodes make, for comparisons
    is_empty: Callable[[Nodes], bool]  # whether they make nothing
    render: Callable[[Nodes], str]  # what they make, for the place of the function


@dataclass(frozen=True, slots=True)
class Function:
    """A call of a function: its English name, and the nodes of its values."""

    name: str
    values: tuple[Nodes, ...]

    def value(self, place: int) -> Nodes:
        """Return a value, or none if it is missing."""
        return self.values[place] if place < len(self.values) else ()


def function_of(group: Group, language: str) -> Function | None:
    """Return the function that a group calls, or None if it calls none that is known by its name."""
    head = group.parts[0]
    if not head or not isinstance(head[0], str) or ":" not in head[0]:
        return None
    typed, _, rest = head[0].partition(":")
    name = names_of(language).function(typed)
    if name not in KNOWN:
        return None
    first: Nodes = (rest, *head[1:]) if rest else head[1:]
    return Function(name, (first, *group.parts[1:]))


def evaluated(function: Function, reader: Reader) -> str:
    """Return the wikitext that a function makes.  Raises Undecided, ExpressionError."""
    make = _MAKERS.get(function.name)
    if make is None:
        raise Undecided(function.name)
    return make(function, reader)


def divided(nodes: Nodes) -> tuple[Nodes, Nodes] | None:
    """Return the nodes before and behind the first sign "=", or None if there is none among the texts."""
    for place, node in enumerate(nodes):
        if isinstance(node, str) and "=" in node:
            before, _, after = node.partition("=")
            return _joined(nodes[:place], before), _joined((), after) + nodes[place + 1 :]
    return None


def _joined(nodes: Nodes, text: str) -> Nodes:
    return (*nodes, text) if text else nodes


# -- branches -----------------------------------------------------------------------------------


def _branch(function: Function, reader: Reader, place: int) -> str:
    return reader.render(function.value(place)).strip(_BLANKS)


def _if(function: Function, reader: Reader) -> str:
    return _branch(function, reader, 2 if reader.is_empty(function.value(0)) else 1)


def _ifeq(function: Function, reader: Reader) -> str:
    one, other = (reader.plain(function.value(place)).strip() for place in (0, 1))
    return _branch(function, reader, 2 if is_same(one, other) else 3)


def _ifexpr(function: Function, reader: Reader) -> str:
    return _branch(function, reader, 1 if expression(reader.plain(function.value(0))) else 2)


def _iferror(function: Function, reader: Reader) -> str:
    try:
        reader.plain(function.value(0))
    except ExpressionError:
        return _branch(function, reader, 1)
    if len(function.values) > 2:
        return _branch(function, reader, 2)
    return _branch(function, reader, 0)


def _switch(function: Function, reader: Reader) -> str:
    wanted = reader.plain(function.value(0)).strip()
    names = names_of(reader.language)
    default: Nodes = ()
    falls = is_default = False  # whether a case without a value matched, and whether it was the default
    for place, case in enumerate(function.values[1:], 2):
        parts = divided(case)
        if parts is None and place == len(function.values):  # the last one without a sign "=" is the default
            return reader.render(case).strip(_BLANKS)
        name = reader.plain(case if parts is None else parts[0]).strip()
        is_default = is_default or names.function(name) == "#default"
        falls = falls or is_same(name, wanted)
        if parts is None:
            continue
        if falls:
            return reader.render(parts[1]).strip(_BLANKS)
        if is_default:
            default, is_default = parts[1], False
    return reader.render(default).strip(_BLANKS)


# -- words and numbers --------------------------------------------------------------------------


def _expr(function: Function, reader: Reader) -> str:
    number = expression(reader.plain(function.value(0)))
    return "" if number is None else number_text(number)


def _changed(change: Callable[[str], str], function: Function, reader: Reader) -> str:
    """Change the letters of a text; calls in it have to be known, for their names are not to change."""
    value = function.value(0)
    text = reader.plain(value) if _has_calls(value) else reader.render(value)
    return change(text.strip(_BLANKS))


def _has_calls(nodes: Nodes) -> bool:
    """Return whether calls are among the nodes, or within them.  Not recursive: nodes may be nested deeply."""
    waiting: list[Node] = [*nodes]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Group) and node.kind == "{{":
            return True
        if isinstance(node, Group):
            waiting += (inner for part in node.parts for inner in part)
    return False


def _formatnum(function: Function, reader: Reader) -> str:
    text = reader.plain(function.value(0)).strip()
    words = words_of(reader.language)
    how = reader.plain(function.value(1)).strip().upper()
    if how == "NOSEP":
        return text
    return unformatted(text, words.number) if how == "R" else formatted(text, words.number, words.ungrouped)


def _plural(function: Function, reader: Reader) -> str:
    number = number_of(reader.plain(function.value(0)))
    if number is None:
        raise Undecided("plural")
    forms = [reader.render(value).strip(_BLANKS) for value in function.values[1:]]
    return form_of(words_of(reader.language).forms, number, forms)


def _padded(function: Function, reader: Reader, *, before: bool) -> str:
    text, length = (reader.plain(function.value(place)).strip() for place in (0, 1))
    sign = reader.plain(function.value(2)).strip() or "0"
    return padded(text, length, sign, before=before)


def _titleparts(function: Function, reader: Reader) -> str:
    title, count, first = (reader.plain(function.value(place)).strip() for place in (0, 1, 2))
    return title_part(title, count, first)


def _tag(function: Function, reader: Reader) -> str:
    name = reader.plain(function.value(0)).strip().lower()
    if name not in _TAGS:
        raise Undecided("#tag")
    attributes = [_attribute(value, reader) for value in function.values[2:]]
    return f"<{name}{''.join(attributes)}>{reader.render(function.value(1))}</{name}>"


def _attribute(value: Nodes, reader: Reader) -> str:
    parts = divided(value)
    if parts is None:
        return ""
    key, text = (reader.plain(part).strip().strip("\"'") for part in parts)
    return f' {key}="{text}"' if not set(f"{key}{text}") & set('<>"\n') else ""


_MAKERS: Final[Mapping[str, Callable[[Function, Reader], str]]] = {
    "#if": _if,
    "#ifeq": _ifeq,
    "#ifexpr": _ifexpr,
    "#iferror": _iferror,
    "#switch": _switch,
    "#expr": _expr,
    "#tag": _tag,
    "#titleparts": _titleparts,
    "lc": partial(_changed, str.lower),
    "uc": partial(_changed, str.upper),
    "lcfirst": partial(_changed, lambda text: text[:1].lower() + text[1:]),
    "ucfirst": partial(_changed, lambda text: text[:1].upper() + text[1:]),
    "formatnum": _formatnum,
    "plural": _plural,
    "padleft": partial(_padded, before=True),
    "padright": partial(_padded, before=False),
}
KNOWN: Final = frozenset((*_MAKERS, *KEPT, *ADDRESSES))
EVALUATED: Final = frozenset(_MAKERS)
