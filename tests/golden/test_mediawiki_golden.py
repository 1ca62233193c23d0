"""The small dump, converted, compared with what was looked at and kept.

Run with REWRITE_GOLDEN=1 to keep what comes out now; then look at the difference.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

from wikka_port.dump import DumpReader, DumpSite, PageStart, Revision
from wikka_port.markup.mediawiki import Dialect, convert, convert_source

DUMP = Path(__file__).parents[1] / "data" / "small-dump.xml"
GOLDEN = Path(__file__).with_name("small-dump.converted.txt")


def converted() -> str:
    out: list[str] = []
    kept: Counter[str] = Counter()
    left: Counter[str] = Counter()
    dialect, page = Dialect.of({}), PageStart("", 0, 0, None, 0)
    with DUMP.open("rb") as stream:
        for event in DumpReader(stream):
            if isinstance(event, DumpSite):
                dialect = Dialect.of(event.namespaces, capitalised=event.capitalised)
            elif isinstance(event, PageStart):
                page = event
            elif isinstance(event, Revision) and event.text is not None:
                if event.model == "wikitext":
                    result = convert(
                        event.text, namespaces=dialect, title=page.title, redirect_hint=page.redirect_target
                    )
                else:
                    result = convert_source(event.text, model=event.model)
                kept += result.converted
                left += result.unconverted
                head = f"########## {page.title} ({event.revision_id}), links: {', '.join(result.links)}"
                out.append(f"{head}\n{result.text}\n")
    counts = [f"{kind}: {number}" for kind, number in sorted(kept.items())]
    counts += [f"not {kind}: {number}" for kind, number in sorted(left.items())]
    return "\n".join([*out, "########## counts", *counts, ""])


def test_the_small_dump_converts_as_it_was_kept() -> None:
    now = converted()
    if os.environ.get("REWRITE_GOLDEN"):
        GOLDEN.write_text(now, encoding="utf-8")
    assert now == GOLDEN.read_text(encoding="utf-8")
