"""Requests of all servers on one page: sums, latencies, rates, slow ones."""

from __future__ import annotations

from typing import Any

from werkzeug.wrappers import Request, Response

from columnar.model.histogram import BOUNDS_S
from columnar.model.measures import COUNTER, HISTOGRAM, Family, SlowRequest
from columnar.webui.request_page import RequestPage, method_figures


def families(calls: int, failed: int, bucket: int, method: str = "get") -> tuple[Family, ...]:
    counts = [0.0] * (len(BOUNDS_S) + 1)
    counts[bucket] = float(calls + failed)
    outcomes = (((method, "ok"), (float(calls),)), ((method, "IOException"), (float(failed),)))
    return (
        Family("columnar_requests", COUNTER, "", ("method", "outcome"), outcomes),
        Family("columnar_request_seconds", HISTOGRAM, "", ("method",), (((method,), (*counts, 1.5)),)),
        Family("columnar_connections", COUNTER, "", (), (((), (3.0,)),)),
    )


def test_figures_are_sums_over_servers() -> None:
    (get, put) = method_figures([*families(90, 9, 0), *families(1, 0, 8), *families(5, 0, 16, "put")])
    assert (get.name, get.calls, get.failed) == ("get", 100, 9)
    assert (get.median_s, get.p99_s) == (BOUNDS_S[0], BOUNDS_S[0])
    assert (put.median_s, put.p99_s) == (float("inf"), float("inf"))
    (get,) = method_figures([*families(90, 9, 0), *families(2, 0, 8)])
    assert get.p99_s == BOUNDS_S[8], "99 of 101 are not 99 %"


class Visit:
    def __init__(self) -> None:
        self.now_s = 100.0
        self.calls = 10
        self.slow: list[SlowRequest] = []
        self.shown: dict[str, Any] = {}

        def page(_template: str, _status: object, **shown: Any) -> Response:
            self.shown = shown
            return Response("")

        self.page = RequestPage(
            lambda: ({"s1": families(self.calls, 0, 0)}, ["s2"]),
            lambda: (self.slow, ["s3"]),
            lambda: None,  # type: ignore[arg-type,return-value]
            page,
            lambda: self.now_s,
        )

    def __call__(self) -> float | None:
        self.page.answer(Request({}))
        rate: float | None = self.shown["methods"][0].rate_per_s
        return rate


def test_a_rate_is_that_since_an_earlier_visit() -> None:
    visit = Visit()
    assert visit() is None
    visit.now_s, visit.calls = 100.5, 20
    assert visit() is None, "too short a time"
    visit.now_s, visit.calls = 102.0, 50
    assert visit() == 20.0, "since the first visit"
    visit.now_s, visit.calls = 104.0, 50
    assert visit() == 0.0
    visit.now_s, visit.calls = 106.0, 10
    assert visit() == 0.0, "a server was started again"


def test_slow_requests_come_newest_first_and_silent_servers_are_named() -> None:
    visit = Visit()
    visit.slow = [SlowRequest(at, 5, "get", "", "s1") for at in (3, 9, 6)]
    visit()
    assert [one.at_ms for one in visit.shown["slow"]] == [9, 6, 3]
    assert visit.shown["silent"] == ["s2", "s3"]
