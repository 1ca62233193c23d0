"""A DokuWiki's folder, with the files that DokuWiki writes."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path

from tests.support.markdown_vault import png, write

Revision = tuple[int, str, str, str]  # time, user, summary, text


def add_page(root: Path, page: str, revisions: Sequence[Revision], *, kind: str = "E") -> None:
    """Add a page with its attic and its list of changes; the last revision is the page's text."""
    path = page.replace(":", "/")
    lines = []
    for number, (time_s, user, summary, text) in enumerate(revisions):
        change = "C" if number == 0 else kind
        lines.append("\t".join([str(time_s), "192.0.2.7", change, page, user, summary, "", "5"]))
        write(root, f"data/attic/{path}.{time_s}.txt.gz", gzip.compress(text.encode()), time_s)
    write(root, f"data/meta/{path}.changes", "\n".join(lines) + "\n")
    time_s, _, _, text = revisions[-1]
    write(root, f"data/pages/{path}.txt", text, time_s)


def make_dokuwiki(root: Path) -> None:
    add_page(
        root, "start", [(1_300_000_000, "ann", "created", "====== Home ======\n[[team:plans]] {{wiki:logo.png}}\n")]
    )
    add_page(
        root,
        "team:plans",
        [
            (1_300_000_100, "ann", "created", "one"),
            (1_300_000_200, "", "typo", "two"),
            (1_300_000_300, "bob", "third", "**three** [[start]] [[.:more]] {{wiki:logo.png?90}} {{plan.pdf}}"),
        ],
        kind="e",
    )
    add_page(root, "team:start", [(1_300_000_400, "ann", "", "the team")])
    add_page(root, "team:gone", [(1_300_000_500, "ann", "", "deleted later")])
    (root / "data/pages/team/gone.txt").unlink()
    add_page(root, "edited", [(1_300_000_600, "ann", "", "by the wiki")])
    write(root, "data/pages/edited.txt", "by another program", 1_300_009_999)
    write(root, "data/pages/no_history.txt", "only a file", 1_300_000_700)
    write(root, "data/media/wiki/logo.png", png(5))
    write(root, "data/media/team/plan.pdf", b"%PDF-1.4 plan")
    write(root, "data/media/team/unused.png", png(6))
    write(root, "conf/dokuwiki.php", "<?php\n$conf['start'] = 'start';\n$conf['useslash'] = 0;\n")
