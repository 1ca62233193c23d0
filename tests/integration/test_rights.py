"""A store with rights: a user reads, lists and scans what grants allow, by both services, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from columnar.config import RightsSettings
from columnar.limits import COLUMNS_PER_CALL
from columnar.model.change_events import ChangeEvent, Event, RowEvent, unpack_events
from columnar.runtime.log_rate import OF_CLIENTS
from columnar.wire.idl import columnar, hbase
from tests.support.serving import Serving
from tests.support.store_users import Users, grant, refused, revoke
from tests.support.thrift2_client import H, name

FAMILIES = (b"a", b"b")
ROWS = {b"r1": {b"a:1": b"seen", b"a:2": b"secret", b"b:1": b"secret"}, b"r2": {b"b:1": b"secret"}}
SEEN = {b"r1": {b"a:1": b"seen"}}
FILTERS = (
    b"SingleColumnValueFilter('b','1',=,'binary:secret',true,true)",
    b"SingleColumnValueFilter('a','2',=,'binary:secret',true,true)",
    b"SingleColumnValueExcludeFilter('b','1',=,'binary:secret')",
    b"ValueFilter(=,'substring:sec')",
    b"FirstKeyOnlyFilter()",
    b"DependentColumnFilter('b','1')",
    b"PageFilter(10)",
)


@pytest.fixture
def users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Users]:
    settings = RightsSettings(is_on=True, superusers=("chief",))
    serving = Serving(tmp_path, rights=settings, thrift2_port=0).start()
    made = Users(serving, monkeypatch)
    with made.user("chief") as chief:
        for table in (b"t", b"other"):
            chief.createTable(table, [hbase.ColumnDescriptor(name=family, maxVersions=3) for family in FAMILIES])
            for row, cells in ROWS.items():
                chief.mutateRow(table, row, [hbase.Mutation(column=one, value=cells[one]) for one in cells], {})
    yield made
    serving.stop()


def _rows(found: Any) -> dict[bytes, dict[bytes, bytes]]:
    return {one.row: {column: cell.value for column, cell in one.columns.items()} for one in found}


def _rows2(found: Any) -> dict[bytes, dict[bytes, bytes]]:
    return {
        one.row: {cell.family + b":" + cell.qualifier: cell.value for cell in one.columnValues}
        for one in found
        if one.row is not None
    }


def _scanned(client: Any, scanner: int) -> dict[bytes, dict[bytes, bytes]]:
    found = _rows(client.scannerGetList(scanner, 10))
    client.scannerClose(scanner)
    return found


NOW = (1 << 63) - 1
READS: dict[str, Callable[[Any], Any]] = {
    "getRow": lambda c: _rows(c.getRow(b"t", b"r1", {})),
    "getRowTs": lambda c: _rows(c.getRowTs(b"t", b"r1", NOW, {})),
    "getRows": lambda c: _rows(c.getRows(b"t", [b"r1", b"r2"], {})),
    "getRowsTs": lambda c: _rows(c.getRowsTs(b"t", [b"r1", b"r2"], NOW, None)),
    "getRowWithColumns": lambda c: _rows(c.getRowWithColumns(b"t", b"r1", [b"a", b"b"], {})),
    "getRowWithColumns, none": lambda c: _rows(c.getRowWithColumns(b"t", b"r1", [], {})),
    "getRowWithColumnsTs": lambda c: _rows(c.getRowWithColumnsTs(b"t", b"r1", [b"a:1", b"a:2"], NOW, {})),
    "getRowsWithColumns": lambda c: _rows(c.getRowsWithColumns(b"t", [b"r1", b"r2"], [b"a:", b"a"], {})),
    "getRowsWithColumnsTs": lambda c: _rows(c.getRowsWithColumnsTs(b"t", [b"r1"], None, NOW, {})),
    "scannerOpen": lambda c: _scanned(c, c.scannerOpen(b"t", b"", [], {})),
    "scannerOpenTs": lambda c: _scanned(c, c.scannerOpenTs(b"t", b"", [b"a", b"b:1"], NOW, {})),
    "scannerOpenWithStop": lambda c: _scanned(c, c.scannerOpenWithStop(b"t", b"", b"", None, {})),
    "scannerOpenWithStopTs": lambda c: _scanned(c, c.scannerOpenWithStopTs(b"t", b"", b"", [], NOW, {})),
    "scannerOpenWithPrefix": lambda c: _scanned(c, c.scannerOpenWithPrefix(b"t", b"r", [], {})),
    "scannerOpenWithScan": lambda c: _scanned(c, c.scannerOpenWithScan(b"t", hbase.TScan(), {})),
}
READS2: dict[str, Callable[[Any], Any]] = {
    "get": lambda c: _rows2([c.get(b"t", H.TGet(row=b"r1"))]),
    "get, columns": lambda c: _rows2([c.get(b"t", H.TGet(row=b"r1", columns=[_c(b"a"), _c(b"b", b"1")]))]),
    "getMultiple": lambda c: _rows2(c.getMultiple(b"t", [H.TGet(row=b"r1"), H.TGet(row=b"r2", columns=[_c(b"a")])])),
    "getScannerResults": lambda c: _rows2(c.getScannerResults(b"t", H.TScan(), 10)),
    "openScanner": lambda c: _rows2(c.getScannerRows(c.openScanner(b"t", H.TScan(columns=[_c(b"a")])), 10)),
}


def _c(family: bytes, qualifier: bytes | None = None) -> Any:
    return H.TColumn(family=family, qualifier=qualifier)


def test_reads_are_narrowed_to_what_the_user_may_see(users: Users) -> None:
    with users.user("chief") as chief:
        grant(chief, "ann", "R", b"t", b"a", qualifier=b"1")
    with users.user("ann") as ann:
        assert {called: read(ann) for called, read in READS.items()} == dict.fromkeys(READS, SEEN)
        assert ann.get(b"t", b"r1", b"a:1", {})[0].value == b"seen"
        for column in (b"a:2", b"b:1", b"a", b"a:", b"b"):
            with refused():
                ann.get(b"t", b"r1", column, {})
        for family in (b"a", b"a:1", b"a:", b"b"):
            with refused():
                ann.columnarRowSlice(b"t", b"r1", family, b"", b"", 10, False)
        with refused():
            ann.getRowWithColumns(b"t", b"r1", [b"b"], {})
        with refused():
            ann.getRow(b"other", b"r1", {})
    with users.user("ann", H.THBaseService) as ann:
        assert {called: read(ann) for called, read in READS2.items()} == dict.fromkeys(READS2, SEEN)
        assert ann.existsAll(b"t", [H.TGet(row=b"r1")]) == [True]
        assert not ann.exists(b"t", H.TGet(row=b"r2")), "all of its cells are hidden"
        with refused():
            ann.getMultiple(b"t", [H.TGet(row=b"r1"), H.TGet(row=b"r1", columns=[_c(b"b")])])


@pytest.mark.parametrize("text", FILTERS)
def test_filters_see_no_more_than_the_user(users: Users, text: bytes) -> None:
    """The answer is the same whatever the hidden cells hold."""
    with users.user("chief") as chief:
        grant(chief, "ann", "R", b"t", b"a", qualifier=b"1")
    answers = []
    for hidden in (b"secret", b"other"):
        with users.user("chief") as chief:
            for row, column in ((b"r1", b"a:2"), (b"r1", b"b:1"), (b"r2", b"b:1")):
                chief.mutateRow(b"t", row, [hbase.Mutation(column=column, value=hidden)], {})
        with users.user("ann") as ann:
            opened = ann.scannerOpenWithScan(b"t", hbase.TScan(filterString=text), {})
            answers.append(_scanned(ann, opened))
        with users.user("ann", H.THBaseService) as ann:
            answers.append(_rows2(ann.getScannerResults(b"t", H.TScan(filterString=text), 10)))
            answers.append(_rows2([ann.get(b"t", H.TGet(row=b"r1", filterString=text))]))
    assert answers[:3] == answers[3:]
    assert all(value == b"seen" for found in answers for cells in found.values() for value in cells.values())


def test_a_grant_is_in_force_when_it_is_answered_and_so_is_its_end(users: Users) -> None:
    with users.user("chief") as chief, users.user("bob") as bob:
        with refused():
            bob.getRow(b"t", b"r1", {})
        grant(chief, "bob", "R", b"t")
        assert _rows(bob.getRow(b"t", b"r1", {})) == {b"r1": ROWS[b"r1"]}
        with refused():
            bob.mutateRow(b"t", b"r1", [hbase.Mutation(column=b"a:1", value=b"new")], {})
        revoke(chief, "bob", "RW", b"t")
        with refused():
            bob.getRow(b"t", b"r1", {})
        with pytest.raises(hbase.IllegalArgument, match="no such rights"):
            revoke(chief, "bob", "R", b"t")


def test_groups_give_their_members_rights(users: Users) -> None:
    with users.user("chief") as chief, users.user("bob") as bob:
        grant(chief, "@team", "W", b"t", b"a")
        chief.columnarSetGroup("team", ["bob", "eve"], [])
        bob.mutateRow(b"t", b"r9", [hbase.Mutation(column=b"a:1", value=b"new")], {})
        for mutation in (hbase.Mutation(column=b"b:1", value=b"x"), hbase.Mutation(column=b"b", isDelete=True)):
            with refused():
                bob.mutateRow(b"t", b"r9", [hbase.Mutation(column=b"a:1", value=b"x"), mutation], {})
        with refused():
            bob.deleteAllRow(b"t", b"r9", {})
        with refused():
            bob.atomicIncrement(b"t", b"r9", b"a:n", 1)  # its answer is a value
        assert _rows(chief.getRow(b"t", b"r9", {})) == {b"r9": {b"a:1": b"new"}}, "a refusal changes nothing"
        chief.columnarSetGroup("team", [], ["bob"])
        with refused():
            bob.mutateRow(b"t", b"r9", [hbase.Mutation(column=b"a:1", value=b"x")], {})


def test_a_scanner_belongs_to_its_user(users: Users) -> None:
    with users.user("chief") as chief, users.user("bob") as bob:
        grant(chief, "bob", "R", b"other")
        opened = chief.scannerOpenWithScan(b"t", hbase.TScan(), {})
        for call in (lambda: bob.scannerGetList(opened, 10), lambda: bob.scannerClose(opened)):
            with refused():
                call()
        assert len(chief.scannerGetList(opened, 10)) == 2


def test_nobody_may_do_anything(users: Users) -> None:
    with users.user("") as nobody:
        for call in (
            nobody.getTableNames,
            nobody.columnarStatus,
            lambda: nobody.getRow(b"t", b"r1", {}),
            lambda: nobody.getRow(b"columnar:meta", b"t/t", {}),
            lambda: nobody.columnarGrant(columnar.RightsGrant(grantee="eve", rights="RWXCA")),
        ):
            with refused():
                call()
        assert nobody.columnarWhoAmI().user == ""


def test_creators_have_their_tables_and_lose_them_with_the_table(users: Users) -> None:
    with users.user("chief") as chief, users.user("cid") as cid, users.user("eve") as eve:
        with refused():
            cid.createTable(b"team:x", [hbase.ColumnDescriptor(name=b"a")])
        chief.columnarCreateNamespace(b"team", {})
        grant(chief, "cid", "C", namespaceName="team")
        cid.createTable(b"team:x", [hbase.ColumnDescriptor(name=b"a")])
        cid.mutateRow(b"team:x", b"r", [hbase.Mutation(column=b"a:1", value=b"1")], {})
        grant(cid, "eve", "R", b"team:x")
        with refused():
            grant(cid, "eve", "R", b"t")
        assert _rows(eve.getRow(b"team:x", b"r", {})) == {b"r": {b"a:1": b"1"}}
        assert (cid.getTableNames(), eve.getTableNames()) == ([b"team:x"], [b"team:x"])
        assert cid.columnarListNamespaces() == [b"team"]
        cid.columnarDropTable(b"team:x")
        chief.createTable(b"team:x", [hbase.ColumnDescriptor(name=b"a")])
        for former in (cid, eve):
            with refused():
                former.getRow(b"team:x", b"r", {})


def test_grants_of_a_dropped_family_end_with_it(users: Users) -> None:
    with users.user("chief") as chief, users.user("bob") as bob:
        grant(chief, "bob", "R", b"t", b"b")
        assert _rows(bob.getRow(b"t", b"r2", {})) == {b"r2": {b"b:1": b"secret"}}
        chief.columnarAlterTable(b"t", columnar.TableChange(dropFamilies=[b"b"]))
        chief.columnarAlterTable(b"t", columnar.TableChange(addFamilies=[columnar.FamilyOptions(name=b"b")]))
        with refused():
            bob.getRow(b"t", b"r2", {})


def test_users_and_grants_survive_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = RightsSettings(is_on=True, superusers=("chief",))
    for start in range(2):
        serving = Serving(tmp_path, rights=settings).start()
        made = Users(serving, monkeypatch)
        with made.user("chief") as chief, made.user("bob") as bob:
            if start == 0:
                chief.createTable(b"t", [hbase.ColumnDescriptor(name=b"a")])
                grant(chief, "bob", "R", b"t")
                chief.columnarSetGroup("team", ["bob"], [])
                chief.columnarAddToken("bob", "laptop", "0" * 64)
            bob.getRow(b"t", b"r", {})
            assert [(one.name, one.tokens, one.groups) for one in chief.columnarUsers()] == [
                ("bob", ["laptop"], ["team"])
            ]
            chief_grants = [(one.grantee, one.rights, one.table) for one in chief.columnarPermissions()]
            assert chief_grants == [("bob", "R", b"t"), ("chief", "RWXCA", b"t")]
            assert [one.grantee for one in bob.columnarPermissions()] == ["bob"]
        serving.stop()


def test_the_second_service_is_checked_too(users: Users) -> None:
    with users.user("bob", H.THBaseService) as bob:
        for call in (
            lambda: bob.get(b"t", H.TGet(row=b"r1")),
            lambda: bob.deleteTable(name(b"t")),
            lambda: bob.put(b"t", H.TPut(row=b"r", columnValues=[H.TColumnValue(b"a", b"1", b"x")])),
        ):
            with refused():
                call()
        assert bob.getTableNamesByPattern(None, True) == []
        assert bob.getTableDescriptorsByNamespace("default") == []


@pytest.mark.parametrize("kind", [2, 3])
def test_a_delete_whose_type_takes_the_family_needs_the_family(users: Users, kind: int) -> None:
    """The column that such a delete names has a qualifier, which the delete does not heed."""
    with users.user("chief") as chief:
        grant(chief, "bob", "RW", b"t", b"a", qualifier=b"1")
    column = H.TColumn(family=b"a", qualifier=b"1", timestamp=5 if kind == 3 else None)
    delete = H.TDelete(row=b"r1", columns=[column], deleteType=kind)
    with users.user("bob", H.THBaseService) as bob:
        for call in (
            lambda: bob.deleteSingle(b"t", delete),
            lambda: bob.deleteMultiple(b"t", [delete]),
            lambda: bob.checkAndDelete(b"t", b"r1", b"a", b"1", b"seen", delete),
            lambda: bob.mutateRow(b"t", H.TRowMutations(row=b"r1", mutations=[H.TMutation(deleteSingle=delete)])),
        ):
            with refused():
                call()
        bob.deleteSingle(b"t", H.TDelete(row=b"r1", columns=[_c(b"a", b"1")], deleteType=1))
    with users.user("chief") as chief:
        assert _rows(chief.getRow(b"t", b"r1", {})) == {b"r1": {b"a:2": b"secret", b"b:1": b"secret"}}


def test_no_client_writes_lines_of_its_own_into_the_audit_log(users: Users, caplog: pytest.LogCaptureFixture) -> None:
    with users.user("bob") as bob:
        for call in (
            lambda: bob.deleteTable(b"x\nrefused user=chief"),
            lambda: bob.columnarTriggerPause("x\nrefused user=chief"),
            lambda: bob.columnarDescribeNamespace(b"x\nrefused user=chief"),
        ):
            with refused():
                call()
    assert not [one.getMessage() for one in caplog.records if "\n" in one.getMessage()]


def test_a_scanner_ends_with_the_rights_of_its_user(users: Users) -> None:
    """A scanner read on after a revoke, and a later table of the same name."""
    with users.user("chief") as chief, users.user("bob") as bob, users.user("eve") as eve:
        for name in ("bob", "eve"):
            grant(chief, name, "R", b"t")
        opened, other = bob.scannerOpen(b"t", b"", [], {}), eve.scannerOpen(b"t", b"", [], {})
        assert len(bob.scannerGetList(opened, 1)) == 1
        grant(chief, "bob", "W", b"t")
        assert len(bob.scannerGetList(opened, 1)) == 1, "a further right ends nothing"
        opened = bob.scannerOpen(b"t", b"", [], {})
        revoke(chief, "bob", "R", b"t")
        with pytest.raises(hbase.IllegalArgument):
            bob.scannerGetList(opened, 1)
        assert len(eve.scannerGetList(other, 1)) == 1, "whose rights are as before"
        chief.columnarDropTable(b"t")
        chief.createTable(b"t", [hbase.ColumnDescriptor(name=b"a")])
        chief.mutateRow(b"t", b"n", [hbase.Mutation(column=b"a:1", value=b"new secret")], {})
        with pytest.raises(hbase.IllegalArgument):
            eve.scannerGetList(other, 1)


def test_a_table_named_like_a_region_merges_no_regions(users: Users) -> None:
    with users.user("chief") as chief, users.user("bob") as bob:
        chief.columnarCreateTable(b"big", [columnar.FamilyOptions(name=b"a")], {}, [b"m"])
        grant(chief, "bob", "R", b"big")
        grant(chief, "bob", "C", namespaceName="default")
        first, second = [one.name.rstrip(b".").rpartition(b".")[2] for one in bob.getTableRegions(b"big")]
        bob.createTable(first, [hbase.ColumnDescriptor(name=b"a")])
        bob.createTable(second, [hbase.ColumnDescriptor(name=b"a")])
        with refused():
            bob.columnarMerge(first, second)
        assert len(chief.getTableRegions(b"big")) == 2


def test_a_contribution_needs_the_whole_table(users: Users) -> None:
    """Its member decides which totals and ordered cells change, and a writer of the member's family can forge it."""
    contribution = columnar.Contribution(sequence=[1, 1, 2], withdrawn=True, amounts={}, carry={})
    operation = columnar.RowOperation(kind=4, column=b"a:src", contribution=contribution)
    with users.user("chief") as chief, users.user("bob") as bob:
        grant(chief, "bob", "RW", b"t", b"a")
        with refused():
            bob.columnarCheckAndMutate(b"t", b"r", [], [operation], {})


