"""(pure) Templates of a dump as pages that others include: where an include shows what the expansion of a call shows.

A template's page gets the wiki's own form (``includes``) if it is simple:

    text, {{{1}}}, {{{x|default}}}          the same names in lower case; a default is plain words
    <noinclude>doc</noinclude>              before or behind the text, not within
    <includeonly>text</includeonly>         around the whole text

Its text has no calls, no links to pages, no notes and no headings: an including page would lack them, for its links,
notes and contents are its own.  It may have categories: these come at the end of the including page, as with an
expansion, and at that of the template's own page.  A parameter stands in running text, an item or a cell, never within
HTML.

A call becomes an include only if the template's own form, filled with the converted values, is exactly the converted
expansion of the call.  So no value can make another thing of the page than it would have made in the old wiki.

Knows nothing of where a call stands (``mediawiki_scan``) and of dumps (``dump_templates``).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from wikka_port.limits import INCLUDE_CHARS_MAX
from wikka_port.markup.formats import WIKKA
from wikka_port.markup.includes import filled, written
from wikka_port.markup.mediawiki import Converted, convert
from wikka_port.markup.mediawiki_expansion import BODY_CHARS_MAX, PARAMETER_OF_WIKITEXT
from wikka_port.markup.mediawiki_links import link_name
from wikka_port.markup.mediawiki_titles import Dialect
from wikka_port.markup.targets import PARAMETER

_COMMENT: Final = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_DOC: Final = re.compile(r"<noinclude\s*+>(.*?)(?:</noinclude\s*+>|\Z)", re.DOTALL | re.IGNORECASE)
_ONLY: Final = re.compile(r"<includeonly\s*+>(.*)</includeonly\s*+>", re.DOTALL | re.IGNORECASE)
_NOT_OWN: Final = re.compile(r"<ref|</?(?:noinclude|includeonly|onlyinclude|nowiki|pre|references)|__[A-Z]", re.I)
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_\-]{0,40}")
_PLAIN: Final = re.compile(r"[^{}\n|]{0,400}")
_HEADING: Final = re.compile(r"^==|^----", re.MULTILINE)
_NOT_IN_BODY: Final = ("{{", "%%", "/*", "*/", "[^", "[[", "{|", "``")
_PARAMETERS_MAX: Final = 100
_PLACEHOLDER: Final = "zqxparameter"  # begins the word in the place of a parameter; no word of a template does


@dataclass(frozen=True, slots=True)
class _Template:
    """A template's wikitext, divided."""

    before: str  # what only its own page shows
    text: str
    after: str
    is_only: bool  # whether the text is shown by pages that include it alone


@dataclass(frozen=True, slots=True)
class _Body:
    """A template's text in the wiki's own form."""

    text: str
    made: Converted  # with words in the places of the parameters


def template_body(text: str, dialect: Dialect, title: str) -> str | None:
    """Return what pages get of a template, in the wiki's own form, or None if it is not simple."""
    found = _divided(text)
    body = None if found is None else _body(found.text, dialect, title)
    return None if body is None else body.text


def template_page(text: str, dialect: Dialect, title: str) -> Converted | None:
    """Return the page of a template in the wiki's own form, or None if it is not simple."""
    found = _divided(text)
    body = None if found is None else _body(found.text, dialect, title)
    if found is None or body is None:
        return None
    before, after = _converted(found.before, dialect, title), _converted(found.after, dialect, title)
    shown = written("includeonly" if found.is_only else "shown", body.text, WIKKA)
    categories = () if found.is_only else body.made.categories
    tail = body.made.text[len(_without_categories(body.made)) :].strip("\n") if categories else ""
    docs = [written("noinclude", text, WIKKA) if text else "" for text in (before.text, after.text, tail)]
    return Converted(
        "\n\n".join(filter(None, (docs[0], shown, *docs[1:]))),
        None,
        tuple(dict.fromkeys((*before.links, *after.links))),
        tuple(dict.fromkeys((*before.categories, *after.categories, *categories))),
        before.converted + after.converted + Counter({"template: its own page": 1}),
        before.unconverted + after.unconverted,
    )


