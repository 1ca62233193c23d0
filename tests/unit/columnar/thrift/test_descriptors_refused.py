"""Names and descriptors that HBase takes and we refuse, on purpose (COMPATIBILITY.md, "Tables")."""

from __future__ import annotations

from typing import Any

import pytest

from columnar.errors import IllegalArgument
from columnar.model.schema import Table, checked_family_name, checked_table_name, make_table
from columnar.thrift.translate import family_from_wire
from columnar.wire.idl import hbase


def table(**options: Any) -> Table:
    return make_table("t", [family_from_wire(hbase.ColumnDescriptor(name=b"f:", **options))])


def test_a_family_is_not_named_by_a_column() -> None:
    """HBase makes family ``f`` of it and says nothing."""
    with pytest.raises(IllegalArgument, match="column family 'f:g'"):
        checked_family_name(b"f:g")
    with pytest.raises(IllegalArgument, match="column family 'f:'"):
        checked_family_name(b"f::")


def test_table_names_are_ascii() -> None:
    with pytest.raises(IllegalArgument, match="use letters, digits"):
        checked_table_name("größe".encode())


def test_a_compression_that_the_engine_has_not() -> None:
    with pytest.raises(IllegalArgument, match="compression LZO is none of"):
        table(compression="lzo")


@pytest.mark.parametrize("option", ["compression", "bloomFilterType"])
def test_an_empty_word_is_no_default(option: str) -> None:
    """As HBase."""
    with pytest.raises(IllegalArgument, match="'' is none of"):
        table(**{option: ""})
