"""Comments after a crash at each step, and after random operations: nothing is lost, added twice, or left over.

The model test prints its seed; COLUMNAR_SEED repeats a run.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from columnar.client import Connection
from tests.support.falling_wiki import FallingWiki
from tests.support.seeds import seed
from tests.support.store_thread import StoreThread
from tests.support.stored_wiki import ADA, anybody
from wikka_port import schema
from wikka_port.comments import stored_comments, threads
from wikka_port.comments.comment_check import CommentCheck
from wikka_port.comments.comment_lists import LISTED, LISTS
from wikka_port.comments.comment_rows import (
    BY_OWNER,
    COMMENTS,
    COMMENTS_HEAD,
    GRACE_MS,
    REMOVED,
    VISIBLE,
    Comment,
)
from wikka_port.comments.stored_comments import NewComment
from wikka_port.comments.threads import NEWEST, OLDEST, ORDERS, THREADED
from wikka_port.consistency import check
from wikka_port.differences import Kind
from wikka_port.moving.journal import DELETED, MOVES, deleted
from wikka_port.names import page_key
from wikka_port.pages import Wiki
from wikka_port.rights.judging import Decision, NotAllowed
from wikka_port.rights.rules import PageRights, Privilege
from wikka_port.search.beside_pages import key_of_comment
from wikka_port.search.found_documents import Rights, read_documents

SEED = seed(3912)
STEPS = ("stage", "commit", "apply", "clear")
KINDS = ("columnar", "plain")
WRITTEN = (schema.PAGES, schema.REVISIONS, DELETED, MOVES, COMMENTS, LISTS)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreThread]:
    with StoreThread(tmp_path_factory.mktemp("comments") / "data") as running:
        Wiki("127.0.0.1", running.port, indexes="application").prepare()
        yield running


@pytest.fixture(params=KINDS)
def house(request: pytest.FixtureRequest, store: StoreThread) -> Iterator[House]:
    made = House(store.port, request.param)
    made.empty()
    made.wiki.save("Home", "A text.", author="Ada", base=0)
    yield made
    made.wiki.store.close()


class House(FallingWiki):
    """A wiki of comments."""

    def __init__(self, port: int, kind: str) -> None:
        super().__init__(port, kind, "comments")

    def empty(self) -> None:
        """Make the tables anew: marks of deletions would hide what is written at the clock's times."""

        def drop(connection: Connection) -> None:
            for table in (*WRITTEN, *schema.DERIVED):
                connection.delete_table(table, disable=True)

        self.wiki.store.run(drop)
        self.wiki.prepare()

    def differences(self) -> list[str]:
        return [one.text() for one in CommentCheck(self.wiki.rows, self.wiki.comments, self.clock()).differences()]

    def repaired(self) -> None:
        """Check that nothing is lost, and that after a day the sweep and a repair leave nothing over."""
        found = CommentCheck(self.wiki.rows, self.wiki.comments, self.clock()).differences()
        assert [one.text() for one in found if one.kind is Kind.LOST] == []
        self.clock.now += GRACE_MS + 60_000
        self.wiki.comments.sweep()
        assert self.wiki.comments.staged() == []
        report = check(self.wiki, repair=True, clock=self.clock)
        assert [one.text() for one in report.left] == []
        assert self.differences() == []


def added(wiki: Wiki, text: str, page: str = "Home", parent: int = 0, form: str = "", before: int = 0) -> Comment:
    new = NewComment(text, "Ada", "account", form or f"form of {text}", "wikka", parent, before=before)
    return wiki.comments.add(page, b"", new, allow=anybody)


def edited(wiki: Wiki, number: int, text: str, page: str = "Home") -> None:
    wiki.comments.change(page, b"", number, lambda one: replace(one, text=text, edited_ms=1), allow=anybody)


def set_state(wiki: Wiki, number: int, state: str, page: str = "Home") -> None:
    wiki.comments.change(page, b"", number, lambda one: replace(one, state=state, removed_by=BY_OWNER), allow=anybody)


def comments(wiki: Wiki, page: str = "Home", order: str = OLDEST) -> list[tuple[int, str, str]]:
    place = wiki.comments.find_commented(page)
    part = wiki.comments.part(place.history, place.head, order=order)
    return [(one.number, one.text, one.state) for one in part.comments]


