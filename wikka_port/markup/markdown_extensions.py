"""(pure) Rules of Markdown's parser for what GitHub and Obsidian know beside CommonMark.

    --- key: value ---          front matter, at the beginning of the text     token ``attributes``, ``meta["pairs"]``
    <!-- comment -->            hidden, on lines of its own and within a line  no token
    ==marked==  <kbd>Esc</kbd>  a mark, and elements of PAIRS without attributes     ``mark_open``, ``kbd_open``, ...
    <img src="a.png" width=9>   a picture                                      ``wiki``, ``meta["token"]``
    <a href="https://..">x</a>  a link, to another site or a page              ``link_open``, as of ``[x](https://...)``
    <h2 align=center>x</h2>     a heading, on a line of its own                ``heading_open``, as of ``## x``
    <a name="place"></a>        hidden                                         no token
    <div> <p align=..> ..       tags of LAYOUT are hidden, and their content is shown    no token
    <details> <summary>..       on lines of their own, in no other block       ``fold``, ``summary_open``, ``fold_end``
    </div>                      ends of LAYOUT alone in a line of a list item end the list    no token
    $a_b$  $$a_b$$              formulas are text as it was typed              ``formula``, ``meta["words"]``

All other HTML is text.  No element is passed on as it was typed: the compiler writes tags of a closed list.  A rule
searches for its end within a fixed distance, or remembers where the next one is, so that openers without an end cost
no more than other marks.

Knows nothing of the conversion of tokens (``markdown``).
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from wikka_port.markup.targets import picture_at

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

PAIRS: Final = ("kbd", "sub", "sup", "ins", "del", "mark", "small", "u")
LAYOUT: Final = ("div", "p", "center", "font", "span", "section", "picture", "source", "blockquote")
# Words of "[!word]" above a quotation, and the alert as which it is shown: GitHub's five are shown as themselves, the
# others are Obsidian's.
ALERTS: Final[Mapping[str, str]] = {
    **{word: word for word in ("note", "tip", "important", "warning", "caution")},
    **dict.fromkeys(("info", "abstract", "summary", "tldr", "todo", "example", "quote", "cite"), "note"),
    **dict.fromkeys(("hint", "success", "check", "done"), "tip"),
    **dict.fromkeys(("question", "help", "faq"), "important"),
    **dict.fromkeys(("attention",), "warning"),
    **dict.fromkeys(("failure", "fail", "missing", "danger", "error", "bug"), "caution"),
}
_ALERT: Final = re.compile(rf"\[!({'|'.join(ALERTS)})\][+-]?(?:[ \t]+|\Z)", re.IGNORECASE)
ATTRIBUTES_MAX: Final = 50
ATTRIBUTE_CHARS: Final = 500
_FRONT_CHARS: Final = 20_000
_PAIR_CHARS: Final = 2_000  # between a tag and its end
_COMMENT_CHARS: Final = 10_000  # of a comment within a line
_PAIR: Final = re.compile(f"<({'|'.join(PAIRS)})>", re.IGNORECASE)
_LAYOUT: Final = re.compile(f"</?(?:{'|'.join(LAYOUT)})(?:\\s[^<>]{{0,2000}})?/?>", re.IGNORECASE)
_ANCHOR: Final = re.compile(r"<a((?:\s[^<>]{1,2000})?)>", re.IGNORECASE)
_ANCHOR_END: Final = re.compile(r"</a\s*>", re.IGNORECASE)
_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.\-]*:|//", re.IGNORECASE)
_TITLE: Final = re.compile(r"<h([1-6])(?:\s[^<>]{0,2000})?>(.{1,2000})</h\1\s*>\s*\Z", re.IGNORECASE)
_SCHEMES: Final = ("http://", "https://", "mailto:")
_WITHIN: Final = re.compile(r"[\[<]")  # perhaps of a link or a picture within the link
_IMG: Final = re.compile(r"<img\s([^<>]{1,2000})>", re.IGNORECASE)
_GIVEN: Final = re.compile(r"([a-zA-Z]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))")
_FOLD: Final = re.compile(r"<details(\s+open)?\s*>\s*(?:<summary>(.{1,2000}?)</summary>)?\s*\Z", re.IGNORECASE)
_SUMMARY: Final = re.compile(r"\s*<summary>(.{1,2000}?)</summary>\s*\Z", re.IGNORECASE)
_FOLD_END: Final = re.compile(r"</details\s*>\s*\Z", re.IGNORECASE)
_LAYOUT_ENDS: Final = re.compile(f"(?:</(?:{'|'.join(LAYOUT)})\\s*>\\s*)+\\Z", re.IGNORECASE)
_FORMULA_CHARS: Final = 5_000
# Behind "$$" up to the next; behind "$" up to the next in the line, with no blank inside the signs, as GitHub has it.
_FORMULA: Final = re.compile(
    rf"\$\$(?:[^$]|\$(?!\$)){{1,{_FORMULA_CHARS}}}+\$\$|\$(?![\s$])(?:[^$\n\\]|\\[^\n])*+(?<!\s)\$(?![0-9$])"
)
_KEY: Final = re.compile(r"([A-Za-z_][\w .\-]{0,60}):(?:\s+(.*))?\Z")


def extend(parser: MarkdownIt) -> None:
    """Add the rules to a parser."""
    interrupting: Any = {"alt": ["paragraph", "reference", "blockquote", "list"]}
    parser.block.ruler.before("hr", "front_matter", _front_matter)
    parser.block.ruler.before("hr", "comment", _comment_block, interrupting)
    parser.block.ruler.before("hr", "fold", _fold, interrupting)
    parser.block.ruler.before("hr", "html_heading", _html_heading, interrupting)
    parser.block.ruler.before("hr", "formula", _formula_block, interrupting)
    parser.block.ruler.before("hr", "layout_end", _layout_end, {"alt": ["paragraph"]})
    parser.inline.ruler.before("link", "formula", _formula)
    parser.inline.ruler.before("link", "comment", _comment)
    parser.inline.ruler.before("link", "marked", _marked)
    parser.inline.ruler.before("link", "html_pair", _html_pair)
    parser.inline.ruler.before("link", "html_layout", _html_layout)
    parser.inline.ruler.before("link", "html_image", _html_image)
    parser.inline.ruler.before("link", "html_anchor", _html_anchor)


# --- blocks ------------------------------------------------------------------------------------


def _front_matter(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    if silent or start or state.level or state.src[:4] != "---\n":
        return False
    close = state.src.find("\n---", 3, _FRONT_CHARS)
    line = state.src.count("\n", 0, close + 1)
    if close < 0 or line >= end or state.src[close + 4 : state.eMarks[line]].strip():
        return False
    pairs = attributes_in(state.src[4:close])
    if not pairs:
        return False
    return _pushed_block(state, "attributes", start, line + 1, {"pairs": pairs})


def attributes_in(text: str) -> tuple[tuple[str, str], ...]:
    """Return the attributes of a front matter, with the words of each; () if it is none.

    The part of YAML that front matters consist of is read: ``key: value``, lists, and texts of several lines.
    """
    found: dict[str, list[str]] = {}
    words: list[str] = []
    for line in text.split("\n"):
        key = None if line[:1] in (" ", "\t", "-") else _KEY.match(line)
        if key is not None and len(found) < ATTRIBUTES_MAX:
            words = found.setdefault(key[1].strip(), [])
            words += _values(key[2] or "")
        elif line.strip() and not line.lstrip().startswith("#"):
            if not found:
                return ()
            words += _values(line.strip().removeprefix("- "))
    return tuple((key, ", ".join(words)[:ATTRIBUTE_CHARS]) for key, words in found.items())


def _values(typed: str) -> list[str]:
    typed = typed.strip()
    if typed in ("|", ">", "|-", ">-"):
        return []
    parts = typed[1:-1].split(",") if typed[:1] == "[" and typed[-1:] == "]" else [typed]
    stripped = (part.strip() for part in parts)
    bare = (one[1:-1] if len(one) > 1 and one[0] == one[-1] and one[0] in "\"'" else one for one in stripped)
    return [one for one in bare if one]


def _comment_end(state: StateBlock, start: int) -> int:
    """Return the position behind the next ``-->``, or -1; one search answers for all positions before its result."""
    env: dict[str, Any] = state.env  # type: ignore[assignment]
    begun, found = env.get("comment_end", (0, 0))
    if not begun <= start <= (found if found >= 0 else len(state.src)):
        begun, found = env["comment_end"] = (start, state.src.find("-->", start))
    return -1 if found < start else int(found) + 3


def _comment_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    begin = state.bMarks[start] + state.tShift[start]
    if state.is_code_block(start) or not state.src.startswith("<!--", begin):
        return False
    close = _comment_end(state, begin + 4)
    line = start
    while line < end and state.eMarks[line] < close:
        line += 1
    if close < 0 or line >= end or state.src[close : state.eMarks[line]].strip():
        return False
    return silent or _continue_at(state, line + 1)


def _continue_at(state: StateBlock, line: int) -> bool:
    state.line = line
    return True


def _pushed_block(state: StateBlock, kind: str, start: int, end: int, meta: dict[str, Any]) -> bool:
    """Add a block of the lines from ``start`` to ``end`` that has no blocks within it."""
    token = state.push(kind, "", 0)
    token.meta, token.map = meta, [start, end]
    return _continue_at(state, end)


def _line(state: StateBlock, number: int) -> str:
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]]


def _fold(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    if state.level or state.is_code_block(start) or state.src[state.bMarks[start] + state.tShift[start]] != "<":
        return False
    text = _line(state, start)
    begin = _FOLD.match(text)
    if begin is None and not _FOLD_END.match(text):
        return False
    if silent:
        return True
    if begin is None:
        return _pushed_block(state, "fold_end", start, start + 1, {})
    summary, line = begin[2], start + 1
    if summary is None and line < end and (below := _SUMMARY.match(_line(state, line))):
        summary, line = below[1], line + 1
    _pushed_block(state, "fold", start, line, {"open": bool(begin[1])})
    if summary is not None:
        _push_words(state, "summary", "", summary, start, line)
    return True


def _push_words(state: StateBlock, kind: str, tag: str, words: str, start: int, end: int) -> None:
    """Add a block with one line of words."""
    state.push(f"{kind}_open", tag, 1).map = [start, end]  # where the text is cut, if it is over a bound here
    inline = state.push("inline", "", 0)
    inline.content, inline.children = words.strip(), []
    state.push(f"{kind}_close", tag, -1)


def _html_heading(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    if state.is_code_block(start) or state.src[state.bMarks[start] + state.tShift[start]] != "<":
        return False
    found = _TITLE.match(_line(state, start))
    if found is None or not found[2].strip():
        return False
    if silent:
        return True
    _push_words(state, "heading", f"h{found[1]}", found[2], start, start + 1)
    return _continue_at(state, start + 1)


def _layout_end(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Let ends of layout end the list in which they are, as browsers do: the lines of the item below lose its indent.

    Each line that is looked at loses a blank at least, and lines without any are passed at once; so all of them
    together cost no more than the text is long.
    """
    indent = state.blkIndent
    if not indent or state.is_code_block(start) or state.src[state.bMarks[start] + state.tShift[start]] != "<":
        return False
    if state.listIndent < 0 or not _LAYOUT_ENDS.match(_line(state, start)):
        return False
    if silent:
        return True
    line = _after_empty_lines(state, start + 1)
    while line < end and (state.isEmpty(line) or state.sCount[line] >= indent):
        cut = min(indent, state.sCount[line])
        state.sCount[line] -= cut
        if state.src.startswith(" " * cut, state.bMarks[line]) and state.tShift[line] >= cut:
            state.bMarks[line] += cut
            state.tShift[line] -= cut
        line = _after_empty_lines(state, line + 1)
    return _continue_at(state, start + 1)


