"""A small wiki with people of several roles, and a walk through all pages that each of them can reach.

The requests come from the application itself: the handlers of its tables, the links and forms in its pages, the
parameters and fields that its handlers read.  If a handler takes a POST and the walk finds no form for it, SCRIPTED
must name the handler, or ``doors`` must name the address of its form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

from tests.support.account_pages import PASSWORD
from tests.support.file_forms import upload
from tests.support.page_forms import Field, Form, read
from tests.support.wiki_client import WikiClient
from wikka_port.accounts.factory import make_accounts
from wikka_port.accounts.passwords import Passwords
from wikka_port.antispam.submissions import TRAP
from wikka_port.edit_buckets import EditBuckets
from wikka_port.handlers import POSTABLE
from wikka_port.moving.jobs import LINKS, Jobs, new_job
from wikka_port.moving.journal import DELETED, GONE_BY, GONE_TIME, deleted_row
from wikka_port.names import InvalidName, page_key
from wikka_port.notices.unsubscribing import unsubscribe_token
from wikka_port.rights.rules import PageRights, Privilege
from wikka_port.schema import NAME, VERSIONCOUNT
from wikka_port.urls import PAGE_HANDLERS, SITE_HANDLERS, page_path, route, site_path

ROLES: Final = ("anonymous", "registered", "administrator")
PAGES: Final = ("HomePage", "Guarded", "Free", "Lent")  # Lent: all may read it, Rita alone may write it
# POSTs of scripts, which no form sends: their fields.
SCRIPTED: Final[Mapping[str, Mapping[str, str]]] = {
    "draft": {"as": "", "body": "typed", "note": "why", "base": "0", "section": ""},
    "preview": {"as": "", "name": "HomePage", "body": "typed"},
}
BY_LINK: Final = frozenset({"unsubscribe"})  # its form has no token: the address has one, and no session is needed
SECRET_TEXT: Final = "WORTGEHEIM"
SITE_QUERIES: Final = {"search": "?q=text", "newpage": "?name=Fresh", "colour.css": "?c=0a6c74"}
PAGES_MOST: Final = 200  # of one walk


@dataclass(frozen=True, slots=True)
class Sent:
    """A form, the address of its page, and the button that sends it."""

    page: str  # the address that showed it
    form: Form
    button: Field

    @property
    def handler(self) -> str:
        return handler_of(self.form.path or self.page)

    @property
    def label(self) -> str:
        pressed = f" [{self.button.name}]" if self.button.name else ""
        return f"{self.form.method.upper()} {self.form.path or self.page}{pressed} on {self.page}"

    def fields(self) -> dict[str, str]:
        return self.form.sent(self.button)


class Scene:
    """The wiki with its ``config``; passwords of registered people are PASSWORD. ``now`` may be a real clock."""

    def __init__(self, now: float | None = None, **config: Any) -> None:
        self.web = web = WikiClient(**{"edit_burst": 100_000, "count_age_s": 0.0, **config})
        web.now = web.now if now is None else now
        self.wiki = web.wiki
        self.accounts = make_accounts(self.wiki.rows, web.config, lambda: web.now, EditBuckets.opened(100))
        self.directory, self.links = self.accounts.directory, self.accounts.registration.links
        save = self.wiki.save
        save("HomePage", "A text with [[Guarded]], [[Wanted]] and {{recentchanges}}", author="Ann", base=0)
        save(
            "HomePage",
            "A text with [[Guarded]] and [[Wanted]].\n=====A part=====\nof it",
            author="Ann",
            note="n",
            base=1,
        )
        save("Guarded", f"{SECRET_TEXT} text", author="Rita", base=0, owner="Rita")
        save("Guarded", f"{SECRET_TEXT} text again", author="Rita", base=1)
        save("Free", "Nobody's text.", author="Ann", base=0)
        save("Lent", "Rita's text.", author="Rita", base=0, owner="Rita")
        self.wiki.rights.change("Guarded", PageRights("Rita"), "Rita", {Privilege.READ: "Rita"})
        self.wiki.rights.change("Lent", PageRights("Rita"), "Rita", {Privilege.WRITE: "Rita"})
        self._delete_a_page_and_begin_a_job()
        hashed = Passwords(1, memory_kib=web.config.password_memory_kib).hashed(PASSWORD)
        for name, admin in (("Rita", False), ("Root", True)):
            address = f"{name.lower()}@mail.example"
            self.directory.make(name, status="active", password=hashed, email=address, admin=admin)
        self.browsers = {"anonymous": web, "registered": self.enter("Rita"), "administrator": self.enter("Root")}
        upload(web, ("Plan.txt", b"a text"))
        for number, browser in enumerate((self.browsers["registered"], web)):
            self._comment(browser, f"typed {number + 1}")
        self._notify_people()
        self.draft = self._keep_a_draft()
        self.suggestion = self._suggest_a_change()
        self.review = self._send_for_review()

    def _notify_people(self) -> None:
        """Let Rita and Root watch a page, and give them notices."""
        for role in ("registered", "administrator"):
            browser = self.browsers[role]
            browser.post("/Lent/watch", {**browser.form("/Lent/watch"), "do": "below"})
        self.wiki.save("Lent", "Rita's text again.", author="Ann", note="n", base=1, notify="")

    def _keep_a_draft(self) -> str:
        """Keep a draft of Rita's for the page Lent."""
        rita = self.browsers["registered"]
        form = rita.form("/Lent/edit")
        rita.post("/Lent/draft", {**form, "body": "Nobody's text.", "keep": "1"})
        return form["draft"]

    def _comment(self, browser: WikiClient, text: str) -> None:
        form = browser.form("/HomePage/comments")
        browser.post("/HomePage/comments", {**form, "body": text, "send": "1"})

    def _suggest_a_change(self) -> str:
        """Make a visitor's suggestion for the page Lent."""
        visitor = self.web.other_visitor()
        visitor.post("/Lent/suggestion", {**visitor.form("/Lent/suggestion"), "body": "A text of Rita.", "send": "1"})
        return self.wiki.suggestions.of("Lent")[0].id

    def _send_for_review(self) -> str:
        """Send a text that antispam keeps for an administrator; return its id."""
        visitor = self.web.other_visitor()
        links = " ".join(f"https://farm{number}.example" for number in range(20))
        form = visitor.form("/Farm/edit")
        self.web.now += 60  # a form with links that returns at once is a program's
        visitor.post("/Farm/edit", {**form, "body": links, "save": "1"})
        self.web.now -= 60
        return self.wiki.suggestions.waiting()[0].id

    def _delete_a_page_and_begin_a_job(self) -> None:
        """Make a stopped job of Root's, and delete a page called Gone."""
        cells = {VERSIONCOUNT: b"1:token:" + page_key("Old"), NAME: b"Gone", GONE_TIME: b"1", GONE_BY: b"Root"}
        self.wiki.rows.put(DELETED, deleted_row("Gone", 1, b"0" * 16), cells)
        jobs = Jobs(self.wiki.rows, lambda: 0)
        self.job = new_job(LINKS, "Root", "account", source="Gone", target="HomePage")
        jobs.begin(self.job, ["Free"])
        jobs.stop(self.job.id)

    def enter(self, name: str) -> WikiClient:
        """Return a new browser in which the account of that name is signed in."""
        account = self.directory.account(name)
        assert account is not None
        cookie = self.accounts.sessions.begin(account, network="192.0.2.0", agent="a test")
        assert cookie is not None
        other = self.web.other_visitor()
        other.client.set_cookie("wikka_session", cookie)
        return other

    def doors(self, role: str) -> list[str]:
        """Return addresses to which no page links: links of mails, and forms that need a parameter."""
        account = self.directory.account("Rita")
        assert account is not None
        confirm = self.links.issue("confirm", account.row, f"{account.id} active rita@mail.example")
        administrator = self.links.issue("administrator")
        found = [site_path("confirm", token=confirm), site_path("register", administrator=administrator)]
        found += [page_path("HomePage", "file", file="Plan.txt"), page_path("Fresh", "files")]
        own = 1 if role == "registered" else 2
        found += [page_path("HomePage", "comments", **{target: own}) for target in ("answer", "edit", "remove")]
        if role == "administrator":
            found += [page_path("Gone", "undelete"), site_path("moves", job=self.job.id.decode())]
            found.append(site_path("held", page="Farm", id=self.review))
            found += [site_path("users", name="Rita"), site_path("rights", of="site")]
            found += [site_path("massrevert", author="Ann", since="2020-01-01"), site_path("massdelete", prefix="F")]
            found.append(site_path("pages", prefix="L"))
        if role == "registered":
            found += [page_path("Lent", "suggestion", id=self.suggestion), page_path("Lent", "draft", draft=self.draft)]
        if role == "anonymous":
            found.append(self.unsubscribing())
            found.append(site_path("reset", token=self.accounts.registration.reset_link(account)))
            found.append(site_path("register", invitation=self.links.issue("invitation")))
        return found

    def unsubscribing(self) -> str:
        """Return the link in a mail of a notice to Rita."""
        account = self.directory.account("Rita")
        assert account is not None
        return site_path("unsubscribe", token=unsubscribe_token(self.directory.secret, account.row, account.id))

    def starts(self, role: str) -> list[str]:
        pages = [page_path(name, handler) for name in PAGES for handler in sorted(PAGE_HANDLERS)]
        sites = [site_path(handler) + SITE_QUERIES.get(handler, "") for handler in sorted(SITE_HANDLERS)]
        old = [page_path("HomePage", handler, revision=1) for handler in ("show", "edit", "revert", "raw")]
        return ["/", *self.doors(role), *pages, *sites, *old, page_path("New page"), page_path("New page", "edit")]

    def state(self) -> dict[str, Any]:
        """Return all data of the wiki, for comparison."""
        tables = {
            repr(table): {row: dict(cells) for row, cells in held.items() if cells}
            for table, held in self.wiki.rows.data.items()
        }
        pages = {name: list(kept) for name, kept in self.wiki._pages.items()}
        return {"pages": pages, **{table: held for table, held in tables.items() if held}}


