"""(pure) From a line of MediaWiki text to one line of Wikka markup: emphasis, addresses, HTML tags, entities.

In Wikka markup the same mark opens and closes an emphasis.  So every pair is closed in the line that opens it, and
pairs never cross: emphasis that crosses in the source is closed and opened again.

Knows nothing of links and templates, which are marks already, and of lists, tables and headings.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from wikka_port.markup.mediawiki_pieces import (
    EDGE_CHARS,
    JOIN,
    Draft,
    collapse,
    escape,
    escape_between,
    is_open,
    joins,
    literal,
    may_continue_markup,
    may_reach,
    unescape,
)
from wikka_port.markup.mediawiki_titles import NO_SITE
from wikka_port.markup.mediawiki_words import every

# Known in any case of letters.
_ANY_CASE: Final = "NOTOC FORCETOC TOC NOEDITSECTION NOGALLERY NOCC NOCONTENTCONVERT NOTC NOTITLECONVERT"
_EXACT: Final = frozenset((
    "NEWSECTIONLINK", "NONEWSECTIONLINK", "HIDDENCAT", "INDEX", "NOINDEX", "STATICREDIRECT", "EXPECTUNUSEDCATEGORY",
    "EXPECTUNUSEDTEMPLATE", "EXPECTEDUNCONNECTEDPAGE", "DISAMBIG", "NOGLOBAL", "ARCHIVEDTALK", "NOTALK",
))  # fmt: skip
_CONTENTS: Final = every("toc")


def _alternatives(words: Iterable[str]) -> str:
    return "|".join(sorted(map(_pattern, set(words)), key=len, reverse=True))


def _pattern(word: str) -> str:
    """Return an expression for a word; Persian joins and parts letters with characters of zero width."""
    return "\u200c?".join(word) if "\u0600" < word[0] < "\u06ff" else re.escape(word)


SWITCH: Final = (
    rf"__(?:(?i:{_alternatives(_ANY_CASE.split())})|(?-i:{_alternatives(_EXACT | _CONTENTS | every('switch'))}))__"
)
CONTENTS: Final = re.compile(rf"__(?:(?i:TOC)|{_alternatives(_CONTENTS)})__")


_URL_CHARS: Final = "(?:(?!'')[^\\s\\[\\]<>\"{}|\x02\x03])"  # emphasis is read before addresses are
# Every repetition is possessive, so that no failed match is tried again with fewer characters.
_TOKEN: Final = re.compile(
    rf"""(?P<quotes>'{{2,}}+)
      | (?P<mark>\x02[0-9]{{1,9}}\x03)
      | \[(?P<url>(?:(?:https?|ftps?|irc|news|gopher):)?//{_URL_CHARS}++|mailto:{_URL_CHARS}++)(?P<label>[^\[\]\n]*+)\]
      | (?P<bare>\b(?:https?|ftps?)://{_URL_CHARS}++)
      | <(?P<small>sub|sup|small|big)(?:\s[^<>]*+)?>(?P<content>(?:(?!'')[^<>\x02\x03])*+)</(?P=small)\s*+>
      | <(?P<close>/?)(?P<tag>[a-zA-Z][a-zA-Z0-9]*+)(?P<rest>(?:[\s/][^<>]*+)?)>
      | (?P<switch>{SWITCH})""",
    re.VERBOSE | re.IGNORECASE,
)
_EMPHASIS: Final = {
    **dict.fromkeys(("b", "strong"), "**"),
    **dict.fromkeys(("i", "em", "cite", "dfn", "var"), "//"),
    **dict.fromkeys(("tt", "code", "samp"), "##"),
    **dict.fromkeys(("s", "strike"), "++"),
    "kbd": "#%",
    "del": "¥¥",
    "ins": "££",
    "u": "__",
    "center": "@@",
}
# These tags are dropped, and their content is kept.
_LAYOUT_TAGS: Final = (
    "abbr acronym bdi bdo big blockquote data div font h1 h2 h3 h4 h5 h6 includeonly li mark noinclude ol "
    "onlyinclude p poem q rb rp rt ruby section small span sub sup table tbody td th thead time tr translate ul "
    "wbr languages tvar caption dl dd dt references"
)
_LAYOUT: Final = frozenset(_LAYOUT_TAGS.split())
# Tags at which a browser begins a new line or cell, so that the words on both sides are separate.
_SEPARATING_TAGS: Final = "blockquote div p td th ul ol dl table caption poem section h1 h2 h3 h4 h5 h6"
_SEPARATING: Final = frozenset(_SEPARATING_TAGS.split())
# Tags of raised, lowered and small words that may contain links or marks; the name of such a style is its tag.
_AROUND: Final = frozenset(("sup", "sub", "small"))
KNOWN_TAGS: Final = frozenset({*_EMPHASIS, *_LAYOUT, "br", "hr"})  # others are text
BREAK: Final = "---"
_LEVELS: Final = 6  # of headings
_SWITCH: Final = re.compile(SWITCH)
URL_CHARS_MAX: Final = 2000  # the limit of browsers, and of Wikka's links
_LINKABLE: Final = re.compile(r"(?:https?|ftp)://[^\s/]|mailto:.", re.IGNORECASE)
_URL_DANGER: Final = re.compile(r"""[\s|\[\]"\\]""")
_LABEL_DANGER: Final = re.compile(r"[\[\]]|&(?=#)")
_STYLE_OF_RUN: Final = {2: ("//",), 3: ("**",), 5: ("**", "//")}


def inline(draft: Draft, text: str, *, cell: bool = False) -> str:
    """Convert the text of one line; neither ``text`` nor the result has a line break."""
    matches = list(_TOKEN.finditer(text))
    if not matches:
        return collapse(escape(unescape(text), cell=cell)).strip(" ")
    line = _Line(draft, cell=cell)
    runs = _quote_runs(text, [match for match in matches if match["quotes"]])
    end = 0
    for match in matches:
        line.text(text[end : match.start()])
        end = match.end()
        if match["quotes"]:
            apostrophes, styles = next(runs)
            line.text("'" * apostrophes)
            for style in styles:
                line.toggle(style)
        else:
            line.token(match)
    line.text(text[end:])
    return line.finish()


def heading_of(draft: Draft, line: str) -> tuple[int, str] | None:
    """Return level and text of the heading in a line, as MediaWiki reads it, or None if the line is no heading.

    A heading begins and ends with "=".  Its level is the length of the shorter run, at most 6; at each end the heading
    has this number of signs.  A line of signs only is a heading whose text is its middle.  Behaviour switches are
    removed before.  Links, categories and notes are read later, so a line that ends with one is no heading.
    """
    if "=" not in line:
        return None
    bare, switches = _SWITCH.subn("", line) if "__" in line else (line, 0)
    bare = draft.without_trail(bare)
    opening, closing = len(bare) - len(bare.lstrip("=")), len(bare) - len(bare.rstrip("="))
    if opening == len(bare):
        level = min((opening - 1) // 2, _LEVELS)
    else:
        level = min(opening, closing, _LEVELS)
    if level < 1:
        return None
    draft.unconverted["behaviour switch"] += switches
    return level, bare[level : len(bare) - level].strip(" \t")


def plain_label(draft: Draft, text: str) -> str:
    """Return the plain text of a label, in which Wikka reads no markup."""
    text = _TOKEN.sub(_label_token, text)
    return collapse(unescape(draft.plain(text))).strip()


def _as_html(text: str) -> str:
    """Return the author's text for embedded HTML, without any double quote."""
    return html.escape(unescape(text), quote=False).replace('"', "&quot;")


def embedded_line(draft: Draft, text: str) -> str:
    """Return a line as embedded HTML, with its emphasis and links; tags that have no meaning there go."""
    matches = list(_TOKEN.finditer(text))
    runs = _quote_runs(text, [match for match in matches if match["quotes"]])
    out: list[str] = []
    is_open: list[str] = []
    end = 0

    def toggle(tag: str) -> None:
        if tag in is_open:
            within = is_open[is_open.index(tag) + 1 :]
            out.extend(f"</{one}>" for one in (*within[::-1], tag))
            out.extend(f"<{one}>" for one in within)
            is_open.remove(tag)
        else:
            out.append(f"<{tag}>")
            is_open.append(tag)

    for match in matches:
        out.append(_as_html(text[end : match.start()]))
        end = match.end()
        if match["quotes"]:
            apostrophes, styles = next(runs)
            out.append("'" * apostrophes)
            for style in styles:
                toggle({"**": "b", "//": "i"}[style])
        elif match["url"] or match["bare"]:
            out.append(_as_link(draft, match))
        elif match["small"]:
            out.append(_as_html(match["content"]))
        elif match["tag"] and match["tag"].lower() not in KNOWN_TAGS:
            out.append(_as_html(match[0]))
    out.append(_as_html(text[end:]))
    out.extend(f"</{tag}>" for tag in reversed(is_open))
    return "".join(out)


def _as_link(draft: Draft, match: re.Match[str]) -> str:
    """Return an external link as embedded HTML."""
    url = unescape(match["url"] or match["bare"])
    label = _as_html(plain_label(draft, match["label"] or "") or url)
    is_link = _LINKABLE.match(url) and len(url) <= URL_CHARS_MAX
    draft.converted["external link"] += 1
    return f"<a href='{html.escape(url)}'>{label}</a>" if is_link else label


def _label_token(match: re.Match[str]) -> str:
    if match["url"]:
        return match["label"].strip() or match["url"]
    if match["small"]:
        return match["content"]
    if match["tag"]:
        known = match["tag"].lower() in _LAYOUT or match["tag"].lower() in _EMPHASIS
        return " " if match["tag"].lower() == "br" else "" if known else match[0]
    return match[0] if match["mark"] or match["bare"] else ""


def _quote_runs(text: str, found: list[re.Match[str]]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield for each run of apostrophes how many are shown, and which emphasis it toggles.

    If bold and italics both occur an odd number of times, one run of three means an apostrophe
    before italics (l'''amour''), as MediaWiki reads it.
    """
    lengths = [min(len(run[0]), 5) if len(run[0]) != 4 else 3 for run in found]
    shown = [len(run[0]) - length for run, length in zip(found, lengths, strict=True)]
    bold = sum(length in (3, 5) for length in lengths)
    italic = sum(length in (2, 5) for length in lengths)
    if bold % 2 and italic % 2 and 3 in lengths:
        meant = _meant_as_apostrophe(text, found, lengths)
        lengths[meant], shown[meant] = 2, shown[meant] + 1
    return iter([(extra, _STYLE_OF_RUN[length]) for extra, length in zip(shown, lengths, strict=True)])


def _meant_as_apostrophe(text: str, found: list[re.Match[str]], lengths: list[int]) -> int:
    """Return the first run of three after a word of one letter, else after a longer word, else after a blank."""
    after_word = after_blank = -1
    end = 0
    for at, (run, length) in enumerate(zip(found, lengths, strict=True)):
        before = text[max(run.start() - 2, end) : run.start()]
        end = run.end()
        if length != 3:
            continue
        if before[-1:] == " ":
            after_blank = at if after_blank < 0 else after_blank
        elif before[:1] == " ":
            return at
        elif after_word < 0:
            after_word = at
    return after_word if after_word >= 0 else after_blank


def _opening(style: str) -> str:
    return f'""{style}""' if style[0] == "<" else style


class _Line:
    """A line being converted: pieces of text and of markup, and the open emphasis."""

    def __init__(self, draft: Draft, *, cell: bool) -> None:
        self._draft = draft
        self._cell = cell
        self._parts: list[tuple[bool, str]] = []  # (whether it is the author's text, string)
        self._open: list[str] = []

    def text(self, text: str) -> None:
        if text:
            self._parts.append((True, unescape(text)))

    def _markup(self, markup: str) -> None:
        self._parts.append((False, markup))

    def toggle(self, style: str) -> None:
        if style in self._open:
            self._close(style)
        else:
            self._open.append(style)
            self._markup(_opening(style))

    def _close(self, style: str) -> None:
        again: list[str] = []
        while (last := self._open.pop()) != style:
            self._end(last)
            again.append(last)
        self._end(style)
        for other in reversed(again):
            self._open.append(other)
            self._markup(_opening(other))

    def _end(self, style: str) -> None:
        """Close ``style``; an empty pair is removed, since its four characters would have a different meaning."""
        at = len(self._parts) - 1
        while at >= 0 and self._is_nothing(*self._parts[at]):
            at -= 1
        if at >= 0 and self._parts[at] == (False, _opening(style)):
            del self._parts[at]
        else:
            self._markup(f'""</{style[1:]}""' if style[0] == "<" else style)

    def _is_nothing(self, is_text: bool, string: str) -> bool:
        return not is_text and string[0] == "\x02" and not self._draft.edges(string)[0]

    def token(self, match: re.Match[str]) -> None:
        if match["mark"]:
            self._markup(match[0])
        elif match["url"] and match["url"].startswith(NO_SITE):
            words = plain_label(self._draft, match["label"]) or match["url"].removeprefix(NO_SITE)
            self._parts += [(True, words)] if words else []
        elif match["url"]:
            self._markup(self._external(match["url"], match["label"]))
        elif match["bare"]:
            url = match["bare"].rstrip(".,;:!?'")
            if url.endswith(")") and "(" not in url:
                url = url.rstrip(")")
            self._markup(self._external(url, ""))
            self.text(match["bare"][len(url) :])
        elif match["small"]:
            name, content = match["small"].lower(), self._small(match["content"])
            self._draft.converted["html"] += 1
            if content.strip():
                self._markup(f'""<{name}>{content}</{name}>""')
        elif match["tag"]:
            self._tag(match)
        else:
            self._draft.unconverted["behaviour switch"] += 1

    def _tag(self, match: re.Match[str]) -> None:
        name, closing = match["tag"].lower(), bool(match["close"])
        style = _EMPHASIS.get(name)
        if style is not None:
            self._draft.converted["html"] += not closing
            self._switch(style, match)
        elif name in _AROUND:
            self._draft.converted["html"] += not closing
            self._switch(f"<{name}>", match)
        elif name == "br":
            self._draft.converted["html"] += 1
            self._markup(f" {BREAK} ")
        elif name == "hr":
            self._markup(f" {BREAK} ")
        elif name in _LAYOUT:
            self._draft.unconverted[f"html <{name}>"] += not closing
            if name in ("tr", "li", "dt", "dd") and not closing and self._parts and self._parts[-1][1].strip():
                self._markup(f" {BREAK} ")
            elif name in _SEPARATING:
                self.text(" ")
        else:
            self.text(match[0])

    def _switch(self, style: str, match: re.Match[str]) -> None:
        if (style in self._open) == bool(match["close"]) and not match["rest"].endswith("/"):
            self.toggle(style)

    def _small(self, content: str) -> str:
        """Return the content of a tag that is embedded as HTML, with its addresses as links."""
        out: list[str] = []
        end = 0
        for match in _TOKEN.finditer(content):
            is_link = match["url"] or match["bare"]
            if not is_link and not match["switch"]:
                continue
            out.append(_as_html(content[end : match.start()]))
            end = match.end()
            if is_link:
                out.append(_as_link(self._draft, match))
            else:
                self._draft.unconverted["behaviour switch"] += 1
        return "".join((*out, _as_html(content[end:])))

    def _external(self, url: str, label: str) -> str:
        self._draft.converted["external link"] += 1
        url = unescape(url).replace("''", "%27%27")
        if url.startswith("//"):
            url = "https:" + url
        label = plain_label(self._draft, label)
        if not _LINKABLE.match(url) or len(url) > URL_CHARS_MAX:
            return literal(f"{label} ({url})" if label else url)
        url = _URL_DANGER.sub(lambda found: f"%{ord(found[0]):02X}", url)
        label = _LABEL_DANGER.sub(lambda found: f"&#{ord(found[0])};", label)
        return f"[[{url} | {label}]]" if label and label != url else f"[[{url}]]"

    def finish(self) -> str:
        while self._open:
            self._end(self._open.pop())
        runs = self._runs()
        out: list[str] = []
        for position, run in enumerate(runs):
            if run.is_text:
                before = self._around(runs, position, -1) if self._may_continue(runs, position) else ""
                after = self._around(runs, position, 1) if is_open(run.text) else ""
                out.append(escape_between(before, run.text, after, cell=self._cell, marks=run.empty))
                continue
            if position and not runs[position - 1].is_text and self._join(runs[position - 1].text, run.text):
                out.append(JOIN)
            out += (*(mark for _, mark in run.empty), run.text)
        return collapse("".join(out)).strip(" ")

    def _may_continue(self, runs: list[_Run], position: int) -> bool:
        if may_continue_markup(runs[position].text):
            return True
        return position > 0 and may_reach(self._draft.edges(runs[position - 1].text)[1])

    def _join(self, before: str, after: str) -> bool:
        """Return whether two parts would be markup together.

        Markup that this module makes never joins; text in a mark may be the author's, and may.
        """
        if before[-1] != "\x03" and after[0] != "\x02":
            return False
        return joins(self._draft.edges(before)[1], self._draft.edges(after)[0])

    def _around(self, runs: list[_Run], position: int, step: int) -> str:
        """Return EDGE_CHARS of the text before the run (``step`` -1) or after it (``step`` 1)."""
        found = ""
        position += step
        while 0 <= position < len(runs) and len(found) < EDGE_CHARS:
            run = runs[position]
            head, tail = (run.text[:EDGE_CHARS], run.text[-EDGE_CHARS:]) if run.is_text else self._draft.edges(run.text)
            found = found + head if step > 0 else tail + found
            position += step
        return found[:EDGE_CHARS] if step > 0 else found[-EDGE_CHARS:]

    def _runs(self) -> list[_Run]:
        """Join neighbouring texts: characters that a dropped tag or an empty mark separated may now be a pair."""
        runs: list[_Run] = []
        waiting: list[str] = []  # empty marks after a part that is no text
        for is_text, string in self._parts:
            if self._is_nothing(is_text, string):
                if runs and runs[-1].is_text:
                    runs[-1].empty.append((len(runs[-1].text), string))
                else:
                    waiting.append(string)
            elif is_text and runs and runs[-1].is_text:
                runs[-1] = _Run(True, runs[-1].text + string, runs[-1].empty)
            else:
                runs.append(_Run(is_text, string, [(0, mark) for mark in waiting]))
                waiting = []
        if waiting:
            runs.append(_Run(True, "", [(0, mark) for mark in waiting]))
        return runs


@dataclass(frozen=True, slots=True)
class _Run:
    is_text: bool
    text: str
    empty: list[tuple[int, str]]  # empty marks, each with the number of characters before it
