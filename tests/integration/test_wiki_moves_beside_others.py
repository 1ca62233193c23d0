"""While a page is moved somebody edits it, takes its new name, deletes it or moves it away, or the process falls:
before each call that writes a page, a deleted page or the journal, behind all that was read for it.

Every text that was saved stands once under one of the names afterwards, and no row is held.  A plain store is the one
that has the most calls between a decision and what stands around it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from tests.integration.test_wiki_moves import ANN, IS_LEFT, Clock, Fallen, acting, assert_right, body, opened, save
from tests.integration.test_wiki_moves_helped import assert_moved, assert_nothing_is_held
from tests.support.deep import spread
from tests.support.falling_wiki import watch_calls
from tests.support.store_thread import StoreThread
from wikka_port import schema
from wikka_port.moving.journal import DELETED, MOVES, deleted
from wikka_port.moving.refusals import NameTaken, NothingThere
from wikka_port.names import page_key
from wikka_port.pages import Conflict, Wiki
from wikka_port.rights.rules import PageRights, Privilege

KINDS = ("application", "plain")
LISTS = {Privilege.WRITE: "Ann"}
REFUSED = (NameTaken, NothingThere)
TABLES = (schema.PAGES, DELETED, MOVES)
WRITES = 60  # more than a move makes that begins anew once


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreThread]:
    with StoreThread(tmp_path_factory.mktemp("beside") / "data", trigger_modules=("wikka_port.triggers",)) as running:
        yield running


def before_write(wiki: Wiki, number: int, then: Callable[[], None]) -> list[int]:
    """``then`` is called before the wiki's write of that number.  How many it has made, in a list."""
    made = [0]

    def counted(call: Callable[[], Any], method: str, args: Sequence[Any]) -> Any:
        if args[:1] and args[0] in TABLES and not method.startswith(("get", "scanner")):
            made[0] += 1
            if made[0] == number:
                then()
        return call()

    watch_calls(wiki, counted)
    return made


def edits(wiki: Wiki, name: str) -> None:
    """As a person does: again, where the page was moved meanwhile."""
    with contextlib.suppress(Conflict):
        save(wiki, name, "theirs")
        return
    save(wiki, name, "theirs")


def takes_the_name(wiki: Wiki, name: str) -> None:
    edits(wiki, f"{name} new")


def moves_another_there(wiki: Wiki, name: str) -> None:
    save(wiki, f"{name} other", "theirs")
    with contextlib.suppress(NameTaken):
        wiki.mover.rename(f"{name} other", f"{name} new", ANN, redirect=False)


def deletes(wiki: Wiki, name: str) -> bool:
    """Whether there was a page, as below."""
    with contextlib.suppress(NothingThere):
        wiki.mover.delete(name, ANN)
        return True
    return False


def moves_it_away(wiki: Wiki, name: str) -> bool:
    with contextlib.suppress(NothingThere):
        wiki.mover.rename(name, f"{name} elsewhere", ANN, redirect=False)
        return True
    return False


BESIDE: dict[str, tuple[Callable[[Wiki, str], object], tuple[str, ...]]] = {
    "edits": (edits, tuple(IS_LEFT)),
    "takes the name": (takes_the_name, ("rename", "move")),
    "moves another there": (moves_another_there, ("move",)),
    "deletes": (deletes, ("rename", "delete", "undelete")),
    "moves it away": (moves_it_away, ("move", "delete", "undelete")),
}


def every_text(wiki: Wiki, name: str) -> list[str]:
    """All that stands under the names a page may have come to, but for redirects; the deleted are brought back."""
    names = [name, *(f"{name} {word}" for word in ("new", "other", "elsewhere"))]
    for one in tuple(names):
        for row in deleted(wiki.rows, one):
            names.append(f"{name} back {len(names)}")
            wiki.mover.undelete(one, row.row, ANN, new=names[-1])
    found = [one.body for title in names for one in wiki.revisions(title, bodies=True)]
    return sorted(text for text in found if text is not None and not text.startswith("#REDIRECT"))


def prepared(wiki: Wiki, name: str, act: str) -> bytes:
    save(wiki, name, "one [[Target]]")
    save(wiki, name, "two")
    wiki.rights.change(name, PageRights(), "Olga", LISTS)
    return wiki.mover.delete(name, ANN).row if act in ("undelete", "purge") else b""


def assert_nothing_remains(wiki: Wiki, name: str, told: str) -> None:
    """The trash holds what its list shows: no row of a page that was brought back, or removed for good."""
    rows = wiki.store.run(lambda c: [row for row, _ in c.table(DELETED).scan(row_prefix=page_key(name))])
    assert sorted(rows) == sorted(one.row for one in deleted(wiki.rows, name)), told


