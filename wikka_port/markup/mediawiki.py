"""(pure) From MediaWiki's markup to Wikka markup: the entry point, and the conversion of lines.

Reading order: ``mediawiki_words`` and ``mediawiki_names`` (other languages), ``mediawiki_titles`` (the target of a
link), ``mediawiki_pieces`` (converted pieces), ``mediawiki_inline`` (emphasis, addresses, HTML, escaping),
``mediawiki_links``, ``mediawiki_raw``, ``mediawiki_templates``, ``mediawiki_variables`` (names, addresses, other
pages), ``mediawiki_braces``, ``mediawiki_values``, ``mediawiki_strings``, ``mediawiki_months``, ``mediawiki_dates``,
``mediawiki_times``, ``mediawiki_functions`` and ``mediawiki_expansion`` (parser functions and the dump's own
templates), ``mediawiki_calls``, ``mediawiki_scan`` (replaces constructs with an opening and a closing by marks),
``mediawiki_html`` (HTML of blocks), ``mediawiki_tables``, and this module for headings, lists and paragraphs.

Invariants:
    I1. ``convert`` raises on no text and takes time linear in it.
    I2. Text that MediaWiki does not read as markup is no markup in the result: it shows as the author's text.
    I3. Nothing vanishes uncounted: a construct without a counterpart is shown as typed, or is counted by kind.

Simple templates are expanded (``mediawiki_expansion``); for all other calls ``mediawiki_templates`` puts words, notes
and tables in their place, since a dump has no programs in Lua.  ``mediawiki_notes`` puts the footnotes.
Knows nothing of dumps, of stores and of authors.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from wikka_port.markup.mediawiki_expansion import page_text
from wikka_port.markup.mediawiki_html import DEPTH_MAX, as_wikitext
from wikka_port.markup.mediawiki_inline import CONTENTS, heading_of, inline
from wikka_port.markup.mediawiki_links import forced_link, link_name
from wikka_port.markup.mediawiki_notes import note_texts, put_notes
from wikka_port.markup.mediawiki_pieces import (
    JOIN,
    MARK,
    MARK_RUN,
    Draft,
    Expansion,
    clean,
    code_block,
    literal,
    mono,
    unescape,
)
from wikka_port.markup.mediawiki_raw import begins_preformatted, preformatted_lines
from wikka_port.markup.mediawiki_scan import scan
from wikka_port.markup.mediawiki_tables import OPENING, table, table_end
from wikka_port.markup.mediawiki_templates import source_table
from wikka_port.markup.mediawiki_titles import Dialect
from wikka_port.markup.mediawiki_words import every

__all__ = ["Converted", "Dialect", "convert", "convert_source"]

# "redirect" in the languages of MediaWiki without a row in ``mediawiki_words`` whose wikis use their own word.
_REDIRECT_WORDS: Final = (
    "REDIRECT OMDIRIGER OMDIRIGOJ ALIDIREKTU UUDELLEENOHJAUS OHJAUS SUUNA ÁTIRÁNYÍTÁS PRESMERUJ PREUSMERITEV "
    "PREUSMJERI REDIRECTEAZA ВИДИ ПРЕУСМЕРИ ПЕРАНАКІРАВАННЕ АЙДАУ ЮНӘЛТҮ ΑΝΑΚΑΤΕΥΘΥΝΣΗ अनुप्रेषित पुनर्निर्देशन পুনর্নির্দেশ "
    "เปลี่ยนทาง BIRZUZENDU TILVÍSUN ENDURBEINA ATHCHUIRTE AIL-CYFEIRIO PERADRESAVIMAS PĀRADRESĀCIJA"
)
_REDIRECT_KEYS: Final = frozenset(_REDIRECT_WORDS.split()) | every("redirect")
_REDIRECT: Final = re.compile(r"\s*[#＃]([^\s:\[\]]{1,40})\s*+:?\s*+\[\[([^\[\]|\n]{1,600})(?:\|[^\[\]\n]{0,600})?\]\]")
# The colon that ends the term of a definition, unlike the colon of a tag or an address.
_TERM: Final = re.compile(
    r"<[^<>]*+>|\[(?:[a-z]++:)?//[^\]]*+\]|\b(?:https?|ftps?|irc|news|mailto):(?:(?!:(?:\s|\Z))[^\s<>\[\]])++|(?P<end>\s*+:\s?)",
    re.IGNORECASE,
)
_RULE_TAG: Final = re.compile(r"<hr\s*+/?>", re.IGNORECASE)
_BEGINS_BLOCK: Final = ("=", "*", "#", ":", ";", "----", "{|")
_LIKE_A_MARKER: Final = re.compile(r"-|&|[0-9A-Za-z]{1,9}\)")
_LANGUAGES: Final = {"Scribunto": "lua", "css": "css", "sanitized-css": "css", "javascript": "javascript"}


@dataclass(frozen=True, slots=True)
class Converted:
    text: str
    redirect: str | None  # name of the page to which it redirects, as the dump writes titles
    links: tuple[str, ...]  # names of pages linked to, each once, in order; categories are separate
    categories: tuple[str, ...]
    converted: Counter[str]  # constructs by kind
    unconverted: Counter[str]  # by kind: shown as typed, simplified or left out


def convert(
    wikitext: str,
    *,
    namespaces: Mapping[str, int] | Dialect,
    title: str,
    redirect_hint: str | None = None,
    time_ms: int | None = None,
) -> Converted:
    """Convert one revision.

    ``namespaces`` maps the names of the dump's namespaces to their numbers.  For many revisions pass a Dialect instead,
    which is made once from that mapping.
    ``redirect_hint`` is the dump's ``<redirect>`` of the page.  It applies to the newest revision only,
    so a text that does not look like a redirect is never one.
    ``time_ms`` is the time of the revision, which is "now" for functions and variables.
    """
    dialect = namespaces if isinstance(namespaces, Dialect) else Dialect.of(namespaces)
    now = None if time_ms is None else datetime.fromtimestamp(time_ms // 1_000, UTC)
    draft = Draft(dialect, title, expansion=Expansion(now=now))
    text = clean(wikitext)
    redirect, text = _redirect(draft, text, redirect_hint)
    text = page_text(draft, text)
    blocks: list[_Block] = [("line", _redirect_line(dialect, redirect))] if redirect is not None else []
    for section in _sections(_blocks(draft, as_wikitext(draft, scan(draft, text)).split("\n"))):
        blocks += _pictures_after_first_paragraph(section)
    blocks += _tail(draft, blocks)
    return Converted(
        text=draft.expand(_joined(blocks)),
        redirect=redirect,
        links=tuple(draft.links),
        categories=tuple(draft.categories),
        converted=+draft.converted,
        unconverted=+draft.unconverted,
    )


def convert_source(text: str, *, model: str) -> Converted:
    """Convert a page that is no wikitext (a module, a style sheet) into one code block."""
    block = code_block(clean(text), _LANGUAGES.get(model, ""))
    return Converted(block, None, (), (), Counter({"code": 1}), Counter())


# -- redirects ------------------------------------------------------------------------


def _redirect(draft: Draft, text: str, hint: str | None) -> tuple[str | None, str]:
    match = _REDIRECT.match(text)
    if match is None or not (match[1].upper() in _REDIRECT_KEYS or hint is not None):
        return None, text
    typed = unescape(match[2]).strip().removeprefix(":")
    target = draft.dialect.target(typed)
    if target is not None and target.kind in ("interwiki", "language"):
        draft.converted["redirect"] += 1
        return None, f"→ [[:{match[2].strip().removeprefix(':')}]]\n\n{text[match.end() :].lstrip()}"
    if target is None or not target.title:
        return None, text
    name = draft.dialect.title(f"File:{target.title}") if target.kind == "file" else target.title
    draft.converted["redirect"] += 1
    draft.links.setdefault(name)
    return name, text[match.end() :]


def _redirect_line(dialect: Dialect, name: str) -> str:
    target = re.sub(r"""["'{}]""", lambda found: f"&#{ord(found[0])};", link_name(dialect, name))
    return f'{{{{redirect target="{target}"}}}}'


