"""Lists of pages, changes and comments, each as a page of the wiki or as a feed, and the search."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Final
from urllib.parse import quote

from werkzeug.wrappers import Request, Response

from wikka_port.accounts.administration import account_part
from wikka_port.accounts.factory import public_address
from wikka_port.accounts.user_names import NAME_CHARS_MAX
from wikka_port.actions import ACTIONS
from wikka_port.change_lists import EVERY_CHANGE, ChangeFilter, by_day, by_letter, changes, days_folded, page_of
from wikka_port.comments.comment_rows import Comment
from wikka_port.comments.recent_comments import beginning_of
from wikka_port.comments.threads import NEWEST
from wikka_port.feeds import Entry
from wikka_port.limits import ACCOUNTS_SCANNED
from wikka_port.names import InvalidName, normalise, pages_above
from wikka_port.page_tree import searched_prefix, tree_of
from wikka_port.refusals import missing_file, missing_page
from wikka_port.rights.rules import Privilege
from wikka_port.schema import folded
from wikka_port.search.query import QUERY_CHARS, parse, unsorted
from wikka_port.search.searching import COUNTED, PER_PAGE
from wikka_port.site import Site, feed_answer, number, redirect, unindexed
from wikka_port.texts import _w
from wikka_port.urls import page_path, page_url, site_path

FEED_ROWS: Final = 50
LEAST_MAX: Final = 10_000_000  # characters of a change that can be asked for: more than a page has
SUMMARY_CHARS: Final = 300  # of a comment in a feed
NAMES_FOUND: Final = 20  # names that contain the typed text, shown if no page has its words
TREE_NAMES: Final = 1_000  # looked through for a tree
PAGES_MAX: Final = -(-COUNTED // PER_PAGE)
MAX_SUGGESTIONS: Final = 8
HEADINGS: Final = 3  # of these; names stand before them
_OF_THE_MARKUP: Final[dict[str, tuple[str, ...]]] = {
    "notoc": (),
    "redirect": ("target",),
    "toc": ("levels", "title", "links"),
}
_ATTRIBUTES: Final = {name: action.attributes for name, action in ACTIONS.items()} | _OF_THE_MARKUP
_ACTIONS: Final = json.dumps([{"name": name, "attributes": given} for name, given in sorted(_ATTRIBUTES.items())])


def handle_backlinks(site: Site, request: Request, name: str) -> Response:
    """List the pages that link to a page; with ``?file=Plan.pdf`` those that use a file of it."""
    size, after, file = site.config.list_rows, request.args.get("after", ""), request.args.get("file", "")
    if file:
        if site.wiki.page(name) is None:
            return missing_page(site, name)
        files = site.wiki.files(name)
        own, current = files.find(file)
        if current is None:
            return missing_file(site, name, file)
        names, following = files.used_on_part(own, current, after=after, limit=size)
    else:
        own = ""
        names, following = site.wiki.backlinks_part(name, after=after, limit=size)
    query = {"file": own} if own else {}
    onward = page_path(name, "backlinks", after=following, **query) if following else ""
    return site.html("backlinks.html", page_name=name, names=names, onward=onward, file=own)


def handle_tree(site: Site, request: Request, name: str) -> Response:
    """Show the pages above, beside and right below a page; ``?format=json`` gives the script of the page the same."""
    site.wiki.access.require(name, Privilege.READ)
    prefix = searched_prefix(name)
    names, more = site.wiki.names_part(prefix=prefix, limit=TREE_NAMES)
    if more and prefix != f"{name}/":  # those right below the page may stand behind the names that were looked through
        names = [*names, *site.wiki.names(prefix=f"{name}/", limit=TREE_NAMES)]
    existing = site.wiki.access.listed(site.wiki.existing([*pages_above(name), name]))
    leaves = tree_of(name, [one for one in names if one.startswith(prefix)], existing)
    onward = site_path("pageindex", letter=prefix) if more else ""
    if request.args.get("format") != "json":
        return site.html("tree.html", page_name=name, leaves=leaves, onward=onward)
    shown = [
        {"label": one.label, "path": page_url(one.name), "depth": one.depth, "there": one.is_there}
        | ({"current": True} if one.is_current else {})
        for one in leaves
    ]
    return unindexed(json.dumps({"pages": shown, "onward": onward}), "application/json", cache="no-store")


def handle_orphaned_pages(site: Site, request: Request, name: str) -> Response:
    size = site.config.list_rows
    names, following = site.wiki.orphaned_part(after=request.args.get("after", ""), limit=size)
    onward = site_path("orphanedpages", after=following) if following else ""
    return site.html("orphanedpages.html", names=names, onward=onward)


def handle_wanted_pages(site: Site, request: Request, name: str) -> Response:
    """List wanted pages (linked to, but missing), the most wanted first; ``?from=200`` begins with the 201st."""
    size = site.config.list_rows
    first = number(request, "from") or 0
    wanted = site.most_wanted.get()[first:]
    onward = site_path("wantedpages", **{"from": first + size}) if len(wanted) > size else ""
    return site.html("wantedpages.html", wanted=wanted[:size], onward=onward)


def handle_page_index(site: Site, request: Request, name: str) -> Response:
    """List all pages in alphabetical order; ``?letter=K`` only those with this initial, ``?start=Name`` from it on."""
    start = request.args.get("start", "")
    prefix = request.args.get("letter", "")
    size = site.config.list_rows
    names, following = site.wiki.names_part(start=start, prefix=prefix, limit=size)
    onward = site_path("pageindex", letter=prefix, start=following) if following else ""
    return site.html(
        "pageindex.html",
        letters=by_letter(names),
        alphabet=[(initial, initial.upper()) for initial in site.initials.get()],
        letter=folded(prefix),
        onward=onward,
    )


def handle_recent_changes(site: Site, request: Request, name: str) -> Response:
    """List the newest changes, those of a page on one day together unless ``?fold=no``.

    ``?minor=hide`` leaves out minor edits; ``by=Ann``, ``begins=Help``, ``new=1``, ``least=500`` select changes by
    author, by the beginning of the name, those that made a page, and those of at least so many characters.
    """
    settings, wanted = site.visitor.settings, _wanted_changes(request)
    before, fold = request.args.get("before", ""), request.args.get("fold") != "no"
    found = changes(site.wiki, wanted, before=before, limit=settings.changes)
    query = {"by": wanted.author, "begins": wanted.begins, "new": "1" if wanted.only_new else ""}
    query |= {"minor": "" if wanted.minor else "hide", "least": str(wanted.least or "")}
    query |= {"fold": "" if fold else "no"}
    return site.html(
        "recentchanges.html",
        days=days_folded(found.changes, settings.zone_info, fold=fold),
        onward=site_path("recentchanges", **query, before=found.token) if found.token else "",
        wanted=wanted,
        filtered=wanted != EVERY_CHANGE,
        query=query,
        fold=fold,
        newest=found.newest,
    )


def _wanted_changes(request: Request) -> ChangeFilter:
    given = request.args
    return ChangeFilter(
        author=" ".join(given.get("by", "").split())[:NAME_CHARS_MAX],
        begins=" ".join(given.get("begins", "").split())[:NAME_CHARS_MAX],
        only_new=given.get("new") == "1",
        minor=given.get("minor") != "hide",
        least=min(max(0, number(request, "least") or 0), LEAST_MAX),
    )


def handle_recent_changes_feed(site: Site, request: Request, name: str) -> Response:
    found = changes(site.wiki, _wanted_changes(request), limit=FEED_ROWS).changes
    base = public_address(site.config)
    entries = [
        Entry(
            title=change.name,
            url=base + page_path(change.name, revision=change.number),
            updated_ms=change.time_ms,
            author=change.author,
            summary=change.note or (_w("New page") if change.is_new else _w("Changed")),
        )
        for change in found
    ]
    title = _w("{site}: recent changes", site=site.settings.name)
    return feed_answer(request, base, title, site_path("recentchanges.xml"), site_path("recentchanges"), entries)


def handle_search(site: Site, request: Request, name: str) -> Response:
    """Search ``?q=words&page=2``; with ``&go=1`` redirect to the page of that name if it exists."""
    typed = " ".join(request.args.get("q", "").split())[: QUERY_CHARS + 1]
    page = min(max(1, number(request, "page") or 1), PAGES_MAX)
    plain = unsorted(typed)
    try:
        exact = normalise(plain)
    except InvalidName:
        exact = ""
    is_name = bool(exact)
    exists = bool(exact) and exact in site.wiki.existing([exact])
    if request.args.get("go") and exists:
        return redirect(page_url(exact), status=302)
    if exact and exact not in site.wiki.access.readable([exact]):
        exact, exists = "", False  # the answer must not reveal whether the page exists
    query = parse(typed, site.wiki.languages())
    found = site.wiki.search(query, page=page, pages=site.rough_page_count.get())
    names: Sequence[str] = ()
    if is_name and not found.hits and not query.is_empty:
        names, _ = page_of(site.wiki.search_titles(plain, limit=NAMES_FOUND + 1), NAMES_FOUND)
    return site.html(
        "search.html",
        asked=typed[:QUERY_CHARS],
        unsorted=plain[:QUERY_CHARS],
        exact=exact,
        exists=exists,
        query=query,
        found=found,
        page=page,
        last=-(-found.count // PER_PAGE),
        names=[one for one in names if one != exact],
    )


def handle_suggest(site: Site, request: Request, name: str) -> Response:
    """Complete ``?q=``: names as JSON, ``[{"name": ..., "path": ...}]``; with ``headings=1`` headings too.

    The entry of a heading also has a "page", and its path is that of the section.  The editor requests only names.
    """
    typed = request.args.get("q", "")
    headings = site.wiki.suggested_headings(typed, most=HEADINGS) if request.args.get("headings") == "1" else []
    names = site.wiki.suggested(typed, most=MAX_SUGGESTIONS - len(headings))
    shown = [{"name": one, "path": page_url(one)} for one in names]
    for page, text, place in headings:
        shown.append({"name": text, "path": f"{page_url(page)}#{quote(place)}", "page": page})
    return unindexed(json.dumps(shown), "application/json", cache="no-store")


def handle_actions(site: Site, request: Request, name: str) -> Response:
    """Return the actions that this wiki runs, as JSON, for the editor's script (``docs/wiki-editor.md``)."""
    return unindexed(_ACTIONS, "application/json", cache="private, max-age=3600")


