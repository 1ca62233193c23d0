"""The attack corpus against a wiki in a real browser: every payload in every place and in every field.

The fields are those of the forms that a walk through the application finds, and the parameters and fields that its
handlers ask for; the places of texts are those of ``places``, and many attributes of every action.  A new form,
parameter or action is attacked without a change here.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from typing import Any, Final
from urllib.parse import urlencode

from tests.support.account_pages import PASSWORD
from tests.support.attack import places
from tests.support.attack.beside import findings_of_feeds, findings_of_mails, store_beside
from tests.support.attack.browsing import Watched, watched
from tests.support.attack.payloads import payloads
from tests.support.noting_request import Noted, noting
from tests.support.wiki_scene import ROLES, Scene, Sent, forms, walk
from tests.support.wiki_server import running_wiki
from wikka_port.actions import ACTIONS
from wikka_port.handlers import HANDLERS
from wikka_port.markup.formats import FORMATS, WIKKA
from wikka_port.markup.mediawiki import convert
from wikka_port.names import InvalidName, normalise
from wikka_port.urls import PAGE_HANDLERS, SITE_HANDLERS, page_path, site_path

ATTRIBUTES: Final = (
    *("page", "name", "url", "src", "alt", "title", "class", "link", "text", "c", "hex", "fg", "bg", "target", "to"),
    *("letter", "limit", "style", "head", "show", "phrase", "label", "year", "type", "col", "template", "user", "note"),
)
PER_PAGE: Final = 60
CALLS_PER_PAGE: Final = 40
ACTIONS_EACH: Final = 4  # of each payload, at most: each action gets hundreds of them
ALONE: Final = 32  # one in so many payloads fills a field by itself; the others stand together
FIELD_CHARS: Final = 4_000  # that a field is filled with at most
NAMESPACES: Final = {"Category": 14, "File": 6, "Template": 10}
# What a browser holds for the form; with something else in it nothing but a refusal would be seen.
FIXED: Final = frozenset({"csrf", "as", "base", "do", "revision"})
SECRET: Final = frozenset({"password", "current"})  # never shown; with another one nothing would be accepted
STORED: Final = ("/-/recentchanges", "/-/pageindex", "/HomePage", "/HomePage/revisions", "/HomePage/acls", "/Guarded")
BESIDE: Final = "registered"  # the role of the one who has the notices
LEAVING: Final = frozenset({"logout", "account"})  # these end what the others need


class Kept:
    """The contents of a wiki before anything was typed into it."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        wiki = scene.wiki
        self._pages = {name: list(kept) for name, kept in wiki._pages.items()}
        self._rows = copy.deepcopy(wiki.rows.data)

    def restore(self, page: Watched, role: str) -> None:
        wiki = self._scene.wiki
        wiki._pages = {name: list(kept) for name, kept in self._pages.items()}
        wiki.rows.data = copy.deepcopy(self._rows)
        page.page.context.clear_cookies()
        sign_in(page, self._scene, role)


