"""The trigger functions end in the tables that the pages say, whatever the order of what happens.

A simulated store commits saves and deletions of three pages; each change goes to each function, in
the order of its row.  Hypothesis decides before every single step of every table call and every single effect who
goes next, who is killed and delivered again (from the beginning, or from an earlier change of its row), and which
delivery ends as a dead letter that is retried at the end.  Effects of a slice become durable in any order.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from columnar.triggers.api import Barrier, Change, ChangedCell
from columnar.triggers.slices import function_of
from tests.support.deep import seeds
from tests.support.derived_pages import Derived
from tests.support.fake_tables import Run, Stepper, Tables, write_slices
from wikka_port import schema, triggers
from wikka_port.names import page_key
from wikka_port.next_revision import draft_after
from wikka_port.page_rows import change_entry, page_cells, revision_cells
from wikka_port.search.postings import STEMS, column_of, parse_stems, stem_of_row
from wikka_port.wanted import wanted_pages

NAMES = ("Alpha", "Beta", "Gamma")
CHARACTERS = {"Alpha": "潮汐", "Beta": "赤潮", "Gamma": "潮"}  # words beside a link, which have one character in common
EXAMPLES = int(os.environ.get("COLUMNAR_WIKI_EXAMPLES") or seeds("examples of a wiki's triggers", deep=40, short=15))
SAVE = st.tuples(st.sampled_from(NAMES), st.sets(st.sampled_from(NAMES), max_size=3))
DELETE = st.tuples(st.sampled_from(NAMES), st.none())


NEW = tuple(one.call for one in triggers.REGISTRATIONS)
OLDER = (*(getattr(triggers, name.removeprefix("wiki-")) for name in triggers.OLDER), triggers.indexes)
SETS = pytest.mark.parametrize("functions", [NEW, OLDER, (*NEW, *OLDER)], ids=["new", "older", "both"])


def _of_changes(call: Any) -> Any:
    """The function as one that takes changes and a client."""
    if call in NEW:
        return call
    if function_of(call).wants_client:
        return lambda changes, client: call(changes[0], client)
    return lambda changes, _client: call(changes[0])


@dataclass
class Delivery:
    members: list[tuple[Queue, list[Change]]]
    run: Run


@dataclass
class Queue:
    """The changes of one row for one function."""

    call: Any
    is_batch: bool
    changes: list[Change] = field(default_factory=list)
    at: int = 0  # the next to be delivered
    attempt: int = 1
    delivery: Delivery | None = None

    def next_changes(self, most: int) -> list[Change]:
        return [replace(change, attempt=self.attempt) for change in self.changes[self.at : self.at + most]]


class World:
    def __init__(self, functions: Sequence[Any] = NEW, seed: int = 0, *, batches: bool = False) -> None:
        self.rng = random.Random(seed)
        self.tables = Tables()
        self.stepper = Stepper(self.tables)
        calls = {one: _of_changes(one) for one in functions}
        self.queues = {
            (one.__name__, page_key(name)): Queue(call, batches and one in NEW)
            for one, call in calls.items()
            for name in NAMES
        }
        self.dead: list[tuple[Any, Change]] = []
        self.clock = 1_000
        self.entries: dict[bytes, dict[bytes, bytes]] = {}  # what ``changes`` must hold

    def row(self, key: bytes) -> dict[bytes, bytes]:
        return self.tables.visible(schema.PAGES).get(key, {})

    def commit(self, name: str, links: set[str] | None) -> None:
        """A save, or a deletion, and its change in the log, in one step."""
        key = page_key(name)
        before = self.row(key)
        self.clock += 7
        if links is None:
            if not before:
                return
            cells = tuple(ChangedCell("delete", column, self.clock) for column in before)
            self.tables.table(schema.PAGES).delete(key, list(before), self.clock)
        else:
            body = " ".join(f"[[{link}]] {CHARACTERS[link]}" for link in sorted(links))
            draft = draft_after(before, name=name, body=body, author="Ann", note="", time_ms=self.clock)
            now = {**page_cells(draft), schema.VERSIONCOUNT: draft.head.pack()}
            cells = tuple(ChangedCell("put", column, self.clock, value) for column, value in now.items())
            self.tables.table(schema.REVISIONS).put(
                schema.revision_row(key, draft.head), revision_cells(draft), self.clock
            )
            self.tables.table(schema.PAGES).put(key, now, self.clock)
            row, entry = change_entry(key, draft.head, now, schema.USER, schema.NOTE)
            self.entries[row] = entry
        change = Change(schema.PAGES, key, self.clock, "", cells, {}, before)
        for (_, queued), queue in self.queues.items():
            if queued == key:
                queue.changes.append(change)

    def waiting(self) -> list[Queue]:
        return [queue for queue in self.queues.values() if queue.at < len(queue.changes)]

    def step(self, queue: Queue, fate: int) -> None:
        """One step of the delivery at the head of ``queue``."""
        if queue.delivery is None:
            self._deliver(queue)
        delivery = queue.delivery
        assert delivery is not None, "it was begun"
        delivery.run.go(kill=fate > 0)
        if not delivery.run.done:
            return
        for one, changes in delivery.members:
            one.delivery = None
            if fate == 1:  # the worker died: these changes again
                one.attempt += 1
            elif fate == 2:  # the store died too: its cursor lies further back, and attempts are forgotten
                one.at, one.attempt = max(one.at - 2, 0), 1
            else:
                if fate == 3:
                    self.dead += [(one.call, change) for change in changes]
                one.at, one.attempt = one.at + len(changes), 1

    def _deliver(self, queue: Queue) -> None:
        """A batch has several changes of a page, and those of other pages."""
        members = [(queue, queue.next_changes(self.rng.randint(1, 2) if queue.is_batch else 1))]
        if queue.is_batch:
            idle = (
                one for one in self.waiting() if one.call is queue.call and one.delivery is None and one is not queue
            )
            members += [(one, one.next_changes(1)) for one in idle if self.rng.random() < 0.5]
        seen = [replace(change, now=self.row(change.row)) for _, changes in members for change in changes]
        run = self.stepper.run(lambda: self._run(queue.call, seen))
        for one, _ in members:
            one.delivery = Delivery(members, run)

    def _run(self, call: Any, changes: list[Change]) -> None:
        write_slices(self.tables, call(changes, self.tables), changes[0].timestamp, self.rng.shuffle)

    def retry_dead_letters(self) -> None:
        for call, change in self.dead:
            now = self.row(change.row)
            again = replace(change, changes=(), before={}, now=now, is_backfill=True)
            run = self.stepper.run(lambda call=call, again=again: self._run(call, [again]))  # type: ignore[misc]
            while not run.done:
                run.go()

    def check(self, *, with_changes: bool) -> None:
        pages = self.tables.visible(schema.PAGES)
        expected = Derived.of(pages)
        assert self.tables.visible(schema.BACKLINKS) == expected.backlinks
        assert self.tables.visible(schema.NAMES) == expected.names
        of_words = [queue for queue in self.queues.values() if queue.call is triggers.words_of_batch]
        if of_words and all(queue.at == len(queue.changes) for queue in of_words):
            assert self.tables.visible(schema.TERMS) == expected.terms
            assert self.tables.visible(schema.DOCS) == expected.docs
        expected.check_wanted(self.tables)
        if with_changes:
            assert self.tables.visible(schema.CHANGES) == self.entries


def play(data: st.DataObject, commits: list[Any], fates: st.SearchStrategy[int], functions: Sequence[Any]) -> World:
    world = World(functions, data.draw(st.integers(0, 1_000)), batches=True)
    left = list(reversed(commits))
    while left or world.waiting():
        waiting = world.waiting()
        choice = data.draw(st.integers(0, len(waiting) - (not left)))
        if choice == len(waiting):
            world.commit(*left.pop())
        else:
            queue = waiting[choice]
            for _ in range(data.draw(STEPS)):
                if queue.at < len(queue.changes):
                    world.step(queue, 0)
            if queue.at < len(queue.changes):
                world.step(queue, data.draw(fates))
    world.retry_dead_letters()
    return world


STEPS = st.sampled_from([0, 0, 0, 1, 2, 5])
# Mostly nothing happens; where something does, it happens between any two calls.
KILLS = st.sampled_from([0] * 6 + [1, 2])
DEATHS = st.sampled_from([0] * 6 + [1, 2, 3])


@SETS
@settings(max_examples=EXAMPLES)
@given(data=st.data(), commits=st.lists(st.one_of(SAVE, SAVE, DELETE), min_size=1, max_size=6))
def test_any_interleaving_with_kills_ends_in_what_the_pages_say(
    functions: Sequence[Any], data: st.DataObject, commits: list[Any]
) -> None:
    play(data, commits, KILLS, functions).check(with_changes=True)


@SETS
@settings(max_examples=EXAMPLES)
@given(data=st.data(), commits=st.lists(SAVE, min_size=1, max_size=6))
def test_dead_letters_retried_at_the_end_leave_nothing_behind(
    functions: Sequence[Any], data: st.DataObject, commits: list[Any]
) -> None:
    play(data, commits, DEATHS, functions).check(with_changes=True)


def deliver(world: World, name: str) -> Queue:
    """Run the next change of a page."""
    queue = world.queues["indexes_of_batch", page_key(name)]
    at = queue.at
    while queue.at == at:
        world.step(queue, 0)
    return queue


def test_a_target_that_is_made_between_the_look_and_the_put_is_not_wanted_until_it_ends() -> None:
    """The source looks (no target), the target is made and its function runs, the source puts: its cell is spare."""
    world = World()
    world.commit("Alpha", {"Beta"})
    while not world.tables.visible(schema.BACKLINKS).get(page_key("Alpha")):
        world.step(world.queues["indexes_of_batch", page_key("Alpha")], 0)
    world.commit("Beta", set())
    deliver(world, "Beta")
    deliver(world, "Alpha")
    assert list(world.tables.visible(schema.WANTED)) == [page_key("Beta")]
    world.check(with_changes=True)
    world.commit("Beta", None)
    deliver(world, "Beta")
    world.check(with_changes=True)


def test_a_target_that_ends_between_the_look_and_the_put_is_wanted() -> None:
    """The source looks (it is there), the target ends and its function finds no link yet, the source puts its link."""
    world = World()
    world.commit("Beta", set())
    deliver(world, "Beta")
    world.commit("Alpha", {"Beta"})
    while not world.tables.visible(schema.BACKLINKS).get(page_key("Alpha")):
        world.step(world.queues["indexes_of_batch", page_key("Alpha")], 0)
    world.commit("Beta", None)
    deliver(world, "Beta")
    deliver(world, "Alpha")
    assert world.tables.visible(schema.WANTED) == {page_key("Beta"): {schema.GONE: b"Beta"}}
    world.check(with_changes=True)


def test_a_page_whose_name_nobody_knows_any_more_is_wanted_by_the_name_in_the_links() -> None:
    world = World()
    world.commit("Alpha", {"Beta"})
    deliver(world, "Alpha")
    end = Change(schema.PAGES, page_key("Beta"), world.clock, "", (), {}, is_backfill=True)
    world._run(triggers.indexes_of_batch, [end])
    world.tables.table(schema.WANTED).delete(page_key("Beta"), [schema.FROM + page_key("Alpha")], world.clock)
    assert wanted_pages(world.tables, b"", 10) == [("Beta", 1)]  # type: ignore[arg-type]


def test_what_an_index_knows_of_a_source_is_on_disk_before_what_it_is_for_and_goes_after_it() -> None:
    world = World()
    for links in ({"Beta", "Gamma"}, {"Gamma"}):
        world.commit("Alpha", links)
        queue = world.queues["indexes_of_batch", page_key("Alpha")]
        at = queue.at
        while queue.at == at:
            world.step(queue, 0)
            held = world.tables.visible(schema.BACKLINKS)
            known = {column[len(schema.TO) :] for column in held.get(page_key("Alpha"), {})}
            assert {row for row, cells in held.items() if schema.FROM + page_key("Alpha") in cells} <= known


def test_what_the_index_of_words_knows_of_a_page_is_on_disk_before_its_postings_and_goes_after_them() -> None:
    world = World()
    for links in ({"Beta", "Gamma"}, {"Gamma"}):
        world.commit("Alpha", links)
        queue = world.queues["words_of_batch", page_key("Alpha")]
        at = queue.at
        while queue.at == at:
            world.step(queue, 0)
            known = parse_stems(world.tables.visible(schema.DOCS).get(page_key("Alpha"), {}).get(STEMS, b""))
            column = column_of(page_key("Alpha"))
            held = {stem_of_row(row) for row, cells in world.tables.visible(schema.TERMS).items() if column in cells}
            assert held <= known
        assert held == known


def test_an_old_delivery_that_comes_late_brings_no_link_back() -> None:
    world = World()
    world.commit("Alpha", {"Beta"})
    world.commit("Alpha", set())
    queue = deliver(world, "Alpha")
    deliver(world, "Alpha")
    queue.at = 0
    deliver(world, "Alpha")
    assert world.tables.visible(schema.BACKLINKS) == {}
    assert world.tables.visible(schema.WANTED) == {}


def test_a_change_of_other_cells_of_a_page_is_none_of_theirs() -> None:
    tables = Tables()
    change = Change(schema.PAGES, page_key("Alpha"), 5, "", (ChangedCell("put", b"meta:acl", 5, b"x"),), {}, {})
    for call in (*NEW, *OLDER):
        assert [step for step in _of_changes(call)([change], tables) if type(step) is not Barrier] == []


def test_a_first_delivery_writes_what_changed_and_a_repeated_one_all_that_the_page_says() -> None:
    """A page of many links costs one link; where a delivery may have been lost, nothing is taken for granted."""
    for attempt, again in ((1, set()), (2, {"Gamma"})):
        world = World()
        world.commit("Alpha", {"Gamma"})
        deliver(world, "Alpha")
        lost = schema.FROM + page_key("Alpha")
        world.tables.table(schema.BACKLINKS).delete(page_key("Gamma"), [lost], world.clock)
        world.commit("Alpha", {"Beta", "Gamma"})
        world.queues["indexes_of_batch", page_key("Alpha")].attempt = attempt
        deliver(world, "Alpha")
        linked = world.tables.visible(schema.BACKLINKS)
        assert {name for name in NAMES if lost in linked.get(page_key(name), {})} == {"Beta", *again}


def test_words_of_a_delivery_that_died_with_the_store_go_though_the_change_that_took_them_is_a_dead_letter() -> None:
    """The first delivery wrote a word, nobody knows of it, and the page has lost the word when it is repeated."""
    world = World()
    queue = world.queues["words_of_batch", page_key("Gamma")]
    world.commit("Gamma", {"Beta"})
    while not any(row.startswith(b"beta") for row in world.tables.visible(schema.TERMS)):
        world.step(queue, 0)
    world.step(queue, 2)
    assert (queue.at, queue.attempt) == (0, 1)
    world.commit("Gamma", set())
    while queue.at == 0:
        world.step(queue, 0)
    world.step(queue, 3)
    assert queue.at == len(queue.changes)
    for other in world.queues.values():
        while other.at < len(other.changes):
            world.step(other, 0)
    world.retry_dead_letters()
    world.check(with_changes=True)
