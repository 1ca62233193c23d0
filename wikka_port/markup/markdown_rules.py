"""(pure) The parser of Markdown: markdown-it with CommonMark's rules, tables, strikethrough, and the wiki's own rules.

    [[Page]]  [[Page|words]]    a link to a page, read as in Wikka markup      token ``wiki``, ``meta["token"]``
    ![[a.png]]  ![[a.png|300]]  a file, a picture with its width or words      the same
    {{action name="value"}}     an action, or a redirect                        the same
    [^label]                    a reference to a footnote                       token ``note_mark``, ``meta["label"]``
    [^label]: text              the footnote, with indented lines below it      tokens ``note_open``, ``note_close``
    blocks deeper than DEPTH_MAX are text: the parser would leave them out      token ``code_block``

Raw HTML is off and becomes text, except ``<br>``, which the wiki itself makes a line break, and what
``markdown_extensions`` reads.  The wiki's rules search
for their ends within a fixed distance, so openers without an end cost no more than others.

Knows nothing of the conversion of tokens (``markdown``).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from markdown_it import MarkdownIt
from markdown_it.rules_inline.image import image as _image

from wikka_port.markup.markdown_extensions import extend
from wikka_port.markup.targets import read_action, read_link, read_picture

if TYPE_CHECKING:
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_inline import StateInline

DEPTH_MAX: Final = 24  # of blocks within blocks: twelve lists, or as many quotations
_INLINE_DEPTH: Final = 32  # of links and emphasis; what is deeper is text
_IMAGE_DEPTH: Final = 3  # of pictures within descriptions of pictures, each of which is parsed separately
_LINK_CHARS: Final = 2_500  # between [[ and ]]
_ACTION_CHARS: Final = 4_000  # between {{ and }}
_BREAK: Final = re.compile(r"<br */?>", re.IGNORECASE)
# The characters with which the construct of a rule begins or ends.  The library also stops at others.
_MARK: Final = re.compile(r"[\n!&*<\[\\\]_`{~]|(?<![\w$])\$(?=\S)|(?<!=)==(?![=\s])")
_LABEL: Final = re.compile(r"\[\^([^\s\]\[^]{1,80}+)\]")


class _Parser(MarkdownIt):
    """Takes every address as it was typed; ``markdown`` checks it when it makes the token of the link."""

    def validateLink(self, url: str) -> bool:  # noqa: N802 - the parser's own names
        return True

    def normalizeLink(self, url: str) -> str:  # noqa: N802
        return url

    def normalizeLinkText(self, link: str) -> str:  # noqa: N802
        return link


@lru_cache(maxsize=1)
def parser() -> MarkdownIt:
    """Return the parser, which all threads share, since parsing does not change it.

    A ruler makes its lists at their first use, and a thread that comes meanwhile takes half of them: made here, whole.
    """
    made = _Parser("commonmark", {"html": False, "maxNesting": max(DEPTH_MAX + 2, _INLINE_DEPTH)})
    made.enable(["table", "strikethrough"])
    made.disable(["html_block", "html_inline", "text_join"])  # unjoined, an escaped letter is no part of a word
    made.inline.ruler.at("text", _text)
    made.inline.ruler.before("link", "wiki_link", _wiki_link)
    made.inline.ruler.before("image", "wiki_image", _wiki_image)
    made.inline.ruler.before("link", "note_mark", _note_mark)
    made.inline.ruler.before("link", "action", _action)
    made.inline.ruler.at("image", _shallow_image)
    made.inline.ruler.before("link", "line_break", _line_break)
    extend(made)
    made.block.ruler.before("reference", "note", _note, {"alt": ["paragraph", "reference"]})
    made.block.ruler.before("table", "too_deep", _too_deep)
    for ruler in (made.core.ruler, made.block.ruler, made.inline.ruler, made.inline.ruler2):
        ruler.getRules()
    return made


# --- in a line ---------------------------------------------------------------------------------


def _text(state: StateInline, silent: bool) -> bool:
    """Read text up to the next mark at once; else each rule would try every character, at ten calls a character."""
    found = _MARK.search(state.src, state.pos, state.posMax)
    end = found.start() if found else state.posMax
    if end == state.pos:
        return False
    if not silent:
        state.append_pending(state.src[state.pos : end])
    state.pos = end
    return True


def _wiki_link(state: StateInline, silent: bool) -> bool:
    start = state.pos
    if not state.src.startswith("[[", start):
        return False
    close = state.src.find("]]", start + 2, min(state.posMax, start + _LINK_CHARS))
    body = state.src[start + 2 : close] if close > 0 else ""
    if not body or "\n" in body or "[" in body or "]" in body:
        return False
    return _pushed(state, silent, read_link(body), close + 2)


def _wiki_image(state: StateInline, silent: bool) -> bool:
    """Read ``![[picture.png]]`` as Obsidian writes it; ``![[Page]]`` is no picture."""
    start = state.pos
    if not state.src.startswith("![[", start):
        return False
    close = state.src.find("]]", start + 3, min(state.posMax, start + _LINK_CHARS))
    body = state.src[start + 3 : close] if close > 0 else ""
    if not body or "\n" in body or "[" in body or "]" in body:
        return False
    return _pushed(state, silent, read_picture(body), close + 2)


def _action(state: StateInline, silent: bool) -> bool:
    start = state.pos
    if not state.src.startswith("{{", start):
        return False
    close = state.src.find("}}", start + 2, min(state.posMax, start + _ACTION_CHARS))
    if close < 0 or state.src.find("{{", start + 2, close) >= 0:
        return False
    return _pushed(state, silent, read_action(state.src, start + 2, close), close + 2)


def _line_break(state: StateInline, silent: bool) -> bool:
    """Read ``<br>`` as the wiki's own line break, no HTML of the page; a cell of a table has no other line break."""
    found = _BREAK.match(state.src, state.pos, state.posMax)
    if found is None:
        return False
    if not silent:
        state.push("hardbreak", "br", 0)
    state.pos = found.end()
    return True


