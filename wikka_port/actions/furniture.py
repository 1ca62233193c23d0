"""Actions that make words or links within a line: ``{{editlink}}``, ``{{lastedit}}``, ``{{whoami}}`` and the like.

Links take ``label``; figures of a page are those of the page that has the call.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Final

from wikka_port.actions.call import Action, ActionCall
from wikka_port.colours import nearest
from wikka_port.feeds import iso_time
from wikka_port.markup.fragments import escape
from wikka_port.pages import Page
from wikka_port.texts import N_, _, figure
from wikka_port.urls import page_path, site_path

_LABEL: Final = ("label",)


def _link(path: str, label: str, *, rel: str = "") -> str:
    attribute = f' rel="{rel}"' if rel else ""
    return f'<a href="{escape(path)}"{attribute}>{escape(label)}</a>'


def _to_handler(handler: str, label: str) -> Action:
    return Action(lambda call: _link(page_path(call.page, handler), call.label(_(label))), _LABEL)


def _to_editor(label: str) -> Action:
    """Link to the editor for visitors who may write the page, else to the page's source, as in WikkaWiki."""

    def run(call: ActionCall) -> str:
        if not call.site.wiki.access.can(call.page).write:
            return _link(page_path(call.page, "showcode"), _("Source"), rel="nofollow")
        return _link(page_path(call.page, "edit"), call.label(_(label)), rel="nofollow")

    return Action(run, _LABEL)


def _to_site(handler: str, label: str) -> Action:
    return Action(lambda call: _link(site_path(handler), call.label(_(label))), _LABEL)


def _of_page(text_of: Callable[[Page], str]) -> Action:
    """Show a text about the page's newest revision, or nothing in the preview of a new page."""

    def run(call: ActionCall) -> str:
        page = call.site.wiki.page(call.page)
        return escape(text_of(page)) if page is not None else ""

    return Action(run)


def lastedit(call: ActionCall) -> str:
    """Show when the page was last edited, with ``show="1"`` also by whom, with 2 also the note, with 3 also a link.

    The link leads to what was changed.
    """
    page = call.site.wiki.page(call.page)
    if page is None:
        return ""
    wanted = call.arguments.get("show", "").strip()
    depth = int(wanted) if wanted in ("0", "1", "2", "3") else 3
    time = f"{iso_time(page.time_ms)[:16].replace('T', ' ')} UTC"
    if depth > 0:
        said = _("Last edited {time} by {author}", time=time, author=page.author)
    else:
        said = _("Last edited {time}", time=time)
    said += f": {page.note}" if depth > 1 and page.note else ""
    diff = page_path(page.name, "diff", b=page.number)
    return escape(said) + (f" {_link(diff, _('what was changed'))}" if depth > 2 and page.number > 1 else "")


def homepage(call: ActionCall) -> str:
    return _link("/", call.label(call.site.config.root_page))


def title(call: ActionCall) -> str:
    """Return the page's title: its first heading, else its name."""
    page = call.site.wiki.page(call.page)
    if page is None:
        return escape(call.page)
    document = call.site.documents.document(
        page.name, page.version, page.body, autolink=page.autolink, markup=page.markup
    )
    return escape(document.title or page.name)


def revertlink(call: ActionCall) -> str:
    return _link(page_path(call.page, "revisions"), call.label(_("Go back to an older revision")))


def deletelink(call: ActionCall) -> str:
    """Link to the deletion of the page, for visitors who may delete it; nothing for others."""
    if not call.site.wiki.access.can(call.page).delete:
        return ""
    return _link(page_path(call.page, "delete"), call.label(_("Delete this page")), rel="nofollow")


def logo(call: ActionCall) -> str:
    url = call.site.assets["icon.svg"].url
    return f'<img src="{escape(url)}" alt="{escape(call.site.settings.name)}" width="32">'


def color(call: ActionCall) -> str:
    """Show words in a colour, named or ``#rrggbb``: ``{{color c="red" text="words"}}``; ``bg`` is the background's.

    ``fg`` and ``hex`` mean the same as ``c``.  The colour becomes the nearest one that is readable in light and dark
    (``colours``).
    """
    typed = call.arguments
    classes = []
    for kind, asked in (("ink", typed.get("c") or typed.get("fg") or typed.get("hex")), ("paper", typed.get("bg"))):
        if asked:
            name = nearest(asked)
            if name is None:
                raise ValueError(_('"{asked}" is no colour; write a name or #rrggbb', asked=asked))
            classes.append(f"{kind}-{name}")
    if not classes:
        raise ValueError(_("{given} should be a colour", given='c="..."'))
    return f'<span class="{" ".join(classes)}">{escape(typed.get("text", ""))}</span>'


def randompage(call: ActionCall) -> str:
    """Link to a random page, new at each view: ``{{randompage title="Surprise me"}}``."""
    name = call.site.wiki.some_page(f"{random.randrange(16**8):08x}")
    if name is None:
        return ""
    return _link(page_path(name), call.arguments.get("title", "") or name)


ACTIONS: Final[Mapping[str, Action]] = {  # counts of the wiki are some seconds old at most
    "clonelink": _to_handler("clone", N_("Copy this page")),
    "color": Action(color, ("c", "fg", "hex", "bg", "text")),
    "colour": Action(color, ("c", "fg", "hex", "bg", "text")),
    "countedits": Action(lambda call: figure(call.site.edit_count.get())),
    "countpages": Action(lambda call: figure(call.site.page_count.get())),
    "delete": Action(deletelink, _LABEL),
    "deletelink": Action(deletelink, _LABEL),
    "edit": _to_editor(N_("Edit")),
    "editlink": _to_editor(N_("Edit this page")),
    "history": _to_handler("history", N_("History")),
    "historylink": _to_handler("history", N_("All changes of this page")),
    "homepage": Action(homepage, _LABEL),
    "homepagelink": Action(homepage, _LABEL),
    "lastedit": Action(lastedit, ("show",)),
    "lasteditauthor": _of_page(lambda page: page.author),
    "lasteditnotes": _of_page(lambda page: page.note),
    "logo": Action(logo),
    "logout": _to_site("logout", N_("Sign out")),
    "randompage": Action(randompage, ("title",)),
    "recentchangesrss": _to_site("recentchanges.xml", N_("Feed of changes")),
    "rev": _of_page(lambda page: str(page.number)),
    "revertlink": Action(revertlink, _LABEL),
    "revisionlink": _to_handler("revisions", N_("Revisions of this page")),
    "revisions": _to_handler("revisions", N_("Revisions")),
    "revisionsrss": _to_handler("revisions.xml", N_("Feed of this page")),
    "time": Action(lambda call: datetime.now(UTC).strftime("%H:%M UTC")),
    "title": Action(title),
    "today": Action(lambda call: datetime.now(UTC).strftime("%Y-%m-%d")),
    "url": Action(lambda call: escape(page_path(call.page))),
    "usersettings": _to_site("settings", N_("Settings")),
    "who": Action(lambda call: escape(call.site.visitor.signature)),
    "whoami": Action(lambda call: escape(call.site.visitor.signature)),
    "wikkachanges": _to_site("recentchanges", N_("Recent changes")),
    "wikkaname": Action(lambda call: escape(call.site.settings.name)),
    "wikkaversion": Action(lambda call: escape(version("columnar"))),
}