def _checked(row: bytes, column: bytes, condition: bytes | None = None) -> Any:
    conditions = [] if condition is None else [columnar.Condition(column=condition, op=6)]
    return columnar.CheckedRow(
        row=row, conditions=conditions, operations=[columnar.RowOperation(column=column, value=b"v")]
    )


def test_a_group_is_read_and_written_by_the_rights_of_each_column(users: Users) -> None:
    with users.user("chief") as chief:
        chief.columnarAlterTable(b"t", columnar.TableChange(attributes={"ROW_GROUP": "length:1"}))
        grant(chief, "ann", "R", b"t", b"a", qualifier=b"1")
        grant(chief, "bob", "W", b"t", b"a", qualifier=b"1")
        everything = chief.columnarReadGroup(b"t", b"r", [], [])
    with users.user("ann") as ann:
        found = ann.columnarReadGroup(b"t", b"r", [], [])
        assert (_rows(found.rows), found.columns) == (SEEN, [b"a:1"])
        seen = columnar.GroupRead(rows=[], columns=found.columns, digest=found.digest)
        assert ann.columnarMutateGroup(b"t", b"r", [], [seen]).applied
        for columns in ([], [b"a"], [b"b:1"]):
            read = columnar.GroupRead(rows=[], columns=columns, digest=everything.digest)
            with refused():  # whether it holds would tell of hidden cells
                ann.columnarMutateGroup(b"t", b"r", [], [read])
        with refused():
            ann.columnarReadGroup(b"t", b"r", [b"b"], [])
        with refused():
            ann.columnarMutateGroup(b"t", b"r", [_checked(b"r1", b"a:1")], [])
    with users.user("bob") as bob:
        assert bob.columnarMutateGroup(b"t", b"r", [_checked(b"r1", b"a:1"), _checked(b"r2", b"a:1")], []).applied
        for rows in ([_checked(b"r1", b"a:1"), _checked(b"r2", b"a:2")], [_checked(b"r1", b"a:1", condition=b"a:1")]):
            with refused():
                bob.columnarMutateGroup(b"t", b"r", rows, [])
        for call in (
            lambda: bob.columnarReadGroup(b"t", b"r", [], []),
            lambda: bob.columnarMutateGroup(b"other", b"r", [], []),
        ):
            with refused():
                call()


