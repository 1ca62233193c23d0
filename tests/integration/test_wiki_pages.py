"""Saving and reading pages against a real store: conflicts, crashes between the steps, a store that goes away."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from columnar.client import Connection
from columnar.client.errors import IOError
from tests.support.store_thread import StoreThread
from wikka_port import consistency, listings, schema
from wikka_port.next_revision import BODY_BYTES_MAX, draft_after
from wikka_port.pages import Conflict, PageTooBig, StoreUnavailable, Wiki
from wikka_port.store import check_and_put


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StoreThread]:
    with StoreThread(tmp_path) as running:
        yield running


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000_000

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def wiki(store: StoreThread, clock: Clock) -> Iterator[Wiki]:
    made = Wiki("127.0.0.1", store.port, indexes="application", clock=clock)
    made.prepare()
    yield made
    made.store.close()


@pytest.fixture
def plain(store: StoreThread, wiki: Wiki, clock: Clock) -> Iterator[Wiki]:
    """The same wiki, as if the store were a plain HBase gateway."""
    made = Wiki("127.0.0.1", store.port, indexes="application", clock=clock)
    made.store._is_columnar = False
    yield made
    made.store.close()


class Fallen(Exception):
    pass


def fall(*_: Any, **__: Any) -> None:
    raise Fallen


def test_a_page_is_what_was_saved_and_keeps_all_its_revisions(wiki: Wiki, clock: Clock) -> None:
    first = wiki.save("Ēka_ Nams", "one [[Other]]", author="Ann", base=0, owner="Ann", attribution="From afar")
    clock.now += 1_000
    second = wiki.save("Ēka Nams", "two", author="Bob", note="shorter", base=1)
    page = wiki.page("Ēka Nams")
    assert page is not None
    assert (page.name, page.number, page.body, page.author, page.note) == ("Ēka Nams", 2, "two", "Bob", "shorter")
    assert (page.owner, page.attribution, page.autolink, page.time_ms) == ("Ann", "From afar", True, second.time_ms)
    assert [(r.number, r.author, r.body) for r in wiki.revisions("Ēka Nams")] == [(2, "Bob", None), (1, "Ann", None)]
    assert [r.body for r in wiki.revisions("Ēka Nams", bodies=True)] == ["two", "one [[Other]]"]
    old = wiki.revision("Ēka Nams", 1)
    assert old is not None
    assert old.body == "one [[Other]]"
    assert wiki.revision("Ēka Nams", 3) is None
    assert wiki.revision_at("Ēka Nams", second.time_ms - 1) == old
    assert wiki.revision_at("Ēka Nams", first.time_ms - 1) is None
    assert wiki.existing(["Ēka_Nams", "Other"]) == {"Ēka_Nams"}
    assert wiki.page("Other") is None
    assert wiki.revisions("Other") == []


def test_many_revisions_are_read_in_pages(wiki: Wiki) -> None:
    for number in range(12):
        wiki.save("Long", f"text {number + 1}", author="Ann", base=number)
    listed = wiki.revisions("Long", limit=5)
    assert [r.number for r in listed] == [12, 11, 10, 9, 8]
    assert [r.number for r in wiki.revisions("Long", below=8, limit=5, bodies=True)] == [7, 6, 5, 4, 3]
    assert [r.body for r in wiki.revisions("Long", below=3, bodies=True)] == ["text 2", "text 1"]
    assert wiki.revisions("Long", below=1) == []


def test_times_rise_though_the_clock_does_not(wiki: Wiki, clock: Clock) -> None:
    times = [wiki.save("Page", "a", author="Ann", base=0).time_ms]
    times.append(wiki.save("Page", "b", author="Ann", base=1).time_ms)
    clock.now -= 5_000
    times.append(wiki.save("Page", "c", author="Ann", base=2).time_ms)
    assert times == [clock.now + 5_000, clock.now + 5_001, clock.now + 5_002]
    page = wiki.page("Page")
    assert page is not None
    assert page.body == "c"


@pytest.mark.parametrize("kind", ["wiki", "plain"])
def test_of_many_that_save_at_once_one_wins(kind: str, request: pytest.FixtureRequest, store: StoreThread) -> None:
    wiki: Wiki = request.getfixturevalue(kind)
    won: list[int] = []
    lost: list[Conflict] = []
    start = threading.Barrier(8)

    def edit(number: int) -> None:
        start.wait()
        try:
            wiki.save("Page", f"text of {number}", author=f"A{number}", base=0)
            won.append(number)
        except Conflict as conflict:
            lost.append(conflict)

    editors = [threading.Thread(target=edit, args=(number,)) for number in range(8)]
    for editor in editors:
        editor.start()
    for editor in editors:
        editor.join()
    assert len(won) == 1
    assert len(lost) == 7
    page = wiki.page("Page")
    assert page is not None
    assert page.body == f"text of {won[0]}"
    assert {c.current.body for c in lost if c.current} == {page.body}
    assert [r.number for r in wiki.revisions("Page")] == [1]
    assert len(store.dump(schema.REVISIONS)[schema.REVISIONS]) == 1, "losers take away what they staged"
    assert consistency.check(wiki).differences == ()


def test_a_conflict_says_what_stands_there_and_writes_nothing(wiki: Wiki, store: StoreThread) -> None:
    wiki.save("Page", "first", author="Ann", base=0)
    before = store.dump(schema.PAGES, schema.REVISIONS)
    with pytest.raises(Conflict) as told:
        wiki.save("Page", "mine", author="Bob", base=0)
    assert told.value.current is not None
    assert told.value.current.body == "first"
    with pytest.raises(Conflict) as told:
        wiki.save("Nowhere", "mine", author="Bob", base=3)
    assert told.value.current is None
    assert store.dump(schema.PAGES, schema.REVISIONS) == before


@pytest.mark.parametrize("kind", ["wiki", "plain"])
def test_a_save_whose_answer_was_lost_may_be_sent_again(kind: str, request: pytest.FixtureRequest) -> None:
    wiki: Wiki = request.getfixturevalue(kind)
    draft = draft_after({}, name="Page", body="text", author="Ann", note="", time_ms=1_000)
    wiki.stage([draft])
    once = wiki.commit(draft, {})
    wiki.stage([draft])
    again = wiki.commit(draft, {})
    assert (once.number, once.time_ms) == (again.number, again.time_ms) == (1, 1_000)
    wiki.save("Page", "later", author="Bob", base=1)
    assert wiki.commit(draft, {}).number == 1
    page = wiki.page("Page")
    assert page is not None
    assert page.body == "later"
    assert consistency.check(wiki).differences == ()


def test_what_fell_between_staging_and_commit_is_never_seen_and_swept(
    wiki: Wiki, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    wiki.save("Page", "first", author="Ann", base=0)
    clock.now += 10
    with monkeypatch.context() as patch:
        patch.setattr(wiki, "commit", fall)
        with pytest.raises(Fallen):
            wiki.save("Page", "lost", author="Bob", base=1)
    assert [r.number for r in wiki.revisions("Page")] == [1]
    assert consistency.check(wiki, clock=clock).differences == (), "it may be a save that runs right now"
    clock.now += consistency.GRACE_MS + 11
    (found,) = consistency.check(wiki, clock=clock, repair=True).differences
    assert (found.kind.value, found.table) == ("stale", schema.REVISIONS)
    assert consistency.check(wiki, clock=clock).differences == ()


def test_a_staged_row_beside_a_committed_one_is_told_from_it(wiki: Wiki, clock: Clock) -> None:
    wiki.save("Page", "first", author="Ann", base=0)
    stray = draft_after({}, name="Page", body="stray", author="Eve", note="", time_ms=5)
    wiki.stage([stray])
    for number in (1, 2):
        wiki.save("Page", f"text {number + 1}", author="Ann", base=number)
    assert [r.body for r in wiki.revisions("Page", bodies=True)] == ["text 3", "text 2", "first"]
    found = wiki.revision("Page", 1)
    assert found is not None
    assert found.body == "first"
    report = consistency.check(wiki, repair=True)
    assert [(d.kind.value, d.found) for d in report.differences] == [("stale", b"Page")]
    assert report.left == ()


def test_on_a_plain_hbase_a_fall_behind_the_commit_shows_the_new_text(
    plain: Wiki, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain.save("Page", "first [[A]]", author="Ann", base=0)
    with monkeypatch.context() as patch:

        def commit_and_fall(*arguments: Any) -> None:
            assert check_and_put(*arguments)
            raise Fallen

        patch.setattr("wikka_port.pages.check_and_put", commit_and_fall)
        with pytest.raises(Fallen):
            plain.save("Page", "second [[B]]", author="Bob", base=1)
    page = plain.page("Page")
    assert page is not None
    assert (page.number, page.body, page.author) == (2, "second [[B]]", "Bob")
    report = consistency.check(plain, repair=True)
    assert {d.table for d in report.differences} >= {schema.PAGES, schema.BACKLINKS, schema.WANTED, schema.CHANGES}
    assert report.left == ()
    assert plain.backlinks("B") == ["Page"]
    assert plain.backlinks("A") == []
    plain.save("Page", "third", author="Ann", base=2)
    assert consistency.check(plain).left == ()


@pytest.mark.parametrize("character", ["x", "é"])
def test_the_largest_text_is_taken_and_not_one_byte_more(character: str) -> None:
    largest = character * (BODY_BYTES_MAX // len(character.encode()))
    draft = draft_after({}, name="Page", body=largest, author="Ann", note="", time_ms=1)
    assert draft.body == largest
    with pytest.raises(PageTooBig):
        draft_after({}, name="Page", body=largest + "x", author="Ann", note="", time_ms=1)


def test_a_text_too_big_is_refused_before_anything_is_written(wiki: Wiki, store: StoreThread) -> None:
    with pytest.raises(PageTooBig):
        wiki.save("Page", "x" * (BODY_BYTES_MAX + 1), author="Ann", base=0)
    assert store.dump(schema.REVISIONS) == {schema.REVISIONS: []}
    wiki.save("Page", "odd \ud800 text", author="Ann", base=0)
    page = wiki.page("Page")
    assert page is not None
    assert page.body == "odd ? text"


def test_while_the_store_is_away_it_says_so_and_goes_on_when_it_is_back(tmp_path: Path) -> None:
    with StoreThread(tmp_path) as running:
        port = running.port
        wiki = Wiki("127.0.0.1", port, indexes="application")
        wiki.prepare()
        wiki.save("Page", "text", author="Ann", base=0)
        assert wiki.is_up()
        hold_connections(wiki, 10)
    with StoreThread(tmp_path, port=port):
        assert wiki.page("Page") is not None, "ten broken connections do not use up the attempts"
    assert not wiki.is_up()
    with pytest.raises(StoreUnavailable, match=str(port)):
        wiki.page("Page")
    with StoreThread(tmp_path, port=port):
        page = wiki.page("Page")
        assert page is not None
        assert page.body == "text"
        wiki.store.close()


def hold_connections(wiki: Wiki, number: int) -> None:
    if number:
        wiki.store.run(lambda _: hold_connections(wiki, number - 1))


@pytest.mark.parametrize("was_done", [True, False])
def test_a_save_of_unknown_outcome_is_repeated_and_done_once(
    was_done: bool, wiki: Wiki, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CallTimeoutException is the answer for a row whose region server died in the middle of its write."""
    asked: list[str] = []
    call = Connection.call

    def dying(connection: Connection, method: str, *args: Any) -> Any:
        if method != "columnarCheckAndMutate" or method in asked:
            return call(connection, method, *args)
        asked.append(method)
        if was_done:
            call(connection, method, *args)
        raise IOError(b"CallTimeoutException: server s1.1 died in the middle of it")

    monkeypatch.setattr(Connection, "call", dying)
    wiki.save("Page", "text", author="Ann", base=0)
    assert asked, "the write went another way"
    assert [revision.number for revision in wiki.revisions("Page")] == [1]


