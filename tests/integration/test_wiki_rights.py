"""Rights on a real store: a change is one step, a save depends on it, rules count within a second at no call."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner
from werkzeug.test import Client

from columnar.client import Connection
from tests.support.sent_calls import counted_calls
from tests.support.store_thread import StoreThread
from wikka_port import consistency, schema
from wikka_port.accounts.directory import Directory
from wikka_port.app import make_application
from wikka_port.cli import main
from wikka_port.config import WikiConfig
from wikka_port.first_pages import write_first_pages
from wikka_port.moving.mover import By
from wikka_port.names import page_key
from wikka_port.pages import Conflict, Wiki
from wikka_port.preparation import FamiliesMissing
from wikka_port.rights.acl import BadList
from wikka_port.rights.guarded import GuardedWiki
from wikka_port.rights.judging import NotAllowed
from wikka_port.rights.rules import PREFIX_CHARS_MAX, PREFIXES_MAX, RULES_ROW, PageRights, Privilege, page_column
from wikka_port.rights.stored import RightsChanged, StoredRights
from wikka_port.visitors import NOBODY, Visitor

READ, WRITE = Privilege.READ, Privilege.WRITE
ANN = Visitor("Ann", "Ann", "active", False, "")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StoreThread]:
    with StoreThread(tmp_path) as running:
        yield running


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def opened(store: StoreThread, clock: Clock, *, plain: bool = False) -> Wiki:
    """As another process would; ``clock``: by which it holds rules and groups."""
    made = Wiki("127.0.0.1", store.port, indexes="application")
    made.rights = StoredRights(made.rows, clock, made.mover.finish)
    if plain:
        made.store._is_columnar = False
    return made


@pytest.fixture(params=["columnar", "plain"])
def wiki(request: pytest.FixtureRequest, store: StoreThread, clock: Clock) -> Iterator[Wiki]:
    made = opened(store, clock)
    made.prepare()
    made.store._is_columnar = request.param == "columnar"
    yield made
    made.store.close()


def rights_of(wiki: Wiki, name: str) -> PageRights:
    page = wiki.page(name)
    assert page is not None
    return page.rights


def test_a_change_is_one_step_with_its_number(wiki: Wiki) -> None:
    wiki.save("P", "text", author="Ann", base=0, owner="Olga")
    before = rights_of(wiki, "P")
    assert before == PageRights("Olga")
    after = wiki.rights.change("P", before, "Ann", {READ: "Ann\n+", WRITE: ""})
    assert rights_of(wiki, "P") == after
    assert wiki.rights.of(["P", "P_", "Q"]) == {"P": after, "P_": after, "Q": PageRights()}, "however it is written"
    assert after.revision.startswith(b"1:")
    with pytest.raises(RightsChanged):
        wiki.rights.change("P", before, "Mallory", {})
    with pytest.raises(BadList):
        wiki.rights.change("P", after, "Ann", {READ: "!"})
    assert rights_of(wiki, "P") == after
    last = wiki.rights.change("P", after, "", {})
    assert (last.owner, last.lists, last.revision[:2]) == ("", {}, b"2:")
    wiki.save("P", "more", author="Bob", base=1)
    assert rights_of(wiki, "P") == last, "an edit leaves them as they are"
    assert consistency.check(wiki).differences == ()


def test_a_change_leaves_every_other_list_byte_for_byte(wiki: Wiki) -> None:
    """Imported lists have mistakes, and bytes that are no text."""
    wiki.save("P", "text", author="Ann", base=0, owner="Olga")
    wiki.rights.change("P", rights_of(wiki, "P"), "Olga", {READ: "x", WRITE: "!\r\n"}, token="moved-1")
    row, columns = page_key("P"), [page_column(READ), page_column(WRITE)]
    wiki.rows.put(schema.PAGES, row, {page_column(READ): b"Ann, Bob \xe4\r\n"})

    def stored() -> list[bytes]:
        cells = wiki.rows.row(schema.PAGES, row, columns)
        return [cells[column] for column in columns]

    before = rights_of(wiki, "P")
    after = wiki.rights.change("P", before, "Ann", before.lists)
    assert (rights_of(wiki, "P"), after.owner, stored()) == (after, "Ann", [b"Ann, Bob \xe4\r\n", b"!\r\n"])
    with pytest.raises(BadList, match="Read the page: Line 1: one name a line"):
        wiki.rights.change("P", after, "Olga", {**after.lists, READ: "Ann, Bob"})
    assert rights_of(wiki, "P") == after
    after = wiki.rights.change("P", after, "Ann", {**after.lists, WRITE: "Ann "})
    assert stored() == [b"Ann, Bob \xe4\r\n", b"Ann"]
    after = wiki.rights.change("P", after, "Ann", {WRITE: "Ann"})
    assert (rights_of(wiki, "P"), after.lists) == (after, {WRITE: "Ann"}), "a list that is left out is removed"


class Fallen(Exception):
    pass


@pytest.mark.parametrize("step", ["mark", "arrive", "moved", "leave"])
def test_rights_can_be_changed_behind_a_move_that_fell(wiki: Wiki, step: str) -> None:
    wiki.save("P", "text", author="Ann", base=0, owner="Olga")

    def fall(reached: str) -> None:
        if reached == step:
            raise Fallen

    wiki.mover.on_step_done = fall
    with pytest.raises(Fallen):
        wiki.mover.rename("P", "Q", By("Ann"))
    wiki.mover.on_step_done = lambda reached: None
    if step != "leave":  # behind it the old name is a redirect, held by nobody
        with pytest.raises(RightsChanged):
            wiki.rights.change("P", rights_of(wiki, "P"), "Ann", {READ: "Ann"})
    for _ in range(2):
        try:
            wiki.rights.change("Q", rights_of(wiki, "Q"), "Ann", {READ: "Ann"})
        except RightsChanged:
            continue
        break
    assert (rights_of(wiki, "Q").owner, rights_of(wiki, "Q").lists) == ("Ann", {READ: "Ann"})
    assert rights_of(wiki, "P").owner == "Olga"
    assert consistency.check(wiki).differences == ()


def test_a_page_that_ended_meanwhile_leaves_no_rights_to_the_next_one(wiki: Wiki) -> None:
    wiki.save("P", "text", author="Ann", base=0, owner="Olga")
    before = rights_of(wiki, "P")
    wiki.mover.delete("P", By("Olga"))
    with pytest.raises(RightsChanged):
        wiki.rights.change("P", before, "Mallory", {})
    wiki.save("P", "another page", author="Bob", base=0, owner="Bob")
    with pytest.raises(RightsChanged):
        wiki.rights.change("P", before, "Mallory", {})
    assert rights_of(wiki, "P").owner == "Bob"


def guarded_save(wiki: Wiki, body: str, base: int, meanwhile: Callable[[], object]) -> Any:
    """Ann saves; ``meanwhile`` happens between the reading of the page and the commit."""
    stage = wiki.stage

    def staged(drafts: Any) -> None:
        stage(drafts)
        wiki.stage = stage  # type: ignore[method-assign]
        meanwhile()

    wiki.stage = staged  # type: ignore[method-assign]
    return GuardedWiki(wiki, ANN).save("P", body, author="Ann", base=base)


def test_a_right_that_is_lost_before_the_commit_fails_the_save(wiki: Wiki) -> None:
    wiki.save("P", "text", author="Olga", base=0)
    with pytest.raises(NotAllowed) as refused:
        guarded_save(wiki, "mine", 1, lambda: wiki.rights.change("P", PageRights(), "", {WRITE: "!Ann\n*"}))
    assert refused.value.privilege is WRITE
    assert wiki.page("P").body == "text"  # type: ignore[union-attr]
    staged = wiki.store.run(lambda c: sum(1 for _ in c.table(schema.REVISIONS).scan()))
    assert staged == 1, "what was staged is gone"


def test_a_change_that_leaves_the_right_does_not_disturb_a_save(wiki: Wiki) -> None:
    wiki.save("P", "text", author="Olga", base=0)
    saved = guarded_save(wiki, "mine", 1, lambda: wiki.rights.change("P", PageRights(), "", {WRITE: "Ann"}))
    assert saved.number == 2
    assert wiki.page("P").body == "mine"  # type: ignore[union-attr]
    assert consistency.check(wiki).differences == ()


def test_a_real_conflict_is_one(wiki: Wiki) -> None:
    wiki.save("P", "text", author="Olga", base=0)
    with pytest.raises(Conflict):
        guarded_save(wiki, "mine", 1, lambda: wiki.save("P", "theirs", author="Olga", base=1))
    assert wiki.page("P").body == "theirs"  # type: ignore[union-attr]


def test_rules_of_others_count_within_a_second(store: StoreThread, clock: Clock, wiki: Wiki) -> None:
    wiki.save("Secret/plan", "text", author="Olga", base=0)
    wiki.save("Own", "text", author="Olga", base=0)
    other = opened(store, clock)
    reader = GuardedWiki(other, NOBODY)
    assert reader.page("Secret/plan") is not None
    assert reader.names() == ["Own", "Secret/plan"]
    wiki.rights.change_rules("SECRET/", {READ: "+"}, wiki.rights.rules())
    wiki.rights.change("Own", PageRights(), "", {READ: "Olga"})
    with pytest.raises(NotAllowed):
        GuardedWiki(other, NOBODY).page("Own")  # its own list comes with the page, at once
    clock.now += 1
    with pytest.raises(NotAllowed):
        GuardedWiki(other, NOBODY).page("Secret/plan")
    assert GuardedWiki(other, NOBODY).names() == []
    assert GuardedWiki(other, ANN).names() == ["Secret/plan"]
    wiki.rights.change_rules("secret/", {READ: None}, wiki.rights.rules())
    clock.now += 1
    assert GuardedWiki(other, NOBODY).names() == ["Secret/plan"]
    other.store.close()


def test_rules_are_changed_one_after_the_other_and_are_bounded(wiki: Wiki) -> None:
    before = wiki.rights.rules()
    wiki.rights.change_rules("", {WRITE: "+"}, before)
    with pytest.raises(RightsChanged):
        wiki.rights.change_rules("x", {WRITE: "*"}, before)
    rules = wiki.rights.rules()
    for number in range(PREFIXES_MAX - 1):
        rules = wiki.rights.change_rules(f"p{number}", {READ: "+"}, rules)
    with pytest.raises(BadList) as refused:
        wiki.rights.change_rules("one more", {READ: "+"}, rules)
    assert str(PREFIXES_MAX) in str(refused.value)
    with pytest.raises(BadList) as refused:
        wiki.rights.change_rules("p1", {READ: "!"}, rules)
    assert len(wiki.rights.rules().prefixes()) == PREFIXES_MAX
    assert consistency.check(wiki).differences == ()


def test_a_prefix_has_so_many_characters_at_most(wiki: Wiki) -> None:
    longest = "p" * PREFIX_CHARS_MAX
    rules = wiki.rights.change_rules(longest, {READ: "+"}, wiki.rights.rules())
    assert rules.prefixes() == [longest]
    with pytest.raises(BadList, match=f"{PREFIX_CHARS_MAX + 1} characters"):
        wiki.rights.change_rules(longest + "p", {READ: "+"}, rules)


class Counted:
    """Calls of the store's methods, whoever makes them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls = counted_calls(monkeypatch)

    def of(self, work: Callable[[], object]) -> list[str]:
        self.calls.clear()
        work()
        return list(self.calls)


