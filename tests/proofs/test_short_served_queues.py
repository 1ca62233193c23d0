"""Served queues through some kills of servers and workers (``tests.proofs.served_queues``)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.proofs.served_queues import Account, prove
from tests.support.deep import IS_DEEP

KILLS = 12


@pytest.mark.skipif(not IS_DEEP, reason="kills cost leases: COLUMNAR_DEEP=1")
def test_messages_outlive_kills(tmp_path: Path) -> None:
    assert prove(tmp_path, servers=2, kills=KILLS, seed=7) == []


def test_the_account_notices_what_is_wrong() -> None:
    account = Account({"hooks": {b"hooks-0", b"hooks-2"}, "tallied": {b"tallied-1"}}, {b"tallied-3"})
    account.posted_s = {b"hooks-2": [10.0, 30.0]}
    account.kills_s = [14.0]
    assert account.problems(3) == [
        "lost b'hooks-0'",
        "repeated b'hooks-2' 20.0 s after its commit",
        "counted 3, of 1 to 2",
    ]
    account.posted_s[b"hooks-0"] = [1.0]
    account.kills_s = [12.0]
    assert account.problems(2) == []