# -- blocks ---------------------------------------------------------------------------

# As ``mediawiki_links.picture`` writes it.
_PICTURE: Final = re.compile(r'##""\[image: |\{\{image url="|\[\[\S+ \| picture: ')
_NO_WORDS: Final = ("||", "|=|", "|!|", "|?|", "%%", "~", "→ ")  # tables, code, lists and links to further pages
_HINT: Final = "~//"  # ":''This page is about ...''"
_Block = tuple[str, str]  # kind ("line", "list", "paragraph"), text


def _joined(blocks: list[_Block]) -> str:
    """Join the blocks, with an empty line between paragraphs, but none inside a list and after a heading."""
    out: list[str] = []
    before = ""
    for kind, text in blocks:
        if out:
            out.append("\n" if before == "line" or before == kind == "list" else "\n\n")
        out.append(text)
        before = kind
    return "".join(out)


def _blocks(draft: Draft, lines: list[str]) -> list[_Block]:
    blocks: list[_Block] = []
    paragraph: list[str] = []
    index = 0

    def flush() -> None:
        if paragraph:
            blocks.append(("paragraph", " ".join(paragraph)))
            paragraph.clear()

    while index < len(lines):
        line = lines[index] = _without_nothing(draft, lines[index])
        if OPENING.match(line):
            end = table_end(lines, index)
            shown, rest = table(draft, lines[index:end])
            made: list[_Block] = [("paragraph", shown)]
            if rest:
                lines[end - 1] = rest
                end -= 1
            index = end
        elif begins_preformatted(line):
            end = index + 1
            while end < len(lines) and lines[end].startswith(" "):  # also one of blanks alone
                end += 1
            made = [("paragraph", preformatted_lines(draft, lines[index:end]))]
            index = end
        else:
            index += 1
            block = _line_block(draft, line.strip(" \t"), is_indented=line[:1] == "\t")
            if block is None:
                if not draft.is_only_unknown(line) and (shown := inline(draft, line)):
                    paragraph.append(shown)
                continue
            made = block
        if not made and line.strip():  # a line of constructs that show nothing
            continue
        flush()
        blocks += [(kind, text) for kind, text in made if text]
    flush()
    return blocks


