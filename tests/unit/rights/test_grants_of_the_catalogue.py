"""Grants end with what they name, in the write that ends it; those of a view outlive its generations."""

from __future__ import annotations

import asyncio

from columnar.master.catalogue import Catalogue
from columnar.master.rights_rows import record_from
from columnar.model.accounts import Account
from columnar.model.derivations import ViewSet
from columnar.model.mutation import RowMutation
from columnar.model.region_info import RegionInfo
from columnar.model.region_messages import PublishRights
from columnar.model.rights import Grant, RightsRecord, Scope, with_grant, without_grant
from columnar.model.schema import Family, make_table
from columnar.model.view_generations import Swap


class Written:
    """A catalogue whose writes are noted."""

    def __init__(self) -> None:
        self.writes: list[list[RowMutation]] = []
        self.catalogue = Catalogue([], self._write)

    async def _write(self, mutations: list[RowMutation]) -> None:
        self.writes.append(mutations)

    def grant(self, *grants: Grant) -> None:
        asyncio.run(self.catalogue.rights.write_record(RightsRecord(grants)))

    def make(self, name: str, *families: str) -> None:
        (region_id,) = self.catalogue.next_ids(1)
        table = make_table(name, [Family(family) for family in families])
        asyncio.run(self.catalogue.adopt(table, [RegionInfo(name, region_id)]))

    @property
    def scopes(self) -> list[str]:
        return [str(one.scope) for one in self.catalogue.rights.record.grants]

    def rows_of_last_write(self) -> set[bytes]:
        return {mutation.row for mutation in self.writes[-1]}


def test_grants_of_a_table_end_in_the_write_that_drops_it() -> None:
    written = Written()
    written.make("t", "a")
    written.grant(Grant("bob", Scope(table="t"), 1), Grant("bob", Scope(table="u"), 1))
    asyncio.run(written.catalogue.drop("t"))
    assert written.scopes == ["u"]
    assert {b"t/t", b"u/g/bob"} <= written.rows_of_last_write()


def test_grants_of_families_that_new_regions_lack_end() -> None:
    """A restored snapshot has the families of its time."""
    written = Written()
    written.make("t", "a", "z")
    written.grant(Grant("bob", Scope(table="t", family="a"), 1), Grant("bob", Scope(table="t", family="z"), 1))
    written.make("t", "a")
    assert written.scopes == ["t a"]


def test_a_namespace_goes_with_its_grants_in_one_write() -> None:
    written = Written()
    catalogue = written.catalogue
    asyncio.run(catalogue.namespaces.create_namespace("team"))
    written.grant(Grant("bob", Scope(namespace="team"), 31))
    left = RightsRecord()
    asyncio.run(catalogue.namespaces.drop_namespace("team", *catalogue.rights.changes_to(left)))
    assert written.rows_of_last_write() == {b"ns/team", b"u/g/bob"}


def test_grants_of_a_view_outlive_its_generations_and_end_with_it() -> None:
    written = Written()
    catalogue = written.catalogue
    written.make("stat", "a")
    written.make("stat.2", "a")
    written.grant(Grant("bob", Scope(table="stat"), 1))
    views = catalogue.derivations.views
    catalogue.derivations.take_written([ViewSet(views.all, views.numbers, b"", (Swap("stat", "stat.2"),))])
    asyncio.run(catalogue.drop("stat"))
    assert written.scopes == ["stat"], "readers of stat see stat.2"
    asyncio.run(catalogue.drop("stat.2", ViewSet(views.all, views.numbers, b"", ())))
    assert written.scopes == []


def test_the_key_of_unknown_users_stays_in_every_change_and_in_no_text() -> None:
    written = Written()
    rights = written.catalogue.rights
    record = RightsRecord((), {"team": ("bob",)}, {"bob": Account("bob")}, "5ec2e7")
    asyncio.run(rights.write_record(record))
    assert written.rows_of_last_write() == {b"u/m/team", b"u/a/bob", b"u/k"}
    written.make("t", "a")
    grant = Grant("bob", Scope(table="t"), 1)
    for changed in (with_grant(record, grant), without_grant(with_grant(record, grant), grant)):
        asyncio.run(rights.write_record(changed))
        assert written.rows_of_last_write() == {b"u/g/bob"}
        assert rights.record.unknown_key == "5ec2e7"
    stored = rights.stored_rows().items()
    assert record_from(sorted(stored)) == record
    assert "5ec2e7" not in repr(record) + repr(PublishRights(*record.as_tuples()))


def test_only_rows_of_grantees_that_change_are_written() -> None:
    written = Written()
    first = [Grant(f"user{n}", Scope(table="t"), 1) for n in range(50)]
    written.grant(*first)
    written.grant(*first[:-1], Grant("user49", Scope(table="t"), 3))
    assert written.rows_of_last_write() == {b"u/g/user49"}
