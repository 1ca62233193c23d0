"""Tokens of writes as clients send them back."""

from __future__ import annotations

import pytest

from columnar.errors import IllegalArgument
from columnar.flows.waiting import checked_token
from columnar.regions.log.change_record import Sequence, pack_key

HIGHEST = Sequence((1 << 64) - 1, (1 << 32) - 1, (1 << 64) - 1)


def test_a_token_is_a_key_of_a_log() -> None:
    assert checked_token("7-1-12") == Sequence(7, 1, 12)
    assert len(pack_key(checked_token("-".join(map(str, HIGHEST))))) == 20


@pytest.mark.parametrize(
    "token",
    ["", "zz", "1-2", "1-2-3-4", "1--2", f"{1 << 64}-1-1", f"1-{1 << 32}-1", f"1-1-{1 << 64}", "9" * 5_000 + "-1-1"],
)
def test_what_is_no_token_of_ours_is_the_callers_error(token: str) -> None:
    with pytest.raises(IllegalArgument, match="is no sequence of ours"):
        checked_token(token)
