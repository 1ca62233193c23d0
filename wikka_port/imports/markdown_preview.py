"""(pure) What will look different here: a text of a folder of Markdown files, compared with the abilities of this wiki.

Knows nothing of the store.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from wikka_port.imports.markdown_classes import classes_in
from wikka_port.imports.markdown_links import FileTarget, Reference, Target, references
from wikka_port.markup.bounds import over_bounds
from wikka_port.markup.formats import MARKDOWN
from wikka_port.markup.markdown_extensions import LAYOUT, PAIRS

_READ: Final = frozenset({*PAIRS, *LAYOUT, "a", "br", "img", "details", "summary", *(f"h{n}" for n in range(1, 7))})
_TAG: Final = re.compile(r"<([A-Za-z][A-Za-z0-9]*)(?:\s[^<>]{0,500})?/?>")
_CODE: Final = re.compile(
    r"^[ ]{0,3}(`{3,}|~{3,})[ ]*([\w\-]*)[^\n]*\n.*?(?:^[ ]{0,3}\1|\Z)|`[^`\n]{0,2000}`", re.MULTILINE | re.DOTALL
)
_DRAWN: Final = frozenset(
    {"mermaid", "dataview", "dataviewjs", "plantuml", "math", "query", "tasks", "kanban", "chart"}
)
_COMMENT: Final = re.compile(r"%%[^%]{1,2000}%%")
_NAMED_MAX: Final = 8


def differences(text: str, resolve: Callable[[Reference], Target | None]) -> list[str]:
    """Return a line for each kind of thing in a text that will look different here."""
    drawn = sorted({found[2].lower() for found in _CODE.finditer(text) if found[2]} & _DRAWN)
    bare = _CODE.sub("", text)
    elements = sorted({f"<{found[1].lower()}>" for found in _TAG.finditer(bare)} - {f"<{one}>" for one in _READ})
    lines = [
        _listed("links that lead to no file of the folder", sorted(set(_missing(text, resolve)))),
        _listed("HTML that is shown as text", elements),
        _listed("drawings that are shown as code", drawn),
        _listed("parts of other pages within the page, which are links", _parts(text, resolve)),
        _listed("classes of blocks, which go", classes_in(text)),
        "comments between %% and %% are shown" if _COMMENT.search(bare) else "",
        over_bounds(text, autolink=False, markup=MARKDOWN) or "",
    ]
    return [line for line in lines if line]


def _missing(text: str, resolve: Callable[[Reference], Target | None]) -> Iterator[str]:
    for reference in references(text):
        if reference.path and resolve(reference) is None:
            yield reference.path


def _parts(text: str, resolve: Callable[[Reference], Target | None]) -> list[str]:
    embedded = (one for one in references(text) if one.kind == "embed" and one.place)
    return sorted({f"{one.path}#{one.place}" for one in embedded if not isinstance(resolve(one), FileTarget)})


def _listed(what: str, names: list[str]) -> str:
    more = f" and {len(names) - _NAMED_MAX:,} more" if len(names) > _NAMED_MAX else ""
    return f"{what}: {', '.join(names[:_NAMED_MAX])}{more}" if names else ""
