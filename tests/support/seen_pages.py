"""The pages of a wiki, for tests of looks and access: the page of every handler, and pages that follow a form.

``pages(scene)`` is made from the application's own handlers, so that a new handler is tested without a change here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from tests.support.account_pages import session_cookie
from tests.support.attack.browsing import ANOTHER
from tests.support.page_forms import Form, read
from tests.support.rich_page import RICH_PAGE
from tests.support.wiki_scene import ROLES, Scene, forms, handler_of
from tests.support.wiki_server import running_wiki
from wikka_port.config import MailConfig
from wikka_port.rights.rules import PageRights, Privilege
from wikka_port.urls import PAGE_HANDLERS, SITE_HANDLERS, page_path, site_path

NAME: Final = "Tidal rivers"
BOTH: Final = "River delta"  # two people edit it
MINE: Final = "The mouth as Rita sees it.\n\nSand and mud.\n"
# Handlers whose page is another one's: of a page that was deleted, that has a draft, or a suggestion.
WHERE: Final = {"claim": "Free", "undelete": "Gone", "draft": "Lent", "suggestion": "Lent"}
QUERIES: Final[dict[str, dict[str, int | str]]] = {
    "diff": {"a": 1, "b": 2},
    "revert": {"revision": 1},
    "search": {"q": "river"},
    "newpage": {"name": "Fresh page"},
    "massrevert": {"author": "Ann", "since": "2020-01-01"},
    "massdelete": {"prefix": "R"},
    "pages": {"prefix": "R"},
}
# Answers that are no page for people.
NO_PAGES: Final = frozenset(
    {
        "html",
        "raw",
        "grabcode",
        "files.xml",
        "upload",
        "revisions.xml",
        "recentchanges.xml",
        "comments.xml",
        "inbox.xml",
        "colour.css",
        "suggest",
        "summary",
        "preview",
        "actions",
    }
)
_Kind = tuple[str, str, frozenset[str], frozenset[str]]
PEOPLE: Final = ("registered", "administrator")
WEAK: Final = "xxxxxxxxxx"
ROLE_OF: Final = {
    **dict.fromkeys(("login", "register", "reset", "confirm"), "anonymous"),
    **dict.fromkeys(("hide", "undelete"), "administrator"),
}
# Addresses with what only the scene knows, in the place of the handler's plain one.
AT: Final[dict[str, Callable[[Scene], str]]] = {
    "confirm": lambda scene: _door(scene, "confirm"),
    "draft": lambda scene: page_path("Lent", "draft", draft=scene.draft),
    "held": lambda scene: site_path("held", page="Farm", id=scene.review),
    "file": lambda scene: page_path("HomePage", "file", file="Plan.txt"),
    "moves": lambda scene: site_path("moves", job=scene.job.id.decode()),
    "unsubscribe": lambda scene: scene.unsubscribing(),
    "suggestion": lambda scene: page_path("Lent", "suggestion", id=scene.suggestion),
}


@dataclass(frozen=True, slots=True)
class Seen:
    name: str
    role: str
    path: str | Callable[[Scene], str]
    then: Callable[[Any], None] | None = None  # what is done in the browser's page
    before: Callable[[Scene], None] | None = None  # what happens between the page and that

    def at(self, scene: Scene) -> str:
        return self.path if isinstance(self.path, str) else self.path(scene)


def rich_scene() -> Scene:
    mail = MailConfig("127.0.0.1", 1, "none", "user", "")  # nobody listens there
    scene = Scene(now=time.time(), mail=mail, public_url="https://wiki.example")
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


@contextmanager
def running_scene() -> Iterator[tuple[Scene, str]]:
    """Yield a rich scene, and the address of its server."""
    scene = rich_scene()
    with running_wiki(scene.wiki) as server:
        yield scene, server.url


def sign_in(page: Any, url: str, scene: Scene, role: str) -> None:
    """Give the page's browser context the session of that role of the scene."""
    cookie = session_cookie(scene.browsers[role])
    page.context.add_cookies([{"name": "wikka_session", "value": cookie, "url": url}])


def press(selector: str, **fields: str) -> Callable[[Any], None]:
    """Return a step that fills fields by their names and presses a button."""

    def act(page: Any) -> None:
        for name, value in fields.items():
            page.fill(f"main [name={name}]", value)
        page.evaluate("document.querySelector('main').dataset.before = '1'")
        page.click(selector)
        page.wait_for_selector(ANOTHER, state="attached")
        page.wait_for_load_state("load")

    return act


def _saved_meanwhile(scene: Scene) -> None:
    page = scene.wiki.page(BOTH)
    assert page is not None
    body = f"The mouth as Grace sees it, look {page.number}.\n\nSand and mud.\n"
    scene.wiki.save(BOTH, body, author="Grace", note="meanwhile", base=page.number)