def _after_empty_lines(state: StateBlock, line: int) -> int:
    """Return the first line from ``line`` on that has a character; one walk answers for all later ones of a run."""
    env: dict[str, Any] = state.env  # type: ignore[assignment]
    known: dict[int, int] = env.setdefault("after_empty_lines", {})
    at = known.get(line, line)
    while at < state.lineMax and not state.sCount[at] and state.isEmpty(at):
        at = known.get(at, at + 1)
    if at > line:
        known[line] = at
    return at


def _formula_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Read lines from one that begins with ``$$`` to one that ends with it as one paragraph."""
    begin = state.bMarks[start] + state.tShift[start]
    if state.is_code_block(start) or not state.src.startswith("$$", begin):
        return False
    close = state.src.find("$$", begin + 2, begin + _FORMULA_CHARS)
    if close < state.eMarks[start]:
        return False
    line = start + 1
    while line < end and state.eMarks[line] < close and (state.isEmpty(line) or state.sCount[line] >= state.blkIndent):
        line += 1
    is_whole = line < end and state.bMarks[line] <= close and state.eMarks[line] >= close + 2
    if not is_whole or state.sCount[line] < state.blkIndent or state.src[close + 2 : state.eMarks[line]].strip():
        return False
    if silent:
        return True
    _push_words(state, "paragraph", "p", state.getLines(start, line + 1, state.blkIndent, False), start, line + 1)
    return _continue_at(state, line + 1)


# --- in a line ---------------------------------------------------------------------------------


def _formula(state: StateInline, silent: bool) -> bool:
    src, start = state.src, state.pos
    if not src.startswith("$", start) or (start and (src[start - 1].isalnum() or src[start - 1] in "_$")):
        return False
    found = _FORMULA.match(src, start, state.posMax)
    if found is None:
        return False
    for number, line in enumerate(found[0].split("\n") if not silent else ()):
        if number:
            state.push("softbreak", "br", 0)
        state.push("formula", "", 0).meta["words"] = line
    return _move(state, found.end())


def _comment(state: StateInline, silent: bool) -> bool:
    if not state.src.startswith("<!--", state.pos):
        return False
    close = state.src.find("-->", state.pos + 4, min(state.posMax, state.pos + _COMMENT_CHARS))
    if close < 0:
        return False
    return _move(state, close + 3)


def _move(state: StateInline, position: int) -> bool:
    state.pos = position
    return True


def _marked(state: StateInline, silent: bool) -> bool:
    src, start = state.src, state.pos
    inside = start + 2
    if not src.startswith("==", start) or src[inside : inside + 1] in ("", " ", "\t", "\n", "="):
        return False
    if src[start - 1 : start] == "=" and start:
        return False
    close = src.find("==", inside, min(state.posMax, start + _PAIR_CHARS))
    if close < 0 or src[close - 1].isspace() or src[close + 2 : close + 3] == "=":
        return False
    return _paired(state, silent, "mark", inside, close, close + 2)


def _html_pair(state: StateInline, silent: bool) -> bool:
    found = _PAIR.match(state.src, state.pos, state.posMax)
    if found is None:
        return False
    end = f"</{found[1]}>"
    close = state.src.find(end, found.end(), min(state.posMax, found.end() + _PAIR_CHARS))
    return close >= 0 and _paired(state, silent, found[1].lower(), found.end(), close, close + len(end))


def _html_layout(state: StateInline, silent: bool) -> bool:
    found = _LAYOUT.match(state.src, state.pos, state.posMax)
    return found is not None and _move(state, found.end())


def _paired(
    state: StateInline,
    silent: bool,
    kind: str,
    begin: int,
    close: int,
    end: int,
    attributes: Mapping[str, str] | None = None,
) -> bool:
    """Read what stands between a mark and its end, as part of the same line."""
    if not silent:
        most = state.posMax
        state.posMax = close
        _move(state, begin)
        opened = state.push(f"{kind}_open", "", 1)
        for name, value in (attributes or {}).items():
            opened.attrSet(name, value)
        state.md.inline.tokenize(state)
        state.push(f"{kind}_close", "", -1)
        state.posMax = most
    return _move(state, end)


def _html_anchor(state: StateInline, silent: bool) -> bool:
    found = _ANCHOR.match(state.src, state.pos, state.posMax)
    if found is None or state.linkLevel:
        return False
    end = _ANCHOR_END.search(state.src, found.end(), min(state.posMax, found.end() + _PAIR_CHARS))
    if end is None:
        return False
    given = _attributes_of(found[1])
    address = given.get("href", "").strip()
    if not address and not state.src[found.end() : end.start()].strip():
        return _move(state, end.end())  # a place for links, or nothing
    if not address or (_SCHEME.match(address) and not address.lower().startswith(_SCHEMES)):
        return False
    if _WITHIN.search(state.src, found.end(), end.start()):
        return False
    return _paired(state, silent, "link", found.end(), end.start(), end.end(), {"href": address.replace(" ", "%20")})


def _attributes_of(tag: str) -> dict[str, str]:
    """Return the attributes in a tag, by their names in lower case."""
    return {one[1].lower(): html.unescape(one[2] or one[3] or one[4] or "") for one in _GIVEN.finditer(tag)}


def _html_image(state: StateInline, silent: bool) -> bool:
    found = _IMG.match(state.src, state.pos, state.posMax)
    if found is None:
        return False
    given = _attributes_of(found[1])
    width = given.get("width", "").removesuffix("px")
    picture = picture_at(given.get("src", ""), " ".join(given.get("alt", "").split()))
    if picture is None:
        return False
    if not silent:
        sized = picture.of_width(int(width)) if width.isascii() and width.isdigit() and len(width) <= 4 else picture
        state.push("wiki", "", 0).meta = {"token": sized}
    return _move(state, found.end())


# --- alerts ------------------------------------------------------------------------------------


def mark_alerts(block: Sequence[Token]) -> None:
    """Give quotations that begin with ``[!NOTE]`` their kind, and take the mark out of their words.

    Words behind the mark, in the same line, are the title: they are strong, and a line of their own.
    """
    for at, token in enumerate(block[:-2]):
        if token.type != "blockquote_open" or block[at + 1].type != "paragraph_open":
            continue
        words = block[at + 2].children or []
        first = words[0] if words else None
        found = _ALERT.match(first.content) if first is not None and first.type == "text" else None
        if first is None or found is None:
            continue
        token.meta["alert"] = found[1].lower()
        made, rest = type(token), first.content[found.end() :]
        end = next((n for n, word in enumerate(words) if word.type in ("softbreak", "hardbreak")), len(words))
        if end == 1 and not rest:
            del words[:2]
        else:
            broken = [made("hardbreak", "br", 0)] if end < len(words) else []
            title = [
                made("strong_open", "strong", 1),
                made("text", "", 0, content=rest),
                *words[1:end],
                made("strong_close", "strong", -1),
            ]
            words[: end + 1] = [*title, *broken]