def handler_of(path: str) -> str:
    try:
        return route(urlsplit(path).path, "HomePage").handler
    except InvalidName:
        return ""


def walk(
    scene: Scene, role: str, starts: Sequence[str] | None = None, most: int = PAGES_MOST
) -> Iterator[tuple[str, str]]:
    """Yield (address, HTML) of pages that the role reaches from the starts by links, each kind of address once."""
    browser = scene.browsers[role]
    waiting = list(scene.starts(role) if starts is None else starts)
    seen, kinds = set[str](), dict[tuple[str, ...], int]()
    while waiting and len(seen) < most:
        path = waiting.pop(0)
        if path in seen:
            continue
        seen.add(path)
        answer = browser.get(path)
        if answer.status_code in (301, 302, 303, 307, 308):
            waiting.append(urljoin(path, answer.headers["Location"]))
            continue
        if answer.mimetype != "text/html":
            continue
        yield path, answer.text
        for link in read(answer.text)[1]:
            onward = urljoin(path, link.partition("#")[0])
            if not onward.startswith("/") or onward.startswith(("//", "/-/static/")) or onward in seen:
                continue
            kind = (handler_of(onward), *sorted(part.partition("=")[0] for part in urlsplit(onward).query.split("&")))
            kinds[kind] = kinds.get(kind, 0) + 1
            if kinds[kind] == 1:
                waiting.append(onward)


