"""Effects carried out through a client: the same cells, in order, whatever the times of the pages."""

from __future__ import annotations

import random
from typing import Any

from columnar.triggers.api import Barrier, Delete, Effect, Put
from tests.support.fake_tables import Tables, write_slices
from wikka_port import application_indexes as module
from wikka_port.application_indexes import carry_out


def test_they_lead_to_the_cells_that_the_store_leads_to() -> None:
    rng = random.Random(5)
    through_client, by_store = Tables(), Tables()
    for at_ms in range(1, 200):
        asked: list[Effect] = []
        for _ in range(rng.randrange(6)):
            table, row, column = rng.choice((b"a", b"b")), rng.choice((b"r", b"s")), rng.choice((b"f:x", b"f:y"))
            made: tuple[Effect, ...] = (
                Put(table, row, {column: b"%d" % at_ms}),
                Delete(table, row, [column]),
                Barrier(),
            )
            asked += (rng.choice(made), Barrier())
        carry_out(through_client, iter(asked), at_ms)  # type: ignore[arg-type]
        write_slices(by_store, iter(asked), at_ms, lambda _all: None)
    assert through_client.data == by_store.data


def test_a_family_is_deleted_with_cells_of_later_times() -> None:
    """Pages of an import are older than those that linked to them before."""
    tables = Tables()
    table = tables.table(b"wanted")
    table.put(b"T", {b"from:a": b"T"}, 5)
    table.put(b"T", {b"from:b": b"T"}, 90)
    carry_out(tables, [Delete(b"wanted", b"T", [b"from"])], 10)  # type: ignore[arg-type]
    assert tables.visible(b"wanted") == {}
    table.put(b"T", {b"from:b": b"again"}, 91)
    assert tables.visible(b"wanted") == {b"T": {b"from:b": b"again"}}


def test_rows_of_a_table_go_together_up_to_a_bound(monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "ROWS_PER_CALL", 3)
    sizes: list[int] = []
    monkeypatch.setattr(module, "_write", lambda _connection, effects, _at_ms: sizes.append(len(effects)))
    of_a, of_b = [Put("a", b"%d" % n, {b"f:x": b""}) for n in range(7)], [Put("b", b"r", {b"f:x": b""})]
    carry_out(Tables(), [*of_a, *of_b, Barrier(), *of_b], 1)  # type: ignore[arg-type]
    assert sizes == [3, 3, 1, 1, 1]
