"""Several processes go on with one move: at each call that one of them makes to the store another does the whole of it,
or a part and falls.  No page is lost, none is there twice, none is held, whatever was done in which order.

The seed chooses where the second one falls; it is printed, and COLUMNAR_SEED repeats a run.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from tests.integration.test_wiki_moves import ANN, IS_LEFT, Clock, Fallen, acting, assert_right, body, opened, save
from tests.support.deep import spread
from tests.support.falling_wiki import watch_calls
from tests.support.seeds import seed
from tests.support.store_thread import StoreThread
from wikka_port import schema
from wikka_port.moving.journal import DELETED, INTENT, Move, deleted
from wikka_port.moving.steps import MoveSteps, read
from wikka_port.page_rows import head_of
from wikka_port.pages import Wiki

SEED = seed(411)
CALLS = 80  # more than a move makes


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreThread]:
    with StoreThread(tmp_path_factory.mktemp("helped") / "data", trigger_modules=("wikka_port.triggers",)) as running:
        yield running


def before_call(wiki: Wiki, number: int, then: Callable[[], None]) -> list[int]:
    """``then`` is called before the wiki's call of that number to the store.  How many it has made, in a list."""
    made, fallen = [0], list[bool]()

    def counted(call: Callable[[], Any], method: str, _args: Sequence[Any]) -> Any:
        if method == "scannerClose":  # a generator that is thrown away makes this one, where nobody hears it fall
            return None if fallen else call()
        made[0] += 1
        if made[0] == number:
            fallen.append(True)
            then()
            fallen.clear()
        return call()

    watch_calls(wiki, counted)
    return made


def begun(wiki: Wiki, name: str, act: str) -> Move:
    """A page of the texts "one" and "two", and a move of it that fell once it stood in the journal."""
    save(wiki, name, "one [[Target]]")
    save(wiki, name, "two")
    row = wiki.mover.delete(name, ANN).row if act in ("undelete", "purge") else b""

    def fall(reached: str) -> None:
        if reached == "intent":
            raise Fallen

    wiki.mover.on_step_done = fall
    with pytest.raises(Fallen):
        acting(wiki, name, act, row)()
    wiki.mover.on_step_done = lambda step: None
    (id_,) = wiki.mover.journal.opened()
    found = wiki.mover.journal.read(id_)
    assert found is not None
    return found[0]


def assert_moved(wiki: Wiki, name: str, act: str, told: str) -> None:
    assert str(body(wiki, name)).startswith(IS_LEFT[act]), told
    if act in ("rename", "move"):
        assert body(wiki, f"{name} new") == "two", told
        assert [one.body for one in wiki.revisions(f"{name} new", bodies=True)] == ["two", "one [[Target]]"], told
    assert len(deleted(wiki.rows, name)) == (1 if act == "delete" else 0), told


def assert_nothing_is_held(wiki: Wiki, told: str) -> None:
    for table in (schema.PAGES, DELETED):
        rows = wiki.store.run(lambda c, t=table: list(c.table(t).scan(columns=[schema.VERSIONCOUNT])))  # type: ignore[misc]
        assert [row for row, cells in rows if head_of(cells).mark] == [], told
    assert wiki.mover.journal.opened() == {}, told


