"""How the bulk writer waits for triggers that lag."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from wikka_port import bulk_save
from wikka_port.bulk_save import LAG_CHECK_S, LAG_HIGH, LAG_LOW, BulkSaver


class LaggingStore:
    """Answers as one whose triggers lag so much, look by look."""

    is_columnar = True

    def __init__(self, lags: list[tuple[str, int]]) -> None:
        self.lags = lags

    def run(self, work: Any) -> Any:
        state, lag = self.lags.pop(0)
        return work(
            SimpleNamespace(triggers=SimpleNamespace(list=lambda: [SimpleNamespace(state=state, lag_changes=lag)]))
        )


def waits(lags: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch) -> int:
    """How often it slept in one look at the lag; all of ``lags`` must have been looked at."""
    now = [0.0]
    slept: list[float] = []
    monkeypatch.setattr(bulk_save.time, "sleep", slept.append)
    store = LaggingStore(lags)
    wiki: Any = SimpleNamespace(indexes="triggers", store=store)
    with BulkSaver(wiki, lambda mark: None, clock=lambda: now[0]) as saver:
        saver.put([], 0)
        saver.drain()
        assert store.lags == lags, "it looks once in a while only"
    now[0] = LAG_CHECK_S
    saver._wait_for_triggers()
    assert store.lags == []
    return len(slept)


@pytest.mark.parametrize(
    ("lags", "pauses"),
    [
        ([("running", LAG_HIGH)], 0),
        ([("running", LAG_HIGH + 1), ("running", LAG_HIGH), ("running", LAG_LOW + 1), ("running", LAG_LOW)], 2),
        ([("paused", 10 * LAG_HIGH)], 0),
    ],
)
def test_it_waits_while_running_triggers_are_far_behind(
    lags: list[tuple[str, int]], pauses: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BulkSaver, "_save_group", lambda self, group: bulk_save.Stored())
    assert waits(lags, monkeypatch) == pauses