def test_a_call_without_columns_tells_a_stranger_nothing(users: Users) -> None:
    with users.user("bob") as bob:
        for table in (b"t", b"nonesuch"):
            for call in (
                lambda table=table: bob.mutateRows(table, [hbase.BatchMutation(row=b"r", mutations=[])], {}),
                lambda table=table: bob.columnarCheckAndMutateRows(table, []),
                lambda table=table: bob.columnarCheckAndMutate(table, b"r", [], [], {}),
            ):
                with refused():
                    call()


def test_many_columns_of_a_narrowed_read_are_refused_at_once(users: Users) -> None:
    with users.user("chief") as chief:
        for n in range(40):
            grant(chief, "ann", "R", b"t", b"a", qualifier=b"%d" % n)
    with users.user("ann") as ann:
        with pytest.raises(hbase.IOError, match="at most"):
            ann.getRowWithColumns(b"t", b"r1", [b"a"] * (COLUMNS_PER_CALL + 1), {})
        assert _rows(ann.getRowWithColumns(b"t", b"r1", [b"a"] * 1_000, {})) == {
            b"r1": {b"a:1": b"seen", b"a:2": b"secret"}
        }


def test_grants_have_bounds(users: Users) -> None:
    with users.user("chief") as chief, pytest.raises(hbase.IllegalArgument, match="256 bytes"):
        grant(chief, "ann", "R", b"t", b"a", qualifier=b"q" * 257)