@pytest.mark.parametrize("kind", ["application", "plain"])
@pytest.mark.parametrize("act", IS_LEFT)
def test_at_each_call_of_one_another_does_the_move_or_falls_in_it(kind: str, act: str, store: StoreThread) -> None:
    print(f"COLUMNAR_SEED={SEED}")
    rng, clock = random.Random(f"{SEED} {kind} {act}"), Clock()
    opened(store.port, "application", clock).prepare()
    looking = opened(store.port, kind, clock)
    for number in spread("calls of a move that is helped", range(1, CALLS), one_in=8, of=f"{kind} {act}"):
        falls_at = rng.choice((0, rng.randrange(1, CALLS // 2)))
        name = f"{kind} {act} {number} {falls_at}"
        move = begun(looking, name, act)
        first = opened(store.port, kind, clock)
        made = before_call(first, number, lambda m=move, f=falls_at: _help(store.port, kind, clock, m, f))
        first.mover.finish(move.id)
        first.store.close()
        opened(store.port, kind, clock).mover.finish_all()
        told = f"COLUMNAR_SEED={SEED}: {name}"
        assert_moved(looking, name, act, told)
        assert_nothing_is_held(looking, told)
        if made[0] < number:
            break
    else:
        pytest.fail(f"a move makes more than {CALLS} calls")
    assert_right(looking)
    looking.store.close()


def _help(port: int, kind: str, clock: Clock, move: Move, falls_at: int) -> None:
    """Another process does the move; where ``falls_at`` is given it falls before its call of that number."""
    second = opened(port, kind, clock)

    def fall() -> None:
        raise Fallen

    before_call(second, falls_at, fall)
    with contextlib.suppress(Fallen):
        second.mover.finish(move.id)
    second.store.close()


@pytest.mark.parametrize("kind", ["application", "plain"])
@pytest.mark.parametrize("act", ["move", "undelete"])
def test_an_arrival_that_another_has_finished_is_a_success(kind: str, act: str, store: StoreThread) -> None:
    """The other falls once the page has arrived, before it decides: nothing speaks against the move."""
    clock = Clock()
    opened(store.port, "application", clock).prepare()
    looking = opened(store.port, kind, clock)
    for number in spread("calls of a move whose arrival another does", range(1, CALLS), one_in=6, of=f"{kind} {act}"):
        name = f"{kind} arrived {act} {number}"
        move = begun(looking, name, act)
        first = opened(store.port, kind, clock)
        made = before_call(first, number, lambda m=move: _arrive(store.port, kind, clock, m))  # type: ignore[misc]
        assert first.mover.finish(move.id), name
        first.store.close()
        assert_moved(looking, name, act, name)
        assert_nothing_is_held(looking, name)
        if made[0] < number:
            break
    else:
        pytest.fail(f"a move makes more than {CALLS} calls")
    assert_right(looking)
    looking.store.close()


def _arrive(port: int, kind: str, clock: Clock, move: Move) -> None:
    second = opened(port, kind, clock)

    def fall(reached: str) -> None:
        if reached == "arrive":
            raise Fallen

    second.mover.on_step_done = fall
    with contextlib.suppress(Fallen):
        second.mover.finish(move.id)
    second.store.close()


@pytest.mark.parametrize("text", ["three", "two"])
@pytest.mark.parametrize("kind", ["application", "plain"])
def test_one_that_is_late_does_not_move_a_page_that_came_back(kind: str, text: str, store: StoreThread) -> None:
    """Edited since, or with the very head that the move names."""
    clock = Clock()
    opened(store.port, "application", clock).prepare()
    looking = opened(store.port, kind, clock)
    for number in spread("calls of a move that is late", range(1, CALLS), one_in=8, of=f"{kind} {text}"):
        name = f"{kind} late {text} {number}"
        move = begun(looking, name, "move")
        first = opened(store.port, kind, clock)

        def there_and_back(name: str = name, move: Move = move) -> None:
            second = opened(store.port, kind, clock)
            second.mover.finish(move.id)
            second.mover.rename(f"{name} new", name, ANN, redirect=False)
            if text != "two":
                save(second, name, text)
            second.store.close()

        made = before_call(first, number, there_and_back)
        first.mover.finish(move.id)
        first.store.close()
        if made[0] < number:
            break
        assert (body(looking, name), body(looking, f"{name} new")) == (text, None), number
        assert_nothing_is_held(looking, name)
    assert_right(looking)
    looking.store.close()


@pytest.mark.parametrize("kind", ["application", "plain"])
def test_a_page_that_came_back_and_is_marked_by_one_that_is_late_does_not_leave(kind: str, store: StoreThread) -> None:
    clock = Clock()
    opened(store.port, "application", clock).prepare()
    wiki, name = opened(store.port, kind, clock), f"{kind} twice late"
    move = begun(wiki, name, "move")
    wiki.mover.finish(move.id)
    wiki.mover.rename(f"{name} new", name, ANN, redirect=False)
    row = wiki.store.run(lambda c: read(c, move.source_place))
    assert wiki.store.run(lambda c: MoveSteps(c, move, plain=kind == "plain").mark(row, []))
    assert not wiki.store.run(lambda c: MoveSteps(c, move, plain=kind == "plain").leave())
    wiki.mover.finish(move.id)
    assert body(wiki, name) == "two"
    assert_nothing_is_held(wiki, name)
    wiki.store.close()


@pytest.mark.parametrize("kind", ["application", "plain"])
def test_a_page_that_came_back_is_not_marked_by_one_that_read_the_journal_before(kind: str, store: StoreThread) -> None:
    clock = Clock()
    opened(store.port, "application", clock).prepare()
    wiki, name = opened(store.port, kind, clock), f"{kind} read before"
    move = begun(wiki, name, "move")
    wiki.mover.finish(move.id)
    wiki.mover.rename(f"{name} new", name, ANN, redirect=False)
    steps = list[str]()
    wiki.mover.on_step_done = steps.append
    wiki.mover._continue_move(move, INTENT, [])
    assert "mark" not in steps
    assert body(wiki, name) == "two"
    assert_nothing_is_held(wiki, name)
    wiki.store.close()
