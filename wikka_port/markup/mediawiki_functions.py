"""(pure) MediaWiki's parser functions whose value follows from what they are given.

    {{#if: text | yes | no}}  {{#ifeq: a | b | yes | no}}  {{#ifexpr: 1 < 2 | yes | no}}  {{#iferror: text | yes | no}}
    {{#ifexist: Page | yes | no}}
    {{#switch: a | a = one | b | c = two | #default = other}}
    {{#expr: 1 + 1}}  {{formatnum: 1234}}  {{plural: 2 | form | forms}}
    {{lc: Text}}  {{uc: Text}}  {{lcfirst: Text}}  {{ucfirst: text}}
    {{padleft: 7 | 3 | 0}}  {{padright: 7 | 3 | 0}}  {{#titleparts: A/b | 1}}
    {{#len: text}}  {{#pos: text | wanted}}  {{#sub: text | 1 | 2}}  {{#replace: text | old | new}} ...
    {{#rel2abs: ../b}}  {{#tag: ref | text | name = x}}
    {{#time: j F Y | 2010-05-03}}  {{#timel: ...}}  {{#dateformat: 2010-05-03 | dmy}}

Only the branch that is taken is read; so a note or a category in another one is none of the page's.  A branch may have
anything in it.  Its decision needs values that are known: text, parameters, names of the page, and the text of
templates that are known.  For an unknown one ``Undecided`` is raised, and the function is shown like the call of a
template that nobody knows; so it is for a wrong expression (ExpressionError).

The functions of strings see a text as it is typed, so one with a link or a note that is converted already leaves them
undecided.  Their results are text: braces in them call nothing, and bars divide nothing.

"Now" is the time of the revision, so that an import is the same whenever it is done.  KEPT have no value here: they
need names of languages or their grammar.  They are shown like such calls, too.

Knows nothing of texts and braces (``mediawiki_expansion``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final

from wikka_port.markup.mediawiki_braces import Group, Node, Nodes
from wikka_port.markup.mediawiki_dates import read_time
from wikka_port.markup.mediawiki_names import names_of
from wikka_port.markup.mediawiki_pieces import unescape
from wikka_port.markup.mediawiki_raw import TAGS
from wikka_port.markup.mediawiki_strings import (
    count_of,
    decoded,
    exploded,
    last_place_of,
    padded,
    part_of,
    path_of,
    place_of,
    replaced,
    title_part,
)
from wikka_port.markup.mediawiki_times import reformatted, written_time
from wikka_port.markup.mediawiki_titles import FILE, Dialect, Target
from wikka_port.markup.mediawiki_values import (
    ExpressionError,
    expression,
    form_of,
    formatted,
    is_same,
    number_of,
    number_text,
    unformatted,
)
from wikka_port.markup.mediawiki_words import words_of

KEPT: Final = frozenset(("#language", "grammar", "gender"))
ADDRESSES: Final = frozenset(  # their values: ``mediawiki_variables``
    (
        *("fullurl", "fullurle", "canonicalurl", "canonicalurle", "localurl", "localurle"),
        *("urlencode", "anchorencode", "ns", "nse"),
    )
)
_TAGS: Final = frozenset((*TAGS, "ref", "references", "poem"))
_LANGUAGE: Final = re.compile(r"[a-z]{2,3}(?:-[a-z]{2,8})*", re.IGNORECASE)
BLANKS: Final = " \t\r\n"  # that PHP's ``trim`` takes away; a blank that breaks no line is a value to MediaWiki


class Undecided(Exception):
    """A function's value depends on something that is not known here."""


@dataclass(frozen=True, slots=True)
class Reader:
    """How the nodes of a text are read.  Its functions raise Undecided and ExpressionError."""

    dialect: Dialect
    title: str  # of the page
    text: Callable[[Nodes], str]  # the text that nodes make, with its entities and without marks
    exact: Callable[[Nodes], str]  # the text as it is typed; Undecided if it has constructs that are converted already
    written: Callable[[str], str]  # a text in the place of the function, where its braces and bars mean nothing
    is_empty: Callable[[Nodes], bool]  # whether they make nothing
    now: datetime | None  # the time of the revision
    render: Callable[[Nodes], str]  # what they make, for the place of the function

    @property
    def language(self) -> str:
        return self.dialect.language

    def trimmed(self, nodes: Nodes) -> str:
        """Return the text that nodes make, without the blanks around it."""
        return self.text(nodes).strip(BLANKS)

    def compared(self, nodes: Nodes) -> str:
        """Return the same with its entities decoded."""
        return unescape(self.text(nodes)).strip(BLANKS)


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
    return reader.render(function.value(place)).strip(BLANKS)


