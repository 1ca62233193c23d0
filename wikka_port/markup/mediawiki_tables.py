"""(pure) From MediaWiki's tables to Wikka's: ``{| |- | ! || !! |+ |}`` to rows of ``||a||b||``.

A row in Wikka markup is one line.  So a list or an inner table in a cell is HTML if it has text alone.  Links and
marks would be hidden from the wiki in HTML, so a list with them is flattened, with line breaks between its lines.

Spans, alignment and weight become attributes of cells, those of a row too.

Knows nothing of the text outside a table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from wikka_port.markup.mediawiki_inline import BREAK, heading_of, inline
from wikka_port.markup.mediawiki_pieces import MARK, Draft, Piece, cell_text, collapse, entities, unescape
from wikka_port.markup.tables import STYLES

OPENING: Final = re.compile(r"[ \t:*#;]*\{\|")
SPAN_MAX: Final = 1000  # the limit of browsers

_SPAN: Final = re.compile(r"""(colspan|rowspan)\s*=\s*["']?\s*([0-9]{1,4})""", re.IGNORECASE)
_LINKED: Final = re.compile(r"\[\[|\{\{image |\[image: ")  # as ``mediawiki_links`` writes them
_ATTRIBUTES: Final = re.compile(
    r"""\s*+(?:[A-Za-z-]{2,20}\s*+=\s*+(?:"[^"|]*+"|'[^'|]*+'|[^\s"'|=\x02][^\s"'|\x02]*+)\s*+)++"""
)
_PREFIX: Final = re.compile(r"[*#:;]+")
_DEPTH_MAX: Final = 9  # of lists
_HTML_MAX: Final = 300  # items or cells in a piece of HTML; a piece may have 2,000 tags
_LISTED: Final = re.compile(r"([*#]+)[ \t]*(.*)")
_NOT_PLAIN: Final = re.compile(r"[\x02\[\]{}<>]|''|__|//")  # links, marks and tags
_GIVEN: Final = re.compile(
    r"""\b(align|valign|style|nowrap|scope|width)\s*+(?:=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"']++)))?""", re.IGNORECASE
)
_SCOPES: Final = ("row", "col", "rowgroup", "colgroup")
_SIDES: Final = {"left": "float:left", "right": "float:right"}


@dataclass(frozen=True, slots=True)
class _Cell:
    header: bool
    attributes: str
    lines: list[str]
    of_row: str = ""  # attributes of its row


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


def table(draft: Draft, lines: list[str]) -> tuple[str, str]:
    """Convert the lines of one table, the opening one first; return it, and the text behind its end, with a mark.

    The mark keeps that text from being read as the beginning of a line.
    """
    draft.converted["table"] += 1
    last = lines[-1].lstrip(" \t:*#;")
    is_closed = len(lines) > 1 and last.startswith("|}") and not last.startswith("|}}")
    rest = last[2:].strip() if is_closed else ""
    made = _Table(draft).converted(lines[1:-1] if is_closed else lines[1:], lines[0].partition("{|")[2])
    return made, draft.mark(Piece("", block="")) + rest if rest else ""


