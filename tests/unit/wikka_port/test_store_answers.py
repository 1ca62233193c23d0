"""What the wiki makes of a store's answers: to be tried again, to be prepared, or refused (HBase 2.6.1)."""

from __future__ import annotations

from typing import Any

import pytest

from columnar.client.errors import IOError
from wikka_port.store import NotPrepared, Store, StoreUnavailable

HBASE = b"org.apache.hadoop.hbase."
NOBODY = b"client.RetriesExhaustedWithDetailsException: Failed 1 action: site: 1 time, servers with issues: null"


def answer_of(message: bytes, monkeypatch: pytest.MonkeyPatch) -> type[BaseException]:
    store, attempts = Store("store", 9090), list[None]()
    monkeypatch.setattr(store, "_connected", lambda: object())

    def work(_: Any) -> None:
        attempts.append(None)
        raise IOError(message)

    with pytest.raises((StoreUnavailable, IOError)) as found:
        store.run(work, pauses_s=(0.0,))
    assert len(attempts) == (2 if found.type is StoreUnavailable else 1), "what is out of reach is tried again"
    return found.type


def test_answers_of_hbase(monkeypatch: pytest.MonkeyPatch) -> None:
    assert answer_of(HBASE + b"RegionTooBusyException: full", monkeypatch) is StoreUnavailable
    assert answer_of(HBASE + b"TableNotFoundException: site", monkeypatch) is NotPrepared
    assert answer_of(HBASE + NOBODY, monkeypatch) is StoreUnavailable, "a batch whose rows no server has"
    assert answer_of(HBASE + b"DoNotRetryIOException: no", monkeypatch) is IOError