def handle_administration(site: Site, request: Request, _name: str) -> Response:
    """Show administrators the links to all that only they have, with the numbers of texts and accounts that wait."""
    site.wiki.moves.require_site()
    pending, onward = account_part(site.accounts.rows, state="pending", limit=ACCOUNTS_SCANNED)
    waiting = {"texts": len(site.wiki.reviews.waiting()), "accounts": len(pending)}
    return site.html("administration.html", waiting=waiting, are_more_accounts=bool(onward))


# --- comments --------------------------------------------------------------------------------------


def handle_recent_comments(site: Site, request: Request, _name: str) -> Response:
    settings = site.visitor.settings
    by = " ".join(request.args.get("by", "").split())[:NAME_CHARS_MAX]
    before = request.args.get("before", "")
    found, token = site.wiki.recent_comments(user=by, before=before, limit=settings.changes)
    onward = site_path("recentcomments", by=by, before=token) if token else ""
    return site.html("recentcomments.html", days=by_day(found, settings.zone_info), onward=onward, by=by)


def handle_comments_feed(site: Site, request: Request, name: str) -> Response:
    """Answer with the newest comments of a page, or with "" as name of the whole wiki."""
    base = public_address(site.config)
    if not name:
        found, _onward = site.wiki.recent_comments(limit=FEED_ROWS)
        title = _w("{site}: comments", site=site.settings.name)
        entries = _entries(base, ((one.page, one.comment) for one in found))
        return feed_answer(request, base, title, site_path("comments.xml"), site_path("recentcomments"), entries)
    page = site.wiki.page(name)
    if page is None:
        return missing_page(site, name)
    comments = site.wiki.comments_of(page)
    newest = [one for one in comments.part(order=NEWEST).comments if one.is_visible][:FEED_ROWS]
    title = _w("{site}: comments on {name}", site=site.settings.name, name=page.name)
    entries = _entries(base, ((page.name, one) for one in newest))
    return feed_answer(request, base, title, page_path(name, "comments.xml"), page_path(name, "comments"), entries)


def _entries(base: str, found: Iterable[tuple[str, Comment]]) -> list[Entry]:
    return [
        Entry(
            title=_w("{name}: comment {number}", name=page, number=one.number),
            url=f"{base}{page_path(page, 'comments', at=one.number)}#c{one.number}",
            updated_ms=max(one.time_ms, one.edited_ms),
            author=one.author,
            summary=beginning_of(one.text, SUMMARY_CHARS),
        )
        for page, one in found
    ]
