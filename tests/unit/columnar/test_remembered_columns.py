"""The columns of one call are parsed once; none is ever taken for another, nor let in by one before it."""

from __future__ import annotations

import pytest

from columnar.errors import ColumnarError
from columnar.model.mutation import Delete, Put
from columnar.model.schema import Family, Table
from columnar.thrift.translate import Columns, operations
from columnar.wire.sent_puts import Mutation

TABLE = Table("t", (Family("f"), Family("g")))


def put(column: bytes | None) -> Mutation:
    return Mutation(False, column, b"v", True)


def test_rows_of_one_call_share_them() -> None:
    known: Columns = {}
    for _ in range(2):
        found, _ = operations(TABLE, b"r", [put(b"f:a"), put(b"g:a"), put(b"f:"), Mutation(True, b"f")], 5, None, known)
        assert found == (
            Put(b"f", b"a", b"v", 5),
            Put(b"g", b"a", b"v", 5),
            Put(b"f", b"", b"v", 5),
            Delete(b"f", None, 5),
        )
    assert set(known) == {b"f:a", b"g:a", b"f:"}


@pytest.mark.parametrize("column", [b"", None, b"f", b":q", b"none:q"])
def test_a_bad_one_is_refused_behind_good_ones_and_twice(column: bytes | None) -> None:
    known: Columns = {}
    operations(TABLE, b"r", [put(b"f:a")], None, None, known)
    for _ in range(2):
        with pytest.raises(ColumnarError):
            operations(TABLE, b"r", [put(b"f:a"), put(column)], None, None, known)