@dataclass
class Campaign:
    """A run of the attack corpus against a wiki.

    ``each`` is the number of places of a text for each payload; every ``share``-th payload names a page; ``names`` is
    the number of pages for each handler and role, ``fills`` the number of fillings of each form.  ``some`` chooses the
    pages of texts, and the addresses with parameters, that are looked at.
    """

    browser: Any
    each: int
    share: int
    names: int
    fills: int
    options: dict[str, Any] = field(default_factory=dict)  # of the browser's contexts
    some: Callable[[Sequence[str]], Sequence[str]] = lambda addresses: addresses
    findings: list[str] = field(default_factory=list)
    looks: int = 0
    typed: set[tuple[str, str]] = field(default_factory=set)  # handler and field
    tell: Callable[[str], None] = lambda text: None  # of each stage that begins
    _sent: set[tuple[str, frozenset[str]]] = field(default_factory=set)

    def run(self) -> None:
        with noting() as noted:
            scene = Scene(now=time.time())
            found = {role: forms(scene, role) for role in ROLES}
            pages = self.some(store_texts(scene, self.each))
            with running_wiki(scene.wiki) as server:
                with watched(self.browser, server.url, **self.options) as page:
                    self.tell(f"{len(pages)} pages of texts")
                    self._show(page, pages)
                    self._take(page)
                names = store_names(scene, self.share)
                chosen = payloads()[:: self.share]
                beside = self.some(store_beside(scene, chosen))
                self.findings += findings_of_feeds(scene) + findings_of_mails(scene, chosen)
                kept = Kept(scene)
                for role in ROLES:
                    with watched(self.browser, server.url, **self.options) as page:
                        kept.restore(page, role)
                        paths, sendable = self._paths(role, names, noted), self._sendable(found[role])
                        self.tell(f"{role}: {len(paths)} addresses, {len(sendable)} forms")
                        self._show(page, [*paths, *(beside if role == BESIDE else [])])
                        self._type(page, kept, role, sendable, noted)
                        self._take(page)

    def _paths(self, role: str, names: Sequence[str], noted: Noted) -> list[str]:
        """Return the addresses for a role; in the short form each address is for one role."""
        turn, brief = ROLES.index(role), self.fills == 1
        shown = [*lists(), *self.some(parameters(noted))] if turn == 0 or not brief else []
        return shown + (handled(names, self.names, turn) if turn == 2 or not brief else [])

    def _sendable(self, found: Sequence[Sent]) -> list[Sent]:
        """Return the forms that no earlier role had, because the same form answers all roles in the same way."""
        chosen = []
        for one in found:
            key = (one.handler, one.form.names())
            if one.handler not in LEAVING and key not in self._sent:
                self._sent.add(key)
                chosen.append(one)
        return chosen

    def _take(self, page: Watched) -> None:
        self.findings += page.findings
        self.looks += page.seen

    def _show(self, page: Watched, paths: Sequence[str]) -> None:
        for path in paths:
            page.show(path)

    def _type(self, page: Watched, kept: Kept, role: str, found: Sequence[Sent], noted: Noted) -> None:
        """Type all payloads into each field of each form, several at a time if they fit."""
        for one in found:
            asked = {key for handler, source, key in noted if handler == one.handler and source == "form"}
            targets = sorted((one.form.names() | (asked if one.form.method == "post" else set())) - FIXED - {""})
            buttons = {control.name for control in one.form.buttons()}
            targets = [name for name in targets if name not in buttons]
            values = [fillings(name, offset) for offset, name in enumerate(targets) if name not in SECRET]
            count = min(self.fills, max(map(len, values), default=0))
            for filled in islice(zip(*map(cycle, values), strict=False), count):
                plain = iter(filled)
                fields = {name: PASSWORD if name in SECRET else next(plain) for name in targets}
                self.typed |= {(one.handler, name) for name in fields}
                page.show(one.page)
                if not page.has(one.form):  # what was typed before was taken, and led somewhere else
                    self._show(page, STORED)
                    kept.restore(page, role)
                    page.show(one.page)
                if page.has(one.form):
                    page.send(one.form, fields, one.button.name)
                else:
                    page.note(f"the form is not there: {one.label}")
        self._show(page, STORED)


def sign_in(page: Watched, scene: Scene, role: str) -> None:
    """Give the browser the cookies of the role: its session, and what says whose its comments and drafts are."""
    cookies = scene.browsers[role].client._cookies or {}
    found = [{"name": one.key, "value": one.value, "url": page.url} for one in cookies.values()]
    if found:
        page.page.context.add_cookies(found)