def forms(
    scene: Scene, role: str, keep: Callable[[Form], bool] = lambda form: True, starts: Sequence[str] | None = None
) -> list[Sent]:
    """Return each form once for its handler, its fields and its button."""
    found: dict[tuple[str, ...], Sent] = {}
    for path, html in walk(scene, role, starts, PAGES_MOST if starts is None else len(starts)):
        for form in filter(keep, read(html)[0]):
            for button in form.buttons():
                hidden = sorted(f"{one.name}={one.value}" for one in form.fields if one.name in ("do", "end"))
                one = Sent(path, form, button)
                key = (one.handler, form.method, *sorted(form.names()), button.name, *(hidden[:1]))
                found.setdefault(key, one)
    return list(found.values())


def posts(scene: Scene, role: str) -> list[Sent]:
    """Return all requests by which the role can change something: the forms, and requests that only scripts send."""
    found = forms(scene, role, lambda form: form.method == "post")
    for handler in sorted(POSTABLE & SCRIPTED.keys()):
        if not any(one.handler == handler for one in found):
            path = site_path(handler) if handler in SITE_HANDLERS else page_path("HomePage", handler)
            fields = tuple(Field(name, "hidden", value) for name, value in SCRIPTED[handler].items())
            found.append(Sent("/HomePage/edit", Form(path, "post", fields), Field("", "button", "")))
    return found


FILLED: Final = {
    "user": "Zoe",
    "password": PASSWORD,
    "current": PASSWORD,
    "email": "zoe@mail.example",
    "body": "typed by hand",
    "note": "typed note",
    "owner": "Rita",
}


def filled(browser: WikiClient, sent: Sent) -> dict[str, str]:
    """Return the fields of the form as ``browser`` is shown it now, with text typed into each empty field."""
    token = fresh_token(browser, sent.page)
    fields = {**sent.fields(), "csrf": token}
    for field in sent.form.fields:
        if field.is_typed and field.name != TRAP and (field.name in FILLED or not fields.get(field.name)):
            fields[field.name] = FILLED.get(field.name, "Typed")
    return fields


def fresh_token(browser: WikiClient, path: str) -> str:
    found = re.search('name="csrf" value="([^"]*)"', browser.get(path).text)
    return found[1] if found else browser.form("/-/login").get("csrf", "")
