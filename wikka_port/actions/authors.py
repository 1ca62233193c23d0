"""``{{contributors}}`` of a page and ``{{highscores}}`` of the wiki: authors by how often they edited.

Both read a bounded number of edits, the newest ones, and say so where there are more.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from wikka_port.actions.call import ActionCall
from wikka_port.names import normalise
from wikka_port.texts import _

REVISIONS_MAX: Final = 1_000  # of a page
CHANGES_MAX: Final = 2_000  # of the wiki


def contributors(call: ActionCall) -> str:
    name = normalise(call.arguments.get("page", "") or call.page)
    found = call.site.wiki.revisions(name, limit=REVISIONS_MAX)
    return _ranked(call, Counter(revision.author for revision in found), len(found) >= REVISIONS_MAX, REVISIONS_MAX)


def highscores(call: ActionCall) -> str:
    """``rank="pages"`` counts the pages that an author began; ``style="simple"`` is a list in the place of a table."""
    began = call.arguments.get("rank", "").strip().lower() == "pages"
    changes, onward = call.site.wiki.changes(limit=CHANGES_MAX)
    scores = Counter(change.author for change in changes if change.is_new or not began)
    simple = call.arguments.get("style", "").strip().lower() == "simple"
    counted = "" if simple else _("Pages begun") if began else _("Edits")
    return _ranked(call, scores, bool(onward), CHANGES_MAX, counted)


def _ranked(call: ActionCall, scores: Counter[str], is_cut: bool, most: int, counted: str = "") -> str:
    """``counted``: what the scores are, for the head of a table; "": a list."""
    ranked = sorted(scores.items(), key=lambda item: (-item[1], item[0]))[: call.number("top", 20, 200)]
    return call.site.fragment(
        "authors.html", ranked=ranked, cut=most if is_cut else 0, counted=counted, total=scores.total()
    )
