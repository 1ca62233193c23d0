"""What the handlers count on, held against the wiki on a real store, servers and nodes, and against the one in memory.

On the store the application keeps the indexes, or triggers keep them: both lead to the same cells.

The unit tests of the web side stand on MemoryWiki; here it shows that it behaves like the wiki.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from tests.support.cluster_process import ClusterProcess
from tests.support.deep import cases
from tests.support.many_nodes import PATIENT, NodesCluster
from tests.support.memory_wiki import MemoryWiki
from tests.support.store_thread import StoreThread
from wikka_port import schema
from wikka_port.consistency import check
from wikka_port.page_rows import Cells, RevisionDraft
from wikka_port.pages import Allow, Conflict, Indexes, Saved, Wiki

STORES = ["memory", "store", "triggers", "servers"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcess]:
    with ClusterProcess(tmp_path_factory.mktemp("cluster") / "data", 3) as running:
        yield running


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodesCluster]:
    with NodesCluster(tmp_path_factory.mktemp("nodes") / "data", 3, *PATIENT) as running:
        yield running


class SettledWiki(Wiki):
    """Its triggers have delivered a save when it returns."""

    def commit(
        self, draft: RevisionDraft, before: Cells, *, allow: Allow | None = None, further: Cells = MappingProxyType({})
    ) -> Saved:
        saved = super().commit(draft, before, allow=allow, further=further)
        assert self.settle(saved.sequence, 30)
        return saved


@pytest.fixture(params=cases("kinds of stores of the wiki", deep=[*STORES, "nodes"], short=STORES))
def wiki(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    if request.param == "memory":
        yield MemoryWiki()
    elif request.param == "store":
        with StoreThread(tmp_path) as store, prepared(store.port) as made:
            yield made
    elif request.param == "triggers":
        with with_triggers(tmp_path) as made:
            yield made
    else:
        cluster = request.getfixturevalue("cluster" if request.param == "servers" else "nodes")
        with prepared(cluster.port) as made:
            yield made
        cluster.drop_all()


@contextmanager
def with_triggers(folder: Path) -> Iterator[Wiki]:
    with (
        StoreThread(folder, trigger_modules=("wikka_port.triggers",)) as store,
        prepared(store.port, SettledWiki, "triggers") as made,
    ):
        yield made


@contextmanager
def prepared(port: int, kind: type[Wiki] = Wiki, indexes: Indexes = "application") -> Iterator[Wiki]:
    made = kind("127.0.0.1", port, indexes=indexes)
    made.prepare()
    yield made
    made.store.close()


def test_a_page_and_its_revisions(wiki: Any) -> None:
    assert wiki.page("P") is None
    assert wiki.revisions("P") == []
    assert wiki.revision("P", 1) is None
    saved = [wiki.save("P", f"text {n}", author=f"a{n}", note=f"n{n}", base=n - 1) for n in range(1, 5)]
    assert [one.number for one in saved] == [1, 2, 3, 4]
    page = wiki.page("P")
    assert (page.name, page.number, page.author, page.note, page.body) == ("P", 4, "a4", "n4", "text 4")
    assert (page.autolink, page.attribution, page.time_ms) == (True, "", saved[3].time_ms)
    assert [one.number for one in wiki.revisions("P", limit=3)] == [4, 3, 2]
    assert [(one.number, one.body) for one in wiki.revisions("P", below=3, bodies=True)] == [
        (2, "text 2"),
        (1, "text 1"),
    ]
    assert wiki.revisions("P", limit=1)[0].body is None
    assert wiki.revision("P", 2).body == "text 2"
    assert wiki.revision("P", 5) is None
    assert wiki.revision("P", 0) is None
    assert wiki.revision_at("P", saved[1].time_ms).number == 2
    assert wiki.revision_at("P", saved[0].time_ms - 1) is None


def test_conflicts_write_nothing(wiki: Any) -> None:
    with pytest.raises(Conflict) as missing:
        wiki.save("P", "x", author="a", base=3)
    assert missing.value.current is None
    wiki.save("P", "one", author="a", base=0)
    for base in (0, 2):
        with pytest.raises(Conflict) as refused:
            wiki.save("P", "two", author="b", base=base)
        assert refused.value.current.body == "one"
    assert wiki.page("P").number == 1


def test_what_is_not_given_stays(wiki: Any) -> None:
    wiki.save("P", "one", author="a", base=0, autolink=False, attribution="from there", owner="Ada")
    wiki.save("P", "two", author="b", base=1)
    page = wiki.page("P")
    assert (page.autolink, page.attribution, page.owner) == (False, "from there", "Ada")


def test_existing(wiki: Any) -> None:
    wiki.save("A b", "x", author="a", base=0)
    assert wiki.existing(["A b", "A_b", "C"]) == {"A b", "A_b"}
    assert wiki.existing([]) == frozenset()


def in_steps(ask: Any, key: Any, limit: int) -> list[Any]:
    """The whole of a list, gone through as the pages of the web do."""
    found: list[Any] = []
    while step := ask(after=key(found[-1]) if found else "", limit=limit):
        found += step
        assert len(found) < 100
    return found


def test_lists(wiki: Any) -> None:
    for name in ("Älv", "Apple", "brook", "Zeta", "42"):
        wiki.save(name, "[[Hub]] [[Gone]] OtherPage", author="a", note="n", base=0)
    wiki.save("Hub", "[[Apple]] [[Hub]]", author="a", base=0)
    names = wiki.names()
    assert wiki.count_pages() == len(names) == 6
    assert [one for one in names if one not in ("Älv",)] == ["42", "Apple", "brook", "Hub", "Zeta"]
    assert wiki.names(start="brook", limit=2) == ["brook", "Hub"]
    assert set(wiki.names(prefix="a")) == {"Apple", "Älv"}
    assert wiki.search_titles("RO") == ["brook"]
    linking = {"Älv", "Apple", "brook", "Zeta", "42"}
    assert set(wiki.backlinks("Hub")) - {"Hub"} == linking
    assert wiki.backlinks("Hub") == sorted(wiki.backlinks("Hub"), key=names.index)
    assert set(in_steps(lambda **given: wiki.backlinks("Gone", **given), str, 2)) == linking
    assert len(in_steps(lambda **given: wiki.backlinks("Gone", **given), str, 2)) == 5
    assert wiki.backlinks("Nobody") == []
    assert sorted(in_steps(wiki.wanted, lambda item: item[0], 1)) == [("Gone", 5), ("OtherPage", 5)]
    orphans = in_steps(wiki.orphaned, str, 2)
    assert orphans == [one for one in names if one not in ("Apple", "Hub")]


def test_changes(wiki: Any) -> None:
    for n in range(7):
        wiki.save(f"P{n % 4}", f"text {n}", author="a", note=f"n{n}", base=n // 4)
    found, token = [], ""
    while True:
        step, token = wiki.changes(before=token, limit=3)
        found += step
        if not token:
            break
    assert [(one.note, one.number, one.is_new) for one in found] == [
        (f"n{n}", n // 4 + 1, n < 4) for n in reversed(range(7))
    ]
    assert wiki.changes(limit=100)[1] == ""


def test_triggers_and_the_application_lead_to_the_same_cells(tmp_path: Path) -> None:
    """Also where a page is older than those that wanted it, as in an import."""
    saves = [
        ("Source", "to [[Target]], [[Never]] and [[Source]]", 1_100_000_005_000),
        ("Other", "to [[Target]]", 1_100_000_006_000),
        ("Target", "to [[Source]]", 1_100_000_000_000),
        ("Other", "to [[Never]] and [[Later]]", 1_100_000_007_000),
        ("Source", "to [[Target]], no more", 1_100_000_008_000),
    ]
    found = []
    with with_triggers(tmp_path / "a") as first, StoreThread(tmp_path / "b") as store, prepared(store.port) as second:
        for wiki in (first, second):
            for name, body, time_ms in saves:
                page = wiki.page(name)
                wiki.save(name, body, author="Ann", base=page.number if page else 0, time_ms=time_ms)
            assert check(wiki) == check(wiki, repair=True)
            assert check(wiki).spare == ()
            assert dict(wiki.wanted()) == {"Never": 1, "Later": 1}
            tables = wiki.store.run(lambda c: {name: list(c.table(name).scan()) for name in schema.DERIVED})
            found.append(tables)
    assert found[0] == found[1]
    lists = [rows for name, rows in found[0].items() if name not in (schema.TERMS, schema.DOCS)]
    assert sum(map(len, lists)) == 5 + 3 + 5 + 2
    assert len(found[0][schema.DOCS]) == 3