def count(wiki: Wiki, page: str = "Home") -> int:
    found = wiki.page(page)
    assert found is not None
    return found.comments.count


def test_an_addition_that_falls_is_there_or_not(house: House) -> None:
    for step in STEPS:
        house.wiki.save(step, "A text.", author="Ada", base=0)
        added(house.wiki, "first", step)
        assert house.fall(step, lambda wiki, step=step: added(wiki, "second", step))
        is_there = step != "stage"
        expected = [(1, "first", VISIBLE), *([(2, "second", VISIBLE)] if is_there else [])]
        assert comments(house.wiki, step) == expected
        assert count(house.wiki, step) == len(expected)
        assert added(house.wiki, "second", step).number == 2, "the same form sent again"
        assert comments(house.wiki, step) == [(1, "first", VISIBLE), (2, "second", VISIBLE)]
        added(house.wiki, "third", step)
    house.repaired()
    for step in STEPS:
        assert [text for _, text, _ in comments(house.wiki, step)] == ["first", "second", "third"]


@pytest.mark.parametrize("then", ["nothing", "another"])
def test_an_edit_and_a_removal_that_fall_are_done_or_not(house: House, then: str) -> None:
    for step in STEPS:
        house.wiki.save(step, "A text.", author="Ada", base=0)
        added(house.wiki, "first", step)
        added(house.wiki, "second", step)
        assert house.fall(step, lambda wiki, step=step: edited(wiki, 1, "other", step))
        done = step != "stage"
        assert comments(house.wiki, step)[0] == (1, "other" if done else "first", VISIBLE)
        if then == "another":
            added(house.wiki, "third", step)
        assert house.fall(step, lambda wiki, step=step: set_state(wiki, 2, REMOVED, step))
        assert comments(house.wiki, step)[1] == (2, "second", REMOVED if done else VISIBLE)
        assert count(house.wiki, step) == (1 if done else 2) + (then == "another")
    house.repaired()
    for step in STEPS:
        done = step != "stage"
        assert comments(house.wiki, step)[0] == (1, "other" if done else "first", VISIBLE)
        assert count(house.wiki, step) == (1 if done else 2) + (then == "another")


def test_a_purge_that_falls_is_finished(house: House) -> None:
    added(house.wiki, "stays")
    for step in ("texts", "files", "comments", "done"):
        house.wiki.save(step, "A text.", author="Ada", base=0)
        for number in range(3):
            added(house.wiki, f"text {number}", step)
        house.wiki.mover.delete(step, ADA)
        row = deleted(house.wiki.rows, step)[0].row
        assert house.fall(step, lambda wiki, step=step, row=row: wiki.mover.purge(step, row, ADA))
    house.wiki.mover.finish_all()
    house.repaired()
    assert [row[:32] for row, _ in house.wiki.rows.scan(COMMENTS)] == [page_key("Home")]
    assert comments(house.wiki) == [(1, "stays", VISIBLE)]


def test_a_rename_and_a_deletion_take_comments_along(house: House) -> None:
    wiki = house.wiki
    added(wiki, "one")
    added(wiki, "two", parent=1)
    wiki.mover.rename("Home", "New", ADA)
    assert comments(wiki, "New") == [(1, "one", VISIBLE), (2, "two", VISIBLE)]
    assert comments(wiki, "Home") == [], "of the redirect"
    history = wiki.comments.find_commented("New").history
    new = NewComment("three", "Ada", "account", "an open form", "wikka")
    assert wiki.comments.add("Home", history, new, allow=anybody).number == 3, "a form from before the rename"
    wiki.mover.delete("New", ADA)
    house.repaired()
    wiki.save("New", "Another page of that name.", author="Ada", base=0)
    assert comments(wiki, "New") == []
    added(wiki, "of the other", "New")
    wiki.mover.undelete("New", deleted(wiki.rows, "New")[0].row, ADA, new="Again")
    assert [text for _, text, _ in comments(wiki, "Again")] == ["one", "two", "three"]
    assert count(wiki, "Again") == 3
    house.repaired()


