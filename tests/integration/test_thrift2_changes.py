"""Deletes, counters, appends and checks of the Thrift 2 service, as HBase's own handler and a running 2.6.1 do them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.serving import Serving
from tests.support.thrift2_client import (
    H,
    T,
    cell,
    cells_of,
    column,
    delete,
    four_versions,
    put,
    read,
    served,
    stamps,
    values,
    with_table,
)

DELETE_COLUMN, DELETE_COLUMNS, DELETE_FAMILY, DELETE_FAMILY_VERSION = range(4)


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with served(tmp_path_factory.mktemp("thrift2") / "data") as running:
        yield running


@pytest.fixture(scope="module")
def client(serving: Serving) -> Iterator[Any]:
    with with_table(serving) as thrift:
        yield thrift


# --- deletes ---------------------------------------------------------------------------------------


def test_delete_one_version(client: Any) -> None:
    four_versions(client, b"d1")
    client.deleteSingle(T, delete(b"d1", column(b"a", b"q", 30), deleteType=DELETE_COLUMN))
    assert stamps(client, b"d1") == [40, 20]
    client.deleteSingle(T, delete(b"d1", column(b"a", b"q", 30), deleteType=DELETE_COLUMN))
    assert stamps(client, b"d1") == [40, 20], "there is none at 30 any more"
    client.deleteSingle(T, delete(b"d1", column(b"a", b"q", 40), deleteType=DELETE_COLUMN))
    assert read(client, b"d1")[0] == (b"a:q", b"v20", 20), "the one behind comes to light"
    assert stamps(client, b"d1", b"z") == [40, 30, 20]


def test_delete_the_newest_version(client: Any) -> None:
    four_versions(client, b"d2")
    client.deleteSingle(T, delete(b"d2", column(b"a", b"q"), deleteType=DELETE_COLUMN))
    assert stamps(client, b"d2") == [30, 20], "what the family had dropped does not come back"
    client.deleteSingle(T, delete(b"d2", column(b"a", b"q"), column(b"a", b"q"), deleteType=DELETE_COLUMN))
    assert stamps(client, b"d2") == []


def test_delete_all_versions(client: Any) -> None:
    four_versions(client, b"d3")
    client.deleteSingle(T, delete(b"d3", column(b"a", b"q", 30), deleteType=DELETE_COLUMNS))
    assert stamps(client, b"d3") == [40]
    client.deleteSingle(T, delete(b"d3", column(b"a", b"q")))  # DELETE_COLUMNS is the default
    assert stamps(client, b"d3") == []
    assert stamps(client, b"d3", b"z") == [40, 30, 20]


def test_delete_a_family(client: Any) -> None:
    four_versions(client, b"d4")
    client.put(T, put(b"d4", cell(b"b", b"q")))
    client.deleteSingle(T, delete(b"d4", column(b"a", None, 30), deleteType=DELETE_FAMILY))
    assert (stamps(client, b"d4"), stamps(client, b"d4", b"z")) == ([40], [40])
    client.deleteSingle(T, delete(b"d4", column(b"a"), deleteType=DELETE_FAMILY))
    assert list(values(client, b"d4")) == [b"b:q"]


def test_delete_a_version_of_a_family(client: Any) -> None:
    four_versions(client, b"d5")
    client.put(T, put(b"d5", cell(b"a", b"alone", b"x", 30)))
    client.deleteSingle(T, delete(b"d5", column(b"a", None, 30), deleteType=DELETE_FAMILY_VERSION))
    assert (stamps(client, b"d5"), stamps(client, b"d5", b"z")) == ([40, 20], [40, 20])
    assert stamps(client, b"d5", b"alone") == []


def test_delete_a_row(client: Any) -> None:
    four_versions(client, b"d6")
    client.deleteSingle(T, delete(b"d6", timestamp=30))
    assert stamps(client, b"d6") == [40]
    client.deleteSingle(T, delete(b"d6"))
    assert read(client, b"d6") == []


def test_delete_several(client: Any) -> None:
    """Those that failed are none."""
    client.putMultiple(T, [put(b"ds%d" % n, cell(b"a", b"q"), cell(b"b", b"q")) for n in range(3)])
    assert client.deleteMultiple(T, [delete(b"ds0"), delete(b"ds1", column(b"a", b"q"))]) == []
    assert client.existsAll(T, [H.TGet(row=b"ds%d" % n) for n in range(3)]) == [False, True, True]


# --- counters, appends, checks ---------------------------------------------------------------------


def test_increment(client: Any) -> None:
    client.put(T, put(b"counter", cell(b"a", b"n", (1).to_bytes(8, "big"))))
    columns = [
        H.TColumnIncrement(family=b"b", qualifier=b"n", amount=-5),
        H.TColumnIncrement(family=b"a", qualifier=b"n"),
    ]
    result = client.increment(T, H.TIncrement(row=b"counter", columns=columns))
    found = [(c, int.from_bytes(v, "big", signed=True)) for c, v, _ in cells_of(result)]
    assert (result.row, found) == (b"counter", [(b"a:n", 2), (b"b:n", -5)])
    silent = client.increment(T, H.TIncrement(row=b"counter", columns=columns[1:], returnResults=False))
    assert (silent.row, silent.columnValues) == (None, [])
    assert values(client, b"counter")[b"a:n"] == (3).to_bytes(8, "big")


def test_append(client: Any) -> None:
    client.put(T, put(b"append", cell(b"a", b"q", b"one")))
    result = client.append(T, H.TAppend(row=b"append", columns=[cell(b"b", b"q", b"new"), cell(b"a", b"q", b"+two")]))
    assert [(c, v) for c, v, _ in cells_of(result)] == [(b"a:q", b"one+two"), (b"b:q", b"new")]
    silent = client.append(T, H.TAppend(row=b"append", columns=[cell(b"a", b"q", b"!")], returnResults=False))
    assert silent.columnValues == []
    assert values(client, b"append")[b"a:q"] == b"one+two!"


def test_check_and_put(client: Any) -> None:
    later = put(b"check", cell(b"b", b"q", b"put"))
    assert client.checkAndPut(T, b"check", b"a", b"q", b"v", later) is False
    assert client.exists(T, H.TGet(row=b"check")) is False
    assert client.checkAndPut(T, b"check", b"a", b"q", None, put(b"check", cell(b"a", b"q"))) is True
    assert client.checkAndPut(T, b"check", b"a", b"q", None, later) is False
    assert client.checkAndPut(T, b"check", b"a", b"q", b"v", later) is True
    assert values(client, b"check") == {b"a:q": b"v", b"b:q": b"put"}


def test_check_and_delete(client: Any) -> None:
    client.put(T, put(b"checkd", cell(b"a", b"q"), cell(b"b", b"q")))
    assert client.checkAndDelete(T, b"checkd", b"a", b"q", b"other", delete(b"checkd")) is False
    assert client.checkAndDelete(T, b"checkd", b"a", b"q", b"v", delete(b"checkd", column(b"b", b"q"))) is True
    assert list(values(client, b"checkd")) == [b"a:q"]


LESS, LESS_OR_EQUAL, EQUAL, NOT_EQUAL, GREATER_OR_EQUAL, GREATER = range(6)


@pytest.mark.parametrize(
    ("op", "below", "same", "above", "empty"),
    [
        (LESS, True, False, False, False),
        (LESS_OR_EQUAL, True, True, False, False),
        (EQUAL, False, True, False, False),
        (NOT_EQUAL, True, False, True, True),
        (GREATER_OR_EQUAL, False, True, True, False),
        (GREATER, False, False, True, False),
    ],
)
def test_comparisons(client: Any, op: int, below: bool, same: bool, above: bool, empty: bool) -> None:
    """The given value stands on the left; an absent cell stands in no relation to a value."""
    row = b"compare%d" % op
    client.put(T, put(row, cell(b"a", b"q", b"m")))
    then = H.TRowMutations(row=row, mutations=[H.TMutation(put=put(row, cell(b"b", b"q", b"done")))])

    def check(value: bytes | None, qualifier: bytes = b"q") -> bool:
        return bool(client.checkAndMutate(T, row, b"a", qualifier, op, value, then))

    assert [check(b"a"), check(b"m"), check(b"z"), check(b"")] == [below, same, above, empty]
    assert check(b"x", b"absent") is False
    assert check(None, b"absent") is (op != NOT_EQUAL)


def test_check_and_mutate(client: Any) -> None:
    client.put(T, put(b"cam", cell(b"a", b"q"), cell(b"a", b"gone")))
    puts = H.TMutation(put=put(b"cam", cell(b"b", b"q", b"new")))
    then = H.TRowMutations(
        row=b"cam", mutations=[puts, H.TMutation(deleteSingle=delete(b"cam", column(b"a", b"gone")))]
    )
    assert client.checkAndMutate(T, b"cam", b"a", b"q", EQUAL, b"other", then) is False
    assert list(values(client, b"cam")) == [b"a:gone", b"a:q"]
    assert client.checkAndMutate(T, b"cam", b"a", b"q", EQUAL, b"v", then) is True
    assert values(client, b"cam") == {b"a:q": b"v", b"b:q": b"new"}


def test_mutate_row(client: Any) -> None:
    """Puts and deletes of one row, one after the other, as one step."""
    client.put(T, put(b"mutate", cell(b"a", b"1"), cell(b"a", b"2")))
    mutations = [
        H.TMutation(put=put(b"mutate", cell(b"a", b"3", b"put, then deleted"))),
        H.TMutation(deleteSingle=delete(b"mutate", column(b"a", b"1"), column(b"a", b"3"))),
        H.TMutation(put=put(b"mutate", cell(b"a", b"1", b"deleted, then put"))),
    ]
    client.mutateRow(T, H.TRowMutations(row=b"mutate", mutations=mutations))
    assert values(client, b"mutate") == {b"a:1": b"deleted, then put", b"a:2": b"v"}