NAMING: Final = 12  # calls of a page that is not there, which names those that may be meant


def test_an_anonymous_view_costs_no_more_calls_than_without_rights(
    store: StoreThread, clock: Clock, wiki: Wiki, monkeypatch: pytest.MonkeyPatch
) -> None:
    wiki.save("P", "to [[Q]] and [[R]]", author="Ann", base=0)
    wiki.save("Bare", "no links", author="Ann", base=0)
    web = Client(make_application(wiki, WikiConfig(secret=b"s" * 32)))
    assert web.get("/P").status_code == 200
    counted = Counted(monkeypatch)

    def view(path: str, late: bool) -> int:
        clock.now += 2 if late else 0
        return len(counted.of(lambda: web.get(path)))

    def views() -> list[int]:
        return [view(path, late) for path in ("/P", "/Bare", "/P/raw") for late in (True, False)]

    before = [2, 2, 1, 1, 1, 1]  # the page, and which of its links are pages
    assert views() == before
    assert view("/Missing", True) <= NAMING
    listed = view("/-/recentchanges", False)
    wiki.rights.change_rules("secret", {READ: "Editors"}, wiki.rights.rules())
    wiki.rights.change("P", PageRights(), "", {WRITE: "Editors"})
    assert view("/P", True) == 2
    assert views() == before
    assert view("/Missing", False) <= NAMING
    assert view("/-/recentchanges", False) == listed + 1, "one look at the rights of all that are shown"


