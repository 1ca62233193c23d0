"""Aliases of tables: clients mean by them what they name now, and everybody else names tables by their own names."""

from __future__ import annotations

import pytest

from columnar.errors import IllegalArgument, TableNotEnabled, TableNotFound
from columnar.model.region_info import RegionInfo
from columnar.model.schema import Family, make_table
from columnar.regions.tables import ServedTable, Tables


def served(name: str, region: int = 1, *, enabled: bool = True) -> ServedTable:
    return ServedTable(make_table(name, [Family("f")]), enabled, [RegionInfo(name, region, b"", b"")])


@pytest.fixture
def tables() -> Tables:
    found = Tables()
    for number, name in enumerate(("pages", "v", "v.2")):
        found.install(served(name, number))
    found.name_also({"v": "v.2", "v@1": "v", "v@2": "v.2", "gone": "nothing"})
    return found


def name_of(held: ServedTable | None) -> str | None:
    return held.schema.name if held is not None else None


def test_an_alias_goes_before_a_table_of_its_name(tables: Tables) -> None:
    meant = {
        name: name_of(tables.meant(name)) for name in (b"pages", b"v", b"v@1", b"v@2", b"v.2", b"gone", b"default:v")
    }
    assert meant == {
        b"pages": "pages", b"v": "v.2", b"v@1": "v", b"v@2": "v.2", b"v.2": "v.2", b"gone": None, b"default:v": "v.2",
    }  # fmt: skip
    assert name_of(tables.meant_now(b"v")) == "v.2"


def test_own_names_are_not_touched_by_aliases(tables: Tables) -> None:
    assert name_of(tables.find(b"v")) == name_of(tables.enabled(b"v")) == name_of(tables.named("v")) == "v"
    assert tables.find(b"v@1") is None


def test_tables_come_and_go_under_their_aliases(tables: Tables) -> None:
    tables.install(served("nothing", 7))
    assert name_of(tables.meant(b"gone")) == "nothing"
    tables.remove("v")
    assert (name_of(tables.meant(b"v")), name_of(tables.meant(b"v@1")), tables.find(b"v")) == ("v.2", None, None)
    tables.remove("v.2")
    assert tables.meant(b"v") is None
    fresh = served("v.2", 8, enabled=False)
    tables.install(fresh)
    assert tables.meant(b"v") is fresh
    with pytest.raises(TableNotEnabled):
        tables.meant_now(b"v")
    tables.name_also({})
    assert tables.meant(b"v") is None


def test_names_that_a_person_sees(tables: Tables) -> None:
    assert [name for name, _ in tables.names()] == [b"pages", b"v", b"v.2"]
    tables.remove("v")
    assert [(name, name_of(held)) for name, held in tables.names()][1:] == [(b"v", "v.2"), (b"v.2", "v.2")]


def test_what_is_no_table(tables: Tables) -> None:
    assert tables.meant(None) is None
    for wrong in (None, b""):
        with pytest.raises(IllegalArgument):
            tables.meant_now(wrong)
    with pytest.raises(TableNotFound):
        tables.meant_known(b"nobody")
