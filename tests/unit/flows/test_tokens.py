"""Tokens of writes as clients send them back."""

from __future__ import annotations

import pytest

from columnar.errors import IllegalArgument
from columnar.flows.waiting import AWAITED_BYTES, AWAITED_TOKENS, checked_tokens
from columnar.regions.log.change_record import Sequence, SequenceRange, pack_key

HIGHEST = Sequence((1 << 64) - 1, (1 << 32) - 1, (1 << 64) - 1)


def test_a_token_is_a_key_of_a_log() -> None:
    assert checked_tokens("7-1-12") == [one(7, 1, 12)]
    ((first, last),) = checked_tokens("-".join(map(str, HIGHEST)))
    assert first == last
    assert len(pack_key(last)) == 20


def one(*sequence: int) -> SequenceRange:
    return SequenceRange(Sequence(*sequence), Sequence(*sequence))


def test_tokens_of_several_writes_are_a_range_in_each_region() -> None:
    found = checked_tokens("7-1-12,8-2-1,7-2-3,7-1-99")
    assert found == [SequenceRange(Sequence(7, 1, 12), Sequence(7, 2, 3)), one(8, 2, 1)]
    assert [changes.token for changes in found] == ["7-1-12-2-3", "8-2-1"]
    assert checked_tokens("7-1-12-2-3,7-2-1,7-1-9-1-10") == [SequenceRange(Sequence(7, 1, 9), Sequence(7, 2, 3))]
    most = ",".join(f"{origin}-1-1" for origin in range(AWAITED_TOKENS))
    assert len(checked_tokens(most)) == AWAITED_TOKENS
    with pytest.raises(IllegalArgument, match="a wait takes at most 1000"):
        checked_tokens(f"{most},{AWAITED_TOKENS}-1-1")


@pytest.mark.parametrize(
    "token",
    [
        "",
        "zz",
        "1-2",
        "1-2-3-4",
        "1-2-3-4-5-6",
        "7-2-3-1-4",
        f"7-2-3-{1 << 32}-1",
        "1--2",
        f"{1 << 64}-1-1",
        f"1-{1 << 32}-1",
        f"1-1-{1 << 64}",
        "9" * 5_000 + "-1-1",
        "7-1-12,",
        ",7-1-12",
        "7-1-12;8-1-1",
    ],
)
def test_what_is_no_token_of_ours_is_the_callers_error(token: str) -> None:
    with pytest.raises(IllegalArgument, match="is no sequence of ours"):
        checked_tokens(token)


def test_tokens_that_would_hold_the_loop_are_refused_before_they_are_parsed() -> None:
    long = ",".join(["7-1-1"] * (AWAITED_BYTES // 6))
    assert checked_tokens(long) == [one(7, 1, 1)]
    with pytest.raises(IllegalArgument, match="a wait takes at most 131072"):
        checked_tokens(long + ",7-1-1,7-1-1")
    widest = "-".join(map(str, (*HIGHEST, *HIGHEST[1:])))
    assert len(widest + ",") * AWAITED_TOKENS <= AWAITED_BYTES, "a session's tokens go in"