class _Table:
    """A table being converted."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._rows: list[list[_Cell]] = [[]]
        self._row_attributes = ""
        self._inner: list[str] = []  # the lines of the table in this one that is being read
        self._caption: _Cell | None = None
        self._open: _Cell | None = None  # the cell that a line without a sign continues

    def converted(self, lines: list[str], attributes: str) -> str:
        self.read(lines)
        rows = [_row(self._draft, row) for row in self._rows if row]
        if self._caption is not None:
            rows.insert(0, f"|?|{_content(self._draft, self._caption.lines)}||")
        if rows and (css := _css(attributes, is_table=True)):
            rows.insert(0, f"|!|(s:{css})||")
        return "\n".join(rows)

    def read(self, lines: list[str]) -> None:
        depth = 0  # of tables in this one
        for line in lines:
            text = line.strip(" \t")
            if text.lstrip(":*#;").startswith("{|"):
                depth += 1
                self._inner.append(text)
            elif depth and text.startswith("|}"):
                depth -= 1
                rest = text[2:].strip()
                self._inner.append("|}")
                if depth:
                    self._inner += [rest] if rest else []
                    continue
                self._end_inner()
                if rest:
                    self._opened().lines.extend(("", rest))
            elif depth:
                self._inner.append(text)
            else:
                self._line(text, is_indented=line[:1] in (" ", "\t"))
        self._end_inner()

    def _end_inner(self) -> None:
        lines, self._inner = self._inner, []
        if not lines:
            return
        html = _plain_table(self._draft, lines)
        if html:
            self._draft.converted["table in a table"] += 1
            self._opened().lines.extend(("", self._draft.mark(Piece(html, ""))))
            return
        self._draft.unconverted["table in a table"] += sum(line.lstrip(":*#;").startswith("{|") for line in lines)
        for line in lines:
            if not line.lstrip(":*#;").startswith("{|") and not line.startswith("|}"):
                self._flatten(line)

    def _opened(self) -> _Cell:
        """Return the open cell; content before the first cell of a row has a cell of its own."""
        if self._open is None:
            self._open = self._cell(False, "")
            self._rows[-1].append(self._open)
        return self._open

    def plain_rows(self) -> list[list[tuple[str, str]]] | None:
        """Return the cells, each with its tag, as text; None if the table has more than text."""
        cells = (cell for row in self._rows for cell in row)
        if self._caption is not None or any(_NOT_PLAIN.search(line) for cell in cells for line in cell.lines):
            return None
        return [
            [("th" if cell.header else "td", " ".join(filter(None, map(str.strip, cell.lines)))) for cell in row]
            for row in self._rows
            if row
        ]

    def _flatten(self, text: str) -> None:
        """Add a line of an inner table, its cells as text."""
        if not text or text.startswith("|-"):
            return
        if text[:1] in ("|", "!"):
            cells = text.lstrip("|!+").replace("!!", "||").split("||")
            text = " · ".join(_split_attributes(self._draft, cell)[1].strip() for cell in cells)
        self._opened().lines.extend(("", text))

    def _line(self, text: str, *, is_indented: bool) -> None:
        if text == "|}":
            self._open = None
        elif text.startswith("|-"):
            self._rows.append([])
            self._row_attributes = text.lstrip("|-")
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
        return _Cell(header, attributes, [content], self._row_attributes)


def _split_attributes(draft: Draft, cell: str) -> tuple[str, str]:
    """Split ``attributes | content`` of a cell; bars of links and templates are inside marks already.

    A bar after a link belongs to the text, as MediaWiki reads it.  Text in the form of attributes counts as attributes
    also before a call of an unknown template, and before one that shows nothing, since it may have contained the bar.
    """
    attributes, bar, content = cell.partition("|")
    if bar and _has_link(draft, attributes):
        return "", cell
    if bar:
        return attributes, content
    found = _ATTRIBUTES.match(cell)
    call = MARK.match(cell, found.end()) if found is not None else None
    if found is None or call is None:
        return "", cell
    rest = cell[found.end() :]
    return (found[0], rest) if call[0] in draft.unknown or not draft.edges(rest)[0].strip() else ("", cell)


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
        given = _given(cell.attributes)
        if given.get("scope", "").lower() in _SCOPES:
            wanted.append(f"o:{given['scope'].lower()}")
        if css := _css(cell.attributes, cell.of_row):
            wanted.append(f"s:{css}")
        attributes = f"({';'.join(wanted)})" if wanted else ""
        parts.append(("|=|" if cell.header else "||") + attributes + _content(draft, cell.lines))
    return "".join(parts) + "||"


def _given(attributes: str) -> dict[str, str]:
    return {found[1].lower(): found[2] or found[3] or found[4] or "" for found in _GIVEN.finditer(attributes)}


def _css(*attributes: str, is_table: bool = False) -> str:
    """Return the style that the wiki keeps of a cell, then of its row, in the order of STYLES."""
    wanted: dict[str, str] = {}
    for text in attributes:
        given = _given(text)
        align, valign = given.get("align", "").lower(), given.get("valign", "").lower()
        typed = [given.get("style", "")]
        typed += [_SIDES.get(align, "")] if is_table else [f"text-align:{align}", f"vertical-align:{valign}"]
        typed += ["width:100%"] if is_table and given.get("width") == "100%" else []
        typed += ["white-space:nowrap"] if "nowrap" in given and not is_table else []
        for part in ";".join(typed).lower().split(";"):
            name, _, value = (word.strip() for word in part.partition(":"))
            if (name, value) in STYLES and (is_table or not name.startswith(("float", "width"))):
                wanted.setdefault(name, value)
    return ";".join(f"{name}:{value}" for name, value in STYLES if wanted.get(name) == value)


def _plain_table(draft: Draft, lines: list[str]) -> str:
    """Return a table of text alone, within another, as HTML; "" if it has more than text."""
    if any(line.lstrip(":*#;").startswith("{|") for line in lines[1:]):
        return ""
    inner = _Table(draft)
    inner.read(lines[1:])
    rows = inner.plain_rows()
    if not rows or sum(map(len, rows)) > _HTML_MAX:
        return ""
    cells = ("".join(f"<{tag}>{_html_text(text)}</{tag}>" for tag, text in row) for row in rows)
    return f'""<table>{"".join(f"<tr>{row}</tr>" for row in cells)}</table>""'


def _html_text(text: str) -> str:
    return entities(collapse(unescape(text)).strip() or " ").replace('"', "&quot;")


def _with_lists(draft: Draft, lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the lines of a cell, each with its sign if it is an item; a mark stands for a list of text alone."""
    run: list[tuple[str, str]] = []
    for number, line in enumerate((*lines, "")):
        item = _LISTED.fullmatch(line.strip()) if number else None  # a sign in the line of the cell's own begins none
        if item is not None:
            run.append((item[1][:_DEPTH_MAX], item[2]))
            continue
        if run:
            yield from _list(draft, run)
            run = []
        if number < len(lines):
            yield line, ""