def test_a_refused_grant_is_a_refusal_in_the_audit_log(users: Users, caplog: pytest.LogCaptureFixture) -> None:
    with users.user("eve") as eve:
        caplog.set_level("INFO", "columnar.audit")
        with refused():
            grant(eve, "eve", "RWXCA", b"t")
        with refused():
            eve.columnarSetPassword("chief", "$argon2id$x", "SCRAM-SHA-256$x")
    lines = [one.getMessage() for one in caplog.records if one.name == "columnar.audit"]
    assert [line for line in lines if line.startswith("refused user=eve")]
    assert not [line for line in lines if line.startswith("allowed user=eve")]


def test_refusals_of_strangers_are_counted_lines(users: Users, caplog: pytest.LogCaptureFixture) -> None:
    """One connection of a client who has not signed in wrote 15,000 lines a second."""
    with users.user("") as nobody, refused():
        nobody.getTableNames()
    names = {one.name for one in caplog.records if one.getMessage().startswith("refused user=- ")}
    assert [name for name in names if name.startswith(OF_CLIENTS)] == list(names) != []


def test_a_scanner_ends_when_its_user_leaves_the_group_that_may_read(users: Users) -> None:
    with users.user("chief") as chief, users.user("bob") as bob:
        grant(chief, "@team", "R", b"t")
        chief.columnarSetGroup("team", ["bob", "eve"], [])
        opened = bob.scannerOpen(b"t", b"", [], {})
        chief.columnarSetGroup("team", [], ["eve"])
        assert len(bob.scannerGetList(opened, 1)) == 1, "another member left"
        chief.columnarSetGroup("team", [], ["bob"])
        with pytest.raises(hbase.IllegalArgument):
            bob.scannerGetList(opened, 1)


