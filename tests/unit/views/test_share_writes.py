"""Shares as mutations: none too long, neighbours side by side, nothing lost between two of one row."""

from __future__ import annotations

import random

from columnar.model.mutation import Contribute
from columnar.model.view_definition import Source, View
from columnar.regions.log.change_record import Sequence
from columnar.views import share_writes
from columnar.views.contributions import Share, rules_of
from columnar.views.share_writes import BATCH_RECORDS, ROW_SHARES, ShareBatch, operation_of
from tests.support.seeds import seed

(RULES,) = rules_of(View("v", Source("t", ("f:a",), sums={"n": "f:n"})))


def share(group: bytes, number: int) -> Share:
    return Share(group, b"row%d" % number, (1, number))


def test_a_mutation_has_a_bounded_number_of_shares_and_all_are_there_in_their_order() -> None:
    batch, said = ShareBatch(b"v"), list[Contribute]()
    for number in range(2 * ROW_SHARES + 1):
        batch.add_share(RULES, share(b"hot", number), Sequence(1, 1, number + 1))
        said.append(operation_of(RULES, share(b"hot", number), Sequence(1, 1, number + 1)))
    mutations = [mutation for _, mutation in batch.writes()]
    assert [len(one.operations) for one in mutations] == [ROW_SHARES, ROW_SHARES, 1]
    assert {one.row for one in mutations} == {b"hot"}
    assert [operation for one in mutations for operation in one.operations] == said


def test_groups_are_in_the_order_of_their_rows() -> None:
    rng, batch = random.Random(seed(20261130)), ShareBatch(b"v")
    groups = [b"%03d" % number for number in range(200)]
    rng.shuffle(groups)
    for number, group in enumerate(groups):
        batch.add_share(RULES, share(group, number), Sequence(1, 1, number + 1))
    assert [mutation.row for _, mutation in batch.writes()] == sorted(groups)
    assert {table for table, _ in batch.writes()} == {b"v"}


def test_a_batch_is_full_by_changes_or_by_bytes() -> None:
    batch = ShareBatch(b"v")
    batch.count = BATCH_RECORDS - 1
    assert not batch.is_full
    batch.count += 1
    assert batch.is_full
    wide = ShareBatch(b"v")
    carried = ((b"f:c", bytes(share_writes.BATCH_BYTES)),)
    wide.add_share(RULES, Share(b"g", b"row", (1, 1), None, carried), Sequence(1, 1, 1))
    assert wide.is_full


def test_a_groups_write_is_a_hop_behind_the_last_of_its_changes() -> None:
    batch = ShareBatch(b"v")
    for number, (group, hops) in enumerate([(b"a", 0), (b"b", 3), (b"b", 7), (b"b", 2)]):
        batch.add_share(RULES, share(group, number), Sequence(1, 1, number + 1), hops)
    assert {mutation.row: mutation.hops for _, mutation in batch.writes()} == {b"a": 1, b"b": 8}
