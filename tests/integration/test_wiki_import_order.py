"""Imports of one history in any order, in pieces, over each other and beside edits: as if they had come in order.

The model is a list: what a dump brings is put in by time (and id), once; what people write keeps its time.
"""

from __future__ import annotations

import io
import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pytest

from columnar.client import Connection
from tests.support.deep import seeds
from tests.support.seeds import seed
from tests.support.store_thread import StoreThread
from tests.support.wiki_client import WikiClient
from wikka_port import importer, limits, schema
from wikka_port.consistency import check
from wikka_port.importer import Importer, ImportSummary
from wikka_port.moving.mover import By
from wikka_port.names import page_key
from wikka_port.pages import Wiki
from wikka_port.rights.rules import PageRights, Privilege

SEED = seed(3301)
ROUNDS = int(os.environ.get("COLUMNAR_IMPORT_ROUNDS") or seeds("rounds of imports in any order", deep=12, short=3))
TABLES = tuple(table.name for table in schema.TABLES)
BEGIN_S = 1_100_000_000
SITE = "<siteinfo><sitename>T</sitename><base>http://t.example/wiki/Main_Page</base></siteinfo>"


@dataclass(frozen=True)
class Given:
    """A revision of a dump."""

    id: int
    second: int
    text: str
    author: str = "Ada"
    minor: bool = False

    def xml(self) -> str:
        at = datetime.fromtimestamp(BEGIN_S + self.second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return (
            f"<revision><id>{self.id}</id><timestamp>{at}</timestamp><contributor><username>{self.author}</username>"
            f"</contributor>{'<minor/>' if self.minor else ''}<comment>no. {self.id}</comment>"
            f'<text xml:space="preserve">{escape(self.text)}</text></revision>'
        )


def dump(*pages: tuple[str, Sequence[Given]]) -> bytes:
    bodies = "".join(
        f"<page><title>{title}</title><ns>0</ns><id>{number}</id>{''.join(one.xml() for one in given)}</page>"
        for number, (title, given) in enumerate(pages, 1)
    )
    return f'<mediawiki version="0.10" xml:lang="en">{SITE}{bodies}</mediawiki>'.encode()


def bring_in(wiki: Wiki, data: bytes, **options: Any) -> ImportSummary:
    return Importer.begun(wiki, io.BytesIO(data), origin="a dump", **options).run()


def in_order(given: Sequence[Given]) -> list[Given]:
    return sorted(given, key=lambda one: (one.second, one.id))


@pytest.fixture(scope="module", params=["triggers", "application", "plain"])
def wiki(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wiki]:
    modules = ("wikka_port.triggers",) if request.param == "triggers" else ()
    with StoreThread(tmp_path_factory.mktemp(request.param), trigger_modules=modules) as running:
        made = Wiki("127.0.0.1", running.port, indexes="application" if request.param == "plain" else request.param)
        made.prepare()
        if request.param == "plain":
            made.store._is_columnar = False  # one cell can be a condition, as on a plain HBase
        yield made
        made.store.close()


def history(wiki: Wiki, name: str) -> list[tuple[int, int, str | None, str, str]]:
    """Oldest first: number, second, text, author, note; each says how much longer its text is than the one before."""
    found = wiki.revisions(name, limit=10_000, bodies=True)[::-1]
    lengths = [0, *(len(one.body or "") for one in found)]
    assert [one.grown for one in found] == [after - before for before, after in pairwise(lengths)]
    return [(one.number, one.time_ms // 1000 - BEGIN_S, one.body, one.author, one.note) for one in found]


def expected(given: Sequence[Given]) -> list[tuple[int, int, str | None, str, str]]:
    return [
        (number, one.second, one.text, one.author, f"no. {one.id}") for number, one in enumerate(in_order(given), 1)
    ]


def drawn(rng: random.Random, most: int) -> list[Given]:
    texts = [f"text{'x' * length}" for length in range(6)]
    given = [
        Given(number, rng.randrange(40), rng.choice(texts), f"Author {rng.randrange(3)}", rng.random() < 0.2)
        for number in range(1, rng.randint(1, most) + 1)
    ]
    rng.shuffle(given)
    return given


def is_sound(wiki: Wiki) -> None:
    assert wiki.settle("", 30)
    report = check(wiki)
    assert [one.text() for one in report.differences] == []


def test_any_order_in_parts_of_any_size_is_the_import_in_order(wiki: Wiki, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(SEED)
    for number in range(ROUNDS):
        given = drawn(rng, 30)
        monkeypatch.setattr("wikka_port.import_pages.PART_REVISIONS", rng.choice((1, 2, 3, 7, 64)))
        monkeypatch.setattr(importer, "GROUP_PAGES", rng.choice((1, 2, 16)))
        names = [f"Shuffled {number}", f"Ordered {number}"]
        bring_in(wiki, dump((names[0], given), (names[1], in_order(given))))
        shuffled, ordered = (history(wiki, name) for name in names)
        assert shuffled == ordered == expected(given), f"COLUMNAR_SEED={SEED}, round {number}"
        found = [wiki.page(name) for name in names]
        assert [(page.body, page.author, page.minor) for page in found if page] == [
            (in_order(given)[-1].text, in_order(given)[-1].author, in_order(given)[-1].minor)
        ] * 2
    is_sound(wiki)


def test_any_order_leaves_the_same_cells_at_the_same_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(SEED)
    pages = [(f"Page {number}", drawn(rng, 12)) for number in range(12)]
    monkeypatch.setattr("wikka_port.import_pages.PART_REVISIONS", 3)
    left = []
    for order in (lambda given: given, in_order, lambda given: in_order(given)[::-1]):
        with StoreThread(tmp_path / str(len(left))) as running:
            wiki = Wiki("127.0.0.1", running.port, indexes="application")
            wiki.prepare()
            bring_in(wiki, dump(*((name, order(given)) for name, given in pages)))
            assert check(wiki, repair=True).differences == ()
            left.append(running.dump(*TABLES))
            wiki.store.close()
    assert left[0] == left[1] == left[2]


@pytest.mark.parametrize("spooled", [2, limits.SPOOLED_REVISIONS])
def test_dumps_over_each_other_and_edits_between_them_are_merged_by_time(
    wiki: Wiki, monkeypatch: pytest.MonkeyPatch, spooled: int
) -> None:
    """Subsets of a history come one after another, again and again; people save between them."""
    monkeypatch.setattr("wikka_port.import_pages.SPOOLED_REVISIONS", spooled)
    rng = random.Random(SEED + spooled)
    for number in range(ROUNDS):
        name = f"Merged {spooled} {number}"
        all_of_it = drawn(rng, 20)
        brought: dict[int, Given] = {}
        ours: list[Given] = []
        for step in range(rng.randint(1, 4)):
            monkeypatch.setattr("wikka_port.import_pages.PART_REVISIONS", rng.choice((1, 2, 5, 64)))
            some = rng.sample(all_of_it, rng.randint(0, len(all_of_it)))
            twice = {(one.second, one.text) for one in brought.values()} | {(one.second, one.text) for one in ours}
            some = [one for one in some if one.id in brought or (one.second, one.text) not in twice]
            if rng.random() < 0.3:
                some = some + rng.sample(some, len(some) // 2)  # the dump has them twice
                some = list({(one.second, one.text): one for one in some}.values())
            else:
                some = list({(one.second, one.text): one for one in some}.values())
            before = {(one.second, one.text) for one in brought.values()}
            summary = bring_in(wiki, dump((name, some)))
            new = [one for one in some if (one.second, one.text) not in before]
            assert (summary.stored.revisions, summary.stored.already) == (len(new), len(some) - len(new))
            brought |= {one.id: one for one in new}
            there = wiki.page(name)
            if rng.random() < 0.5:
                last = max((one.second for one in (*brought.values(), *ours)), default=0)
                second = max(last, rng.randrange(40))
                written = Given(1_000 + step, second, f"ours {step}", "Eve")
                at = (BEGIN_S + second) * 1000 + 500
                wiki.save(
                    name,
                    written.text,
                    author="Eve",
                    note=f"no. {written.id}",
                    base=there.number if there else 0,
                    time_ms=at,
                    signed="account",
                    minor=rng.random() < 0.2,
                )
                ours.append(written)
            assert history(wiki, name) == expected([*brought.values(), *ours]), (
                f"COLUMNAR_SEED={SEED}, {name}, step {step}"
            )
    is_sound(wiki)


def test_hidden_revisions_stay_hidden_under_their_new_numbers(wiki: Wiki) -> None:
    late = [Given(number, 10 * number, f"late {number}") for number in (5, 6, 7)]
    bring_in(wiki, dump(("Hidden", late)))
    wiki.mover.hide("Hidden", 2, hidden=True)
    bring_in(wiki, dump(("Hidden", [Given(1, 1, "early"), Given(2, 65, "between")])))
    assert [row[2] for row in history(wiki, "Hidden")] == ["early", "late 5", "between", "late 7"]
    assert wiki.revision("Hidden", 3) is None
    wiki.mover.hide("Hidden", 3, hidden=False)
    assert [row[2] for row in history(wiki, "Hidden")] == ["early", "late 5", "late 6", "between", "late 7"]
    is_sound(wiki)


def test_a_page_that_was_deleted_here_is_named_and_not_brought_back(wiki: Wiki) -> None:
    first = [Given(1, 1, "first")]
    bring_in(wiki, dump(("Deleted", first)))
    wiki.mover.delete("Deleted", By("Eve"))
    stored = bring_in(wiki, dump(("Deleted", [*first, Given(2, 2, "second")]))).stored
    assert (stored.revisions, stored.deleted, stored.kept) == (0, {"Deleted"}, set())
    assert wiki.page("Deleted") is None


def test_a_page_that_was_moved_gets_later_revisions_at_their_own_times(wiki: Wiki) -> None:
    """The move has stamped its cells with today; the revisions of a dump are years older."""
    bring_in(wiki, dump(("Before the move", [Given(1, 1, "first"), Given(2, 9, "ninth")])))
    wiki.mover.rename("Before the move", "Behind the move", By("Eve"))
    bring_in(wiki, dump(("Behind the move", [Given(3, 20, "twentieth"), Given(4, 5, "fifth")])))
    assert [row[:3] for row in history(wiki, "Behind the move")] == [
        (1, 1, "first"), (2, 5, "fifth"), (3, 9, "ninth"), (4, 20, "twentieth"),
    ]  # fmt: skip
    page = wiki.page("Behind the move")
    assert page is not None
    assert (page.name, page.body, page.time_ms // 1000 - BEGIN_S) == ("Behind the move", "twentieth", 20)
    wiki.save("Behind the move", "saved later", author="Eve", base=4, signed="account")
    is_sound(wiki)


def test_what_was_written_here_is_named_where_a_newer_text_of_the_dump_comes_above_it(wiki: Wiki) -> None:
    bring_in(wiki, dump(("Both", [Given(1, 1, "first")])))
    wiki.save("Both", "ours", author="Eve", base=1, time_ms=(BEGIN_S + 5) * 1000, signed="account", owner="Eve")
    stored = bring_in(wiki, dump(("Both", [Given(1, 1, "first"), Given(2, 3, "third")]))).stored
    assert (stored.kept, stored.covered) == ({"Both"}, set())
    stored = bring_in(wiki, dump(("Both", [Given(1, 1, "first"), Given(2, 3, "third"), Given(3, 9, "ninth")]))).stored
    assert (stored.kept, stored.covered) == (set(), {"Both"})
    assert [row[2] for row in history(wiki, "Both")] == ["first", "third", "ours", "ninth"]
    page = wiki.page("Both")
    assert page is not None
    assert (page.body, page.owner) == ("ninth", "Eve")
    is_sound(wiki)


def test_somebody_saves_while_a_page_is_merged(wiki: Wiki, monkeypatch: pytest.MonkeyPatch) -> None:
    late = [Given(5, 50, "late")]
    bring_in(wiki, dump(("Meanwhile", late)))
    stage_rows, saved = wiki.stage_rows, []

    def staged(rows: Any) -> None:
        stage_rows(rows)
        if not saved:
            saved.append(True)
            wiki.save("Meanwhile", "ours", author="Eve", base=1, time_ms=(BEGIN_S + 60) * 1000, signed="account")

    monkeypatch.setattr(wiki, "stage_rows", staged)
    stored = bring_in(wiki, dump(("Meanwhile", [Given(1, 1, "early"), *late]))).stored
    assert (stored.revisions, stored.busy) == (1, set())
    assert [row[2] for row in history(wiki, "Meanwhile")] == ["early", "late", "ours"]
    is_sound(wiki)


def rows_of(wiki: Wiki, name: str) -> list[bytes]:
    """All that are stored of the page, on its chain or not."""
    key = page_key(name)

    def read(connection: Connection) -> list[bytes]:
        scan = connection.table(schema.REVISIONS).scan(row_start=key, row_stop=schema.revisions_end(key))
        return [row for row, _ in scan]

    return wiki.store.run(read)


def test_a_merge_that_always_finds_the_page_changed_leaves_no_row_behind(
    wiki: Wiki, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each try stages rows that the next save makes useless; the page is named, and the next import brings them."""
    late = [Given(5, 50, "late")]
    whole = dump(("Never still", [Given(1, 1, "early"), *late]))
    bring_in(wiki, dump(("Never still", late)))
    with monkeypatch.context() as patched:
        stage_rows, numbers = wiki.stage_rows, iter(range(1, 100))
        writer = Wiki(wiki.store.host, wiki.store.port, indexes=wiki.indexes)
        writer.store._is_columnar = wiki.store._is_columnar

        def staged(rows: Any) -> None:
            stage_rows(rows)
            base = next(numbers)
            at_ms = (BEGIN_S + 60 + base) * 1000
            writer.save("Never still", f"ours {base}", author="Eve", base=base, time_ms=at_ms, signed="account")

        patched.setattr(wiki, "stage_rows", staged)
        stored = bring_in(wiki, whole).stored
        writer.store.close()
    assert (stored.revisions, stored.busy) == (0, {"Never still"})
    texts = [row[2] for row in history(wiki, "Never still")]
    assert texts == ["late", *(f"ours {number}" for number in range(1, len(texts)))]
    assert len(rows_of(wiki, "Never still")) == len(texts)
    stored = bring_in(wiki, whole).stored
    assert (stored.revisions, stored.busy) == (1, set())
    assert [row[2] for row in history(wiki, "Never still")] == ["early", *texts]
    assert len(rows_of(wiki, "Never still")) == len(texts) + 1
    is_sound(wiki)


def test_an_import_that_falls_between_staging_and_commit_is_done_by_the_next(
    wiki: Wiki, monkeypatch: pytest.MonkeyPatch
) -> None:
    bring_in(wiki, dump(("Fallen", [Given(5, 50, "late")])))
    whole = dump(("Fallen", [Given(1, 1, "early"), Given(2, 2, "second"), Given(5, 50, "late")]))
    with monkeypatch.context() as patched:
        patched.setattr("wikka_port.history_merge._commit", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            bring_in(wiki, whole)
    assert [row[2] for row in history(wiki, "Fallen")] == ["late"], "nobody sees what was staged"
    bring_in(wiki, whole, restart=True)
    assert [row[2] for row in history(wiki, "Fallen")] == ["early", "second", "late"]
    is_sound(wiki)


def test_a_page_that_a_dump_has_twice_has_all_revisions_of_both(wiki: Wiki) -> None:
    data = dump(("Twice", [Given(1, 1, "a"), Given(3, 3, "c")]), ("Twice", [Given(2, 2, "b"), Given(3, 3, "c")]))
    assert bring_in(wiki, data).stored.revisions == 3
    assert [row[2] for row in history(wiki, "Twice")] == ["a", "b", "c"]
    is_sound(wiki)


def test_the_text_as_it_came_is_kept_beside_each_revision(wiki: Wiki) -> None:
    source = "== A ==\n''b'' [[C]]\n"
    bring_in(wiki, dump(("Sourced", [Given(5, 5, source), Given(6, 6, "#REDIRECT [[X]]")])))
    assert wiki.source("Sourced", 1) == source
    bring_in(wiki, dump(("Sourced", [Given(1, 1, "''earlier''")])))
    assert [wiki.source("Sourced", number) for number in (1, 2, 3, 4)] == [
        "''earlier''", source, "#REDIRECT [[X]]", None,
    ]  # fmt: skip
    wiki.save("Sourced", "ours", author="Eve", base=3, signed="account")
    assert (wiki.source("Sourced"), wiki.source("Sourced", 3)) == (None, "#REDIRECT [[X]]")
    assert wiki.source("Nowhere") is None
    is_sound(wiki)


def test_the_text_as_it_came_is_read_by_those_who_may_read_the_page(wiki: Wiki) -> None:
    bring_in(wiki, dump(("Read back", [Given(5, 5, "''first''"), Given(6, 6, "''second''")])))
    web = WikiClient(wiki)
    assert web.get("/Read_back/raw?source=1").text == "''second''"
    assert web.get("/Read_back/raw?source=1&revision=1").text == "''first''"
    wiki.mover.hide("Read back", 1, hidden=True)
    assert web.get("/Read_back/raw?source=1&revision=1").status_code == 404
    wiki.rights.change("Read back", PageRights(), "", {Privilege.READ: "Nobody"})
    assert "second" not in web.get("/Read_back/raw?source=1").text


def test_two_revisions_of_one_second_and_text_are_two(wiki: Wiki) -> None:
    bring_in(wiki, dump(("Alike", [Given(1, 5, "a")])))
    again = [Given(3, 1, "before"), Given(1, 5, "a"), Given(2, 5, "a")]
    assert bring_in(wiki, dump(("Alike", again))).stored.revisions == 2
    assert [row[2] for row in history(wiki, "Alike")] == ["before", "a", "a"]
    stored = bring_in(wiki, dump(("Alike", again))).stored
    assert (stored.revisions, stored.already) == (0, 3)
    is_sound(wiki)


@pytest.mark.parametrize("most", [1, 2, 64])
def test_a_page_twice_in_a_dump_over_one_that_is_there_loses_nothing(
    wiki: Wiki, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Both come at once, in parts: two merges of one page would each undo what the other has staged."""
    monkeypatch.setattr("wikka_port.import_pages.PART_REVISIONS", most)
    for number in range(ROUNDS):
        name = f"Twice over {most} {number}"
        bring_in(wiki, dump((name, [Given(3, 30, "c"), Given(5, 50, "e")])))
        first = [Given(1, 1, "a"), Given(5, 50, "e")]
        second = [Given(5, 50, "e"), Given(2, 2, "b"), Given(1, 1, "a"), Given(6, 60, "f")]
        stored = bring_in(wiki, dump((name, first), ("Between", []), (name, second))).stored
        assert (stored.revisions, stored.already, stored.busy) == (3, 3, set())
        assert [row[2] for row in history(wiki, name)] == ["a", "b", "c", "e", "f"]
    is_sound(wiki)


def test_two_imports_at_once_leave_what_the_other_stands_on(wiki: Wiki, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both stage the same rows; the one that is late gives its merge up and begins anew."""
    late = [Given(5, 50, "late")]
    both = [Given(1, 1, "early"), Given(2, 2, "second"), *late]
    bring_in(wiki, dump(("At once", late)))
    stage_rows, begun = wiki.stage_rows, []

    def staged(rows: Any) -> None:
        stage_rows(rows)
        if not begun:
            begun.append(True)
            bring_in(wiki, dump(("At once", [*both, Given(7, 70, "latest")])))

    monkeypatch.setattr(wiki, "stage_rows", staged)
    stored = bring_in(wiki, dump(("At once", both)), restart=True).stored
    assert (stored.revisions, stored.already, stored.busy) == (0, 3, set())
    assert [row[2] for row in history(wiki, "At once")] == ["early", "second", "late", "latest"]
    is_sound(wiki)


@pytest.mark.parametrize("spooled", [1, 2, 64])
def test_ids_order_revisions_of_one_second_whatever_brings_them(
    wiki: Wiki, monkeypatch: pytest.MonkeyPatch, spooled: int
) -> None:
    """A later dump, or a later run of a page over the spool's bound, brings the one of the lower id."""
    monkeypatch.setattr("wikka_port.import_pages.SPOOLED_REVISIONS", spooled)
    given = [Given(1, 1, "a"), Given(4, 9, "d"), Given(3, 9, "c"), Given(2, 9, "b")]
    bring_in(wiki, dump((f"Second {spooled}", given)))
    assert [row[2] for row in history(wiki, f"Second {spooled}")] == ["a", "b", "c", "d"]
    for one in (given[:2], given[2:3], given[3:], given):
        bring_in(wiki, dump((f"Second again {spooled}", one)))
    assert [row[2] for row in history(wiki, f"Second again {spooled}")] == ["a", "b", "c", "d"]
    is_sound(wiki)
