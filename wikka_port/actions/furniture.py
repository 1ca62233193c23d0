"""Furniture of pages: ``{{editlink}}``, ``{{lastedit}}``, ``{{whoami}}`` and the like, short words within a line.

Links take ``label``; figures of a page are those of the page that the action stands on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Final

from wikka_port.actions.call import ActionCall
from wikka_port.feeds import iso_time
from wikka_port.markup.fragments import escape
from wikka_port.pages import Page
from wikka_port.texts import N_, _
from wikka_port.urls import page_path, site_path

Action = Callable[[ActionCall], str]


def _link(path: str, label: str, *, rel: str = "") -> str:
    attribute = f' rel="{rel}"' if rel else ""
    return f'<a href="{escape(path)}"{attribute}>{escape(label)}</a>'


def _to_handler(handler: str, label: str) -> Action:
    def run(call: ActionCall) -> str:
        return _link(page_path(call.page, handler), call.arguments.get("label", "") or _(label))

    return run


def _to_editor(label: str) -> Action:
    """For who may write the page; for others the page's source, as in WikkaWiki."""

    def run(call: ActionCall) -> str:
        if not call.site.wiki.can(call.page).write:
            return _link(page_path(call.page, "showcode"), _("Source"), rel="nofollow")
        return _link(page_path(call.page, "edit"), call.arguments.get("label", "") or _(label), rel="nofollow")

    return run


def _to_site(handler: str, label: str) -> Action:
    return lambda call: _link(site_path(handler), call.arguments.get("label", "") or _(label))


def _of_page(text_of: Callable[[Page], str]) -> Action:
    """Show figures of the newest revision; nothing if there is none yet (a preview)."""

    def run(call: ActionCall) -> str:
        page = call.site.wiki.page(call.page)
        return escape(text_of(page)) if page is not None else ""

    return run


def lastedit(call: ActionCall) -> str:
    """``show``: 0 the day, 1 and the author, 2 and the note, 3 and a link to what was changed."""
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
    return _link("/", call.arguments.get("label", "") or call.site.config.root_page)


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
    return _link(
        page_path(call.page, "revisions"), call.arguments.get("label", "") or _("Go back to an older revision")
    )


def deletelink(call: ActionCall) -> str:
    """For who may delete the page; nothing for others."""
    if not call.site.wiki.can(call.page).delete:
        return ""
    label = call.arguments.get("label", "") or _("Delete this page")
    return _link(page_path(call.page, "delete"), label, rel="nofollow")


def logo(call: ActionCall) -> str:
    return (
        f'<img src="{escape(call.site.assets["icon.svg"].url)}" alt="{escape(call.site.config.site_name)}" width="32">'
    )


def now(call: ActionCall) -> str:
    return datetime.now(UTC).strftime("%H:%M UTC")


def today(call: ActionCall) -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d")


FURNITURE: Final[Mapping[str, Action]] = {
    "clonelink": _to_handler("clone", N_("Copy this page")),
    "delete": deletelink,
    "deletelink": deletelink,
    "edit": _to_editor(N_("Edit")),
    "editlink": _to_editor(N_("Edit this page")),
    "history": _to_handler("history", N_("History")),
    "historylink": _to_handler("history", N_("All changes of this page")),
    "homepage": homepage,
    "homepagelink": homepage,
    "lastedit": lastedit,
    "lasteditauthor": _of_page(lambda page: page.author),
    "lasteditnotes": _of_page(lambda page: page.note),
    "logo": logo,
    "recentchangesrss": _to_site("recentchanges.xml", N_("Feed of changes")),
    "rev": _of_page(lambda page: str(page.number)),
    "logout": _to_site("logout", N_("Sign out")),
    "revertlink": revertlink,
    "revisionlink": _to_handler("revisions", N_("Revisions of this page")),
    "revisions": _to_handler("revisions", N_("Revisions")),
    "revisionsrss": _to_handler("revisions.xml", N_("Feed of this page")),
    "time": now,
    "title": title,
    "today": today,
    "url": lambda call: escape(page_path(call.page)),
    "usersettings": _to_site("settings", N_("Settings")),
    "who": lambda call: escape(call.site.visitor.signature),
    "whoami": lambda call: escape(call.site.visitor.signature),
    "wikkachanges": _to_site("recentchanges", N_("Recent changes")),
    "wikkaname": lambda call: escape(call.site.config.site_name),
    "wikkaversion": lambda call: escape(version("columnar")),
}