def _divided(text: str) -> _Template | None:
    """Divide a template's text; None if it has no place for what only its own page shows, or no text."""
    if len(text) > 2 * BODY_CHARS_MAX or "\x02" in text or _PLACEHOLDER in text.lower():
        return None
    pieces = _DOC.split(_COMMENT.sub("", text))
    texts, docs = pieces[::2], pieces[1::2]
    places = [place for place, piece in enumerate(texts) if piece.strip()]
    if len(places) != 1:
        return None
    before, after = ("\n\n".join(some).strip("\n") for some in (docs[: places[0]], docs[places[0] :]))
    body = texts[places[0]]
    only = _ONLY.fullmatch(body.strip())
    return _Template(before, body if only is None else only[1], after, only is not None)


def include_call(
    bodies: Mapping[str, str], dialect: Dialect, title: str, given: Mapping[str, str], expansion: str
) -> str:
    """Return the action that includes the template ``title`` and shows ``expansion``, or "" if none does.

    ``bodies`` has what pages get of templates, by title, and ``given`` the values by their names as typed.
    """
    body = bodies.get(title)
    if body is None or "\x02" in expansion or "{{" in expansion:
        return ""
    values = {name.lower(): value for name, value in given.items()}
    names = dict.fromkeys(found[1].lower() for found in PARAMETER.finditer(body))
    taken = {name: values[name] for name in names if name in values}
    if len(values) != len(given) or any("\x02" in value for value in taken.values()):
        return ""
    arguments = {name: _converted(value.strip(), dialect, title).text for name, value in taken.items()}
    attributes = {name: _attribute(value) for name, value in arguments.items()}
    if None in attributes.values() or len(body) + sum(map(len, arguments.values())) > INCLUDE_CHARS_MAX:
        return ""
    if filled(body, arguments) != _without_categories(_converted(expansion, dialect, title)):
        return ""
    page = re.sub(r"""["'{}]""", lambda found: f"&#{ord(found[0])};", link_name(dialect, title))
    return "".join([f'{{{{include page="{page}"', *(f" {name}={value}" for name, value in attributes.items()), "}}"])


def _attribute(value: str) -> str | None:
    """Return a value in quotation marks, or None if no attribute can have it."""
    if "\n" in value or "{{" in value or "}}" in value:
        return None
    quote = next((one for one in "\"'" if one not in value), None)
    return None if quote is None else f"{quote}{value}{quote}"


def _converted(text: str, dialect: Dialect, title: str) -> Converted:
    return convert(text, namespaces=dialect, title=title)


def _without_categories(made: Converted) -> str:
    """Return the converted text without the categories at its end."""
    return made.text.rpartition("----\n")[0].rstrip("\n") if made.categories else made.text


def _body(wikitext: str, dialect: Dialect, title: str) -> _Body | None:
    """Return a template's text with the parameters of the wiki's own form, or None if it is not simple."""
    parameters: list[str] = []
    names: set[str] = set()

    def replaced(found: re.Match[str]) -> str:
        name, default = found[1].strip(), found[2]
        if not _NAME.fullmatch(name) or name.lower() == "page" or (default and not _is_plain(default, dialect, title)):
            return found[0]  # and so the text has braces
        names.add(name)
        parameters.append(f"{{{{{{{name.lower()}{'' if default is None else f'|{default}'}}}}}}}")
        return _word(len(parameters) - 1)

    text = PARAMETER_OF_WIKITEXT.sub(replaced, wikitext.strip("\n"))
    if "{{" in text or "}}" in text or _NOT_OWN.search(text):
        return None
    if len(parameters) > _PARAMETERS_MAX or len({name.lower() for name in names}) < len(names):
        return None
    made = _converted(text, dialect, title)
    body = _without_categories(made)
    if made.links or made.redirect or made.unconverted or not body.strip():
        return None
    if any(mark in body for mark in _NOT_IN_BODY) or _HEADING.search(body):
        return None
    outside = "".join(body.split('""')[::2])  # of HTML
    for number, parameter in enumerate(parameters):
        word = _word(number)
        if body.count(word) != 1 or word not in outside:
            return None
        body = body.replace(word, parameter)
    return _Body(body, made)


def _word(number: int) -> str:
    """Return the word that stands for a parameter while the text around it is converted; none begins another."""
    return _PLACEHOLDER + "".join(chr(ord("a") + int(digit)) for digit in str(number)) + "z"


def _is_plain(words: str, dialect: Dialect, title: str) -> bool:
    return _PLAIN.fullmatch(words) is not None and _converted(f"x{words}x", dialect, title).text == f"x{words}x"
