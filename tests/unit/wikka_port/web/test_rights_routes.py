"""Every route for every role: what one may not read is in no answer, neither its text nor its name nor its count.

The routes are those of the application's own tables: a handler or an action that is not named here fails the test.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from itertools import product
from urllib.parse import quote

import pytest
from werkzeug.test import TestResponse

from tests.support.api_client import ApiClient
from tests.support.wiki_client import WikiClient
from wikka_port.accounts.factory import make_accounts
from wikka_port.actions import ACTIONS
from wikka_port.api.operations import OPERATIONS, PREFIX
from wikka_port.comments.stored_comments import NewComment
from wikka_port.edit_buckets import EditBuckets
from wikka_port.handlers import HANDLERS, POSTABLE
from wikka_port.rights.rules import PageRights, Privilege
from wikka_port.urls import PAGE_HANDLERS, RESERVED, SITE_HANDLERS

ROLES = ("anonymous", "registered", "member", "owner", "administrator", "banned")
READERS = frozenset({"member", "owner", "administrator"})
SECRET_PAGES = ("Sekretum own", "Vault/Kryptos")  # by a list of its own, and by that of its prefix
# Nothing of these may be shown to who is no reader: names, words of texts, notes, authors, names wanted there alone.
SECRETS = ("Sekretum", "Kryptos", "WORTGEHEIM", "notegeheim", "Schattenmann", "Wantedthere", "Vault", "Olga")
CALLS = [*(f"{{{{{name}}}}}" for name in ACTIONS), '{{backlinks page="Open"}}', '{{category page="CategoryX"}}']
LISTS = {"HomePage": CALLS[::2], "More": CALLS[1::2]}  # a page runs a bounded number of them

# What is asked of each handler of a page, and what a reader of the page gets who is neither its owner nor may edit it.
PAGE_QUERIES = {
    "show": ["", "?revision=1", "?time=9999999999999", "?redirect=no"],
    "acls": [""],
    "backlinks": ["", "?after=Open", "?file=Kryptos.txt"],
    "claim": [""],
    "delete": [""],
    "hide": ["", "?revision=1"],
    "rename": [""],
    "undelete": [""],
    "clone": [""],
    "comments": ["", "?at=1", "?edit=1", "?order=newest"],
    "comments.xml": ["", "?format=rss"],
    "grabcode": ["", "?block=1"],
    "html": [""],
    "print": [""],
    "revisions.xml": ["", "?format=rss"],
    "showcode": [""],
    "summary": [""],
    "tree": ["", "?format=json"],
    "suggestion": ["", "?id=0123456789abcdef"],
    "watch": [""],
    "diff": ["", "?a=1&b=2", "?a=1&b=2&style=inline"],
    "draft": ["", "?draft=0123456789abcdef"],
    "edit": ["", "?revision=1"],
    "file": ["?file=Kryptos.txt"],
    "files": [""],
    "files.xml": ["", "?action=download&file=Plan.txt"],
    "history": ["", "?below=2"],
    "raw": ["", "?revision=1"],
    "revert": ["", "?revision=1"],
    "revisions": ["", "?below=2"],
}
SITE_QUERIES = {
    "account": [""],
    "actions": [""],
    "administration": [""],
    "antispam": [""],
    "blocks": ["", "?target=Sekretum"],
    "confirm": ["", "?token=x"],
    "deleted": [""],
    "held": ["", "?page=Sekretum+own&id=0123456789abcdef"],
    "massdelete": ["", "?prefix=Vault", "?prefix=S"],
    "massrevert": ["", "?author=Schattenmann&since=2020-01-01"],
    "pages": ["", "?prefix=S", "?owner=Olga&author=Schattenmann", "?lists=own&from=Sekretum"],
    "moves": ["", "?job=0123456789abcdef"],
    "login": ["", "?to=/Sekretum_own"],
    "inbox": ["", "?before=0123456789abc0123456789abcdef"],
    "inbox.xml": ["", "?key=x", "?key=wk_YWRh.0123456789abcdef0123456789abcdef0123456789a"],
    "watches": [""],
    "keys": [""],
    "logout": [""],
    "newpage": ["?name=Fresh", "?name=Sekretum+own"],
    "suggest": ["?q=sek", "?q=vault", "?q=k", "?headings=1&q=sek", "?headings=1&q=head"],
    "orphanedpages": ["", "?after=A"],
    "preview": [""],
    "pageindex": ["", "?letter=s", "?letter=v", "?start=S", "?start=Sekretum"],
    "recentchanges": ["", "?before=x", "?before=1750000999999"],
    "recentchanges.xml": [""],
    "recentcomments": ["", "?by=Schattenmann", "?by=Olga"],
    "comments.xml": ["", "?format=rss"],
    "register": [""],
    "reset": [""],
    "search": ["?q=e", "?q=sek", "?q=vault", "?q=Sekretum+own", "?q=Vault/Kryptos", "?q=Wantedthere"],
    "sessions": [""],
    "settings": [""],
    "audit": ["", "?user=Olga", "?what=rights&before=x"],
    "jobs": [""],
    "site": [""],
    "colour.css": ["?c=0a6c74"],
    "sizes": [""],
    "rights": ["", "?of=site", "?prefix=Vault/"],
    "groups": [""],
    "users": ["", "?name=Olga", "?q=Olga"],
    "unsubscribe": ["", "?token=x", "?token=YWRh.0123456789abcdef0123456789abcdef"],
    "upload": ["", "?page=Sekretum+own&id=0123456789abcdef"],  # 405: HEAD and PATCH are in test_resumed_uploads
    "theme": ["", "?theme=dark"],
    "wantedpages": ["", "?after=A", "?from=0"],
}
NAMES = ("Sekretum+own", "Vault/Kryptos", "Open", "Nowhere")
OF_PAGES = [f"?name={name}" for name in NAMES]
OF_FILES = [f"?page={name}&name={file}" for name in NAMES[:2] for file in ("Kryptos.txt", "none.txt")]
OF_FILES += [f"?page={name}&name=none.txt" for name in NAMES[2:]]
API_QUERIES = {  # of the operations that read
    "readMe": [""],
    "listPages": ["", "?prefix=sek", "?start=Sekretum", "?start=_~AAAA", "?limit=1"],
    "readPage": OF_PAGES,
    "listRevisions": OF_PAGES,
    "readRevision": [f"{one}&number=1" for one in OF_PAGES],
    "listBacklinks": [*OF_PAGES, *(f"{one}&file=Kryptos.txt" for one in OF_PAGES[:2]), "?name=Open&after=A"],
    "readRights": OF_PAGES,
    "listFiles": OF_PAGES,
    "listComments": OF_PAGES,
    "readFile": OF_FILES,
    "readContent": [*OF_FILES, *(f"{one}&version=1" for one in OF_FILES)],
    "listWatches": [""],
    "readInbox": [""],
    "search": [f"?q={word}" for word in ("e", "sek", "vault", "Sekretum+own", "kryptos.txt")],
    "listChanges": ["", "?since=9999999999999"],
}
API = [one.path + query for one in OPERATIONS if one.method == "GET" for query in API_QUERIES[one.id]]
FORMS = [f"/{name.replace('/', '~2F').replace('+', '_')}{end}" for name in NAMES for end in (".md", ".json")]
OTHERS = ["/", "/api/", "/api/titles", *FORMS, *(PREFIX + one for one in API), *(f"/{name}" for name in RESERVED)]


class Scene:
    def __init__(self) -> None:
        web = WikiClient(edit_burst=10_000, count_age_s=0.0)
        self.web, self.wiki = web, web.wiki
        save = self.wiki.save
        save("EditorsGroup", "+Mia+Ben+", author="Ann", base=0)
        save("Open", "An open text with [[Wanted by all]].", author="Ann", note="open note", base=0)
        for name, calls in LISTS.items():
            save(name, f"Welcome. {' '.join(calls)}", author="Ann", base=0)
        save("Readonly", "To look at.", author="Ann", base=0)
        save("Free", "Nobody's.", author="Ann", base=0)
        for name in SECRET_PAGES:
            text = "WORTGEHEIM [[Open]] [[CategoryX]] [[Wantedthere]] [[Wanted by all]] {{countpages}}\n%%a block%%"
            text += "\n====Sekretum heading===="
            save(name, "WORTGEHEIM once", author="Schattenmann", note="notegeheim", base=0, owner="Olga")
            save(name, text, author="Schattenmann", note="notegeheim", base=1)
            new = NewComment("WORTGEHEIM comment", "Schattenmann", "account", f"of {name}", "wikka")
            self.wiki.comments.add(name, b"", new, allow=lambda _name, _rights: None)
        members = {Privilege.READ: "EditorsGroup"}
        rights = self.wiki.rights
        rights.change(SECRET_PAGES[0], PageRights("Olga"), "Olga", members)
        rights.change_rules("vault/", {Privilege.READ: "EditorsGroup"}, rights.rules())
        rights.change("Readonly", PageRights(), "", {Privilege.WRITE: "EditorsGroup"})
        self.browsers = {
            "anonymous": web,
            "registered": web.signed_in("Rita"),
            "member": web.signed_in("Mia"),
            "owner": web.signed_in("Olga"),
            "administrator": web.signed_in("Root", admin=True),
            "banned": web.signed_in("Ben"),
        }
        account = self.directory.account("Ben")
        assert account is not None
        self.wiki.rows.put(b"users", account.row, {b"account:status": b"banned"})

    @property
    def directory(self) -> object:
        from wikka_port.accounts.directory import Directory

        return Directory(self.wiki.rows, lambda: 0)


@pytest.fixture(scope="module")
def scene() -> Scene:
    return Scene()


def page_routes() -> Iterator[tuple[str, str, str]]:
    for name, (handler, queries) in product(SECRET_PAGES, PAGE_QUERIES.items()):
        segment = quote(name.replace(" ", "_").replace("/", "~2F"), safe="~")
        for query in queries:
            yield name, handler, f"/{segment}{'' if handler == 'show' else '/' + handler}{query}"


def told(answer: TestResponse, role: str, typed: str = "") -> list[str]:
    """The secrets in an answer that its reader did not type himself."""
    text = unescape(answer.text) + "\n".join(f"{key}: {value}" for key, value in answer.headers)
    links = (typed.replace(" ", "_"), typed.replace(" ", "+"), typed.replace("/", "~2F"))
    title = f">{typed.rpartition('/')[2]}</a>"  # below the way up from a subpage
    for echo in (typed, quote(typed), *links, title if typed else ""):
        text = text.replace(echo, "") if echo else text
    names = set(SECRETS) - {"Olga"} if role == "owner" else set(SECRETS)
    return sorted(secret for secret in names if secret.casefold() in text.casefold())


def test_no_route_and_no_action_is_missing_here() -> None:
    assert PAGE_QUERIES.keys() == PAGE_HANDLERS
    assert SITE_QUERIES.keys() == SITE_HANDLERS
    assert HANDLERS.keys() == PAGE_HANDLERS | SITE_HANDLERS
    assert {
        *("acls", "claim", "draft", "edit", "revert", "suggestion"),
        *("comments", "delete", "file", "files", "hide", "rename", "undelete", "watch"),
    } == POSTABLE & PAGE_HANDLERS, "each is posted to below"
    for name in ACTIONS:
        assert any(f"{{{{{name}" in call for calls in LISTS.values() for call in calls)


def test_no_operation_of_the_api_that_reads_is_missing_here() -> None:
    assert API_QUERIES.keys() == {one.id for one in OPERATIONS if one.method == "GET"}


class Programs:
    """A scene whose secret pages have files, watched by Rita and Mia, and a program with the key of each role."""

    def __init__(self) -> None:
        self.scene = scene = Scene()
        web = scene.web
        accounts = make_accounts(scene.wiki.rows, web.config, lambda: web.now, EditBuckets.opened(100))
        self.of: dict[str, ApiClient] = {"anonymous": ApiClient(web.other_visitor().client)}
        names = {"registered": "Rita", "member": "Mia", "owner": "Olga", "administrator": "Root", "banned": "Ben"}
        for role, name in names.items():
            account = accounts.directory.account(name)
            assert account is not None
            token = accounts.keys.issue(account, label="a test", scopes=("read", "write", "admin"), days=30)
            self.of[role] = ApiClient(web.other_visitor().client, token)
        for name in SECRET_PAGES:
            of_file = {"page": name, "name": "Kryptos.txt", "note": "notegeheim"}
            stored = self.of["owner"].call(
                *("PUT", "/file/content"), query_string=of_file, headers={"If-None-Match": "*"}, data=b"WORTGEHEIM file"
            )
            assert stored.status_code == 201, stored.text
            assert self.of["member"].call("PUT", "/watch", query_string={"name": name}).status_code == 200
        below = {"name": "", "below": "true"}
        assert self.of["registered"].call("PUT", "/watch", query_string=below).status_code == 200
        for name in SECRET_PAGES:  # a notice for those who watch, as far as they may read it
            etag = self.of["owner"].etag(name)
            text = self.of["owner"].get("/page", name=name).json["text"] + " WORTGEHEIM again"
            assert self.of["owner"].save(name, text, etag, note="notegeheim").status_code == 200


@pytest.fixture(scope="module")
def programs() -> Programs:
    return Programs()


@pytest.mark.parametrize("role", ROLES)
def test_what_a_program_reads(programs: Programs, role: str) -> None:
    """By key, and not by the cookie of a browser, which the API does not know."""
    program, seen, of_secret = programs.of[role], "", dict[str, set[int]]()
    for path in API:
        answer = program.call("GET", path)
        assert answer.status_code in (200, 401, 403, 404, 422), (path, answer.status_code)
        operation = path.partition("?")[0]
        if any(f"{key}={name}" in path for key in ("name", "page") for name in NAMES[:2]):
            of_secret.setdefault(operation, set()).add(answer.status_code)
        seen += answer.text
        if role not in READERS:
            assert told(answer, role, path.partition("q=")[2].replace("+", " ")) == [], path
    refused = {401} if role == "banned" else {404}
    for operation, statuses in of_secret.items():
        if role not in READERS:
            expected = {401} if role == "anonymous" and operation == "/page/rights" else refused
            assert statuses == expected, operation
        elif operation != "/page/rights":
            assert 200 in statuses, operation
    if role in READERS:
        for secret in (*SECRET_PAGES, "notegeheim", "WORTGEHEIM comment", "WORTGEHEIM file", "Kryptos.txt"):
            assert secret in unescape(seen), secret


@pytest.mark.parametrize("role", ROLES)
def test_pages(scene: Scene, role: str) -> None:
    browser = scene.browsers[role]
    for name, handler, path in page_routes():
        answer = browser.get(path)
        if role not in READERS:
            assert answer.status_code == 403, (path, answer.status_code)
            assert told(answer, role) == [], path
            continue
        changes = role in ("owner", "administrator")
        expected = 200 if handler not in ("acls", "claim") or (handler == "acls" and changes) else 403
        if handler in ("delete", "hide", "rename"):
            expected = ({"delete": changes, "hide": role == "administrator", "rename": True}[handler] and 200) or 403
        is_none = handler in ("draft", "file", "undelete") or path.endswith(
            ("suggestion?id=0123456789abcdef", "backlinks?file=Kryptos.txt")
        )
        expected = 404 if is_none else expected  # nobody has one here, none is deleted, no page has files
        expected = 409 if path.endswith("comments?edit=1") else expected  # the comment is somebody else's
        assert answer.status_code in (expected, 301, 302), (path, answer.status_code)
        if handler in ("show", "raw", "diff", "history", "edit") and answer.status_code == 200:
            assert "WORTGEHEIM" in answer.text, "the test sees secrets where they may be seen"
        assert name


@pytest.mark.parametrize("role", ROLES)
def test_what_is_posted_to_a_page(scene: Scene, role: str) -> None:
    browser = scene.browsers[role].other_visitor()
    browser.client = scene.browsers[role].client
    for name in SECRET_PAGES:
        path = "/" + quote(name.replace(" ", "_").replace("/", "~2F"), safe="~")
        fields = {**browser.form("/Open/edit"), **browser.form("/-/login")}
        before = scene.wiki.page(name)
        for handler, extra in (
            ("edit", {"body": "typed", "base": "2", "save": "1"}),
            ("edit", {"body": "typed", "base": "1", "save": "1"}),
            ("edit", {"body": "typed", "base": "2", "preview": "1"}),
            ("revert?revision=1", {"base": "2"}),
            ("acls", {"own_read": "1", "read": "*", "owner": "Rita", "save": "1", "confirm": "1"}),
            ("claim", {}),
            ("delete", {"reason": "typed"}),
            ("hide", {"revision": "1"}),
            ("rename", {"new": "Taken away", "links": "1", "redirect": "1"}),
            ("undelete", {"row": "0"}),
            ("draft", {"body": "typed", "base": "2", "draft": "0123456789abcdef"}),
            ("draft", {"body": "typed", "base": "2", "draft": "0123456789abcdef", "keep": "1"}),
            ("draft", {"draft": "0123456789abcdef", "discard": "1"}),
            ("comments", {"body": "typed", "send": "1"}),
            ("comments", {"remove": "1", "send": "1"}),
            ("suggestion", {"body": "typed", "base": "2", "send": "1"}),
            ("suggestion", {"id": "0123456789abcdef", "take": "1"}),
            ("suggestion", {"id": "0123456789abcdef", "refuse": "1"}),
        ):
            if role in READERS:
                continue
            answer = browser.post(f"{path}/{handler}", {**fields, "as": fields.get("as", ""), **extra})
            assert answer.status_code == 403, (path, handler, answer.status_code)
            assert told(answer, role, name) in ([], ["Vault"]), (path, handler)
            if handler == "edit" or "keep" in extra or (handler == "comments" and "body" in extra):
                assert "typed" in answer.text, "the text is kept"
        assert scene.wiki.page(name) == before
        preview = browser.post("/-/preview", {**fields, "name": name, "body": "typed"})
        assert preview.status_code == (200 if role in READERS else 403)
        if role not in READERS:
            assert told(preview, role, name) == []


@pytest.mark.parametrize("role", ROLES)
def test_lists_feeds_searches_and_the_rest(scene: Scene, role: str) -> None:
    browser = scene.browsers[role]
    paths = [f"/-/{handler}{query}" for handler, queries in SITE_QUERIES.items() for query in queries]
    open_pages = [f"/{page}/{handler}" for page in ("Open", *LISTS, "CategoryX") for handler in PAGE_HANDLERS]
    seen = ""
    for path in [*paths, *OTHERS, *open_pages]:
        answer = browser.get(path)
        assert answer.status_code in (200, 301, 302, 303, 401, 403, 404, 405, 422), (path, answer.status_code)
        seen += answer.text
        if role not in READERS:
            typed = path.partition("q=")[2].replace("+", " ") or path.partition("start=")[2]
            typed = (
                typed
                or path.partition("by=")[2]
                or path.partition("to=")[2]
                or path.partition("name=")[2].replace("+", " ")
            )
            assert told(answer, role, typed) == [], path
    if role in READERS:
        assert all(secret in unescape(seen) for secret in ("Sekretum own", "Vault/Kryptos", "notegeheim"))


@pytest.mark.parametrize("role", ROLES)
def test_headings_are_suggested_of_pages_that_one_may_read(scene: Scene, role: str) -> None:
    answer = scene.browsers[role].get("/-/suggest?headings=1&q=sekretum h").get_json()
    assert [one["page"] for one in answer] == ([*SECRET_PAGES] if role in READERS else [])


@pytest.mark.parametrize("role", ROLES)
def test_a_missing_page_names_no_page_that_its_reader_may_not_read(scene: Scene, role: str) -> None:
    for typed in ("sekretum own", "Sekretum owns", "Sekretum"):
        answer = scene.browsers[role].get(f"/{typed.replace(' ', '_')}")
        assert answer.status_code == 404
        assert ('href="/Sekretum_own"' in answer.text) == (role in READERS), typed
        assert role in READERS or told(answer, role, typed) == [], typed


def shown_count(browser: WikiClient, page: str) -> str:
    found = re.search(r"There are (\d+) pages", browser.get(page).text)
    return found[1] if found else ""


def test_counts_are_of_what_everybody_may_read(scene: Scene) -> None:
    scene.wiki.save("Counted", "There are {{countpages}} pages. {{wantedpages}}", author="Ann", base=0)
    scene.web.now += 1  # a count is kept for a moment
    public = scene.wiki.count_pages() - len(SECRET_PAGES)
    for role in ROLES:
        assert shown_count(scene.browsers[role], "/Counted") == str(public), role
    wanted = unescape(scene.browsers["anonymous"].get("/-/wantedpages").text)
    assert re.search(r"Wanted by all</a>\s*<a[^>]*>1 link<", wanted), "of three pages that link there, one is public"


@pytest.mark.parametrize("role", ROLES)
def test_who_edits_claims_and_administers(scene: Scene, role: str) -> None:
    browser = scene.browsers[role]
    edits = {"Open": role != "banned", "Readonly": role in ("member", "administrator")}
    for page, may in edits.items():
        assert (browser.get(f"/{page}/edit").status_code == 200) == may, page
        assert (f'href="/{page}/edit"' in browser.get(f"/{page}").text) == may, page
        before = scene.wiki.page(page)
        base = {**browser.form("/-/login"), **browser.form("/Open/edit"), "base": str(before.number), "base_token": ""}
        answer = browser.post(f"/{page}/edit", {**base, "body": f"by {role}"})
        assert (answer.status_code == 303) == may or before.body == f"by {role}", page
        if not may:
            assert answer.status_code == 403
            assert f"by {role}" in answer.text, "the text is kept"
            assert scene.wiki.page(page) == before
    claims = role not in ("anonymous", "banned")
    assert (browser.get("/Free/claim").status_code == 200) == claims
    assert (browser.get("/Free/acls").status_code == 200) == (role == "administrator")


def test_a_new_page_belongs_to_who_is_signed_in(scene: Scene) -> None:
    scene.browsers["registered"].save("/New_one", "text")
    assert scene.wiki.page("New one").owner == "Rita"
    scene.web.save("/New_two", "text")
    assert scene.wiki.page("New two").owner == ""


def test_a_conflict_shows_nothing_to_who_lost_his_right(scene: Scene) -> None:
    browser = scene.browsers["registered"]
    scene.wiki.save("Changing", "one", author="Ann", base=0)
    fields = browser.form("/Changing/edit")
    scene.wiki.save("Changing", "WORTGEHEIM", author="Ann", base=1)
    page = scene.wiki.page("Changing")
    scene.wiki.rights.change("Changing", page.rights, "", {Privilege.READ: "EditorsGroup"})
    answer = browser.post("/Changing/edit", {**fields, "body": "mine"})
    assert answer.status_code == 403
    assert "mine" in answer.text
    assert "WORTGEHEIM" not in answer.text
    assert replace(page, rights=scene.wiki.page("Changing").rights) == scene.wiki.page("Changing")