def _if(function: Function, reader: Reader) -> str:
    return _branch(function, reader, 2 if reader.is_empty(function.value(0)) else 1)


def _ifeq(function: Function, reader: Reader) -> str:
    one, other = (reader.compared(function.value(place)) for place in (0, 1))
    return _branch(function, reader, 2 if is_same(one, other) else 3)


def _ifexpr(function: Function, reader: Reader) -> str:
    return _branch(function, reader, 1 if expression(unescape(reader.text(function.value(0)))) else 2)


def _iferror(function: Function, reader: Reader) -> str:
    try:
        reader.text(function.value(0))
    except ExpressionError:
        return _branch(function, reader, 1)
    if len(function.values) > 2:
        return _branch(function, reader, 2)
    return _branch(function, reader, 0)


def _ifexist(function: Function, reader: Reader) -> str:
    return _branch(function, reader, 1 if _exists(reader.compared(function.value(0)), reader.dialect) else 2)


def _exists(title: str, dialect: Dialect) -> bool:
    """Return whether the dump has a page, which may be a redirect.  Raises Undecided if that is not known.

    Pages of other wikis do not exist.  A file's content is known to be there only if its page is.
    """
    target = _target(title, dialect)
    if target is None or target.kind in ("interwiki", "language", "here"):
        return False
    if target.kind == "special":
        raise Undecided(title)
    file = f"{dialect.names[FILE]}:{target.title.partition(':')[2]}" if target.kind == "media" else ""
    found = dialect.exists(file or target.title)
    if found is None or (file and not found):
        raise Undecided(title)
    return found


def _target(title: str, dialect: Dialect) -> Target | None:
    """Return what a title means that is no link, so that a file and a category are pages, too."""
    title = title.removeprefix(":")
    return None if title.startswith(":") else dialect.target(f":{title}")


def _switch(function: Function, reader: Reader) -> str:
    wanted = reader.compared(function.value(0))
    names = names_of(reader.language)
    default: Nodes = ()
    falls = is_default = False  # whether a case without a value matched, and whether it was the default
    for place, case in enumerate(function.values[1:], 2):
        parts = divided(case)
        if parts is None and place == len(function.values):  # the last one without a sign "=" is the default
            return reader.render(case).strip(BLANKS)
        if not falls:
            name = reader.compared(case if parts is None else parts[0])
            is_default = is_default or names.function(name) == "#default"
            falls = is_same(name, wanted)
        if parts is None:
            continue
        if falls:
            return reader.render(parts[1]).strip(BLANKS)
        if is_default:
            default, is_default = parts[1], False
    return reader.render(default).strip(BLANKS)


# -- words and numbers --------------------------------------------------------------------------


def _expr(function: Function, reader: Reader) -> str:
    number = expression(unescape(reader.text(function.value(0))))
    return "" if number is None else number_text(number)


def _changed(change: Callable[[str], str], function: Function, reader: Reader, *, is_whole: bool = False) -> str:
    """Change the letters of a text, or ``is_whole`` its first; notes, code and the like in it stay as they are.

    Calls in it have to be known, for their names are not to change.
    """
    value = function.value(0)
    if _has_calls(value):
        return change(reader.trimmed(value))
    if is_whole:
        return change(reader.render(value).strip(BLANKS))
    made = ((reader.render((node,)), isinstance(node, Group) and node.kind in ("<", "<>")) for node in value)
    return "".join(text if stays else change(text) for text, stays in made).strip(BLANKS)


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
    text = reader.trimmed(function.value(0))
    words = words_of(reader.language)
    how = reader.trimmed(function.value(1)).upper()
    if how == "NOSEP":
        return text
    if how == "R":
        number = unformatted(unescape(text), words.number)
        return text if number_of(number) is None else number
    return formatted(text, words.number, words.ungrouped)


def _plural(function: Function, reader: Reader) -> str:
    number = number_of(unformatted(reader.compared(function.value(0)), words_of(reader.language).number))
    if number is None:
        raise Undecided("plural")
    forms = [reader.render(value).strip(BLANKS) for value in function.values[1:]]
    return form_of(words_of(reader.language).forms, number, forms)