def _sections(blocks: list[_Block]) -> Iterator[list[_Block]]:
    """Yield the blocks before the first heading, and then those of each heading with the blocks after it."""
    begin = 0
    for at, (kind, text) in enumerate(blocks):
        if kind == "line" and text.startswith("=="):
            yield blocks[begin : at + 1]
            begin = at + 1
    yield blocks[begin:]


def _pictures_after_first_paragraph(blocks: list[_Block]) -> list[_Block]:
    """Move pictures before the first paragraph of a section to after that paragraph.

    MediaWiki shows such pictures beside the paragraph; here the section would begin with a stack of links.
    """
    for at, (kind, text) in enumerate(blocks):
        if kind == "list" and text.startswith(_HINT):
            continue
        if kind != "paragraph":
            return blocks
        if not (text.startswith(_NO_WORDS) or _PICTURE.match(text)):
            pictures = [block for block in blocks[:at] if _PICTURE.match(block[1])]
            others = [block for block in blocks[:at] if not _PICTURE.match(block[1])]
            return [*others, blocks[at], *pictures, *blocks[at + 1 :]]
    return blocks


def _without_nothing(draft: Draft, line: str) -> str:
    """Remove the marks of templates that show nothing from a line, if its block begins after them."""
    lead = draft.lead(line)
    if lead and line.startswith(_BEGINS_BLOCK, lead):
        return line[lead:]
    if not line.startswith("\x02") or "{|" not in line:
        return line
    rest = MARK_RUN.sub("", line, count=1)
    before = [mark for mark in MARK.finditer(line, 0, len(line) - len(rest)) if mark[0] not in draft.unknown]
    return rest if OPENING.match(rest) and not any(draft.edges(mark[0])[0].strip() for mark in before) else line


