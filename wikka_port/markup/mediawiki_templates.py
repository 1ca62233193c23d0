"""(pure) Conversion of template calls to words, notes and tables, for templates that cannot be expanded.

    text       templates that only format words (nowrap, lang, convert, dates) become the words
    citation   becomes a line of author, year, title and publication
    note       sfn, efn, refn become footnotes
    link       main, see also, further become links after an arrow
    table      infobox-like calls with named values become a folded table
    unknown    all others are their last words, or their name in brackets; nothing if they fill their line.
               Their source is listed in one folded table at the end of the page

No call becomes an action.  ``mediawiki_expansion`` expands the dump's own simple templates.

Knows nothing of the positions of calls; ``mediawiki_scan`` finds them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from wikka_port.markup.mediawiki_html import as_wikitext
from wikka_port.markup.mediawiki_inline import inline, plain_label
from wikka_port.markup.mediawiki_links import forced_link, picture
from wikka_port.markup.mediawiki_names import names_of
from wikka_port.markup.mediawiki_pieces import (
    Draft,
    Piece,
    balance_quotes,
    cell_text,
    collapse,
    entities,
    escape,
    literal,
    unescape,
)
from wikka_port.markup.mediawiki_words import words_of
from wikka_port.markup.targets import IMAGE_ENDINGS

FOLDED: Final = "|!|(c:folded)||"
INFOBOX_VALUES: Final = 3  # this many named values on separate lines make a table
_BOXES: Final = re.compile(r"(?:infobox|infoskreine|taxobox|automatic taxobox|speciesbox|geobox|chembox|drugbox)\b")
_NAVIGATION: Final = re.compile(r"(?:nav|sister|portal|succession|s-|multiple issues|ambox)")
_NAVIGATION_KEY: Final = re.compile(r"(?:list|group|above|below|state|listclass|liststyle|groupstyle)\d*")
_STYLE_KEYS: Final = re.compile(
    r"(?:.*(?:style|color|colour|width|size|class|align|alt|caption|map|padding)\d*|nocat|name|ref)"
)
_CITES: Final = re.compile(r"(?:v?cite\b|citation$|cite$)")
_CONTENT_MARK: Final = re.compile("\x02")
_LANGUAGE: Final = re.compile(r"(?:lang|vol|ipa|ipac|zh)-[a-z]{2,8}")
_FILE: Final = re.compile(r"(?:\w{1,20}:)?[^\x02\x03\[\]{}|<>#/:\n]{1,240}")
_LINE_ITEM: Final = re.compile(r"\n\s*[*#]+\s*")
_SOUNDS: Final = re.compile(r"ipac-[a-z]{2,8}")  # every value is a sound, but for these:
_SOUND_WORDS: Final = frozenset(("icon", "lang", "langl", "pron", "audio", "also", "us", "uk", "en", "local", "ipa"))
_DATES: Final = frozenset((
    "birth date", "birth date and age", "death date", "death date and age", "start date", "end date", "film date",
    "start date and age", "dts", "birth-date", "death-date", "bda", "dda",
))  # fmt: skip
_FIRST_WORDS: Final = (
    "nowrap/small/smaller/large/larger/big/bigger/nobold/unicode/angbr/angle bracket/vr/keypress/key press/nts/number"
    "/abbr/tooltip/vanchor/visible anchor/flag/flagcountry/ipa/quote/cquote/blockquote/quotation/rtl/script/polytonic"
    "/sc/smallcaps/formatnum/lc/uc/ucfirst/lcfirst/nihongo/mvar/math/center/resize/nobreak/em/strong/i/b"
)
_WORDS: Final[Mapping[str, int]] = {  # which positional argument has the words; -1: the last
    **dict.fromkeys(_FIRST_WORDS.split("/"), 0),
    **dict.fromkeys(("lang", "transl", "transliteration", "color", "font color"), -1),
}
_SIGNS: Final[Mapping[str, str]] = {
    "!": "|", "·": " · ", "•": " • ", "nbsp": "\xa0", "snd": " – ", "spaced ndash": " – ", "ndash": "–", "mdash": "—",
    "pipe": "|", "=": "=", "dot": " · ", "bull": " • ", "'s": "’s", "'": "’", "en dash": "–", "em dash": "—", "sp": " ",
    "thinsp": "\u2009", "snds": " – ", "mdashb": " — ", "extinct": "†",
    "dagger": "†", "eqm": "⇌", "rarr": "→", "increase": "▲", "decrease": "▼", "steady": "▬",
}  # fmt: skip
_LISTS: Final = frozenset(("hlist", "plainlist", "flatlist", "unbulleted list", "ubl", "ublist", "bulleted list"))
_LINE_LISTS: Final = frozenset(("plainlist", "flatlist"))  # each line of their text is an item
_LINKS: Final = frozenset(
    ("main", "see also", "further", "details", "main article", "seealso", "further information", "see main")
)
_SHORT_NOTES: Final = frozenset(("sfn", "sfnp", "sfnm"))
_ARCHIVES: Final = frozenset(("wayback", "webarchive", "web archive"))
_ARCHIVE: Final = "https://web.archive.org/web/"
_ARCHIVE_DATE: Final = re.compile(r"[0-9]{4,14}")
_LANGUAGE_ICON: Final = re.compile(r"([a-z]{2,3}) icon")
_SHORT_CITES: Final = frozenset(("harvnb", "harv", "harvtxt", "harvp", "harvcol", "harvard citation no brackets"))
_TEXT_NOTES: Final = frozenset(("efn", "refn", "note", "footnote"))
_PEOPLE_MAX: Final = 6
NAME_CHARS_MAX: Final = 40  # of an unknown template, in the place of a call without words
_MARK_OR_TEXT: Final = re.compile("(\x02[0-9]{1,9}\x03)")
# Values that say how a call looks, or whether.
_LAYOUT_VALUE: Final = re.compile(r"(?:left|right|cent(?:er|re)|inline|[0-9]{1,5}(?:px|em|%))?", re.I)
# Calls of navigation, layout and maintenance, whose absence leaves no gap in a sentence.
_SILENT_NAMES: Final = (
    "clear|clr|-|break|top|bottom|end|anchor|citation needed|cn|fact|who|when|which|where|why|how|by whom|dubious|vague"
    "|verify source|failed verification|page needed|specify|or|pov|wikify|update after|refbegin|refend|reflist"
    "|short description|good article|featured article|authority control|lowercase title|italic title|defaultsort"
)
_SILENT: Final = re.compile(
    rf"(?:{_SILENT_NAMES}|toc.*|col-.*|div col.*|use .*|pp-.*|clean ?up.*|expand.*|merge.*|clarif.*|dead ?link.*"
    r"|better source.*|(?:.*[ -])?stub|nav.*|portal.*|sister.*|succession.*|s-.*|commons.*|wiktionary|wikisource"
    r"|r from .*|other uses.*|ref ?improve.*|unreferenced.*|more footnotes|disambig.*|wikiquote|wikibooks"
    r"|col(?:begin|end)|(?:.*-)?inline|.*#invoke:(?:navbox|sidebar).*)"
)
_SWITCH: Final = re.compile(r"[^\W\d_]{4,}:")  # DEFAULTSORT:, in capitals of any language
_PROPERTIES: Final = frozenset(("DEFAULTSORT", "DISPLAYTITLE"))
_BRANCHING: Final = frozenset(("#if", "#ifeq", "#ifexpr", "#iferror", "#ifexist", "#switch"))  # their values: no names
_SPECIAL: Final = re.compile(r"#special:", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Call:
    """A call as typed; its values are wikitext in which closed constructs are marks already."""

    name: str  # lower case, blanks for underscores
    title: str  # as typed
    positional: tuple[str, ...]
    named: Mapping[str, str]  # lower-case names; without empty values
    given: Mapping[str, str]  # all values by their names as typed, positional ones by their numbers
    lines: int

    @classmethod
    def of(cls, source: str, language: str = "") -> Call:
        """Parse a call; ``source`` includes the outer braces, and ``language`` is that of the site."""
        head, *rest = source.strip("{}").split("|")
        title = collapse(unescape(head)).strip()
        name, colon, argument = title.partition(":")
        function = names_of(language).function(name) if colon else ""
        if function in ("formatnum", "lc", "uc", "ucfirst", "lcfirst"):
            title, rest = function, [argument, *rest]
        if function == "#switch":
            rest = [part.partition("=")[2] or part for part in rest]
        positional, named, given = [], {}, {}
        for part in rest:
            key, equals, value = part.partition("=")
            if not equals or _CONTENT_MARK.search(key) or len(key) > 60 or function in _BRANCHING:
                positional.append(part.strip())
                given[str(len(positional))] = part
            elif key.strip().isdigit():
                positional.append(value.strip())
                given[key.strip()] = value.strip()
            else:
                given[key := collapse(key).strip()] = value.strip()
                if value.strip():
                    named[key.lower()] = value.strip()
        return cls(title.lower().replace("_", " "), title, tuple(positional), named, given, source.count("\n") + 1)

    def value(self, *keys: str) -> str:
        return next((self.named[key] for key in keys if key in self.named), "")


def piece_of(draft: Draft, text: str) -> Piece:
    """Return wikitext as a piece within a line, without a block of its own."""
    piece = _piece(draft, text)
    return Piece(piece.inline, piece.plain)


def note_of(call: Call) -> tuple[str, str] | None:
    """Return name and wikitext of the footnote that a call makes, or None if it makes none."""
    if call.name in _SHORT_NOTES:
        text = _short(call)
        return (f"short {text}", text) if text else None
    if call.name in _TEXT_NOTES and call.positional and call.positional[0]:
        return call.value("name"), call.positional[0]
    return None


def made_of(draft: Draft, call: Call) -> tuple[str, Piece] | None:
    """Return the kind of a call and its converted piece, or None if the call is to be hidden."""
    for kind, make in _MAKERS:
        piece = make(draft, call)
        if piece is not None:
            return kind, piece
    return None


def words_of_unknown(draft: Draft, call: Call, *, is_whole_note: bool = False) -> tuple[str, str, Piece]:
    """Return a kind, words of the call, and the piece that shows them in a line with other words.

    The words are the last positional value that has some; a call that is all of a note has its name and all these
    values, and a link to a special page has the page.  A call without words shows its name, and a call of navigation
    or maintenance shows nothing.
    """
    is_empty = not call.name or call.name in _WORDS or call.name in _LISTS or _LANGUAGE.fullmatch(call.name)
    if is_empty or _SILENT.fullmatch(call.name) or _is_switch(draft, call):
        return "template: nothing shown", "", Piece("", block="")
    values = [value for value in call.positional if not _LAYOUT_VALUE.fullmatch(value)]
    words = values[-1] if values else ""
    if is_whole_note and len(values) > 1:
        words = f"{call.title}: {', '.join(values)}"
    elif not words and (special := _SPECIAL.match(call.title)):
        words = f"{draft.dialect.names.get(-1, 'Special')}:{call.title[special.end() :].strip()}"
    if words and "\n{|" not in words:
        piece = _piece(draft, words)
        if draft.edges(piece.inline)[0].strip():
            return "template: its last words shown", words, Piece(piece.inline, piece.plain, block="")
    name = draft.plain(call.title).strip()
    name = f"[{name if len(name) <= NAME_CHARS_MAX else name[: NAME_CHARS_MAX - 1] + '…'}]"
    return "template: its name shown", "", Piece(balance_quotes(escape(name, cell=True)), name, block="")


def _is_switch(draft: Draft, call: Call) -> bool:
    """Return whether a call sets a property of the page, unlike ``{{PLURAL:$1|is|are}}``, which has several forms."""
    name = call.title.partition(":")[0]
    names = names_of(draft.dialect.language)
    if ":" in call.title and names.variable(name) in _PROPERTIES:
        return True
    switch = _SWITCH.match(call.title)
    if switch is None or not switch[0].isupper():
        return False
    return len(call.positional) < 2 and not (call.positional and names.function(name) == "grammar")


def source_table(draft: Draft, shown: str) -> str:
    """Return a folded table of the sources of unknown calls, as code with working links and notes, never as actions.

    ``shown`` is all other text of the page.  Links and notes that stand there are plain text here, so that each mark
    stays in one place.  A call in a call has no row of its own.
    """
    reached: set[int] = set()
    listed: set[int] = set()
    draft.reach(shown, reached)
    rows = []
    for number in reversed(draft.sources):  # outer calls first
        if number not in listed:
            lines = (line.strip() for line in draft.typed(number, reached, listed).split("\n"))
            rows.append(f"||{' '.join(_literal_line(line) for line in lines if line)}||")
    words = "1 template" if len(rows) == 1 else f"{len(rows):,} templates"
    return "\n".join([FOLDED, f"|?|{words}||", *reversed(rows)])


def _literal_line(line: str) -> str:
    """Return a line of a template's source as code: its text becomes literals, its marks stay."""
    parts = [part for part in _MARK_OR_TEXT.split(line) if part]
    shown = "".join(part if part.startswith("\x02") else f'""{entities(part)}""' for part in parts)
    return f"##{shown}##"