def _list(draft: Draft, items: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    if len(items) <= _HTML_MAX and not any(_NOT_PLAIN.search(text) for _, text in items):
        draft.converted["list in a cell"] += 1
        yield draft.mark(Piece(_html_list(items))), ""
        return
    numbers: dict[int, int] = {}  # of the last item, by depth
    for signs, text in items:
        depth = len(signs)
        numbers = {other: number for other, number in numbers.items() if other <= depth}
        numbers[depth] = numbers.get(depth, 0) + 1 if signs[-1] == "#" else 0
        draft.unconverted["list in a cell"] += 1
        yield text, "\xa0" * 2 * (depth - 1) + (f"{numbers[depth]}. " if numbers[depth] else "• ")


def _html_list(items: Sequence[tuple[str, str]]) -> str:
    out: list[str] = []
    opened: list[str] = []
    for signs, text in items:
        kinds = ["ol" if sign == "#" else "ul" for sign in signs]
        while len(opened) > len(kinds) or (opened and opened[-1] != kinds[len(opened) - 1]):
            out.append(f"</li></{opened.pop()}>")
        if len(opened) == len(kinds):
            out.append("</li><li>")
        while len(opened) < len(kinds):
            opened.append(kinds[len(opened)])
            out.append(f"<{opened[-1]}><li>")
        out.append(_html_text(text))
    out.extend(f"</li></{kind}>" for kind in reversed(opened))
    return f'""{"".join(out)}""'


def _content(draft: Draft, lines: list[str]) -> str:
    out: list[str] = []
    again = False  # whether a paragraph continues
    for number, (line, sign) in enumerate(_with_lists(draft, lines)):
        text = line.strip()
        if not text:
            again = False
            continue
        if sign:
            shown, own_line = sign + inline(draft, text, cell=True), True
        else:
            shown, own_line = _cell_line(draft, text, begins_line=number > 0 and line[:1] != " ")
        if not draft.edges(shown)[0].strip():
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
        sign = "• " if prefix[0][-1] in "*#" else ""
        draft.unconverted["list in a cell"] += bool(sign)
        return sign + inline(draft, text[prefix.end() :], cell=True), True
    if begins_line and (heading := heading_of(draft, text)) is not None:
        shown = inline(draft, heading[1], cell=True)
        if shown:
            return f"**{shown}**" if "**" not in shown else shown, True
    if not text.strip("-") and len(text) >= 4:
        return BREAK, True
    return inline(draft, text, cell=True), False