def assert_done_or_refused(wiki: Wiki, name: str, act: str, row: bytes, is_refused: bool, told: str) -> None:
    """Whoever was answered that it is done finds it done; whoever was refused finds nothing done."""
    in_trash = [one.row for one in deleted(wiki.rows, name)]
    assert_nothing_remains(wiki, name, told)
    if act in ("undelete", "purge"):
        assert (row in in_trash) == is_refused, told
    elif act == "delete":
        assert is_refused or in_trash, told
    else:
        assert is_refused or wiki.page(f"{name} new") is not None, told


def assert_in_its_place(wiki: Wiki, name: str, act: str, other: str, is_refused: bool, told: str) -> None:
    if other == "edits":
        assert not is_refused or act == "undelete", f"{told}: an edit is no reason to refuse"
        assert "theirs" in (body(wiki, name), body(wiki, f"{name} new")) or act == "delete", told
    if other == "takes the name":
        assert body(wiki, f"{name} new") == "theirs", told
        assert not is_refused or body(wiki, name) == "two", told
        assert not is_refused or wiki.page(f"{name} new").rights.lists == {}, f"{told}: the rights of another page"
    if is_refused and other == "moves another there":
        assert (body(wiki, name), body(wiki, f"{name} new")) == ("two", "theirs"), told


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("other", "act"), [(other, act) for other, (_, acts) in BESIDE.items() for act in acts])
def test_a_move_beside_which_another_writes_loses_no_text(kind: str, other: str, act: str, store: StoreThread) -> None:
    clock = Clock()
    opened(store.port, "application", clock).prepare()
    looking = opened(store.port, kind, clock)
    theirs = opened(store.port, kind, lambda: clock.now - 3_600_000)  # of a machine whose clock is slow
    then, seen = BESIDE[other][0], set[bool]()
    for number in spread("writes of a move beside others", range(1, WRITES), one_in=4, of=f"{kind} {other} {act}"):
        name = f"{kind} {other} {act} {number}"
        told, row = f"before write {number}", prepared(looking, name, act)
        wiki = opened(store.port, kind, clock)
        answers = list[object]()
        made = before_write(wiki, number, lambda name=name, to=answers: to.append(then(theirs, name)))  # type: ignore[misc]
        is_refused = False
        try:
            acting(wiki, name, act, row)()
        except REFUSED:
            is_refused = True
        wiki.store.close()
        if made[0] < number:
            break
        seen.add(is_refused)
        assert_nothing_is_held(looking, told)
        assert_done_or_refused(looking, name, act, row, is_refused, told)
        if other in ("deletes", "moves it away") and act in ("delete", "move"):
            assert answers == [is_refused], f"{told}: one page, so one of both finds it"
        assert_in_its_place(looking, name, act, other, is_refused, told)
        added = ["theirs"] if other in ("edits", "takes the name", "moves another there") else []
        ours = [] if act == "purge" else ["one [[Target]]", "two"]
        assert every_text(looking, name) == sorted(ours + added), told
    else:
        pytest.fail(f"a move makes more than {WRITES} calls")
    assert False in seen, "not once was the move first"
    assert_right(looking)
    looking.store.close()
    theirs.store.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("act", IS_LEFT)
def test_a_move_that_falls_before_any_of_its_calls_is_finished_by_another(
    kind: str, act: str, store: StoreThread
) -> None:
    clock = Clock()
    opened(store.port, "application", clock).prepare()
    looking = opened(store.port, kind, clock)

    def fall() -> None:
        raise Fallen

    for number in spread("writes of a move that falls", range(1, WRITES), one_in=6, of=f"{kind} {act}"):
        name = f"{kind} falls {act} {number}"
        row = prepared(looking, name, act)
        wiki = opened(store.port, kind, clock)
        made = before_write(wiki, number, fall)
        begun: set[bytes] = set()
        try:
            acting(wiki, name, act, row)()
        except Fallen:
            begun = set(looking.mover.journal.opened())
        wiki.store.close()
        finished = [looking.mover.finish(one) for one in begun]
        assert_nothing_is_held(looking, f"before write {number}")
        if True in finished or made[0] < number:
            assert_moved(looking, name, act, f"before write {number}")
        assert_nothing_remains(looking, name, f"before write {number}")
        expected = [] if act == "purge" and deleted(looking.rows, name) == [] else ["one [[Target]]", "two"]
        assert every_text(looking, name) == expected, f"before write {number}"
        if made[0] < number:
            break
    else:
        pytest.fail(f"a move makes more than {WRITES} calls")
    assert_right(looking)
    looking.store.close()
