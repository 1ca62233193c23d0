"""From comments to what a page shows of them: their texts as HTML, and the links that the visitor may follow.

The text of a comment is parsed as a page's text, with these differences: no action runs but colours, so a comment
includes no page and has no form; names of files stay words; headings are bold lines, so that the page's outline stays
the page's; and each id begins with the comment's own, so that ids are unique.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from werkzeug.wrappers import Request

from wikka_port.actions import ACTIONS, ActionCall
from wikka_port.comments.comment_rows import PLAIN, Comment
from wikka_port.comments.threads import NEWEST, OLDEST, ORDERS, THREADED, Part
from wikka_port.limits import QUICK_CHARS
from wikka_port.markup.document import Document, parse, render
from wikka_port.markup.fragments import escape
from wikka_port.page_rows import Page
from wikka_port.request_queues import run_in_slow_lane
from wikka_port.rights.guarded_comments import GuardedComments
from wikka_port.rights.judging import NotAllowed
from wikka_port.site import Site
from wikka_port.urls import page_path, page_url, with_query

_RUN: Final = frozenset({"color", "colour"})  # actions that run in a comment
_OLD_ORDERS: Final = {"1": OLDEST, "2": NEWEST, "3": THREADED}  # WikkaWiki's ``?show_comments=``
_HEADING: Final = re.compile(r"<(/?)h[1-6]\b[^>]*>")
_ANCHOR: Final = re.compile(r' <a class="anchor" [^>]*>#</a>')
_ID: Final = re.compile(r' (id|aria-labelledby|aria-describedby)="([^"]*)"')
_PLACE: Final = re.compile(r' href="#([^"]*)"')


@dataclass(frozen=True, slots=True)
class CommentView:
    comment: Comment
    html: str
    level: int  # of its indentation; 1 if it stands at the margin
    answer: str  # the address of a form, "" if the visitor may not
    edit: str
    remove: str
    restore: str
    language: str  # of the page, by which that of the text is guessed

    @property
    def place(self) -> str:
        """The id of the comment in a page."""
        return f"c{self.comment.number}"

    @property
    def parent_place(self) -> str:
        return f"c{self.comment.parent}"


@dataclass(frozen=True, slots=True)
class CommentsView:
    """A part of a page's comments, ready to be shown."""

    part: Part
    comments: Sequence[CommentView]
    count: int
    can_post: bool


def order_address(path: str, key: str, order: str) -> str:
    """Return the address that shows comments in ``order``; ``key`` is the parameter that the page takes."""
    return with_query(path, {key: order}) + ("#comments" if key == "comments" else "")


def comment_document(site: Site, page: Page, comment: Comment) -> Document:
    if comment.markup == PLAIN:
        lines = escape(comment.text).replace("\n", "<br>\n")
        return Document((f"<p>{lines}</p>",), (), (), (), None, 1)
    markup = comment.markup or page.markup
    return parse(comment.text, autolink=site.autolinks(None, markup), markup=markup)


def documents(site: Site, page: Page, comments: Iterable[Comment]) -> dict[int, Document]:
    """Return the parsed comments by number."""
    return {one.number: comment_document(site, page, one) for one in comments if one.is_visible}


def links_of(parsed: Mapping[int, Document]) -> list[str]:
    return list(dict.fromkeys(name for document in parsed.values() for name in document.links))


def is_expensive(comments: Iterable[Comment]) -> bool:
    return sum(len(one.text) for one in comments) > QUICK_CHARS


def comment_html(site: Site, page: str, document: Document, existing: AbstractSet[str], place: str) -> str:
    """Return a comment's text as HTML; ``place`` begins its ids."""
    html = render(
        document,
        existing=existing,
        action=_colours(site, page),
        page_url=page_url,
        contents=False,
        is_allowed=site.pictures.allows,
    )
    html = _HEADING.sub(_bold_line, _ANCHOR.sub("", html))
    html = _ID.sub(lambda found: f' {found[1]}="{place}-{found[2]}"', html)
    return _PLACE.sub(lambda found: f' href="#{place}-{found[1]}"', html)


def _bold_line(found: re.Match[str]) -> str:
    return "</strong></p>" if found[1] else '<p class="heading"><strong>'


def _colours(site: Site, page: str) -> Callable[[str, Mapping[str, str]], str | None]:
    def run(name: str, arguments: Mapping[str, str]) -> str | None:
        if name not in _RUN:
            return ""
        try:
            return ACTIONS[name].run(ActionCall(site, page, arguments, lambda _page, _text: ""))
        except ValueError as problem:  # of its author, whose comment must not keep the others from being shown
            return site.fragment("notice.html", action=name, problem=str(problem))

    return run


def comments_view(
    site: Site,
    page: Page,
    comments: GuardedComments,
    part: Part,
    parsed: Mapping[int, Document],
    existing: AbstractSet[str],
) -> CommentsView:
    now_ms = site.accounts.clock_ms()
    can_post = comments.can_post

    def address(allowed: bool, **query: int) -> str:
        return page_path(page.name, "comments", **query) + "#write" if allowed else ""

    def view(one: Comment) -> CommentView:
        document = parsed.get(one.number)
        return CommentView(
            comment=one,
            html="" if document is None else comment_html(site, page.name, document, existing, f"c{one.number}"),
            level=one.depth if part.order == THREADED else 1,
            answer=address(can_post and one.is_visible, answer=one.number),
            edit=address(comments.can_edit(one, now_ms), edit=one.number),
            remove=address(comments.can_remove(one), remove=one.number),
            restore=address(comments.can_restore(one), restore=one.number),
            language=page.language,
        )

    return CommentsView(part, [view(one) for one in part.comments], comments.head.count, can_post)


# --- below a page ----------------------------------------------------------------------------------


class CommentsBelow:
    """The comments below the text of a page, and the links of both, which are looked up in one call."""

    def __init__(self, site: Site, page: Page, comments: GuardedComments, part: Part | None) -> None:
        """Take ``part``, the comments that are shown; with None only their number is."""
        self._site = site
        self._page = page
        self._comments = comments
        self._part = part
        self._parsed = documents(site, page, part.comments) if part is not None else {}
        self._existing = frozenset[str]()

    def existing(self, links: Iterable[str]) -> frozenset[str] | None:
        """Return those of the ``links`` of the page and the comments that are pages; None if no comment has links."""
        own = links_of(self._parsed)
        if not own:
            return None
        self._existing = self._site.wiki.existing([*dict.fromkeys([*links, *own])])
        return self._existing

    def view(self) -> CommentsView:
        part = self._part or Part((), "")
        return comments_view(self._site, self._page, self._comments, part, self._parsed, self._existing)


def comments_below(site: Site, request: Request, page: Page, document: Document) -> CommentsBelow | None:
    """Return the comments below a page, or None if the page hides them, or the visitor may not read them.

    Costs a call of the store only if comments are shown.
    """
    if any(call.name == "nocomments" for call in document.actions):
        return None
    try:
        comments = site.wiki.comments_of(page)
    except NotAllowed:
        return None
    order = request.args.get("comments", "") if request.args else ""
    if not order and request.args and "show_comments" in request.args:
        order = _OLD_ORDERS.get(request.args["show_comments"], "hide")
    order = order or site.visitor.settings.comments
    if order not in ORDERS or not comments.head.number:
        return CommentsBelow(site, page, comments, None)
    part = comments.part(order=order)
    if is_expensive(part.comments):
        run_in_slow_lane(request.environ)
    return CommentsBelow(site, page, comments, part)