def _render_value(draft: Draft, value: str, *, is_block: bool = True) -> str:
    """Convert a value to one line: the name of a picture becomes the picture, and items of a list follow after dots.

    ``is_block`` if the value begins a line in MediaWiki, so that a sign at its beginning marks a list item, too.
    """
    if draft.dialect.pictures and value.lower().endswith(IMAGE_ENDINGS) and _FILE.fullmatch(value):
        return picture(draft.dialect, value.rpartition(":")[2].strip())
    value = as_wikitext(draft, value.strip()) if "<table" not in value.lower() else value.strip()
    lines = "\n" + value.strip() if is_block else value.strip()
    return inline(draft, collapse(_LINE_ITEM.sub(" · ", lines).removeprefix(" · ")), cell=True)


def _piece(draft: Draft, value: str, *, is_block: bool = False) -> Piece:
    """Return a value as a piece within a line; a value of several lines is a list."""
    shown = _render_value(draft, value, is_block=is_block or "\n" in value)
    return Piece(balance_quotes(shown), plain_label(draft, value), block=shown)


# -- words --------------------------------------------------------------------------------------


def _words(draft: Draft, call: Call) -> Piece | None:
    name, given = call.name, call.positional
    if name in _SIGNS:
        sign = _SIGNS[name]
        return Piece(literal(sign) if sign in "|=" else sign, sign)
    if icon := _LANGUAGE_ICON.fullmatch(name):  # of the page behind a link
        return _piece(draft, f"({icon[1]})")
    if name == "as of":
        return _piece(draft, "As of " + "-".join(given[:3])) if given else None
    if name == "convert" and len(given) >= 2:
        unit = given[3] if len(given) > 3 and given[1] in ("to", "-", "–", "and", "x") else given[1]
        return _piece(draft, f"{given[0]}–{given[2]} {unit}" if unit is not given[1] else f"{given[0]} {unit}")
    if name == "val" and given:
        return _piece(draft, " ± ".join(given[:2]) + (" " + call.value("u", "ul") if call.value("u", "ul") else ""))
    if name == "chem" and given:
        return _piece(draft, "".join(f"<sub>{part}</sub>" if part.isdigit() else part for part in given))
    if name in _DATES and given:
        numbers = [part for part in given if part.isdigit()][:3]
        return _piece(draft, "-".join(part.zfill(2) for part in numbers) if numbers else given[0])
    if name in ("url", "official website") and given and given[0]:
        address = given[0] if "//" in given[0] else "http://" + given[0]
        return _piece(draft, f"[{address} {given[1]}]" if len(given) > 1 else f"[{address}]")
    if _SOUNDS.fullmatch(name):
        sounds = "".join(" " if part == "_" else part for part in given if part.lower() not in _SOUND_WORDS)
        return _piece(draft, f"/{sounds}/") if sounds else None
    if name in _LISTS:
        return _piece(draft, " · ".join(part for part in given if part), is_block=name in _LINE_LISTS)
    place = 0 if _LANGUAGE.fullmatch(name) else _WORDS.get(name)
    words = [part for part in given if part]
    return _piece(draft, words[place]) if place is not None and words else None