def test_lists_of_the_wiki_follow_moves(house: House) -> None:
    wiki = house.wiki
    wiki.save("Other", "A text.", author="Ada", base=0)
    added(wiki, "one")
    added(wiki, "two", "Other")
    added(wiki, "three")

    def listed(user: str = "") -> list[tuple[str, str]]:
        return [(one.page, one.comment.text) for one in wiki.recent_comments(user=user, limit=10).found]

    assert listed() == listed("ada") == [("Home", "three"), ("Other", "two"), ("Home", "one")]
    wiki.mover.rename("Home", "New", ADA)
    assert listed() == [("New", "three"), ("Other", "two"), ("New", "one")]
    wiki.mover.delete("New", ADA)
    assert listed() == [("Other", "two")]
    wiki.mover.undelete("New", deleted(wiki.rows, "New")[0].row, ADA)
    assert listed() == [("New", "three"), ("Other", "two"), ("New", "one")]
    set_state(wiki, 2, REMOVED, "New")
    assert listed() == [("Other", "two"), ("New", "one")]
    assert wiki.comment_counts() == ({"New": 1, "Other": 1}, "")
    wiki.rename_edits("Ada", "Former user 12ab")
    assert listed("Ada") == []
    assert listed("former user 12ab") == [("Other", "two"), ("New", "one")]
    house.repaired()


def test_lists_and_search_show_what_is_committed_and_no_removed_text(house: House) -> None:
    for step in STEPS:
        house.wiki.save(step, "A text.", author="Ada", base=0)
        added(house.wiki, f"secret of {step}", step)
        added(house.wiki, f"first of {step}", step)
        assert house.fall(step, lambda wiki, step=step: set_state(wiki, 1, REMOVED, step))
        is_done = step != "stage"

        def texts() -> list[str]:
            listed = [one.comment.text for one in house.wiki.recent_comments(limit=20).found]
            keys = [key_of_comment(row) for row, _ in house.wiki.rows.scan(COMMENTS)]
            found = house.wiki.store.run(lambda c: read_documents(c, keys, Rights(), texts=True))
            assert sorted(one.text.strip() for one in found) == sorted(listed)
            return listed

        assert (f"secret of {step}" in texts()) != is_done
        assert house.fall(step, lambda wiki, step=step: edited(wiki, 2, f"other of {step}", step))
        assert (f"other of {step}" in texts(), f"first of {step}" in texts()) == (is_done, not is_done)
    house.repaired()


def test_two_who_comment_at_once_both_have_their_comment(house: House) -> None:
    added(house.wiki, "first")
    others = [house.opened() for _ in range(4)]
    begun = threading.Barrier(len(others))

    def write(place: int) -> None:
        begun.wait()
        for number in range(3):
            added(others[place], f"{place} {number}", parent=1)

    writers = [threading.Thread(target=write, args=(place,)) for place in range(len(others))]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    found = comments(house.wiki, order=THREADED)
    assert sorted(number for number, _, _ in found) == list(range(1, 14))
    assert {text for _, text, _ in found} == {
        "first",
        *(f"{place} {number}" for place in range(4) for number in range(3)),
    }
    assert count(house.wiki) == 13
    for other in others:
        other.store.close()
    house.repaired()


def test_a_right_that_is_taken_away_meanwhile_counts(house: House) -> None:
    """The rights are in the condition of the commit: a change between their reading and the commit is seen."""

    def allow(name: str, rights: PageRights) -> None:
        if rights.lists:
            raise NotAllowed(name, Privilege.COMMENT_POST, Decision(False, "closed"))
        house.wiki.rights.change("Home", rights, "Ada", {Privilege.COMMENT_POST: "!*"})

    if house.kind == "columnar":
        new = NewComment("late", "Ada", "account", "form", "wikka")
        with pytest.raises(NotAllowed):
            house.wiki.comments.add("Home", b"", new, allow=allow)
        assert comments(house.wiki) == []
        house.repaired()


