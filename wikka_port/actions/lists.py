"""Lists of the wiki's pages, changes and authors: ``{{pageindex}}``, ``{{backlinks}}``, ``{{recentchanges}}``.

Every list is bounded; one that is cut leads on to the wiki's own page of it, or says that it is cut.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from wikka_port.actions.call import Action, ActionCall
from wikka_port.change_lists import by_day, by_letter, changes, page_of
from wikka_port.markup.links import links
from wikka_port.names import normalise
from wikka_port.texts import _
from wikka_port.urls import page_path, site_path

LETTER_CHARS: Final = 20  # of what an address names
MEMBERS_MAX: Final = 500  # of a category
REVISIONS_MAX: Final = 1_000  # of a page, the newest, whose authors are counted
CHANGES_MAX: Final = 2_000  # of the wiki, likewise


def names_html(
    call: ActionCall, names: Sequence[str], empty: str, *, onward: str = "", columns: int = 1, inline: bool = False
) -> str:
    template = "inline_names.html" if inline else "names.html"
    return call.site.fragment(template, names=names, columns=columns, onward=onward, empty=empty)


def backlinks(call: ActionCall) -> str:
    """``{{backlinks page="Other"}}``: the pages that link to this one, or to the page named."""
    name = call.named_page
    rows = call.number("limit", 100, 500)
    names, more = page_of(call.site.wiki.backlinks(name, limit=rows + 1), rows)
    return names_html(call, names, _("No page links here."), onward=page_path(name, "backlinks") if more else "")


def category(call: ActionCall) -> str:
    """``{{category page="CategoryWiki" col="3" compact="1"}}``: the members of a category, which link to its page."""
    name = call.named_page
    columns = call.number("col", 1, 6)
    names, more = page_of(call.site.wiki.backlinks(name, limit=MEMBERS_MAX + 1), MEMBERS_MAX)
    return names_html(
        call,
        [member for member in names if member != call.page],
        _("No page is in this category yet."),
        onward=page_path(name, "backlinks") if more else "",
        columns=columns,
        inline=call.flag("compact"),
    )


def checklinks(call: ActionCall) -> str:
    """``{{checklinks page="Other"}}``: links of this page, or of the page named, that lead to no page."""
    page = call.site.wiki.page(call.named_page)
    names = links(page.body, autolink=page.autolink, markup=page.markup) if page is not None else []
    there = call.site.wiki.existing(names) if names else frozenset()
    missing = [(name, 1) for name in names if name not in there]
    if not missing:
        return f'<p class="empty-title">{_("Every link of this page leads somewhere.")}</p>'
    return call.site.fragment("wanted.html", wanted=missing, onward="")


def orphanedpages(call: ActionCall) -> str:
    """``{{orphanedpages limit="50"}}``: pages that no page links to."""
    rows = call.number("limit", 50, 200)
    names, more = page_of(call.site.wiki.orphaned(limit=rows + 1), rows)
    return names_html(call, names, _("Every page is linked to."), onward=site_path("orphanedpages") if more else "")


def wantedpages(call: ActionCall) -> str:
    """``{{wantedpages limit="50"}}``: pages that are linked to and do not exist yet, the most wanted first."""
    rows = call.number("limit", 50, 200)
    wanted, more = page_of(call.site.most_wanted.get(), rows)
    return call.site.fragment("wanted.html", wanted=wanted, onward=site_path("wantedpages") if more else "")


def pageindex(call: ActionCall) -> str:
    """``{{pageindex letter="A" limit="200"}}``: pages in alphabetical order, under their letters.

    ``{{pageindex showjustletters="Page"}}`` is the letters alone, each a link to that page, where ``{{pageindex}}``
    shows the names that begin so; where the name is 1, to the wiki's own list.  ``?letter=A`` of the page's address is
    obeyed where the call says no letter.
    """
    letters = call.arguments.get("showjustletters", "").strip()
    if letters:
        return _letters(call, "" if letters == "1" else normalise(letters))
    rows = call.number("limit", 200, 500)
    prefix = call.arguments.get("letter", "").strip() or (call.query_parameters or {}).get("letter", "")[:LETTER_CHARS]
    names, more = page_of(call.site.wiki.names(prefix=prefix, limit=rows + 1), rows)
    onward = site_path("pageindex", letter=prefix) if more else ""
    return call.site.fragment("letters.html", letters=by_letter(names), onward=onward)


def _letters(call: ActionCall, name: str) -> str:
    def path(letter: str) -> str:
        return page_path(name, letter=letter) if name else site_path("pageindex", letter=letter)

    return call.site.fragment(
        "alphabet.html", everything=path(""), alphabet=[(path(one), one.upper()) for one in call.site.initials.get()]
    )


def recentchanges(call: ActionCall) -> str:
    """``{{recentchanges limit="20"}}``: the newest changes of the wiki, by day; ``minor="hide"``: no minor edits."""
    minor = call.word("minor") != "hide"
    found, _more = changes(call.site.wiki, minor=minor, limit=call.number("limit", 20, 200))
    return call.site.fragment("changes.html", days=by_day(found, call.site.visitor.settings.zone_info))


def contributors(call: ActionCall) -> str:
    """``{{contributors page="Other" top="20"}}``: authors of a page by how often they edited it."""
    found = call.site.wiki.revisions(call.named_page, limit=REVISIONS_MAX)
    return _ranked(call, Counter(revision.author for revision in found), len(found) >= REVISIONS_MAX, REVISIONS_MAX)


def highscores(call: ActionCall) -> str:
    """``{{highscores}}``: authors of the wiki by how often they edited; ``rank="pages"`` counts the pages they began.

    ``style="simple"`` is a list in the place of a table.
    """
    began = call.word("rank") == "pages"
    found, onward = call.site.wiki.changes(limit=CHANGES_MAX)
    scores = Counter(change.author for change in found if change.is_new or not began)
    counted = "" if call.word("style") == "simple" else _("Pages begun") if began else _("Edits")
    return _ranked(call, scores, bool(onward), CHANGES_MAX, counted)


def _ranked(call: ActionCall, scores: Counter[str], is_cut: bool, most: int, counted: str = "") -> str:
    """``counted``: what the scores are, for the head of a table; "": a list."""
    ranked = sorted(scores.items(), key=lambda item: (-item[1], item[0]))[: call.number("top", 20, 200)]
    return call.site.fragment(
        "authors.html", ranked=ranked, cut=most if is_cut else 0, counted=counted, total=scores.total()
    )


ACTIONS: Final[Mapping[str, Action]] = {
    "backlinks": Action(backlinks, ("page", "limit")),
    "category": Action(category, ("page", "col", "compact")),
    "checklinks": Action(checklinks, ("page",)),
    "contributors": Action(contributors, ("page", "top")),
    "highscores": Action(highscores, ("top", "rank", "style")),
    "orphanedpages": Action(orphanedpages, ("limit",)),
    "pageindex": Action(pageindex, ("letter", "limit", "showjustletters")),
    "recentchanges": Action(recentchanges, ("limit", "minor")),
    "wantedpages": Action(wantedpages, ("limit",)),
}
