"""(pure) Tables: from delimiters and cells in their order to a ``table`` in HTML's order.

    ||  td      |=|  th      |?|  caption     |!|  attributes of the table
    |[| thead   |]|  tfoot   |#|  tbody       |_|  colgroup      |-|  col

Attributes are written ``(x:2;y:3;c:name)``: x colspan, y rowspan, o scope, a abbr, p span, c class, t title, d dir,
l lang.  i (id), h (headers, which name ids), z and u (axis and summary, no longer in HTML) are read and dropped.
A strict Content-Security-Policy forbids inline style (``s:`` or ``{css}``); alignment and weight become classes
(STYLES), other style is dropped.

A table of the class "folded" (``|!|(c:folded)||``) is folded under its caption until a reader opens it.

WikkaWiki's action has text alone in its cells: ``{{table columns="2" cells="a;b;###;d"}}``, ``###`` for an empty one.

Text after a delimiter without content opens a ``td``, so that no typed text is lost.  The cell of ``||`` or ``|=|``
opens at its first content or at the next delimiter; at the end of a row such a delimiter only closes the last cell.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from wikka_port.markup.embedded import user_classes
from wikka_port.markup.fragments import Piece, escape
from wikka_port.markup.tokens import ActionCall, Cell
from wikka_port.texts import _

STYLES: Final = {
    ("text-align", "left"): "align-left",
    ("text-align", "right"): "align-right",
    ("text-align", "center"): "align-center",
    ("text-align", "justify"): "align-justify",
    ("vertical-align", "top"): "valign-top",
    ("vertical-align", "middle"): "valign-middle",
    ("vertical-align", "bottom"): "valign-bottom",
    ("font-weight", "bold"): "weight-bold",
    ("font-style", "italic"): "style-italic",
    ("white-space", "nowrap"): "nowrap",
    ("width", "100%"): "wide",
    ("float", "left"): "float-left",
    ("float", "right"): "float-right",
}
_SPAN: Final = {"x": ("colspan", 100), "y": ("rowspan", 1000), "p": ("span", 100)}
_SCOPES: Final = frozenset({"row", "col", "rowgroup", "colgroup"})
_LANGUAGE: Final = re.compile(r"[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8}){0,4}")
_SPLIT: Final = re.compile(r";(?=.:)")
FOLDED: Final = "user-folded"
_SECTIONS: Final = {"[": "thead", "]": "tfoot", "#": "tbody"}
COLUMNS_MAX: Final = 100  # of the action's table
_EMPTY_CELL: Final = "###"


def rows_of_call(call: ActionCall) -> list[list[str]]:
    """Return the texts of the cells of ``{{table}}``, row by row; [] for other calls, and for a table without cells.

    A number of columns that is none counts as 1, as in WikkaWiki; so does a missing one.
    """
    given = dict(call.arguments)
    if call.name != "table" or not given.get("cells"):
        return []
    typed = given.get("columns", "").strip()
    columns = int(typed[:3]) if typed.isascii() and typed.isdigit() else 1
    columns = min(max(columns, 1), COLUMNS_MAX)
    cells = [" ".join(cell.split()) for cell in given["cells"].split(";")]
    cells = ["" if cell == _EMPTY_CELL else cell for cell in cells]
    return [cells[at : at + columns] for at in range(0, len(cells), columns)]


def attributes(cell: Cell, allowed: str) -> str:
    """Return the typed attributes as safe HTML; ``allowed`` has the letters of the element's attributes."""
    if not cell.attributes and not cell.css:
        return ""
    pairs = [part.partition(":") for part in _SPLIT.split(cell.attributes)]
    typed = {letter.strip(): value.strip() for letter, _, value in pairs}
    classes = [user_classes(typed.get("c", "")), _style_classes(typed.get("s", "") + ";" + cell.css)]
    css = " ".join(filter(None, classes))
    return (f' class="{css}"' if css else "") + "".join(_plain(typed, allowed))


def _plain(typed: Mapping[str, str], allowed: str) -> list[str]:
    out = []
    for letter, value in typed.items():
        if letter in _SPAN and letter in allowed:
            name, most = _SPAN[letter]
            if value.isascii() and value.isdigit() and len(value) < 6 and int(value) > 1:
                out.append(f' {name}="{min(int(value), most)}"')
        elif letter == "o" and "o" in allowed and value in _SCOPES:
            out.append(f' scope="{value}"')
        elif letter == "a" and "a" in allowed and value:
            out.append(f' abbr="{escape(value)}"')
        elif letter == "t" and value:
            out.append(f' title="{escape(value)}"')
        elif letter == "d" and value in ("ltr", "rtl", "auto"):
            out.append(f' dir="{value}"')
        elif letter == "l" and _LANGUAGE.fullmatch(value):
            out.append(f' lang="{value}"')
    return out