def _pushed(state: StateInline, silent: bool, token: object, end: int) -> bool:
    if token is None:
        return False
    if not silent:
        state.push("wiki", "", 0).meta = {"token": token}
    state.pos = end
    return True


def _note_mark(state: StateInline, silent: bool) -> bool:
    found = _LABEL.match(state.src, state.pos, state.posMax)
    if found is None or found[1] not in state.env.get("notes", ()):
        return False
    if not silent:
        state.push("note_mark", "", 0).meta = {"label": found[1]}
    state.pos = found.end()
    return True


def _shallow_image(state: StateInline, silent: bool) -> bool:
    env: dict[str, Any] = state.env  # type: ignore[assignment]
    depth = env.get("images", 0)
    if depth >= _IMAGE_DEPTH:
        return False
    env["images"] = depth + 1
    try:
        return _image(state, silent)
    finally:
        env["images"] = depth


# --- blocks ------------------------------------------------------------------------------------


def _too_deep(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    if silent or state.level < DEPTH_MAX:
        return False
    token = state.push("code_block", "code", 0)
    token.content = state.getLines(start, end, state.blkIndent, False)
    token.map = [start, end]
    state.line = end
    return True


def _note(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Read ``[^label]: text`` with the lines below it that are indented by four, unless it is within another block."""
    begin = state.bMarks[start] + state.tShift[start]
    if state.is_code_block(start) or (state.level > 0 and not silent):
        return False
    found = _LABEL.match(state.src, begin, state.eMarks[start])
    if found is None or not state.src.startswith(":", found.end()):
        return False
    if silent:
        return True
    env: dict[str, Any] = state.env  # type: ignore[assignment]
    env.setdefault("notes", set()).add(found[1])
    token = state.push("note_open", "", 1)
    token.meta = {"label": found[1]}
    token.map = lines = [start, start + 1]
    _note_text(state, start, end, found.end() + 1)
    lines[1] = state.line
    state.push("note_close", "", -1)
    return True


def _note_text(state: StateBlock, start: int, end: int, begin: int) -> None:
    """Parse the text after the colon, at ``begin``, as separate blocks."""
    saved = state.bMarks[start], state.tShift[start], state.sCount[start], state.parentType
    text = begin
    while text < state.eMarks[start] and state.src[text] in " \t":
        text += 1
    state.bMarks[start], state.tShift[start] = begin, text - begin
    state.blkIndent += 4
    state.sCount[start] = state.blkIndent
    state.parentType = "note"
    try:
        state.md.block.tokenize(state, start, end)
    finally:
        state.blkIndent -= 4
        state.bMarks[start], state.tShift[start], state.sCount[start], state.parentType = saved
