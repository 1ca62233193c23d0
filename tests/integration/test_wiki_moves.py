"""Renaming, deleting and bringing back, on a store: killed at every step, from two sides at once, and at random.

The model test prints its seed; COLUMNAR_SEED repeats a run.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.seeds import seed
from tests.support.store_thread import StoreThread
from wikka_port import schema
from wikka_port.consistency import check
from wikka_port.moving.journal import DELETED, OPEN_ROW, deleted
from wikka_port.moving.mover import By, Mover
from wikka_port.moving.refusals import BadRevision, NameTaken, NothingThere, SameName
from wikka_port.names import page_key
from wikka_port.pages import Conflict, Wiki
from wikka_port.rights.rules import PageRights, Privilege

SEED = seed(1905)
ANN = By("Ann", "account", "because")
STEPS = ("intent", "mark", "arrive", "leave", "moved", "index", "settle", "done")
KINDS = ("application", "plain", "triggers")
# What a page of the text "two" shows under its name once it was moved so.
IS_LEFT = {"rename": "#REDIRECT [[", "move": "None", "delete": "None", "undelete": "two", "purge": "None"}


class Fallen(Exception):
    pass


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000_000

    def __call__(self) -> int:
        self.now += 1_000
        return self.now


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreThread]:
    with StoreThread(tmp_path_factory.mktemp("moves") / "data", trigger_modules=("wikka_port.triggers",)) as running:
        yield running


def opened(port: int, kind: str, clock: Callable[[], int]) -> Wiki:
    wiki = Wiki("127.0.0.1", port, indexes="triggers" if kind == "triggers" else "application", clock=clock)
    if kind == "plain":
        wiki.store._is_columnar = False
    return wiki


@pytest.fixture(params=KINDS)
def wiki(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Wiki]:
    with StoreThread(tmp_path, trigger_modules=("wikka_port.triggers",)) as store:
        clock = Clock()
        opened(store.port, "application" if request.param != "triggers" else "triggers", clock).prepare()
        made = opened(store.port, request.param, clock)
        yield made
        made.store.close()


def save(wiki: Wiki, name: str, body: str, author: str = "Ann") -> int:
    held = wiki.page(name)
    return wiki.save(name, body, author=author, base=held.number if held else 0).number


def body(wiki: Wiki, name: str) -> str | None:
    page = wiki.page(name)
    return None if page is None else page.body


def acting(wiki: Wiki, name: str, act: str, row: bytes) -> Callable[[], object]:
    """A move of IS_LEFT, to be called; ``row``: of ``deleted``, for what is done with a deleted page."""
    calls: dict[str, Callable[[], object]] = {
        "rename": lambda: wiki.mover.rename(name, f"{name} new", ANN),
        "move": lambda: wiki.mover.rename(name, f"{name} new", ANN, redirect=False),
        "delete": lambda: wiki.mover.delete(name, ANN),
        "undelete": lambda: wiki.mover.undelete(name, row, ANN),
        "purge": lambda: wiki.mover.purge(name, row, ANN),
    }
    return calls[act]


def assert_right(wiki: Wiki) -> None:
    assert wiki.settle("", 30)
    report = check(wiki, settle=lambda: wiki.settle("", 30))
    assert report.differences == ()
    assert wiki.mover.journal.opened() == {}


def test_a_renamed_page_has_its_revisions_and_rights_and_the_old_name_leads_there(wiki: Wiki) -> None:
    for number in range(4):
        save(wiki, "Old name", f"text {number} [[Target]]")
    save(wiki, "Linking", "to [[Old name]]")
    lists = {Privilege.WRITE: "Ann"}
    wiki.rights.change("Old name", PageRights(), "Olga", lists)
    wiki.mover.rename("Old name", "New/name", ANN)
    page = wiki.page("New/name")
    assert page is not None
    assert (page.name, page.number, page.body, page.owner) == ("New/name", 4, "text 3 [[Target]]", "Olga")
    assert page.rights.lists == lists
    assert [one.body for one in wiki.revisions("New/name", bodies=True)][3] == "text 0 [[Target]]"
    old = wiki.page("Old name")
    assert old is not None
    assert (old.body, old.number, old.rights.lists) == ("#REDIRECT [[New&#47;name|]]", 5, lists)
    assert [one.number for one in wiki.revisions("Old name")] == [5]
    assert wiki.settle("", 30)
    assert wiki.backlinks("Target") == ["New/name"]
    assert wiki.backlinks("New/name") == ["Old name"]
    assert wiki.names() == ["Linking", "New/name", "Old name"]
    assert {(one.name, one.number) for one in wiki.changes()[0]} == {
        *(("New/name", number) for number in range(1, 5)), ("Old name", 5), ("Linking", 1),
    }  # fmt: skip
    assert save(wiki, "New/name", "on") == 5
    assert save(wiki, "Old name", "a page of its own") == 6
    assert_right(wiki)


def test_a_revision_is_hidden_shown_and_hidden_again(wiki: Wiki) -> None:
    """The cell that names the hidden revisions is empty in between, and there."""
    for number in range(2):
        save(wiki, "A", f"text {number}")
    for hidden in (True, False, True):
        wiki.mover.hide("A", 1, hidden=hidden)
        assert wiki.mover.page_row("A")[schema.HIDDEN] == (b"1" if hidden else b"")
    assert_right(wiki)


@pytest.mark.parametrize("number", [0, 3])
def test_a_revision_that_is_not_there_is_not_hidden(wiki: Wiki, number: int) -> None:
    for turn in range(2):
        save(wiki, "A", f"text {turn}")
    with pytest.raises(BadRevision, match=f"no revision {number}"):
        wiki.mover.hide("A", number, hidden=True)
    assert schema.HIDDEN not in wiki.mover.page_row("A")


def test_a_page_and_its_redirect_say_how_much_longer_they_are(wiki: Wiki) -> None:
    save(wiki, "A", "four")
    save(wiki, "A", "four more")
    wiki.mover.rename("A", "B", ANN)
    assert [one.grown for one in wiki.revisions("B")] == [5, 4]
    (redirect,) = wiki.revisions("A", bodies=True)
    assert redirect.grown == len(redirect.body or "")


def test_there_and_back_and_a_new_page_at_the_old_name(wiki: Wiki) -> None:
    save(wiki, "A", "one")
    save(wiki, "A", "two")
    wiki.mover.rename("A", "B", ANN, redirect=False)
    assert wiki.page("A") is None
    assert wiki.existing(["A", "B"]) == {"B"}
    assert save(wiki, "A", "new") == 3, "numbers at one name do not come again"
    assert [one.number for one in wiki.revisions("A")] == [3]
    with pytest.raises(NameTaken):
        wiki.mover.rename("B", "A", ANN)
    wiki.mover.delete("A", ANN)
    wiki.mover.rename("B", "A", ANN, redirect=False)
    assert [one.body for one in wiki.revisions("A", bodies=True)] == ["two", "one"]
    assert save(wiki, "A", "three") == 3
    for name, new, refused in (("A", "A", SameName), ("B", "C", NothingThere)):
        with pytest.raises(refused):
            wiki.mover.rename(name, new, ANN)
    assert_right(wiki)


def test_a_deleted_page_is_in_no_list_and_comes_back_whole(wiki: Wiki) -> None:
    save(wiki, "Page", "one [[Other]]")
    save(wiki, "Page", "secret word [[Other]]")
    wiki.rights.change("Page", PageRights(), "Olga", {Privilege.READ: "Ann"})
    save(wiki, "Reader", "[[Page]]")
    move = wiki.mover.delete("Page", ANN)
    assert wiki.settle("", 30)
    assert (wiki.page("Page"), wiki.revisions("Page"), wiki.names()) == (None, [], ["Reader"])
    assert {one.name for one in wiki.changes()[0]} == {"Reader"}
    assert wiki.backlinks("Other") == []
    assert dict(wiki.wanted()) == {"Page": 1}
    assert_right(wiki)
    save(wiki, "Page", "another, open to all")
    page = wiki.page("Page")
    assert page is not None
    assert not page.rights.lists, "a new page has not the rights of the deleted one"
    found = deleted(wiki.rows, "Page")
    assert [(one.name, one.number, one.by, one.reason, one.row) for one in found] == [
        ("Page", 2, "Ann", "because", move.row)
    ]
    wiki.mover.undelete("Page", move.row, ANN, new="Page as it was")
    back = wiki.page("Page as it was")
    assert back is not None
    assert (back.number, back.owner, back.rights.lists) == (2, "Olga", {Privilege.READ: "Ann"})
    assert deleted(wiki.rows, "Page") == []
    assert_right(wiki)


def test_what_is_purged_is_nowhere(wiki: Wiki) -> None:
    for number in range(3):
        save(wiki, "Page", f"gone {number}")
    move = wiki.mover.delete("Page", ANN)
    assert wiki.mover.purge("Page", move.row, ANN) == 3
    assert deleted(wiki.rows, "Page") == []
    tables = (schema.PAGES, schema.REVISIONS, DELETED, schema.TERMS, schema.CHANGES)
    for name in tables:
        rows = wiki.store.run(lambda c, n=name: list(c.table(n).scan()))  # type: ignore[misc]
        assert not any(b"gone" in value for _, cells in rows for value in cells.values()), name
    assert_right(wiki)


@pytest.mark.parametrize("kind", ["application", "plain"])
def test_killed_at_each_step_it_is_finished_at_the_next_start(kind: str, store: StoreThread) -> None:
    clock = Clock()
    opened(store.port, "application", clock).prepare()
    for step in STEPS:
        for act in ("rename", "move", "delete", "undelete", "purge"):
            _fall_and_finish(store.port, kind, clock, f"{kind} {step} {act}", step, act)
    assert_right(opened(store.port, kind, clock))


def _fall_and_finish(port: int, kind: str, clock: Clock, name: str, step: str, act: str) -> None:
    wiki = opened(port, kind, clock)
    save(wiki, name, "one [[Target]]")
    save(wiki, name, "two")
    row = wiki.mover.delete(name, ANN).row if act in ("undelete", "purge") else b""

    def fall(reached: str) -> None:
        if reached == step:
            raise Fallen

    wiki.mover.on_step_done = fall
    has_step = act != "purge" or step in ("intent", "mark", "moved", "done")
    if has_step:
        with pytest.raises(Fallen):
            acting(wiki, name, act, row)()
    else:
        acting(wiki, name, act, row)()
    if act in ("rename", "move"):
        assert {body(wiki, name), body(wiki, f"{name} new")} >= {"two"}, "one of them shows it at any time"
    wiki.store.close()
    wiki = opened(port, kind, clock)
    wiki.mover.finish_all()
    assert str(body(wiki, name)).startswith(IS_LEFT[act]), (step, act)
    if act in ("rename", "move"):
        assert body(wiki, f"{name} new") == "two"
        assert [one.number for one in wiki.revisions(f"{name} new")] == [2, 1]
    assert len(deleted(wiki.rows, name)) == (1 if act == "delete" else 0)
    wiki.store.close()


@pytest.mark.parametrize("kind", ["application", "plain"])
def test_a_save_finds_a_fallen_move_and_finishes_it(kind: str, store: StoreThread) -> None:
    clock = Clock()
    opened(store.port, "application", clock).prepare()
    for step in STEPS[1:5]:
        wiki, name = opened(store.port, kind, clock), f"{kind} saved {step}"
        save(wiki, name, "one")

        def fall(reached: str, step: str = step) -> None:
            if reached == step:
                raise Fallen

        wiki.mover.on_step_done = fall
        with pytest.raises(Fallen):
            wiki.mover.rename(name, f"{name} new", ANN)
        with pytest.raises(Conflict) as conflict:
            opened(store.port, kind, clock).save(name, "mine", author="Bob", base=1)
        assert conflict.value.current is not None
        assert conflict.value.current.body.startswith("#REDIRECT")
        assert save(opened(store.port, kind, clock), f"{name} new", "two") == 2
    assert_right(opened(store.port, kind, clock))


@pytest.mark.parametrize("kind", ["application", "plain"])
def test_of_renames_at_once_one_comes_through_and_no_page_is_lost(kind: str, store: StoreThread) -> None:
    clock = Clock()
    opened(store.port, "application", clock).prepare()
    wiki = opened(store.port, kind, clock)
    for turn in range(6):
        one, two, new = (f"{kind} {turn} {word}" for word in ("one", "two", "new"))
        save(wiki, one, "text of one")
        save(wiki, two, "text of two")
        start, problems = threading.Barrier(4), list[Exception]()

        def act(
            call: Callable[[], object], start: threading.Barrier = start, problems: list[Exception] = problems
        ) -> None:
            start.wait()
            try:
                call()
            except Exception as problem:  # noqa: BLE001 - looked at below
                problems.append(problem)

        calls: list[Callable[[], object]] = [
            lambda one=one, new=new: wiki.mover.rename(one, new, ANN, redirect=False),
            lambda two=two, new=new: wiki.mover.rename(two, new, ANN, redirect=False),
            lambda one=one, turn=turn: wiki.mover.rename(one, f"{kind} {turn} else", ANN, redirect=False),
            lambda two=two: wiki.save(two, "edited two", author="Eve", base=1),
        ]
        threads = [threading.Thread(target=act, args=(call,)) for call in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        names = [f"{kind} {turn} {word}" for word in ("one", "two", "new", "else")]
        texts = sorted(text for name in names if (text := body(wiki, name)) is not None)
        edited = "edited two" in texts
        assert texts in (["text of one", "text of two"], ["edited two", "text of one"],
                         ["edited two", "text of one", "text of two"]), (texts, problems)  # fmt: skip
        assert len(texts) == 2 or edited
        assert all(isinstance(one, NameTaken | NothingThere | Conflict) for one in problems), problems
    assert_right(wiki)


# --- model -------------------------------------------------------------------------------------


@dataclass
class Model:
    pages: dict[str, list[str]] = field(default_factory=dict)  # name -> texts, oldest first
    trash: dict[bytes, tuple[str, list[str]]] = field(default_factory=dict)


@pytest.mark.parametrize("kind", KINDS)
def test_random_edits_and_moves_with_falls_end_as_a_dictionary_says(kind: str, tmp_path: Path) -> None:
    print(f"COLUMNAR_SEED={SEED}")
    rng, clock, model = random.Random(SEED), Clock(), Model()
    with StoreThread(tmp_path, trigger_modules=("wikka_port.triggers",)) as running:
        opened(running.port, "triggers" if kind == "triggers" else "application", clock).prepare()
        wiki = opened(running.port, kind, clock)
        for turn in range(90):
            _turn(wiki, model, rng, turn)
            if rng.random() < 0.2:
                wiki.mover.finish_all()
        wiki.mover.finish_all()
        assert_as(wiki, model)
        assert_right(wiki)
        wiki.store.close()


def _turn(wiki: Wiki, model: Model, rng: random.Random, turn: int) -> None:
    names = [f"Page {number}" for number in range(5)]
    name, other = rng.choice(names), rng.choice(names)
    act = rng.choice(("save", "save", "save", "rename", "rename", "delete", "undelete", "purge"))
    falls_at = rng.choice((*STEPS, *("",) * len(STEPS)))

    def reached(step: str) -> None:
        if step == falls_at:
            raise Fallen

    if act == "save":
        text = f"text {turn} [[{rng.choice(names)}]] [[Missing {rng.randrange(3)}]]"
        save(wiki, name, text)
        model.pages.setdefault(name, []).append(text)
        return
    wiki.mover.on_step_done = reached
    try:
        _move(wiki, model, rng, act, name, other)
    except Fallen:
        wiki.mover.on_step_done = lambda step: None
        wiki.mover.finish_all()
    except (NameTaken, NothingThere, SameName):
        may_be_refused = name == other or other in model.pages or name not in model.pages
        assert may_be_refused
    finally:
        wiki.mover.on_step_done = lambda step: None


def _move(wiki: Wiki, model: Model, rng: random.Random, act: str, name: str, other: str) -> None:
    """The model is told first: a move that has begun comes to its end."""
    if act == "rename":
        redirect = rng.random() < 0.5
        if name in model.pages and other not in model.pages:
            model.pages[other] = model.pages.pop(name)
            if redirect:
                model.pages[name] = [f"#REDIRECT [[{other}|]]"]
        wiki.mover.rename(name, other, ANN, redirect=redirect)
    elif act == "delete":
        texts = model.pages.pop(name, None)
        before = {one.row for one in deleted(wiki.rows)}
        try:
            wiki.mover.delete(name, ANN)
        finally:
            wiki.mover.on_step_done = lambda step: None
            wiki.mover.finish_all()
            new = {one.row for one in deleted(wiki.rows)} - before
            assert len(new) == (texts is not None)
            model.trash.update({row: (name, texts) for row in new if texts is not None})
    elif model.trash:
        row = rng.choice(sorted(model.trash))
        was, texts = model.trash[row]
        if act == "purge":
            del model.trash[row]
            wiki.mover.purge(was, row, ANN)
        elif other not in model.pages:
            del model.trash[row]
            model.pages[other] = texts
            wiki.mover.undelete(was, row, ANN, new=other)


def assert_as(wiki: Wiki, model: Model) -> None:
    for number in range(5):
        name = f"Page {number}"
        held = [one.body for one in wiki.revisions(name, limit=1_000, bodies=True)]
        assert held == model.pages.get(name, [])[::-1], name
    assert {one.row for one in deleted(wiki.rows)} == set(model.trash)
    used = wiki.store.run(lambda c: [row[: schema.KEY_BYTES] for row, _ in c.table(schema.REVISIONS).scan()])
    kept = sum(map(len, model.pages.values())) + sum(len(texts) for _, texts in model.trash.values())
    assert len(used) == kept, "no revision in two pages or in none"


def test_old_rows_are_read_as_ever() -> None:
    assert schema.parse_head(b"7:abc").pack() == b"7:abc"
    moved = schema.Head(7, b"abc", page_key("Old"))
    assert schema.parse_head(moved.pack()) == moved
    held = schema.Head(7, b"abc", b"", b"0123")
    assert held.pack() == b"7:abc::0123"
    assert schema.parse_head(held.pack()) == held
    assert OPEN_ROW > b"f" * 16, "no id of a move"
    assert isinstance(Mover, type)