def _padded(function: Function, reader: Reader, *, before: bool) -> str:
    text, length = (reader.trimmed(function.value(place)) for place in (0, 1))
    sign = reader.trimmed(function.value(2)) if len(function.values) > 2 else "0"
    return reader.written(padded(text, length, sign, before=before))


def _titleparts(function: Function, reader: Reader) -> str:
    title, count, first = (reader.trimmed(function.value(place)) for place in (0, 1, 2))
    target = _target(unescape(title), reader.dialect)
    if target is None or target.kind == "here":
        return reader.written(title)
    return title_part(f"{target.prefix}:{target.title}" if target.prefix else target.title, count, first)


def _of_strings(make: Callable[..., str], least: int, most: int, function: Function, reader: Reader) -> str:
    """Call ``make`` with ``most`` values at most; of those that are missing the first ``least`` are "", others None."""
    values: list[str | None] = [reader.exact(value).strip(BLANKS) for value in function.values[:most]]
    values += [""] * (least - len(values))
    return reader.written(make(*values, *[None] * (most - len(values))))


def _rel2abs(function: Function, reader: Reader) -> str:
    path, base = (reader.trimmed(function.value(place)) for place in (0, 1))
    return reader.written(path_of(path, base or reader.title))


def _time(function: Function, reader: Reader) -> str:
    form, text, language = (reader.trimmed(function.value(place)) for place in (0, 1, 2))
    if reader.now is None:
        raise Undecided("the time of the revision is not known")
    time = read_time(text, reader.now)
    if not _LANGUAGE.fullmatch(language):
        language = reader.language
    made = None if time is None else written_time(time, form, language)
    if made is None:
        raise Undecided(form)
    return reader.written(made)


def _dateformat(function: Function, reader: Reader) -> str:
    text, order = (reader.compared(function.value(place)) for place in (0, 1))
    made = reformatted(text, order, reader.language)
    if made is None:
        raise Undecided(text)
    return reader.written(made)


def _tag(function: Function, reader: Reader) -> str:
    name = reader.trimmed(function.value(0)).lower()
    if name not in _TAGS:
        raise Undecided("#tag")
    attributes = [_attribute(value, reader) for value in function.values[2:]]
    return f"<{name}{''.join(attributes)}>{reader.render(function.value(1))}</{name}>"


def _attribute(value: Nodes, reader: Reader) -> str:
    parts = divided(value)
    if parts is None:
        return ""
    key, text = (reader.compared(part).strip("\"'") for part in parts)
    return f' {key}="{text}"' if not set(f"{key}{text}") & set('<>"\n') else ""


_MAKERS: Final[Mapping[str, Callable[[Function, Reader], str]]] = {
    "#if": _if,
    "#ifeq": _ifeq,
    "#ifexpr": _ifexpr,
    "#iferror": _iferror,
    "#ifexist": _ifexist,
    "#switch": _switch,
    "#expr": _expr,
    "#tag": _tag,
    "#titleparts": _titleparts,
    "#len": partial(_of_strings, lambda text: str(len(text)), 1, 1),
    "#pos": partial(_of_strings, place_of, 3, 3),
    "#rpos": partial(_of_strings, last_place_of, 2, 2),
    "#sub": partial(_of_strings, part_of, 3, 3),
    "#count": partial(_of_strings, count_of, 2, 2),
    "#replace": partial(_of_strings, replaced, 3, 4),
    "#explode": partial(_of_strings, exploded, 2, 4),
    "#urldecode": partial(_of_strings, decoded, 1, 1),
    "#rel2abs": _rel2abs,
    **dict.fromkeys(("#time", "#timel"), _time),
    **dict.fromkeys(("#formatdate", "#dateformat"), _dateformat),
    "lc": partial(_changed, str.lower),
    "uc": partial(_changed, str.upper),
    "lcfirst": partial(_changed, lambda text: text[:1].lower() + text[1:], is_whole=True),
    "ucfirst": partial(_changed, lambda text: text[:1].upper() + text[1:], is_whole=True),
    "formatnum": _formatnum,
    "plural": _plural,
    "padleft": partial(_padded, before=True),
    "padright": partial(_padded, before=False),
}
KNOWN: Final = frozenset((*_MAKERS, *KEPT, *ADDRESSES))
EVALUATED: Final = frozenset(_MAKERS)
