"""(pure) The first pass over a MediaWiki text: all constructs with an opening and a closing.

Comments, tags whose content is no markup, references, templates and links are found with one
regular expression and one stack, and replaced by marks (see :mod:`mediawiki_pieces`).  An
element that never closes stays text.  ``mediawiki_calls`` says what stands in the place of a template's call.

The time is linear.  A closed construct becomes one mark at once.  The parts of an unclosed construct
move up a level at most once before a mark replaces them, since levels are joined as ropes, not copied.

Knows nothing of lines: lists, tables and headings are found later.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Literal

from wikka_port.markup import mediawiki_links, mediawiki_raw
from wikka_port.markup.mediawiki_calls import Calls, Place, continued, notes_place
from wikka_port.markup.mediawiki_pieces import MARK, Draft, Piece, collapse
from wikka_port.markup.mediawiki_raw import Closings

_RAW: Final = "|".join(mediawiki_raw.TAGS)
_TOKEN: Final = re.compile(
    rf"""(?P<comment><!--)
      | <(?P<raw>{_RAW})(?P<attributes>(?:[\s/][^<>]*+)?)>
      | <ref(?P<ref>(?:[\s/][^<>]*+)?)>
      | (?P<unref></ref\s*+>)
      | (?P<included><includeonly\s*+>)
      | (?P<poem><poem(?:\s[^<>]*+)?>)
      | </?(?P<only>noinclude|includeonly|onlyinclude)\s*+/?>
      | <(?P<list>/?references)(?P<rest>(?:[\s/][^<>]*+)?)>
      | (?P<open>\{{{{++) | (?P<shut>\}}}}++)
      | (?P<link>\[\[) | (?P<unlink>\]\])""",
    re.VERBOSE | re.IGNORECASE,
)
# Letters directly after a link belong to its label, in scripts that put blanks between words.
_TRAIL: Final = re.compile(r"[a-zß-öø-ÿĀ-ɏͰ-ϿЀ-ӿ]{1,64}")
_NAME: Final = re.compile(r"""name\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'/>]+))""", re.IGNORECASE)
_BLANKS: Final = re.compile(r"[ \t]*+")
_LEADING: Final = re.compile(r"\A +")
_OPEN_LINKS_MAX: Final = 50  # that are walked over for each closing of a template

Rope = list["str | Rope"]


@dataclass(slots=True)
class _Level:
    kind: Literal["root", "template", "link", "ref"]
    opening: str  # as typed, for when it never closes
    parts: Rope = field(default_factory=list)
    begin: int = 0  # template: position in the text
    braces: list[int] = field(default_factory=list)  # template: open braces, the outermost pair first
    name: str = ""  # ref


def scan(draft: Draft, text: str) -> str:
    """Return a cleaned text with marks in the places of all closed constructs."""
    return _Scan(draft, text).run()


def _is_empty_note(level: _Level) -> bool:
    if level.kind != "ref" or len(level.parts) > 1:
        return False
    return all(isinstance(part, str) and not part.strip() for part in level.parts)


def _flat(rope: Rope) -> Iterator[str]:
    levels: list[Iterator[str | Rope]] = [iter(rope)]
    while levels:
        for part in levels[-1]:
            if isinstance(part, list):
                levels.append(iter(part))
                break
            yield part
        else:
            levels.pop()


