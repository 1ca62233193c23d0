"""Lists of the wiki's pages, changes and authors: ``{{pageindex}}``, ``{{backlinks}}``, ``{{recentchanges}}``.

Every list is bounded; a list that is cut links to the wiki's own page of that list, or says that it is cut.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from wikka_port.accounts.user_names import NAME_CHARS_MAX
from wikka_port.actions.call import Action, ActionCall
from wikka_port.change_lists import ChangeFilter, by_day, by_letter, changes, days_folded, page_of
from wikka_port.comments.recent_comments import ListedComment, newest_pages
from wikka_port.limits import COMMENTS_RANKED
from wikka_port.markup.file_slots import names_file
from wikka_port.markup.links import links
from wikka_port.names import normalise
from wikka_port.texts import _, figure
from wikka_port.urls import page_path, site_path

LETTER_CHARS: Final = 20  # of the parameter ``letter`` in an address
MEMBERS_MAX: Final = 500  # of a category
REVISIONS_MAX: Final = 1_000  # the newest of a page, whose authors are counted
CHANGES_MAX: Final = 2_000  # the newest of the wiki, whose authors are counted
COMMENTS_OF_PAGES: Final = 200  # the newest comments, among which pages are searched


def names_html(
    call: ActionCall, names: Sequence[str], empty: str, *, onward: str = "", columns: int = 1, inline: bool = False
) -> str:
    template = "inline_names.html" if inline else "names.html"
    return call.site.fragment(template, names=names, columns=columns, onward=onward, empty=empty)


def backlinks(call: ActionCall) -> str:
    """List the pages that link to this page, or to the named one: ``{{backlinks page="Other"}}``."""
    name = call.named_page
    rows = call.number("limit", 100, 500)
    names, more = call.site.wiki.backlinks_part(name, limit=rows)
    return names_html(call, names, _("No page links here."), onward=page_path(name, "backlinks") if more else "")


def category(call: ActionCall) -> str:
    """List the members of a category, the pages that link to its page.

    ``{{category page="CategoryWiki" col="3" compact="1"}}``
    """
    name = call.named_page
    columns = call.number("col", 1, 6)
    names, more = call.site.wiki.backlinks_part(name, limit=MEMBERS_MAX)
    return names_html(
        call,
        [member for member in names if member != call.page],
        _("No page is in this category yet."),
        onward=page_path(name, "backlinks") if more else "",
        columns=columns,
        inline=call.flag("compact"),
    )


def checklinks(call: ActionCall) -> str:
    """List the links of this page, or of the named one, to missing pages: ``{{checklinks page="Other"}}``."""
    page = call.site.wiki.page(call.named_page)
    names = links(page.body, autolink=page.autolink, markup=page.markup) if page is not None else []
    there = call.site.wiki.existing(names) if names else frozenset()
    missing = [(name, 1) for name in names if name not in there and not names_file(name)]
    if not missing:
        return f'<p class="empty-title">{_("Every link of this page leads somewhere.")}</p>'
    return call.site.fragment("wanted.html", wanted=missing, onward="")


def orphanedpages(call: ActionCall) -> str:
    """List the pages that no page links to: ``{{orphanedpages limit="50"}}``."""
    rows = call.number("limit", 50, 200)
    names, more = call.site.wiki.orphaned_part(limit=rows)
    return names_html(call, names, _("Every page is linked to."), onward=site_path("orphanedpages") if more else "")


def wantedpages(call: ActionCall) -> str:
    """List missing pages that pages link to, the most wanted first: ``{{wantedpages limit="50"}}``."""
    rows = call.number("limit", 50, 200)
    wanted, more = page_of(call.site.most_wanted.get(), rows)
    return call.site.fragment("wanted.html", wanted=wanted, onward=site_path("wantedpages") if more else "")


def pageindex(call: ActionCall) -> str:
    """List pages in alphabetical order, under their letters: ``{{pageindex letter="A" limit="200"}}``.

    ``{{pageindex showjustletters="Page"}}`` shows only the letters, as links to that page, whose ``{{pageindex}}`` then
    lists the names with the letter; ``showjustletters="1"`` links to the wiki's own list.  Without ``letter`` in the
    call, ``?letter=A`` of the page's address counts.
    """
    letters = call.arguments.get("showjustletters", "").strip()
    if letters:
        return _letters(call, "" if letters == "1" else normalise(letters))
    rows = call.number("limit", 200, 500)
    prefix = call.arguments.get("letter", "").strip() or (call.query_parameters or {}).get("letter", "")[:LETTER_CHARS]
    names, more = call.site.wiki.names_part(prefix=prefix, limit=rows)
    onward = site_path("pageindex", letter=prefix) if more else ""
    return call.site.fragment("letters.html", letters=by_letter(names), onward=onward)


def _letters(call: ActionCall, name: str) -> str:
    def path(letter: str) -> str:
        return page_path(name, letter=letter) if name else site_path("pageindex", letter=letter)

    return call.site.fragment(
        "alphabet.html", everything=path(""), alphabet=[(path(one), one.upper()) for one in call.site.initials.get()]
    )


def recentchanges(call: ActionCall) -> str:
    """List the newest changes of the wiki by day, all or with ``minor="hide"``: ``{{recentchanges limit="20"}}``."""
    minor = call.word("minor") != "hide"
    found = changes(call.site.wiki, ChangeFilter(minor=minor), limit=call.number("limit", 20, 200)).changes
    days = days_folded(found, call.site.visitor.settings.zone_info)
    return call.site.fragment("changes.html", days=days, newest={}, filtered=False, onward="")


def contributors(call: ActionCall) -> str:
    """List the authors of a page by their number of edits: ``{{contributors page="Other" top="20"}}``."""
    found = call.site.wiki.revisions(call.named_page, limit=REVISIONS_MAX)
    return _ranked(call, Counter(revision.author for revision in found), len(found) >= REVISIONS_MAX, REVISIONS_MAX)


def highscores(call: ActionCall) -> str:
    """List the authors of the wiki by their number of edits: ``{{highscores}}``.

    ``rank="pages"`` counts the pages that they began, ``rank="comments"`` their comments; ``style="simple"`` shows a
    list instead of a table.
    """
    began = call.word("rank") == "pages"
    if call.word("rank") == "comments":
        newest, _more = call.site.wiki.recent_comments(limit=COMMENTS_RANKED)
        by_author = Counter(one.comment.author for one in newest)
        return _ranked(call, by_author, False, 0, "" if call.word("style") == "simple" else _("Comments"))
    found, onward = call.site.wiki.changes(limit=CHANGES_MAX)
    scores = Counter(change.author for change in found if change.is_new or not began)
    counted = "" if call.word("style") == "simple" else _("Pages begun") if began else _("Edits")
    return _ranked(call, scores, bool(onward), CHANGES_MAX, counted)


def _ranked(call: ActionCall, scores: Counter[str], is_cut: bool, most: int, counted: str = "") -> str:
    """Return the ranked authors as a table with the heading ``counted``, or as a list if it is ""."""
    ranked = sorted(scores.items(), key=lambda item: (-item[1], item[0]))[: call.number("top", 20, 200)]
    return call.site.fragment(
        "authors.html", ranked=ranked, cut=most if is_cut else 0, counted=counted, total=scores.total()
    )


def recentcomments(call: ActionCall) -> str:
    """List the newest comments by day: ``{{recentcomments limit="20" user="Ada"}}``."""
    found, _more = call.site.wiki.recent_comments(user=_user(call), limit=call.number("limit", 20, 200))
    return _listed(call, found)


def recentlycommented(call: ActionCall) -> str:
    """List the pages that were commented last, each with its newest comment: ``{{recentlycommented limit="20"}}``."""
    limit = call.number("limit", 20, 100)
    found, _more = call.site.wiki.recent_comments(user=_user(call), limit=COMMENTS_OF_PAGES)
    return _listed(call, newest_pages(found)[:limit])


def countcomments(call: ActionCall) -> str:
    """Say how many comments there are that the reader may read: ``{{countcomments}}``."""
    count, has_more = call.site.wiki.count_comments()
    return _("more than {count}", count=figure(count)) if has_more else figure(count)


def _user(call: ActionCall) -> str:
    return " ".join(call.arguments.get("user", "").split())[:NAME_CHARS_MAX]


def _listed(call: ActionCall, found: list[ListedComment]) -> str:
    return call.site.fragment("comment_days.html", days=by_day(found, call.site.visitor.settings.zone_info), onward="")


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
    "countcomments": Action(countcomments),
    "nocomments": Action(lambda call: ""),  # the view of a page looks for it (``comment_views``)
    "recentcomments": Action(recentcomments, ("limit", "user")),
    "recentlycommented": Action(recentlycommented, ("limit", "user")),
}
