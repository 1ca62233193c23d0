"""Names and descriptors at the edge of what is taken (COMPATIBILITY.md, "Tables")."""

from __future__ import annotations

from typing import Any

import pytest

from columnar.errors import IllegalArgument
from columnar.model.schema import Table, checked_family_name, checked_namespace, checked_table_name, make_table
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


@pytest.mark.parametrize("name", ["größe", "ns:table.é", "Ⅻ", "表_1-a", "таблица", "٣", "_", "zoé:größe"])
def test_names_hold_letters_of_every_alphabet(name: str) -> None:
    """As TableName.isLegalTableQualifierName."""
    assert checked_table_name(name.encode()) == name
    assert checked_table_name(f"default:{name}".encode() if ":" not in name else name.encode()) == name


@pytest.mark.parametrize(
    "name",
    ["", "a b", "-é", ".é", "a:", ":a", "a:b:c", "n.s:a", "e\u0301", "a\u200bb", "²", "½", "\U00010400", "a\u00a0b"],
)
def test_names_hold_nothing_else(name: str) -> None:
    """Marks, what is not seen, and characters beyond 16 bits: HBase looks at one char of Java at a time."""
    with pytest.raises(IllegalArgument, match="use letters, digits"):
        checked_table_name(name.encode())


def test_names_are_utf8_of_at_most_255_bytes() -> None:
    with pytest.raises(IllegalArgument, match="use letters, digits"):
        checked_table_name("größe".encode("latin-1"))
    with pytest.raises(IllegalArgument, match="at most 255 bytes, not 256"):
        checked_table_name(("é" * 128).encode())
    with pytest.raises(IllegalArgument, match="namespace"):
        checked_namespace(("é" * 64).encode())
    assert checked_namespace("zoé_1".encode()) == "zoé_1"


@pytest.mark.parametrize("compression", ["GZ", "gz", "Gz"])
def test_gz_is_a_compression(compression: str) -> None:
    (family,) = table(compression=compression).families
    assert family.compression == "GZ"


def test_gzip_is_none() -> None:
    """As HBase."""
    with pytest.raises(IllegalArgument, match="compression GZIP is none of"):
        table(compression="gzip")


def test_a_compression_that_the_engine_has_not() -> None:
    with pytest.raises(IllegalArgument, match="compression LZO is none of"):
        table(compression="lzo")


@pytest.mark.parametrize("option", ["compression", "bloomFilterType"])
def test_an_empty_word_is_no_default(option: str) -> None:
    """As HBase."""
    with pytest.raises(IllegalArgument, match="'' is none of"):
        table(**{option: ""})