class _Scan:
    def __init__(self, draft: Draft, text: str) -> None:
        self._draft = draft
        self._text = text
        self._levels = [_Level("root", "")]
        self._closing = Closings(text, len(text)).after
        self._text_begin = 0  # of the text before the token that is being read
        self._calls = Calls(draft, scan)
        self._defining = False  # inside <references>
        self._in_ref = False

    def run(self) -> str:
        position, text = 0, self._text
        while match := _TOKEN.search(text, position):
            self._text_begin = position
            if match.start() > position:
                self._add(text[position : match.start()])
            position = self._token(match)
        self._add(text[position:])
        self._fold(0)
        return "".join(_flat(self._levels[0].parts))

    def _add(self, part: str) -> None:
        self._levels[-1].parts.append(part)

    def _token(self, match: re.Match[str]) -> int:
        """Read one token; return where to continue."""
        if match["comment"]:
            return self._comment(match)
        if match["raw"]:
            return self._raw(match)
        if match["included"]:
            return self._included(match)
        if match["poem"]:
            return self._poem(match)
        if match["open"]:
            self._levels.append(_Level("template", match["open"], begin=match.start(), braces=[len(match["open"])]))
        elif match["shut"]:
            self._close_braces(match["shut"], match.end())
        elif match["link"]:
            self._levels.append(_Level("link", "[["))
        elif match["unlink"]:
            return self._unlink(match)
        elif match["list"]:
            self._references(match)
        elif match["only"]:
            self._draft.unconverted[f"html <{match['only'].lower()}>"] += not match[0].startswith("</")
        elif match["unref"]:
            self._unref(match[0])
        else:
            self._ref(match)
        return match.end()

    def _comment(self, match: re.Match[str]) -> int:
        """Drop consecutive comments, with their line if it has nothing else, as MediaWiki does."""
        text = self._text
        begin, end, blanks = match.start(), match.start(), ""
        while begin and text[begin - 1] in " \t":
            begin -= 1
        while text.startswith("<!--", end):
            self._draft.converted["comment"] += 1
            closing = self._closing("-->", end + len("<!--"))
            if closing is None:
                return len(text)  # an unclosed comment reaches to the end, as in MediaWiki
            end = closing.end()
            found = _BLANKS.match(text, end)
            blanks += found[0] if found else ""
            end = found.end() if found else end
        if begin and text[begin - 1] == "\n" and text.startswith("\n", end):
            if begin < match.start():
                self._levels[-1].parts.pop()
                self._add(text[self._text_begin : begin])
            return end + 1
        self._add(blanks)
        return end

    def _included(self, match: re.Match[str]) -> int:
        """Hide text that only including pages show; its source is listed with the calls of templates."""
        closing = self._closing(r"</includeonly\s*+>", match.end())
        if closing is None:
            self._draft.unconverted["html <includeonly>"] += 1
            return match.end()
        self._add(self._calls.hidden_text(self._text[match.start() : closing.end()]))
        return closing.end()

    def _poem(self, match: re.Match[str]) -> int:
        """Read a poem, whose lines stay lines; it cannot contain another poem."""
        closing = self._closing(r"</poem\s*+>", match.end())
        if closing is None:
            return match.end()
        self._draft.converted["poem"] += 1
        lines = scan(self._draft, self._text[match.end() : closing.start()].strip("\n")).split("\n")
        indented = [_LEADING.sub(lambda found: "&nbsp;" * len(found[0]), line) for line in lines]
        self._add("\n" + "<br>\n".join(indented) + "\n")
        blanks = _BLANKS.match(self._text, closing.end())
        return blanks.end() if blanks else closing.end()

    def _raw(self, match: re.Match[str]) -> int:
        name = match["raw"].lower()
        attributes = match["attributes"]
        if attributes.endswith("/"):
            self._add(self._draft.mark(Piece("", block="")))  # the texts on both sides join, but not to markup
            return match.end()
        closing = self._closing(rf"</{name}\s*+>", match.end())
        if closing is None:
            self._add(match[0])
            return match.end()
        content = self._text[match.end() : closing.start()]
        # A caption lies in this text, and cannot contain another gallery.
        self._add(
            self._draft.mark(mediawiki_raw.raw(self._draft, name, attributes, content, partial(scan, self._draft)))
        )
        return closing.end()

    # -- calls ----------------------------------------------------------------------

    def _close_braces(self, braces: str, end: int) -> None:
        left = len(braces)
        while left >= 2 and (depth := self._nearest_template()) is not None:
            self._fold(depth)
            level = self._levels[-1]
            taken = min(left, level.braces[-1])
            taken = 3 if taken >= 3 and (level.braces[-1] % 2 or left == 3) else 2
            left -= taken
            level.parts.append("}" * taken)
            level.braces[-1] -= taken
            if level.braces[-1] < 2:
                level.braces.pop()
            if not level.braces:
                self._levels.pop()
                self._add(self._call(level, end, end - left))
        if left:
            self._add("}" * left)

    def _nearest_template(self) -> int | None:
        """Return the depth of the innermost open template, or None; unclosed links above it are skipped.

        A reference ends the search: a template outside of it cannot be closed within it.
        """
        depth = len(self._levels) - 1
        while self._levels[depth].kind == "link":
            depth -= 1
        if self._levels[depth].kind == "template":
            return depth
        # Links with no template below them: never walk down here again.
        if len(self._levels) - 1 - depth > _OPEN_LINKS_MAX:
            self._fold(depth)
        return None

    def _call(self, level: _Level, braces_end: int, end: int) -> str:
        """Convert a closed call; return its mark or wikitext.

        ``end`` is the position after the call, and ``braces_end`` the one after all braces there.
        """
        outer = self._levels[-1]
        place = Place(self._text, level.begin, end, braces_end, outer.kind, _is_empty_note(outer))
        return self._calls.replaced("".join([level.opening, *_flat(level.parts)]), place)

    def _fold(self, depth: int) -> None:
        """Add the text of the unclosed levels above ``depth`` to the level at ``depth``."""
        base = self._levels[depth]
        for level in self._levels[depth + 1 :]:
            base.parts.append(level.opening)
            base.parts.append(level.parts)
            self._in_ref = self._in_ref and level.kind != "ref"
        del self._levels[depth + 1 :]

    # -- links ----------------------------------------------------------------------

    def _unlink(self, match: re.Match[str]) -> int:
        level = self._levels[-1]
        if level.kind != "link":
            self._add("]]")
            return match.end()
        trail = _TRAIL.match(self._text, match.end())
        piece = self._link(level, trail[0] if trail else "")
        self._levels.pop()
        if piece is None:
            self._levels[-1].parts += ["[[", level.parts, "]]"]
            return match.end()
        self._add(self._draft.mark(piece))
        return trail.end() if trail else match.end()

    def _link(self, level: _Level, trail: str) -> Piece | None:
        # A level with an unclosed one in it is no link, so each part is read once, however deep the levels are.
        parts = [part for part in level.parts if isinstance(part, str)]
        if len(parts) < len(level.parts):
            return None
        draft, text = self._draft, "".join(parts)
        head, bar, rest = text.partition("|")
        label = rest if bar else None
        if "\x02" in head:
            marks = list(MARK.finditer(head))
            if any(mark[0] in draft.unknown for mark in marks):
                return mediawiki_links.without_target(draft, text, trail)
            calls = self._calls.marks
            if not all(mark[0] in calls and "\x02" not in draft.pieces[int(mark[1])].inline for mark in marks):
                return None
            head, another, more = draft.plain(head).partition("|")  # "{{!}}" is a bar, too
            label = more + bar + rest if another else label
        return mediawiki_links.link(draft, head, label, trail)

    # -- references -----------------------------------------------------------------

    def _ref(self, match: re.Match[str]) -> None:
        found = _NAME.search(match["ref"])
        name = next((group for group in found.groups() if group), "") if found else ""
        if match["ref"].endswith("/"):
            self._add(self._draft.note(name, None, is_use=True))
        elif self._in_ref or self._closing(r"</ref\s*+>", match.end()) is None:
            self._add(match[0])
        else:
            self._in_ref = True
            self._levels.append(_Level("ref", match[0], name=name))

    def _unref(self, closing: str) -> None:
        if not self._in_ref:
            self._add(closing)
            return
        depth = len(self._levels) - 1
        while self._levels[depth].kind != "ref":
            depth -= 1
        self._fold(depth)
        level = self._levels.pop()
        self._in_ref = False
        content = collapse("".join(_flat(level.parts))).strip()
        mark = self._draft.note(level.name, content, is_use=not self._defining)
        if not self._defining:
            self._add(mark)

    def _references(self, match: re.Match[str]) -> None:
        draft, text, end = self._draft, self._text, match.end()
        if match["list"].startswith("/"):
            if self._defining:
                self._add(continued(draft, text, end))
            self._defining = False
            return
        self._defining = not match["rest"].endswith("/") and bool(self._closing("</references", end))
        is_place = draft.notes_mark is None
        self._add(notes_place(draft, text, end) if is_place else continued(draft, text, end))