def _style_classes(css: str) -> str:
    declared = (part.partition(":") for part in css.lower().split(";"))
    found = (STYLES.get((name.strip(), value.strip())) for name, _, value in declared)
    return " ".join(dict.fromkeys(name for name in found if name))


class TableBuilder:
    """A table being read; ``sink()`` returns the pieces of the present cell."""

    __slots__ = ("_attributes", "_captions", "_cell", "_columns", "_pending", "_row", "_section", "_sections")

    def __init__(self) -> None:
        self._attributes = ""
        self._captions: list[tuple[str, list[Piece]]] = []
        self._columns: list[tuple[str, list[str]]] = []  # of a colgroup: its attributes, its cols
        self._sections: list[tuple[str, str, list[Piece]]] = []  # tag, attributes, rows
        self._row: list[tuple[str, str, list[Piece]]] = []  # tag, attributes, content
        self._section: list[Piece] | None = None
        self._cell: list[Piece] | None = None
        self._pending: Cell | None = None  # a delimiter whose cell has not begun

    def delimiter(self, cell: Cell) -> None:
        if self._pending is not None:
            self.sink()  # an empty cell between two delimiters
        self._cell = None
        kind = cell.kind
        if kind in "|=":
            self._pending = cell
        elif kind == "?":
            self._cell = []
            self._captions.append((attributes(cell, ""), self._cell))
        elif kind == "!":
            self._attributes = self._attributes or attributes(cell, "")
        elif kind in _SECTIONS:
            self._end_row_cells()
            self._begin_section(_SECTIONS[kind], attributes(cell, ""))
        elif kind == "_":
            self._columns.append((attributes(cell, "p"), []))
        else:
            if not self._columns:
                self._columns.append(("", []))
            self._columns[-1][1].append(f"<col{attributes(cell, 'p')}>")

    @property
    def in_cell(self) -> bool:
        """Whether a cell is open."""
        return self._cell is not None

    def sink(self) -> list[Piece]:
        if self._cell is None:
            self._cell = []
            cell = self._pending or Cell("|")
            self._pending = None
            self._row.append(("th" if cell.kind == "=" else "td", attributes(cell, "xyoa"), self._cell))
        return self._cell

    def end_row(self) -> None:
        if self._pending is not None and self._pending.kind == "=" and not self._row:
            self.sink()  # with no cell to close, the delimiter means an empty cell
        self._pending = None
        self._cell = None
        self._end_row_cells()

    def _begin_section(self, tag: str, attributes_html: str) -> None:
        if tag != "tbody" and any(tag == other for other, _, _ in self._sections):
            tag = "tbody"  # HTML takes one thead and one tfoot
        self._section = []
        self._sections.append((tag, attributes_html, self._section))

    def _end_row_cells(self) -> None:
        if not self._row:
            return
        if self._section is None:
            self._begin_section("tbody", "")
        rows = self._section if self._section is not None else []
        scope = "row" if any(tag == "td" for tag, _, _ in self._row) else "col"
        rows.append("<tr>")
        for tag, html, content in self._row:
            given = f' scope="{scope}"' if tag == "th" and " scope=" not in html else ""
            rows.append(f"<{tag}{given}{html}>")
            rows += content
            rows.append(f"</{tag}>")
        rows.append("</tr>\n")
        self._row = []

    def finish(self) -> list[Piece]:
        """Return the table, or [] if it has no content."""
        self.end_row()
        order = {"thead": 0, "tbody": 1, "tfoot": 2}
        body = [section for section in self._sections if section[2]]
        if not body and not self._captions:
            return []
        folded = FOLDED in self._attributes
        caption: list[Piece] = []
        for number, (_attributes, content) in enumerate(self._captions):
            caption += ["<br>", *content] if number else content
        out: list[Piece] = (
            ['<details class="folded"><summary>', *(caption or [_("Table")]), "</summary>"] if folded else []
        )
        out.append(f'<div class="table" tabindex="0"><table{self._attributes}>\n')
        if self._captions and not folded:
            out += [f"<caption{self._captions[0][0]}>", *caption, "</caption>\n"]
        for html, columns in self._columns:
            out.append(f"<colgroup{'' if columns else html}>{''.join(columns)}</colgroup>\n")
        for tag, html, rows in sorted(body, key=lambda section: order[section[0]]):
            out += [f"<{tag}{html}>\n", *rows, f"</{tag}>\n"]
        out.append("</table></div></details>\n" if folded else "</table></div>\n")
        return out