def test_one_that_listens_and_never_answers_is_away_too() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        wiki = Wiki("127.0.0.1", mute.getsockname()[1])
        wiki.store._timeout_ms = 50
        with pytest.raises(StoreUnavailable):
            wiki.page("Page")


def test_the_number_of_pages_is_guessed_from_a_few(wiki: Wiki, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(60):
        assert wiki.count_pages_roughly() == number
        wiki.save(f"Page {number}", "text", author="Ann", note="", base=0)
    monkeypatch.setattr(listings, "ROUGHLY", 20)
    assert wiki.count_pages() == 60
    assert 40 <= wiki.count_pages_roughly() <= 90


def test_lists(wiki: Wiki, clock: Clock) -> None:
    for name, text in {
        "Zebra": "[[Ārija]] [[Missing]]",
        "Ārija": "[[Missing]] [[It's gone]]",
        "arch": "[[arch]]",
        "It's": "",
        "Bē": "[[Zebra]]",
    }.items():
        clock.now += 1_000
        wiki.save(name, text, author="Ann", note=f"made {name}", base=0)
    assert wiki.names() == ["arch", "Ārija", "Bē", "It's", "Zebra"]
    assert wiki.names(prefix="A") == ["arch", "Ārija"]
    assert wiki.names(start="Bē", limit=2) == ["Bē", "It's"]
    assert wiki.search_titles("T'") == ["It's"]
    assert wiki.search_titles("BE") == ["Bē"]
    assert wiki.search_titles(" _ ") == []
    assert wiki.count_pages() == 5
    assert sorted(wiki.wanted()) == [("It's gone", 1), ("Missing", 2)]
    assert wiki.most_wanted() == [("Missing", 2), ("It's gone", 1)]
    assert wiki.most_wanted(limit=1) == [("Missing", 2)]
    assert wiki.initials() == list(dict.fromkeys(schema.folded(name)[:1] for name in wiki.names()))
    first = wiki.wanted(limit=1)
    assert sorted(first + wiki.wanted(after=first[0][0])) == sorted(wiki.wanted())
    assert wiki.orphaned() == ["arch", "Bē", "It's"]
    assert wiki.orphaned(after="arch", limit=1) == ["Bē"]
    assert wiki.backlinks("Missing") == ["Ārija", "Zebra"]
    start = wiki.backlinks("Missing", limit=1)
    assert sorted(start + wiki.backlinks("Missing", after=start[0])) == ["Zebra", "Ārija"]
    assert wiki.backlinks("Nothing") == []
    typed = "x" * 30_000  # longer than any name, and than a row may be
    assert wiki.names(start=typed) == ["Zebra"]
    assert wiki.names(prefix=f"{typed}{typed}") == wiki.orphaned(after=typed) == []


def test_recent_changes_newest_first_page_by_page(wiki: Wiki, clock: Clock) -> None:
    for number in range(23):
        clock.now += 1_000
        wiki.save(f"Page {number % 7}", str(number), author="Ann", note=f"n{number}", base=number // 7)
    notes: list[str] = []
    token = ""
    while True:
        listed, token = wiki.changes(before=token, limit=5)
        notes += [change.note for change in listed]
        if not token:
            break
    assert notes == [f"n{number}" for number in reversed(range(23))]
    newest = wiki.changes(limit=1)[0][0]
    assert (newest.name, newest.number, newest.is_new) == ("Page 1", 4, False)
