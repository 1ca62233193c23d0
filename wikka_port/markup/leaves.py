"""The smallest parts of a page as HTML (pure): what every compiler writes alike, whatever the format of the text.

Each function returns HTML that is safe by itself: what came from a page is escaped here, and URLs have been found safe
where the tokens were made (``targets.safe_url``).
"""

from __future__ import annotations

from typing import Final

from wikka_port.markup.fragments import Heading, PageSlot, Piece, escape, section_slot
from wikka_port.markup.targets import safe_picture
from wikka_port.markup.tokens import INLINE_KINDS, Image, Inside, Open, Outside, PageLink
from wikka_port.texts import N_, _

# Actions that return text with a little markup; every other action stands as a block of its own.
INLINE_ACTIONS: Final = frozenset({
    "acls", "clonelink", "color", "colour", "countcomments", "countedits", "countowned", "countpages", "countusers",
    "delete", "deletelink", "edit", "editlink", "history", "historylink", "homepage", "homepagelink", "image",
    "lastedit", "lasteditauthor", "lasteditnotes", "logo", "logout", "owner", "ownerlink", "randompage",
    "recentchangesrss", "rev", "revertlink", "revisionlink", "revisions", "revisionsrss", "time", "title", "titletag",
    "today", "url", "usersettings", "who", "whoami", "wikkachanges", "wikkaname", "wikkapatchlevel", "wikkaversion",
})  # fmt: skip
NOT_IN_HEADING: Final = N_("it makes a block, which cannot stand in a heading or a footnote")
TOO_MANY: Final = N_("a page has {most} actions at most")
_OUTSIDE_ATTRIBUTES: Final = {
    "external": ' class="external" rel="nofollow noopener"',
    "interwiki": ' class="interwiki" rel="nofollow noopener"',
    "mail": ' class="mail"',
    "local": "",
}


class Places:
    """Ids of headings: unique on the page; "toc" is the table of contents."""

    __slots__ = ("_next",)

    def __init__(self) -> None:
        self._next: dict[str, int] = {"toc": 1}  # id -> the number that its next namesake gets

    def unique(self, place: str) -> str:
        if place not in self._next:
            self._next[place] = 2
            return place
        while True:
            candidate = f"{place}-{self._next[place]}"
            self._next[place] += 1
            if candidate not in self._next:
                self._next[candidate] = 2
                return candidate


def heading_pieces(heading: Heading, inside: list[Piece]) -> list[Piece]:
    """Return the element with its anchor; ``inside`` is what stands in it."""
    level, text, place, start = heading
    said = _("Link to this section: {heading}", heading=escape(text))
    anchor = f'<a class="anchor" href="#{place}" aria-label="{said}">#</a>'
    edit = [] if start < 0 else [section_slot(place, text)]
    return [f'<h{level} id="{place}">', *inside, f" {anchor}", *edit, f"</h{level}>\n"]


def page_slot(link: PageLink) -> PageSlot:
    return PageSlot(link.name, _label(link), link.place)


def outside_html(link: Outside) -> str:
    return f'<a href="{escape(link.url)}"{_OUTSIDE_ATTRIBUTES[link.kind]}>{_label(link)}</a>'


def _label(link: PageLink | Outside) -> str:
    return label_html(link.inside) if link.inside else escape(link.label)


def label_html(inside: Inside) -> str:
    """Well nested whatever ``inside`` is: what does not close what is open is left out, what is left open is closed."""
    out: list[str] = []
    opened: list[str] = []
    for token in inside:
        if isinstance(token, str):
            out.append(escape(token))
        elif token.kind not in INLINE_KINDS:
            continue
        elif isinstance(token, Open):
            opened.append(token.kind)
            out.append(f"<{token.kind}>")
        elif opened and opened[-1] == token.kind:
            out.append(f"</{opened.pop()}>")
    out += [f"</{tag}>" for tag in reversed(opened)]
    return "".join(out)


def image_html(image: Image) -> str:
    """Return a link around it: where the policy of the site blocks foreign images, the reader can still go there."""
    url, picture = escape(image.url), escape(safe_picture(image.url) or "")
    name = escape(image.alt or image.url.rsplit("/", 1)[-1])
    return (
        f'<a href="{escape(image.link) or url}" class="external" rel="nofollow noopener">'
        f'<img src="{picture}" alt="{name}" loading="lazy" referrerpolicy="no-referrer"></a>'
    )