def test_a_change_stream_is_narrowed_and_tests_no_column_that_its_reader_may_not_see(users: Users) -> None:
    kept = {"CHANGE_LOG": "3600", "CHANGE_LOG_IMAGES": "true"}

    def read(client: Any, **wanted: Any) -> list[Event]:
        request = columnar.ChangesRequest(start="beginning", **wanted)
        found = list[Event]()
        while True:
            reply = client.columnarChanges(b"kept", request)
            if not reply.events:
                return found
            found += unpack_events(reply.events)
            request.position = reply.position

    with users.user("chief") as chief:
        families = [columnar.FamilyOptions(name=family) for family in FAMILIES]
        chief.columnarCreateTable(b"kept", families, kept, [])
        for row, cells in ROWS.items():
            chief.mutateRow(b"kept", row, [hbase.Mutation(column=one, value=cells[one]) for one in cells], {})
        grant(chief, "reader", "R", b"kept", b"a", qualifier=b"1")
        after = columnar.ChangesRequest(start="now")
        position = chief.columnarChanges(b"kept", after).position
        chief.mutateRow(b"kept", b"r1", [hbase.Mutation(column=c, value=b"new") for c in (b"a:1", b"a:2", b"b:1")], {})
    with users.user("reader") as reader:
        (row,) = read(reader)
        assert isinstance(row, RowEvent)
        assert [(column, value) for column, _, value in row.cells] == [(b"a:1", b"new")]
        reply = reader.columnarChanges(b"kept", columnar.ChangesRequest(position=position, before=True, after=True))
        (change,) = unpack_events(reply.events)
        assert isinstance(change, ChangeEvent)
        assert [one.column for one in change.entries] == [b"a:1"]
        assert (change.before, change.after) == ({b"a:1": b"seen"}, {b"a:1": b"new"})
        assert len(read(reader, where=["a:1 = new"])) == 1
        for wanted in ({"where": ["b:1 = new"]}, {"where": ["a:1 = new", "a:2 exists"]}, {"columns": [b"b"]}):
            with refused():
                read(reader, **wanted)
    with users.user("stranger") as stranger, refused():
        read(stranger)
