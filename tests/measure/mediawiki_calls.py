"""Calls in a MediaWiki's dump that an import shows by their name alone: how often each is there.

    python -m tests.measure.mediawiki_calls FILE...

The newest text of each page is read, but for templates.  A call counts once for each place; those within a call that
nobody knows count, too.  Boxes of a user's languages (``user xx-1``) count together, and so do messages of the program
(``int:``).
"""

from __future__ import annotations

import bz2
import re
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Final, cast

from wikka_port.dump import WIKITEXT, DumpReader, DumpSite, PageStart, Revision
from wikka_port.dump_templates import read_templates
from wikka_port.markup.mediawiki_expansion import TEMPLATE, page_text
from wikka_port.markup.mediawiki_pieces import Draft, Expansion, clean
from wikka_port.markup.mediawiki_scan import scan
from wikka_port.markup.mediawiki_titles import Dialect

_SHOWN: Final = 20  # names
_NAME: Final = re.compile(r"\{\{\s*([^|{}\n]*)")
_MESSAGE: Final = re.compile(r"int\s*:", re.IGNORECASE)
_BOX: Final = re.compile(r"user [a-z]{2,3}(?:-[a-z]+)?(?:-[0-5n])?", re.IGNORECASE)


def counted(stream: BinaryIO) -> Counter[str]:
    """Return how often each name is shown, read from the beginning of ``stream``."""
    templates = read_templates(stream, lambda read_bytes, pages: None)
    found: Counter[str] = Counter()
    dialect, page, newest = Dialect.of({}), PageStart("", 0, 0, None, 0), None
    for event in DumpReader(stream):
        if isinstance(event, Revision):
            newest = event
            continue
        if isinstance(event, PageStart):
            _count(found, dialect, page, newest)
            page, newest = event, None
        elif isinstance(event, DumpSite) and templates is not None:
            dialect = Dialect.of(
                event.namespaces,
                capitalised=event.capitalised,
                templates=templates.bodies,
                base=event.base,
                site=event.name,
                language=event.language,
                exists=templates.titles.has,
            )
    _count(found, dialect, page, newest)
    return found


def _count(found: Counter[str], dialect: Dialect, page: PageStart, newest: Revision | None) -> None:
    if newest is None or newest.model != WIKITEXT or page.namespace == TEMPLATE:
        return
    now = datetime.fromtimestamp(newest.timestamp_ms // 1_000, UTC)
    draft = Draft(dialect, page.title, expansion=Expansion(now=now))
    scan(draft, page_text(draft, clean(newest.text or "")))
    for mark, has_words in draft.unknown.items():
        piece = draft.pieces[int(mark[1:-1])]
        if not has_words and piece.inline:
            name = _NAME.match(piece.typed)
            typed = draft.plain(name[1]).strip() if name else piece.plain
            is_message, is_box = _MESSAGE.match(typed), _BOX.fullmatch(typed)
            found["int:" if is_message else "User xx-1" if is_box else typed[:1].upper() + typed[1:]] += 1


def main() -> None:
    together: Counter[str] = Counter()
    for name in sys.argv[1:]:
        with bz2.open(name) if name.endswith(".bz2") else Path(name).open("rb") as stream:
            one = counted(cast(BinaryIO, stream))
        print(f"{one.total():9,} {name}")
        together += one
    print(f"{together.total():9,} together, of {len(together):,} names")
    for call, number in together.most_common(_SHOWN):
        print(f"{number:9,} {call}")


if __name__ == "__main__":
    main()