def _links(draft: Draft, call: Call) -> Piece | None:
    if call.name not in _LINKS and call.name not in words_of(draft.dialect.language).links:
        return None
    shown, plain = [], []
    for part in filter(None, call.positional):
        target = draft.dialect.target(unescape(part))
        if target is not None and target.kind == "page":
            page = target.title
            shown.append(draft.mark(Piece(forced_link(draft, page, page), page, page)))
            plain.append(page)
            draft.converted["link"] += 1
        elif _CONTENT_MARK.search(part) and draft.edges(part)[0].strip():  # links already
            piece = _piece(draft, part)
            shown.append(piece.inline)
            plain.append(piece.plain)
    if not plain:
        return None
    text = f"→ {', '.join(shown)}"
    return Piece(text, ", ".join(plain), block=text)


# -- citations ----------------------------------------------------------------------------------


def _short(call: Call) -> str:
    names = [part for part in call.positional if part]
    if not names:
        return ""
    *people, year = names if len(names) > 1 else [names[0], ""]
    place = call.value("p", "page", "loc") or call.value("pp", "pages")
    return " ".join(filter(None, [" & ".join(people), year])) + (f", p. {place}" if place else "")


def _short_citation(draft: Draft, call: Call) -> Piece | None:
    return _piece(draft, _short(call)) if call.name in _SHORT_CITES and call.positional else None


