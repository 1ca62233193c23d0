"""Holes that calls of templates leave in the lines of a MediaWiki's dump: items without words, and gaps.

    python -m tests.measure.mediawiki_holes FILE...

Every line of the newest texts that has a whole call is converted by itself.  It is an empty item if it is one of a list
and no word of it is left.  It has a gap if blanks or a bracket stand where words were, as in "Coined by in his novel".
Calls whose absence leaves no gap ("citation needed") count, too, so the figure is an upper bound.
"""

from __future__ import annotations

import bz2
import re
import sys
from collections import Counter
from pathlib import Path
from typing import BinaryIO, Final, cast

from wikka_port.dump import DumpReader, DumpSite, PageStart, Revision
from wikka_port.dump_templates import read_templates
from wikka_port.markup.mediawiki import Dialect, convert

_CALL: Final = re.compile(r"\{\{[^{}\n]*\}\}")
_ITEM: Final = re.compile(r"[*#]+")
_GAP: Final = re.compile(r"\w  +\w|\(\s*\)|\w {1,2}[,.;](?: |$)")
_AFTER: Final = re.compile(r"\|!\|\(c:folded\).*|^----$.*|\[\^.*?\^\]", re.DOTALL | re.MULTILINE)


def measured(stream: BinaryIO) -> Counter[str]:
    """Return the figures of one dump, read from the beginning of ``stream``."""
    templates = read_templates(stream, lambda read_bytes, pages: None)
    bodies = templates.bodies if templates is not None else {}
    found: Counter[str] = Counter(**{"simple templates": len(bodies)})
    dialect, title, namespace, newest = Dialect.of({}), "", 0, ""
    for event in DumpReader(stream):
        if isinstance(event, DumpSite):
            dialect = Dialect.of(
                event.namespaces,
                capitalised=event.capitalised,
                templates=bodies,
                base=event.base,
                language=event.language,
            )
        elif isinstance(event, PageStart):
            title, namespace, newest = event.title, event.namespace, ""
        elif isinstance(event, Revision):
            newest = event.text or ""
        elif namespace != 10:
            count(found, newest, dialect, title)
    return found


def count(found: Counter[str], text: str, dialect: Dialect, title: str) -> None:
    found["pages"] += 1
    before = found["empty items"], found["lines with gaps"]
    for line in text.split("\n"):
        if not _CALL.search(line) or line.count("{{") != line.count("}}"):
            continue
        shown = _AFTER.sub("", convert(line, namespaces=dialect, title=title).text)
        found["lines with calls"] += 1
        found["empty items"] += _ITEM.match(line) is not None and not re.search(r"\w", shown.removeprefix("~1)"))
        found["lines with gaps"] += _GAP.search(shown) is not None and not _GAP.search(_CALL.sub("x", line))
    found["pages with holes"] += (found["empty items"], found["lines with gaps"]) != before
    whole = convert(text, namespaces=dialect, title=title)
    for kind, number in (*whole.converted.items(), *whole.unconverted.items()):
        if kind.startswith("template"):
            found[kind] += number


def main() -> None:
    for name in sys.argv[1:]:
        with bz2.open(name) if name.endswith(".bz2") else Path(name).open("rb") as stream:
            print(name)
            for what, number in measured(cast(BinaryIO, stream)).items():
                print(f"{number:9,} {what}")


if __name__ == "__main__":
    main()
