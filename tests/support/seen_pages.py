"""The pages of a wiki as people see them, for tests of looks and access: every handler, and what stands behind a form.

``pages(scene)`` is made from the application's own handlers, so that a new one is looked at without a change here.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from tests.support.account_pages import session_cookie
from tests.support.attack.browsing import ANOTHER
from tests.support.rich_page import RICH_PAGE
from tests.support.wiki_scene import Scene
from wikka_port.handlers import POSTABLE
from wikka_port.rights.rules import PageRights, Privilege
from wikka_port.urls import PAGE_HANDLERS, SITE_HANDLERS, page_path, site_path

NAME: Final = "Tidal rivers"
BOTH: Final = "River delta"  # two people edit it
MINE: Final = "The mouth as Rita sees it.\n\nSand and mud.\n"
QUERIES: Final[dict[str, dict[str, int | str]]] = {
    "diff": {"a": 1, "b": 2},
    "revert": {"revision": 1},
    "search": {"q": "river"},
    "newpage": {"name": "Fresh page"},
}
# Answers that are no page for people.
NO_PAGES: Final = frozenset(
    {"html", "raw", "grabcode", "revisions.xml", "recentchanges.xml", "suggest", "preview", "actions"}
)
PEOPLE: Final = ("registered", "administrator")
WEAK: Final = "xxxxxxxxxx"
ROLE_OF: Final = {"login": "anonymous", "register": "anonymous", "reset": "anonymous", "confirm": "anonymous"}


@dataclass(frozen=True, slots=True)
class Seen:
    name: str
    role: str
    path: str
    then: Callable[[Any], None] | None = None  # what is done in the browser's page
    before: Callable[[Scene], None] | None = None  # what happens between the page and that


def rich_scene() -> Scene:
    scene = Scene(now=time.time())
    save, rights = scene.wiki.save, scene.wiki.rights
    save(NAME, RICH_PAGE, author="Ada", note="A first version", base=0, owner="Rita")
    save(NAME, RICH_PAGE.replace("twice", "two times"), author="Rita", note="clearer", base=1, signed="account")
    save("River mouth", "Where a river meets the sea. See [[Tidal rivers]].", author="Ada", base=0)
    save("Spring tide", "The highest of tides. [[Tidal rivers]] [[Neap tide]]", author="Visitor 7f3a", base=0)
    save(BOTH, "The mouth.\n\nSand and mud.\n", author="Ada", base=0)
    save("Empty page", "", author="Ada", base=0)
    save("Hidden", "for some", author="Root", base=0, owner="Root")
    rights.change("Hidden", PageRights("Root"), "Root", {Privilege.READ: "Root"})
    return scene


def press(selector: str, **fields: str) -> Callable[[Any], None]:
    """Fill fields by their names, and press."""

    def act(page: Any) -> None:
        for name, value in fields.items():
            page.fill(f"main [name={name}]", value)
        page.evaluate("document.querySelector('main').dataset.before = '1'")
        page.click(selector)
        page.wait_for_selector(ANOTHER, state="attached")

    return act


def _saved_meanwhile(scene: Scene) -> None:
    page = scene.wiki.page(BOTH)
    assert page is not None
    body = f"The mouth as Grace sees it, look {page.number}.\n\nSand and mud.\n"
    scene.wiki.save(BOTH, body, author="Grace", note="meanwhile", base=page.number)


def pages() -> list[Seen]:
    """Each handler once, then states behind forms."""
    found = [Seen("root", "anonymous", "/"), Seen("read", "anonymous", page_path(NAME))]
    for handler in sorted(PAGE_HANDLERS - NO_PAGES):
        path = page_path(NAME if handler != "claim" else "Free", handler, **QUERIES.get(handler, {}))
        found.append(Seen(handler, "registered", path))
    for handler in sorted(SITE_HANDLERS - NO_PAGES):
        path = site_path(handler, **QUERIES.get(handler, {}))
        found.append(Seen(handler, ROLE_OF.get(handler, "administrator"), path))
    save = "button[name=save]"
    found += [
        Seen("missing", "anonymous", "/Nowhere"),
        Seen("empty", "anonymous", "/Empty_page"),
        Seen("forbidden", "anonymous", "/Hidden"),
        Seen("old revision", "anonymous", page_path(NAME, revision=1)),
        Seen("inline difference", "anonymous", page_path(NAME, "diff", a=1, b=2, style="inline")),
        Seen("search without hits", "anonymous", site_path("search", q="zzzz nothing")),
        Seen("new page", "anonymous", "/Fresh/edit"),
        Seen("preview", "registered", page_path(NAME, "edit"), _previewed),
        Seen("conflict", "registered", page_path(BOTH, "edit"), press(save, body=MINE), _saved_meanwhile),
        Seen("note too long", "registered", page_path(NAME, "edit"), press(save, note="x" * 300)),
        Seen("rights tried", "registered", page_path(NAME, "acls"), press("button[name=try]")),
        Seen("rights wrong", "registered", page_path(NAME, "acls"), _wrong_list),
        Seen("login refused", "anonymous", site_path("login"), press("main form button", user="Nix", password="x")),
        Seen(
            "register refused", "anonymous", site_path("register"), press("main form button", user="@", password=WEAK)
        ),
    ]
    return found


def _previewed(page: Any) -> None:
    page.click("button[name=preview]")
    page.wait_for_selector(".preview")


def _accept(dialog: Any) -> None:
    """The editor asks before a typed text is left."""
    dialog.accept()


def _refused(page: Any) -> None:
    press("main form button", user="@", password=WEAK)(page)


def _wrong_list(page: Any) -> None:
    page.check("[name=own_write]")
    press("button[name=save]", write="!\nKim")(page)


def show(page: Any, url: str, scene: Scene, seen: Seen) -> None:
    """In a page of a context of its own."""
    page.context.clear_cookies()
    if seen.role in PEOPLE:
        cookie = session_cookie(scene.browsers[seen.role])
        page.context.add_cookies([{"name": "wikka_session", "value": cookie, "url": url}])
    page.goto(url + seen.path)
    assert page.locator(".me").count() == (seen.role in PEOPLE) or not page.locator("header.bar").count(), seen
    if seen.before is not None:
        seen.before(scene)
    if seen.then is not None:
        page.on("dialog", _accept)
        seen.then(page)
        page.remove_listener("dialog", _accept)


def missing_handlers() -> set[str]:
    """Handlers that take a POST and are none of the pages above."""
    return POSTABLE - {seen.name for seen in pages()} - NO_PAGES