def _people(call: Call) -> str:
    people = []
    for number in ("", *map(str, range(1, _PEOPLE_MAX))):
        last = call.value(f"last{number}", f"author{number}", f"surname{number}", f"author{number}-last")
        first = call.value(f"first{number}", f"given{number}", f"author{number}-first")
        if last:
            people.append(f"{last}, {first}" if first else last)
    return "; ".join(people) or call.value("authors", "editor", "editors", "editor-last", "vauthors")


def _named(draft: Draft, words: str, url: str) -> str:
    if not url.startswith(("http://", "https://")):
        return words
    linked = re.sub(r"[\[\]]", "", plain_label(draft, words))
    return f"[{collapse(url)} {linked or url}]"


def _citation(draft: Draft, call: Call) -> Piece | None:
    if not _CITES.match(call.name) or not (call.named or call.positional):
        return None
    title, chapter = call.value("title"), call.value("chapter", "contribution")
    url, chapter_url = call.value("url"), call.value("chapter-url", "contribution-url")
    if not title:
        chapter_url = chapter_url or url
    elif not chapter:
        url = url or chapter_url
    work = call.value("work", "journal", "newspaper", "magazine", "website", "encyclopedia")
    volume = call.value("volume") + (f"({call.value('issue', 'number')})" if call.value("issue", "number") else "")
    pages = call.value("pages", "page", "p", "pp")
    year = call.value("date", "year")
    parts = [
        _people(call) + (f" ({year})" if year else ""),
        _named(draft, chapter, chapter_url) if chapter or not title else "",
        _named(draft, title, url) if title else "",
        f"''{work}''" if work else "",
        volume,
        f"p. {pages}" if pages else "",
        call.value("publisher"),
        f"ISBN {call.value('isbn')}" if call.value("isbn") else "",
        f"doi:{call.value('doi')}" if call.value("doi") else "",
    ]
    line = ". ".join(part.strip().rstrip(".") for part in parts if part.strip()) or ", ".join(call.positional)
    return _piece(draft, line + ".") if line else None


