"""The numbers of ``/metrics``: what they count, that no request makes a new sample, and the port that shows them."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Sequence

import pytest
from prometheus_client.parser import text_string_to_metric_families

from columnar.client.errors import IOError as RefusedByStore
from tests.support.account_pages import register, sign_in
from tests.support.wiki_client import WikiClient
from wikka_port import counters, metrics
from wikka_port.counters import CACHED, EDITS, REQUESTS, RESTARTS, SIGN_INS, SIZE, Counters, CounterTable
from wikka_port.metrics import MetricsPort, exposition
from wikka_port.serve import listen
from wikka_port.store import Store, StoreUnavailable


@pytest.fixture
def web() -> WikiClient:
    return WikiClient(edits_per_minute=0)


def samples(numbers: Sequence[float]) -> dict[tuple[str, ...], float]:
    """The samples of the text form, by name and values of labels."""
    families = text_string_to_metric_families(exposition(numbers).decode())
    return {(one.name, *one.labels.values()): one.value for family in families for one in family.samples}


def numbers_of(found: Counters) -> list[float]:
    return found._numbers.tolist()


def test_requests_count_by_handler_and_status(web: WikiClient) -> None:
    web.save("/P", "text")
    web.get("/P")
    web.get("/P?revision=9")
    web.get("/-/static/0/nothing.css")
    web.get("/" + "x" * 5_000)
    web.client.get("/P", headers={"Host": "foreign.example"})
    shown = samples(numbers_of(web.counters))
    assert shown["wikka_requests_total", "edit", "2xx"] == 1
    assert shown["wikka_requests_total", "edit", "3xx"] == 1
    assert shown["wikka_requests_total", "show", "2xx"] == 1
    assert shown["wikka_requests_total", "show", "4xx"] == 1
    assert shown["wikka_requests_total", "static", "4xx"] == 1
    assert shown["wikka_requests_total", "none", "4xx"] == 2, "a name that is none, and a foreign name of the wiki"
    assert shown["wikka_request_seconds_count", "edit"] == shown["wikka_request_seconds_bucket", "+Inf", "edit"] == 2
    assert shown["wikka_request_seconds_sum", "edit"] > 0


def test_a_fault_and_a_store_that_is_away_count_as_5xx(web: WikiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(name: str) -> None:
        raise StoreUnavailable("here", "it is away")

    monkeypatch.setattr(web.wiki, "stored_page", away)
    assert web.get("/P").status_code == 503
    monkeypatch.setattr(web.wiki, "stored_page", lambda name: 1 / 0)
    assert web.get("/P").status_code == 500
    assert web.counters.number(REQUESTS, "show", "5xx") == 2


def test_edits_count_by_what_became_of_them(web: WikiClient) -> None:
    web.save("/P", "one\n\ntwo\n\nthree")
    form = web.form("/P/edit")
    assert web.post("/P/edit", {**form, "body": "one\n\ntwo\n\nthree"}).status_code == 303
    web.save("/P", "changed\n\ntwo\n\nthree")
    assert web.post("/P/edit", {**form, "body": "one\n\ntwo\n\nlast"}).status_code == 303
    assert web.post("/P/edit", {**form, "body": "mine\n\ntwo\n\nthree"}).status_code == 409
    found = {outcome: web.counters.number(EDITS, outcome) for (outcome,) in EDITS.samples}
    assert found == {"saved": 2, "unchanged": 1, "merged": 1, "conflict": 1}


def test_attempts_to_sign_in_count_by_outcome(web: WikiClient) -> None:
    register(web)
    other = web.other_visitor()
    assert sign_in(other).status_code == 303
    for _ in range(100):
        if sign_in(web.other_visitor(), password="wrong").status_code == 429:
            break
    found = {outcome: web.counters.number(SIGN_INS, outcome) for (outcome,) in SIGN_INS.samples}
    assert (found["ok"], found["limited"]) == (1, 1)
    assert found["refused"] > 10


def test_looks_into_the_caches_count(web: WikiClient) -> None:
    web.save("/P", "text")
    before = web.counters.number(CACHED, "documents", "no"), web.counters.number(CACHED, "documents", "yes")
    for _ in range(3):
        web.get("/P")
    now = web.counters.number(CACHED, "documents", "no"), web.counters.number(CACHED, "documents", "yes")
    assert (now[0] - before[0], now[1] - before[1]) in {(1, 2), (0, 3)}, "a save may have parsed the page already"
    assert now[0] == 1, "it is parsed once"
    web.get("/-/pageindex")
    assert web.counters.number(CACHED, "answers", "no") + web.counters.number(CACHED, "answers", "yes") > 0


def test_work_at_the_store_counts_by_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Counters.of_process()
    with socket.socket() as bound:  # does not listen: connections are refused
        bound.bind(("127.0.0.1", 0))
        store = Store("127.0.0.1", bound.getsockname()[1], counters=found)
        with pytest.raises(StoreUnavailable):
            store.run(lambda connection: None, pauses_s=(0.0,))
    monkeypatch.setattr(store, "_connected", object)
    store.run(lambda connection: None)

    def refused(connection: object) -> None:
        raise RefusedByStore("no")

    with pytest.raises(RefusedByStore):
        store.run(refused)
    shown = samples(numbers_of(found))
    outcomes = {one[1]: count for one, count in shown.items() if one[0] == "wikka_store_seconds_count"}
    assert outcomes == {"ok": 1, "refused": 1, "unavailable": 1}


def test_whatever_is_asked_for_makes_no_new_sample(web: WikiClient) -> None:
    names = set(samples([1.0] * SIZE))
    for path in ("/Nowhere", "/A/b/c", "/-/nothing", "/P/xyz", "/~68ealth", "/api/x", "/-/static/../../x", "/\x00"):
        web.get(path)
        web.client.open(path, method="BREW")
    assert samples(numbers_of(web.counters)).keys() <= names
    assert len(names) < 1_700


def test_processes_add_up_and_a_later_one_counts_on() -> None:
    table = CounterTable.opened(1)
    first, second = table.free_slab(()), table.free_slab((1,))
    assert (first, second) == (1, 2), "0 is the parent's"
    assert table.free_slab(range(1, counters.SLABS_PER_WORKER + 1)) is None
    table.of_parent().worker_replaced()
    for slab in (1, 2, 1):
        table.counters(slab).request_done("show", 200, 0.02)
    shown = samples(table.sums())
    assert shown["wikka_requests_total", "show", "2xx"] == 3
    assert shown["wikka_request_seconds_bucket", "0.01", "show"] == 0
    assert shown["wikka_request_seconds_bucket", "0.025", "show"] == 3
    assert shown["wikka_request_seconds_sum", "show"] == pytest.approx(0.06)
    assert shown[RESTARTS.name + "_total",] == 1


def test_transfers_of_a_process_that_has_ended_are_no_more() -> None:
    table = CounterTable.opened(1)
    for slab in (1, 2):
        table.counters(slab).transfers_changed("in", 2)
        table.counters(slab).transfers_changed("waiting", 1)
        table.counters(slab).transfer_moved("in", 70_000)
    table.counters(1).transfers_broken()
    shown = samples(table.sums())
    assert (shown["wikka_transfers", "in"], shown["wikka_transfers", "waiting"]) == (2, 1)
    assert shown["wikka_transfer_bytes_total", "in"] == 140_000


def test_the_port_answers_prometheus_and_no_foreign_page() -> None:
    found = Counters.of_process()
    (bound,) = listen("127.0.0.1", 0, 1)
    bound.listen()
    MetricsPort(bound, lambda: numbers_of(found)).start()

    def asked(path: str, **headers: str) -> tuple[int, str]:
        link = http.client.HTTPConnection(*bound.getsockname(), timeout=10)
        link.request("GET", path, headers=headers)
        answer = link.getresponse()
        text = answer.read().decode()
        link.close()
        return answer.status, text

    found.edit_done("saved")
    status, text = asked(metrics.PATH)
    assert status == 200
    assert 'wikka_edits_total{outcome="saved"} 1.0' in text
    assert asked("/HomePage")[0] == 404
    assert asked(metrics.PATH, Host="rebound.example")[0] == 403, "a page whose name leads to 127.0.0.1"
    with socket.create_connection(bound.getsockname()) as broken:
        broken.sendall(b"\x16\x03\x01")  # TLS, and gone
    assert asked(metrics.PATH)[0] == 200


def test_the_public_port_has_no_metrics(web: WikiClient) -> None:
    assert "wikka_requests" not in web.get("/metrics").text
