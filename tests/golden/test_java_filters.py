"""Filters as HBase's Java client serialises them, by bytes that it made.

``java_filters.txt`` is written by ``tests/client_suites/java/columnar/SerializedFilters.java`` from
``filter_strings.txt``, which HBase's own parser reads, and from constructors of its filters:

    python -m tests.client_suites.java_filters
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from columnar.errors import FilterSyntaxError, IllegalArgument
from columnar.limits import FILTER_BYTES, FILTER_DEPTH
from columnar.model.filter_language import FILTERS, parse
from columnar.model.filter_protobufs import filter_string_of

FILE = Path(__file__).with_name("java_filters.txt")
CASES = [(bytes.fromhex(data), means) for data, means in (line.split("\t") for line in FILE.read_text().splitlines())]
MEANT = [(data, means) for data, means in CASES if not means.startswith("refused ")]
REFUSED = [(data, means.removeprefix("refused ")) for data, means in CASES if means.startswith("refused ")]


# Strings that leave something to a default, which is serialised, or that HBase sorts or writes small.
WHOLE = {
    b"KeyOnlyFilter()": b"KeyOnlyFilter(false)",
    b"DependentColumnFilter('f', 'q')": b"DependentColumnFilter('f', 'q', false)",
    b"MultipleColumnPrefixFilter('b', 'a', 'c')": b"MultipleColumnPrefixFilter('a', 'b', 'c')",
    b"RowFilter(=, 'substring:MiXed')": b"RowFilter(=, 'substring:mixed')",
    b"TimestampsFilter(9223372036854775806, 6)": b"TimestampsFilter(6, 9223372036854775806)",
    b"SingleColumnValueFilter('f', 'q', >, 'binary:5')": (
        b"SingleColumnValueFilter('f', 'q', >, 'binary:5', false, true)"
    ),
    b"SingleColumnValueExcludeFilter('f', 'q', <=, 'binary:5')": (
        b"SingleColumnValueExcludeFilter('f', 'q', <=, 'binary:5', false, true)"
    ),
}


@pytest.mark.parametrize(("data", "means"), MEANT, ids=[means for _, means in MEANT])
def test_a_serialised_filter_is_the_filter_that_was_meant(data: bytes, means: str) -> None:
    wanted = parse(means.encode()).text
    assert parse(filter_string_of(data)).text == WHOLE.get(wanted, wanted)


def test_every_filter_of_the_language_is_among_them() -> None:
    texts = " ".join(means for _, means in MEANT)
    assert [name for name in FILTERS if name.decode() + "(" not in texts] == []


@pytest.mark.parametrize(("data", "reason"), REFUSED, ids=[reason for _, reason in REFUSED])
def test_what_has_no_form_is_refused_by_name(data: bytes, reason: str) -> None:
    with pytest.raises(IllegalArgument, match=f"(?s)filterBytes: .*{reason}.*; "):
        filter_string_of(data)


@pytest.mark.parametrize(
    ("name", "fields", "remedy"),
    [
        ("FuzzyRowFilter", b"", "scan with bounds, or filter in the program"),
        ("ColumnRangeFilter", b"\x10\x01\x1a\x00\x20\x01", "leave the last column out"),
        ("PrefixFilter", b"", "write it as filterString"),
        ("InclusiveStopFilter", b"", "write it as filterString"),
    ],
)
def test_a_refusal_names_a_way_that_there_is(name: str, fields: bytes, remedy: str) -> None:
    """In HBase a null prefix lets nothing through, an empty last column no other one, and a null stop is a fault."""
    with pytest.raises(IllegalArgument, match=f"filterBytes: .*{name}.*; {remedy}"):
        filter_string_of(message(name, fields))


def test_any_other_bytes_are_an_error_and_no_more() -> None:
    rng = random.Random(20)
    for data, _ in CASES:
        for _ in range(20):
            broken = bytearray(data)
            for _ in range(rng.randrange(1, 4)):
                broken[rng.randrange(len(broken))] = rng.randrange(256)
            try:
                parse(filter_string_of(bytes(broken[: rng.randrange(len(broken) + 1)])))
            except (IllegalArgument, FilterSyntaxError):
                continue


def nested(levels: int) -> bytes:
    """SKIP of SKIP of ... a prefix."""
    data = next(data for data, means in MEANT if means == "PrefixFilter('row')")
    for _ in range(levels):
        name = b"org.apache.hadoop.hbase.filter.SkipFilter"
        inner = b"\x0a" + varint(len(data)) + data
        data = b"\x0a" + varint(len(name)) + name + b"\x12" + varint(len(inner)) + inner
    return data


def message(name: str, fields: bytes) -> bytes:
    full = b"org.apache.hadoop.hbase.filter." + name.encode()
    return b"\x0a" + varint(len(full)) + full + b"\x12" + varint(len(fields)) + fields


def test_fields_that_are_left_out() -> None:
    """Optional ones as protobuf reads them; those that a message must have are missed, as by HBase."""
    compared = next(data for data, means in MEANT if means.startswith("ColumnValueFilter"))
    inner = compared[compared.index(b"ColumnValueFilter") + len("ColumnValueFilter") + 2 :]
    bare = message("SingleColumnValueFilter", inner)  # without if-missing and latest-only
    assert filter_string_of(bare) == b"SingleColumnValueFilter('f', 'q', =, 'binary:v', false, false)"
    assert filter_string_of(message("PrefixFilter", b"\x0a\x00")) == b"PrefixFilter('')"
    assert filter_string_of(message("ColumnPaginationFilter", b"\x08\x05")) == b"ColumnPaginationFilter(5, 0)"
    assert filter_string_of(message("TimestampsFilter", b"\x08\x05\x08\x06")) == b"TimestampsFilter(5, 6)"
    for name in ("KeyOnlyFilter", "PageFilter", "ColumnCountGetFilter", "ColumnPaginationFilter", "ColumnPrefixFilter"):
        with pytest.raises(IllegalArgument, match="lacks its field 1"):
            filter_string_of(message(name, b""))
    for name in ("RowFilter", "SkipFilter", "SingleColumnValueFilter", "FilterList", "ColumnValueFilter"):
        with pytest.raises(IllegalArgument):
            filter_string_of(message(name, b""))


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def test_depth_and_size_are_bounded() -> None:
    parse(filter_string_of(nested(FILTER_DEPTH)))
    with pytest.raises(IllegalArgument, match="nested deeper than"):
        filter_string_of(nested(FILTER_DEPTH + 1))
    with pytest.raises(IllegalArgument, match="over the limit"):
        filter_string_of(b"\x0a" * (FILTER_BYTES + 1))
    with pytest.raises(IllegalArgument, match="it ends too soon"):
        filter_string_of(b"\x0a\xff\xff\xff\xff\x0f")
    with pytest.raises(IllegalArgument, match="lacks its field 1"):
        filter_string_of(b"")