def pages() -> list[Seen]:
    """Return each handler's page once, then pages that follow forms."""
    found = [Seen("root", "anonymous", "/"), Seen("read", "anonymous", page_path(NAME))]
    for handler in sorted(PAGE_HANDLERS - NO_PAGES):
        path = page_path(WHERE.get(handler, NAME), handler, **QUERIES.get(handler, {}))
        found.append(Seen(handler, ROLE_OF.get(handler, "registered"), AT.get(handler, path)))
    for handler in sorted(SITE_HANDLERS - NO_PAGES):
        path = site_path(handler, **QUERIES.get(handler, {}))
        found.append(Seen(handler, ROLE_OF.get(handler, "administrator"), AT.get(handler, path)))
    save = "button[name=save]"
    found += [
        Seen("missing", "anonymous", "/Nowhere"),
        Seen("empty", "anonymous", "/Empty_page"),
        Seen("forbidden", "anonymous", "/Hidden"),
        Seen("old revision", "anonymous", page_path(NAME, revision=1)),
        Seen("inline difference", "anonymous", page_path(NAME, "diff", a=1, b=2, style="inline")),
        Seen("what waits", "administrator", site_path("held")),
        Seen("a file", "administrator", page_path("HomePage", "file", file="Plan.txt")),
        Seen("files of a new page", "anonymous", "/Fresh/files"),
        Seen("a user", "administrator", site_path("users", name="Rita")),
        Seen("lists of a prefix", "administrator", site_path("rights", prefix="Vault/")),
        Seen("lists tried", "administrator", site_path("rights", of="site"), press("button[name=try]")),
        Seen("work under way", "administrator", site_path("moves")),
        Seen("suggestions", "registered", page_path("Lent", "suggestion")),
        Seen("suggest", "anonymous", page_path("Lent", "suggestion")),
        Seen("draft offered", "registered", page_path("Lent", "edit")),
        Seen("draft gone", "registered", page_path("Lent", "draft")),
        Seen("section", "registered", page_path("HomePage", "edit", section="s-a-part")),
        Seen("new password", "anonymous", lambda scene: _door(scene, "reset?token")),
        Seen("invited", "anonymous", lambda scene: _door(scene, "register?invitation")),
        Seen("first administrator", "anonymous", lambda scene: _door(scene, "register?administrator")),
        Seen("to become administrator", "registered", lambda scene: _door(scene, "register?administrator")),
        Seen("refused", "registered", page_path(NAME, "hide")),
        Seen("page with comments", "registered", page_path("HomePage", comments="threaded")),
        Seen("comments of a page", "anonymous", page_path("HomePage", "comments")),
        Seen("answer", "registered", page_path("HomePage", "comments", answer=1)),
        Seen("comment removed", "registered", page_path("HomePage", "comments", remove=1)),
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
    """Accept the editor's question before a typed text is left."""
    dialog.accept()


def _refused(page: Any) -> None:
    press("main form button", user="@", password=WEAK)(page)


def _wrong_list(page: Any) -> None:
    page.check("[name=own_write]")
    press("button[name=save]", write="!\nKim")(page)


def show(page: Any, url: str, scene: Scene, seen: Seen) -> None:
    """Show a page in a browser context of its own."""
    page.context.clear_cookies()
    if seen.role in PEOPLE:
        sign_in(page, url, scene, seen.role)
    page.goto(url + seen.at(scene))
    assert page.locator(".me").count() == (seen.role in PEOPLE) or not page.locator("header.bar").count(), seen
    if seen.before is not None:
        seen.before(scene)
    if seen.then is not None:
        page.on("dialog", _accept)
        seen.then(page)
        page.remove_listener("dialog", _accept)


def named(name: str) -> Seen:
    return next(seen for seen in pages() if seen.name == name)


REFUSED: Final = frozenset({"missing", "forbidden", "draft gone", "refused"})


def refused_pages(scene: Scene) -> set[str]:
    """Return the pages that refuse: every handler but REFUSED should be seen at work."""
    answers = {seen.name: scene.browsers[seen.role].get(seen.at(scene)).status_code for seen in pages()}
    return {name for name, status in answers.items() if status >= 400}


def missing_forms(scene: Scene) -> list[str]:
    """Return forms that some role is shown, and that are on none of the pages above."""
    shown = set[_Kind]()
    for seen in pages():
        answer = scene.browsers[seen.role].get(seen.at(scene))
        shown |= {_kind(seen.at(scene), form) for form in read(answer.text)[0]}
    sent = [(one, _kind(one.page, one.form)) for role in ROLES for one in forms(scene, role)]
    return sorted({one.label for one, kind in sent if kind not in shown})


def _door(scene: Scene, wanted: str) -> str:
    return next(door for door in scene.doors("anonymous") if wanted in door)


def _kind(page: str, form: Form) -> _Kind:
    """Return the properties that tell forms apart: their address, their fields and their buttons."""
    buttons = frozenset(field.name for field in form.fields if field.kind == "button")
    filled = frozenset(field.name for field in form.fields if field.kind not in ("button", "hidden"))
    return handler_of(form.path or page), form.method, filled, buttons