def test_parts_of_many_comments(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_comments, "PART", 10)
    monkeypatch.setattr(threads, "PART", 10)
    numbers = range(1, 24)
    for number in numbers:
        added(house.wiki, str(number), parent=number - 1 if number % 7 == 0 else 0, before=number)
    place = house.wiki.comments.find_commented("Home")
    for order, expected in ((OLDEST, list(numbers)), (NEWEST, list(reversed(numbers)))):
        found = [house.wiki.comments.part(place.history, place.head, order=order, part=one) for one in (1, 2, 3)]
        assert [one.number for part in found for one in part.comments] == expected
    parts, after, paths = 0, "", list[str]()
    while after or not parts:
        part = house.wiki.comments.part(place.history, place.head, order=THREADED, after=after)
        paths += [one.path for one in part.comments]
        parts, after = parts + 1, part.after
    assert paths == sorted(paths)
    assert (parts, len(paths)) == (3, len(numbers))
    for order in ORDERS:
        at = house.wiki.comments.part(place.history, place.head, order=order, at=21)
        assert 21 in [one.number for one in at.comments], order
    house.repaired()


def test_each_fault_is_named_and_repaired(house: House) -> None:
    for number in range(3):
        added(house.wiki, f"text {number}")
    rows, key = house.wiki.rows, page_key("Home")
    assert house.differences() == []
    cell = rows.row(schema.PAGES, key, [COMMENTS_HEAD])[COMMENTS_HEAD]
    rows.put(schema.PAGES, key, {COMMENTS_HEAD: cell.replace(b"3:3:", b"3:1:")})
    lists = sorted(row for row, _ in rows.scan(LISTS))
    at_ms = house.clock()
    house.wiki.store.run(lambda c: c.table(LISTS).delete(lists[-1], timestamp=at_ms))
    rows.put(LISTS, lists[1].replace(lists[1][-7:], b"0000009"), {LISTED: b"1"}, timestamp=at_ms)
    kinds = sorted(one.partition(" ")[0] for one in house.differences())
    assert kinds == ["comment_lists", "comment_lists", "pages"], house.differences()
    house.repaired()
    assert count(house.wiki) == 3
    rows.delete(COMMENTS, key + b"0000002")
    assert any("0000002: lost" in one for one in house.differences())


class Model:
    """The comments of the pages, beside the wiki in which the same is done."""

    def __init__(self, house: House, rng: random.Random) -> None:
        self.house, self.rng = house, rng
        self.pages: dict[str, list[list[str]]] = {"Home": []}
        self.sent = 0

    def add(self, page: str) -> None:
        self.sent += 1
        text, form = f"text {self.sent}", f"form {self.sent}"
        parent = self.rng.randrange(len(self.pages[page]) + 1)
        if parent and self.pages[page][parent - 1][1] == REMOVED:
            parent = 0
        if self.rng.random() < 0.4:
            self.house.fall(self.rng.choice(STEPS), lambda wiki: added(wiki, text, page, parent, form))
        added(self.house.wiki, text, page, parent, form)
        self.pages[page].append([text, VISIBLE])

    def change(self, page: str) -> None:
        kept = self.pages[page]
        if not kept:
            return
        number, self.sent = self.rng.randrange(len(kept)) + 1, self.sent + 1
        text, state = f"edit {self.sent}", self.rng.choice((VISIBLE, REMOVED))

        def work(wiki: Wiki) -> None:
            edited(wiki, number, text, page)
            set_state(wiki, number, state, page)

        if self.rng.random() < 0.4:
            self.house.fall(self.rng.choice(STEPS), work)
        work(self.house.wiki)
        kept[number - 1] = [text, state]

    def move(self, page: str) -> None:
        new = self.rng.choice(("Home", "One", "Two"))
        if new not in self.pages:
            self.house.wiki.mover.rename(page, new, ADA, redirect=False)
            self.pages[new] = self.pages.pop(page)

    def delete(self, page: str) -> None:
        self.house.wiki.mover.delete(page, ADA)
        self.house.wiki.mover.undelete(page, deleted(self.house.wiki.rows, page)[0].row, ADA)

    def check(self) -> None:
        for page, kept in self.pages.items():
            expected = [(number, text, state) for number, (text, state) in enumerate(kept, 1)]
            assert comments(self.house.wiki, page) == expected, (SEED, page)
            assert count(self.house.wiki, page) == sum(state == VISIBLE for _, state in kept), (SEED, page)


def test_random_operations_agree_with_a_model(house: House) -> None:
    rng = random.Random(f"{SEED} {house.kind}")
    model = Model(house, rng)
    acts = [model.add, model.add, model.add, model.change, model.change, model.move, model.delete]
    for _ in range(30):
        rng.choice(acts)(rng.choice(sorted(model.pages)))
    model.check()
    house.repaired()
    model.check()