def store_texts(scene: Scene, each: int) -> list[str]:
    """Store pages with payloads in their texts; return the addresses."""
    itself = {"itself": lambda text: text}
    written = [*places.bodies(payloads(), places.WIKKA, each=each, per_page=PER_PAGE, seed=1), *action_texts(each)]
    imported = places.bodies(payloads(), itself, each=1, per_page=PER_PAGE, seed=2)
    written += [convert(body, namespaces=NAMESPACES, title="x").text for body in imported]
    texts = [(body, WIKKA) for body in written]
    for markup in FORMATS.keys() - {WIKKA}:
        bodies = places.bodies(payloads(), places.OTHER, each=each, per_page=PER_PAGE, seed=3)
        texts += [(body, markup) for body in bodies]
    made = []
    for number, (body, markup) in enumerate(texts):
        name, payload = f"Text {number}", payloads()[number % len(payloads())]
        given = {"author": payload, "note": payload, "attribution": payload, "markup": markup}
        scene.wiki.save(name, body, base=0, autolink=number % 2 == 0, **given)
        made.append(page_path(name))
    return made


def action_texts(each: int) -> Iterator[str]:
    names = sorted(ACTIONS)
    calls = [
        places.action_calls(names, ATTRIBUTES, payload, number + turn)
        for number, payload in enumerate(payloads())
        for turn in range(min(each, ACTIONS_EACH, len(names)))
    ]
    for begin in range(0, len(calls), CALLS_PER_PAGE):
        yield "\n\n".join(calls[begin : begin + CALLS_PER_PAGE])


def store_names(scene: Scene, share: int) -> list[str]:
    """Store a page for each payload that can be a name, with other payloads as author, owner, note and text."""
    names = []
    for number, payload in enumerate(payloads()):
        if number % share:
            continue
        other = payloads()[(number + 7) % len(payloads())]
        try:
            name = normalise(payload)
        except InvalidName:
            continue
        body = f"{payload}\n[[{other} | {payload}]]\n\n=={payload}==\n{other}"
        scene.wiki.save(name, body, author=payload, note=other, base=0, owner=payload, signed="account")
        scene.wiki.save(name, body + "x", author=other, note=payload, base=1)
        names.append(name)
    return names


def lists() -> list[str]:
    """Return the addresses of the lists of the whole wiki."""
    found = [site_path("pageindex", letter=letter) for letter in "<\"'{["]
    found += [site_path("search", q=word) for word in ("script", "onerror", "javascript")]
    return [*found, *(site_path(handler) for handler in sorted(SITE_HANDLERS))]


def handled(names: Sequence[str], each: int, offset: int) -> list[str]:
    """Return the address of each handler for ``each`` of the names, which take turns."""
    begin = offset * len(names) // 3
    turns = cycle([*names[begin:], *names[:begin]])
    return [
        page_path(name, handler, **({"a": 1, "b": 2} if handler == "diff" else {}))
        for handler in sorted(PAGE_HANDLERS)
        for name in islice(turns, each)
    ]


def parameters(noted: Noted) -> list[str]:
    """Return addresses with each parameter that a handler reads, with some payloads at once."""
    asked = sorted({(handler, key) for handler, source, key in noted if source == "args" and handler in HANDLERS})
    found = []
    for number, (handler, key) in enumerate(asked):
        path = site_path(handler) if handler in SITE_HANDLERS else page_path("HomePage", handler)
        chosen = [payloads()[(number * 31 + n) % len(payloads())] for n in range(4)]
        found += [f"{path}?{urlencode({key: value}, errors='replace')}" for value in (chosen[0], " ".join(chosen))]
    return found


def fillings(name: str, offset: int) -> list[str]:
    """Return the payloads joined so that they fit a field; a field that takes only short texts gets single payloads."""
    turned = [*payloads()[offset * 13 :], *payloads()[: offset * 13]]
    joined: list[str] = []
    for number, payload in enumerate(turned):
        alone = number % ALONE == 0 and len(payload) < 70
        if joined and not alone and len(joined[-1]) + len(payload) < FIELD_CHARS:
            joined[-1] += " " + payload
        else:
            joined.append(payload)
    return joined


def reached(scene: Scene) -> int:
    """Return the number of pages that a walk of all roles sees, so that an empty campaign is noticed."""
    return sum(1 for role in ROLES for _ in walk(scene, role))
