"""(pure) From MediaWiki's tables to Wikka's: ``{| |- | ! || !! |+ |}`` to rows of ``||a||b||``.

A row in Wikka markup is one line, so lists, paragraphs and inner tables in a cell are flattened, with
line breaks between their lines.

Knows nothing of the text outside a table.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from wikka_port.markup.mediawiki_inline import BREAK, heading_of, inline
from wikka_port.markup.mediawiki_pieces import MARK, Draft, cell_text

OPENING: Final = re.compile(r"[ \t:*#;]*\{\|")
SPAN_MAX: Final = 1000  # the limit of browsers

_SPAN: Final = re.compile(r"""(colspan|rowspan)\s*=\s*["']?\s*([0-9]{1,4})""", re.IGNORECASE)
_LINKED: Final = re.compile(r"\[\[|\{\{image |\[image: ")  # as ``mediawiki_links`` writes them
_ATTRIBUTES: Final = re.compile(r"""\s*+(?:[A-Za-z-]{2,20}\s*+=\s*+(?:"[^"|]*+"|'[^'|]*+'|[^\s"'|\x02]++)\s*+)++""")
_PREFIX: Final = re.compile(r"[*#:;]+")


@dataclass(frozen=True, slots=True)
class _Cell:
    header: bool
    attributes: str
    lines: list[str]


def table_end(lines: list[str], start: int) -> int:
    """Return the index after the table that opens at ``start``, or after the last line if it never closes."""
    depth = 0
    for index in range(start, len(lines)):
        line = lines[index].lstrip(" \t:*#;")
        if line.startswith("{|"):
            depth += 1
        elif line.startswith("|}") and not line.startswith("|}}"):
            depth -= 1
            if depth == 0:
                return index + 1
    return len(lines)


def table(draft: Draft, lines: list[str]) -> str:
    """Convert the lines of one table, the opening one first."""
    draft.converted["table"] += 1
    return _Table(draft).converted(lines[1:])


class _Table:
    """A table being converted."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._rows: list[list[_Cell]] = [[]]
        self._caption: _Cell | None = None
        self._open: _Cell | None = None  # the cell that a line without a sign continues

    def converted(self, lines: list[str]) -> str:
        depth = 0  # of tables in this one
        for line in lines:
            text = line.strip(" \t")
            if text.lstrip(":*#;").startswith("{|"):
                depth += 1
                self._draft.unconverted["table in a table"] += 1
            elif depth and text.startswith("|}"):
                depth -= 1
            elif depth:
                self._flatten(text)
            else:
                self._line(text, is_indented=line[:1] in (" ", "\t"))
        rows = [_row(self._draft, row) for row in self._rows if row]
        if self._caption is not None:
            rows.insert(0, f"|?|{_content(self._draft, self._caption.lines)}||")
        return "\n".join(rows)

    def _flatten(self, text: str) -> None:
        """Add a line of an inner table, its cells as text."""
        if self._open is None or text.startswith("|-"):
            return
        if text[:1] in ("|", "!"):
            cells = text.lstrip("|!+").replace("!!", "||").split("||")
            text = " · ".join(_split_attributes(self._draft, cell)[1].strip() for cell in cells)
        self._open.lines.extend(("", text))

    def _line(self, text: str, *, is_indented: bool) -> None:
        if text.startswith("|}"):
            rest = text[2:].strip()
            if rest:  # text after the end would be lost
                self._rows.append([_Cell(False, "", [rest])])
            self._open = None
        elif text.startswith("|-"):
            self._rows.append([])
            self._open = None
        elif text.startswith("|+"):
            self._caption = self._open = self._cell(False, text[2:])
        elif text[:1] in ("|", "!"):
            header = text[0] == "!"
            body = text[1:].replace("!!", "||") if header else text[1:]
            self._rows[-1] += [self._cell(header, cell) for cell in body.split("||")]
            self._open = self._rows[-1][-1]
        elif self._open is not None:
            self._open.lines.append(" " + text if is_indented else text)
        elif text:  # before the first cell: attributes of a template, mostly
            self._open = _Cell(False, "", [text])
            self._rows[-1].append(self._open)

    def _cell(self, header: bool, text: str) -> _Cell:
        attributes, content = _split_attributes(self._draft, text)
        return _Cell(header, attributes, [content])


def _split_attributes(draft: Draft, cell: str) -> tuple[str, str]:
    """Split ``attributes | content`` of a cell; bars of links and templates are inside marks already.

    A bar after a link belongs to the text, as MediaWiki reads it.  Text in the form of attributes counts as attributes
    also before a template that shows nothing, since that template may have contained the bar.
    """
    attributes, bar, content = cell.partition("|")
    if bar and _has_link(draft, attributes):
        return "", cell
    if bar:
        return attributes, content
    found = _ATTRIBUTES.match(cell)
    if (
        found is not None
        and cell[found.end() : found.end() + 1] == "\x02"
        and not draft.edges(cell[found.end() :])[0].strip()
    ):
        return found[0], cell[found.end() :]
    return "", cell


def _has_link(draft: Draft, text: str) -> bool:
    """Return whether the pieces of ``text`` contain a link or a picture, at any depth."""
    waiting = [text]
    while waiting:
        pieces = [draft.pieces[int(number)] for number in MARK.findall(waiting.pop())]
        if any(piece.page or _LINKED.search(piece.inline) for piece in pieces):
            return True
        waiting += [piece.inline for piece in pieces]
    return False


def _row(draft: Draft, cells: list[_Cell]) -> str:
    parts = []
    for cell in cells:
        spans = {name.lower(): int(number) for name, number in _SPAN.findall(cell.attributes)}
        wanted = [
            f"{key}:{min(spans[name], SPAN_MAX)}" for key, name in (("x", "colspan"), ("y", "rowspan")) if name in spans
        ]
        attributes = f"({';'.join(wanted)})" if wanted else ""
        parts.append(("|=|" if cell.header else "||") + attributes + _content(draft, cell.lines))
    return "".join(parts) + "||"


def _content(draft: Draft, lines: list[str]) -> str:
    out: list[str] = []
    again = False  # whether a paragraph continues
    for number, line in enumerate(lines):
        text = line.strip()
        if not text:
            again = False
            continue
        shown, own_line = _cell_line(draft, text, begins_line=number > 0 and line[:1] != " ")
        if not shown:
            continue
        if out:
            out.append(" " if again and not own_line else f" {BREAK} ")
        out.append(shown)
        again = not own_line
    return cell_text(draft, "".join(out)) or " "


def _cell_line(draft: Draft, text: str, *, begins_line: bool) -> tuple[str, bool]:
    """Convert a line of a cell; return it, and whether it must stay a separate line.

    ``begins_line`` if no sign of a cell is before it.
    """
    if prefix := _PREFIX.match(text):
        sign = {"*": "• ", "#": "• "}.get(prefix[0][-1], "")
        draft.unconverted["list in a cell"] += bool(sign)
        return sign + inline(draft, text[prefix.end() :], cell=True), True
    if begins_line and (heading := heading_of(draft, text)) is not None:
        shown = inline(draft, heading[1], cell=True)
        if shown:
            return f"**{shown}**" if "**" not in shown else shown, True
    if not text.strip("-") and len(text) >= 4:
        return BREAK, True
    return inline(draft, text, cell=True), False