def _line_block(draft: Draft, line: str, *, is_indented: bool) -> list[_Block] | None:
    """Return the blocks that a line makes, or None if it is a part of a paragraph."""
    if not line:
        return []
    alone = draft.blocks_of(line)
    if alone is not None:
        if line == draft.notes_mark:
            return [("paragraph", line)]
        return [("paragraph", block) for block in alone if block]
    if not is_indented and (heading := _heading(draft, line)):
        return [("line", heading)]
    if line.startswith("----"):
        rest = inline(draft, line.lstrip("-"))
        draft.converted["rule"] += 1
        return [("line", "----"), ("paragraph", rest)]
    if _RULE_TAG.fullmatch(line):
        draft.converted["rule"] += 1
        return [("line", "----")]
    if line[0] in "*#:;":
        return [("list", item) for item in _item(draft, line)]
    if CONTENTS.fullmatch(line):
        draft.converted["table of contents"] += 1
        return [("line", "{{toc}}")]
    return None


def _heading(draft: Draft, line: str) -> str | None:
    found = heading_of(draft, line)
    if found is None:
        return None
    level, typed = found
    content = inline(draft, typed)
    if not _is_seen(draft, content):  # a heading of marks that show nothing is none
        return None
    draft.converted["heading"] += 1
    signs = "=" * max(7 - level, 2)
    return f"{signs}{_guarded_ends(draft, content)}{signs}"


def _guarded_ends(draft: Draft, content: str) -> str:
    """Guard a sign "=" at either end of a heading's text, which would be read as one of the heading's own."""
    if draft.edges(content)[1].endswith("="):
        content = content[:-1] + literal("=") if content[-1] == "=" else content + JOIN
    return draft.guarded(content) if draft.edges(content)[0].startswith("=") else content


def _item(draft: Draft, line: str) -> list[str]:
    body = line.lstrip("*#:;")
    prefix = line[: len(line) - len(body)]
    depth = min(len(prefix), DEPTH_MAX)
    draft.converted["list item"] += 1
    if prefix[-1] == ";":
        end = next((found for found in _TERM.finditer(body) if found["end"]), None)
        term, rest = (body[: end.start()], body[end.end() :]) if end else (body, "")
        shown = inline(draft, term)
        marker = "~" * (depth - 1)
        bold = f"**{shown}**" if "**" not in shown else _guarded(draft, shown) if marker else shown
        items = [marker + bold] if _is_seen(draft, shown) else []
        return items + ([f"{marker}~{_guarded(draft, inline(draft, rest))}"] if rest.strip() else [])
    sign = {"*": "- ", "#": "1) "}.get(prefix[-1], "")
    shown = inline(draft, body)
    return [f"{'~' * depth}{sign}{shown if sign else _guarded(draft, shown)}"] if _is_seen(draft, shown) else []


def _is_seen(draft: Draft, shown: str) -> bool:
    """Return whether a converted text has characters that readers see; links to other languages have none."""
    return bool(draft.edges(shown)[0].strip())


def _guarded(draft: Draft, text: str) -> str:
    """Guard text after ``~`` that could be read as the marker of a list item."""
    return draft.guarded(text) if _LIKE_A_MARKER.match(draft.edges(text)[0]) else text


# -- what comes last ------------------------------------------------------------------


def _tail(draft: Draft, before: list[_Block]) -> list[_Block]:
    """Return the end of the page: notes (or put them at their mark in ``before``), other languages, categories."""
    blocks: list[_Block] = []
    notes = note_texts(draft)
    if draft.sources:
        blocks.append(("paragraph", source_table(draft, "".join((*(text for _kind, text in before), *notes)))))
    if notes:
        blocks = [*put_notes(draft, notes, before, blocks), *blocks]
    unlinked = [name for name, link in draft.languages.items() if not link]
    if unlinked:
        blocks.append(("paragraph", mono("; ".join(unlinked))))
    if linked := [link for link in draft.languages.values() if link]:
        blocks.append(("paragraph", " · ".join(linked)))
    if draft.categories:
        links = " · ".join(forced_link(draft, page, label) for page, label in draft.categories.items())
        blocks += [("line", "----"), ("paragraph", links)]
    return blocks