def older(connection: Connection) -> None:
    """The tables as they were before there were rights."""
    for table in schema.TABLES:
        families = {name: given for name, given in table.families.items() if name != "acl"}
        connection.create_table(table.name, families, attributes=table.attributes)


def test_a_wiki_from_before_gets_its_family_in_place(store: StoreThread, clock: Clock) -> None:
    connection = store.connection()
    older(connection)
    made = opened(store, clock)
    made.save("P", "text [[Q]]", author="Ann", base=0, owner="Olga")
    held = store.dump(schema.PAGES, schema.REVISIONS)
    made.prepare()
    assert store.dump(schema.PAGES, schema.REVISIONS) == held, "nothing else changes"
    assert consistency.check(made).differences == ()
    assert rights_of(made, "P") == PageRights("Olga")
    made.rights.change("P", rights_of(made, "P"), "Olga", {READ: "Olga"})
    with pytest.raises(NotAllowed):
        GuardedWiki(made, NOBODY).page("P")
    made.prepare()
    assert consistency.check(made).differences == ()
    made.store.close()
    connection.close()


def test_a_plain_hbase_from_before_says_what_to_enter(store: StoreThread, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = store.connection()
    older(connection)
    made = Wiki("127.0.0.1", store.port, indexes="application")
    monkeypatch.setattr(Connection, "is_columnar", property(lambda _: False))
    with pytest.raises(FamiliesMissing) as refused:
        made.prepare()
    assert "alter 'pages', NAME => 'acl', VERSIONS => 1" in str(refused.value)
    made.store.close()
    connection.close()


def test_the_row_of_the_rules_is_no_page(wiki: Wiki) -> None:
    wiki.rights.change_rules("", {READ: "+"}, wiki.rights.rules())
    assert RULES_ROW not in schema.page_key_of_name_row.__doc__.encode()  # type: ignore[union-attr]
    assert write_first_pages(wiki) > 0
    report = consistency.check(wiki, repair=True)
    assert report.differences == ()
    assert report.pages == wiki.count_pages()


def test_groups_and_users_on_the_store(wiki: Wiki, clock: Clock) -> None:
    wiki.save("Editors", "+Ann+", author="Olga", base=0)
    wiki.save("P", "text", author="Olga", base=0)
    wiki.rights.change("P", PageRights(), "", {READ: "Editors\nNobody[here]"})
    assert GuardedWiki(wiki, ANN).page("P") is not None
    assert GuardedWiki(wiki, ANN).access.readable(["P", "Editors", "No page"]) == {"P", "Editors", "No page"}
    wiki.save("Editors", "+Bob+", author="Olga", base=1)
    clock.now += 1
    with pytest.raises(NotAllowed):
        GuardedWiki(wiki, ANN).page("P")
    Directory(wiki.rows, lambda: 1_000).make("Zoe", status="active")
    wiki.save("Zoe", "+Ann+", author="Ann", base=0)
    assert wiki.rights.members(["Zoe", "Editors"]) == {"Zoe": frozenset(), "Editors": {"bob"}}
    assert wiki.rights.users(["zoë", "Ann"]) == {"zoë"}


def test_a_page_that_is_read_again_has_the_possibilities_of_its_new_rights(wiki: Wiki) -> None:
    wiki.save("P", "text", author="Olga", base=0)
    visitor = GuardedWiki(wiki, ANN)
    visitor.page("P")
    assert visitor.access.can("P").write
    wiki.rights.change("P", PageRights(), "", {WRITE: "Olga"})
    visitor.page("P")
    assert not visitor.access.can("P").write


def test_the_command(store: StoreThread, clock: Clock) -> None:
    made = opened(store, clock)
    made.prepare()
    made.save("P", "text", author="Ann", base=0)
    Directory(made.rows, lambda: 1_000).make("Ann", status="active")

    def run(*words: str, status: int = 0) -> str:
        options = ["--store", f"127.0.0.1:{store.port}", "--indexes=application"]
        ended = CliRunner().invoke(main, ["acl", *words, *options])
        assert ended.exit_code == status, ended.output
        return ended.output

    assert "everybody may do everything" in run("show")
    run("set", "P", "--read", "Ann", "--read", "!*", "--owner", "Ann")
    run("set", "--prefix", "Secret/", "--read", "+")
    run("set", "--site", "--write", "+")
    assert "Ann may. Nobody else may." in run("show", "P")
    assert json.loads(run("show", "P", "--json"))["lists"]["read"]["list"] == "Ann\n!*"
    assert json.loads(run("show", "--json")) == {"": {"write": "+"}, "secret/": {"read": "+"}}
    assert json.loads(run("show", "--prefix", "SECRET/", "--json")) == {"secret/": {"read": "+"}}
    assert "no" in run("explain", "P", status=1)
    assert json.loads(run("explain", "P", "--user", "ann", "--json"))["may"]["change_rights"]["allowed"]
    run("set", "P", "--inherit", "read")
    assert run("explain", "P").startswith("read          yes")
    assert "Line 1" in run("set", "P", "--read", "!", status=1)
    assert "there is no user Nemo" in run("set", "P", "--owner", "Nemo", status=1)
    made.rights.change("P", rights_of(made, "P"), "", {WRITE: "Ann, Bob"}, token="moved-1")
    kept = "a list with a mistake stays as it is: write: Line 1: one name a line"
    assert kept in run("set", "P", "--owner", "Ann")
    assert kept in run("set", "P", "--read", "+")
    assert (rights_of(made, "P").owner, rights_of(made, "P").lists) == ("Ann", {READ: "+", WRITE: "Ann, Bob"})
    assert "  Line 1: one name a line" in run("show", "P")
    shown = json.loads(run("show", "P", "--json"))["lists"]
    assert shown["read"]["mistake"] is None
    assert shown["write"]["mistake"].startswith("Line 1: one name a line")
    assert "Edit the page: Line 1" in run("set", "P", "--write", "Ann, Bob, Mia", status=1)
    assert "mistake" not in run("set", "P", "--write", "Ann")
    assert "there is no page Q" in run("show", "Q", status=1)
    for words in (["set", "P"], ["set", "--read", "+"], ["set", "P", "--site", "--read", "+"]):
        assert "Usage" in run(*words, status=2)
    made.store.close()