def _archived(draft: Draft, call: Call) -> Piece | None:
    """Return a link to an archived page."""
    url, date = call.value("url"), call.value("date")
    if call.name not in _ARCHIVES or not url.startswith(("http://", "https://")):
        return None
    if "//web.archive.org/" not in url:
        url = f"{_ARCHIVE}{date if _ARCHIVE_DATE.fullmatch(date) else '*'}/{url}"
    return _piece(draft, _named(draft, call.value("title") or "web.archive.org", url))


# -- tables of values ---------------------------------------------------------------------------


def _infobox(draft: Draft, call: Call) -> Piece | None:
    is_box = _BOXES.match(call.name) is not None
    if not is_box and (call.lines < INFOBOX_VALUES or _NAVIGATION.match(call.name)):
        return None
    values = {key: value for key, value in call.named.items() if not _STYLE_KEYS.fullmatch(key) or key == "name"}
    if sum(1 for key in values if _NAVIGATION_KEY.fullmatch(key)) * 2 > len(values):
        return None
    if len(values) < (1 if is_box else INFOBOX_VALUES):
        return None
    rows = [
        (inline(draft, key.replace("_", " "), cell=True), _render_value(draft, value)) for key, value in values.items()
    ]
    rows = [(key, value) for key, value in rows if value]
    title = cell_text(draft, inline(draft, call.title, cell=True))
    cells = [(cell_text(draft, key), cell_text(draft, value)) for key, value in rows]
    table = [FOLDED, f"|?|{title}||", *(f"|=|{key}||{value}||" for key, value in cells)]
    line = " · ".join(f"{key}: {value}" for key, value in rows)
    return Piece(balance_quotes(line), plain_label(draft, call.value("name")), block="\n".join(table) if rows else "")


_Maker = Callable[[Draft, Call], Piece | None]
_MAKERS: Final[tuple[tuple[str, _Maker], ...]] = (
    ("template: words", _words),
    ("template: link", _links),
    ("template: citation", _short_citation),
    ("template: citation", _citation),
    ("template: citation", _archived),
    ("template: table", _infobox),
)
