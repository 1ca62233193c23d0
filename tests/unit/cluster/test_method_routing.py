"""Each method of the IDL has one way through a cluster, and the row of a single-row method is where the IDL has it."""

from __future__ import annotations

from typing import Any

import pytest

from columnar.cluster.method_routing import METHOD_ROUTES, ONE_ROW, ROWS_OF, names_queue
from columnar.cluster.row_forms import THRIFT1, THRIFT2
from columnar.wire.idl import SERVICE
from columnar.wire.idl2 import SERVICE2

DEFINITIONS = pytest.mark.parametrize(("service", "definition"), [(THRIFT1, SERVICE), (THRIFT2, SERVICE2)])


@DEFINITIONS
def test_every_method_has_a_way(service: int, definition: Any) -> None:
    assert set(METHOD_ROUTES[service]) == set(definition.signatures)


@DEFINITIONS
def test_the_row_is_found_by_its_name(service: int, definition: Any) -> None:
    """In the argument ``row``, or in the struct that has one."""
    for name, row_of in ROWS_OF[service].items():
        spec = definition.signatures[name].args
        args: list[Any] = [None] * len(spec)
        for place, number in enumerate(sorted(spec)):
            kind, called = spec[number][:2]
            struct = spec[number][2] if kind == 12 else None
            if called == {"columnarLease": "name"}.get(name, "group" if name.endswith("Group") else "row"):
                args[place] = b"the row"
            elif struct is not None and "row" in {field[1] for field in struct.thrift_spec.values()}:
                args[place] = struct(row=b"the row" if b"the row" not in args else b"another: it is refused")
        if names_queue(name):
            is_queue = name.startswith("columnarQueue")  # else a partition of a topic, whose key is its row
            assert row_of([b"thumbs", *args[1:]]) == (b"thumbs\x00" if is_queue else b"thumbs"), name
        elif name == "columnarLoadTarget":
            assert row_of(args) == b"", "the first region's"
        else:
            assert row_of(args) == b"the row", name
        assert row_of([]) in (None, b""), "a client may leave anything out"


def test_both_tables_have_methods_of_a_single_row_and_of_several() -> None:
    for service, ways in METHOD_ROUTES.items():
        assert set(ROWS_OF[service]) == {name for name, way in ways.items() if way in ONE_ROW}
        assert set(ROWS_OF[service]) < set(ways)
