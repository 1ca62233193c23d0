"""How answers of etcd's JSON gateway, and their absence, are classed: by a scripted gateway on loopback."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from columnar.coordination.cas import CasOutcomeUnknown, CasRefused, CasUnavailable, VersionConflict, Versioned
from columnar.coordination.cas_etcd import CasEtcd, EtcdAccount
from tests.support.ports import free_port

PATIENT_S = 5.0
BRIEF_S = 1.0  # of a call that gets no answer; a busy machine has sent it by then
PUT = {"header": {"revision": "9"}, "succeeded": True}
EMPTY = {"header": {"revision": "9"}}
FOUND = {"kvs": [{"key": "cC9ub2Rlcy9uMQ==", "mod_revision": "7", "value": "YWJj"}], "count": "1"}
NO_LEADER = (503, {"error": "etcdserver: no leader", "code": 14})
TIMED_OUT = (504, {"error": "etcdserver: request timed out", "code": 4})
OLD_TOKEN = (401, {"error": "etcdserver: invalid auth token", "code": 16})
OLD_REVISION = (400, {"error": "etcdserver: revision of auth store is old", "code": 3})
DENIED = (403, {"error": "etcdserver: permission denied", "code": 7})
FULL = (429, {"error": "etcdserver: mvcc: database space exceeded", "code": 8})

Answer = tuple[int, object]


class Gateway:
    """Answers by script, in order; notes path, token and body of each request."""

    def __init__(self, answers: list[Answer]) -> None:
        self.requests: list[tuple[str, str | None, dict[str, object]]] = []
        gateway = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                gateway.requests.append((self.path, self.headers["Authorization"], body))
                status, found = answers.pop(0)
                text = found if isinstance(found, bytes) else json.dumps(found).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@contextmanager
def gateways(*scripts: list[Answer]) -> Iterator[list[Gateway]]:
    made = [Gateway(script) for script in scripts]
    try:
        yield made
    finally:
        for one in made:
            one.close()


@contextmanager
def client(
    servers: list[Gateway], *urls: str, timeout_s: float = PATIENT_S, account: EtcdAccount | None = None
) -> Iterator[CasEtcd]:
    store = CasEtcd([*urls, *(server.url for server in servers)], "p", timeout_s=timeout_s, account=account)
    try:
        yield store
    finally:
        store.close()


@pytest.fixture
def silent() -> Iterator[str]:
    """A machine that stands still: it takes connections and answers nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("answer", [NO_LEADER, TIMED_OUT, (200, b"no json"), (500, b""), (500, [])])
def test_a_write_without_a_clear_answer_is_of_unknown_outcome(answer: Answer) -> None:
    with gateways([answer], [(200, PUT)]) as made, client(made) as store:
        with pytest.raises(CasOutcomeUnknown):
            store.put_key("nodes/n1", b"", 3)
        assert made[1].requests == [], "it is not repeated"
        assert store.put_key("nodes/n1", b"", 3) == 9, "the next call takes the next endpoint"


@pytest.mark.parametrize("answer", [NO_LEADER, TIMED_OUT, (200, b"no json"), (500, b"")])
def test_a_read_without_an_answer_takes_the_next_endpoint(answer: Answer) -> None:
    with gateways([answer], [(200, FOUND)]) as made, client(made) as store:
        assert store.read_key("nodes/n1") == Versioned(b"abc", 7)


def test_a_refusal_is_the_operators() -> None:
    with gateways([DENIED, DENIED]) as made, client(made) as store:
        for call in (lambda: store.create_key("nodes/n1", b""), lambda: store.read_key("nodes/n1")):
            with pytest.raises(CasRefused):
                call()


def test_a_write_that_a_full_etcd_refuses_is_refused() -> None:
    with gateways([FULL, (200, FOUND), FULL, (200, EMPTY)]) as made, client(made) as store:
        for call in (lambda: store.put_key("nodes/n1", b"", 7), lambda: store.create_key("nodes/n1", b"")):
            with pytest.raises(CasRefused, match="alarm disarm"):
                call()


@pytest.mark.parametrize("read", [(200, FOUND), (200, EMPTY), NO_LEADER, DENIED])
def test_a_write_by_which_etcd_becomes_full_is_of_unknown_outcome(read: Answer) -> None:
    """Etcd carries it out and answers that its space is exceeded."""
    with (
        gateways([FULL, read, NO_LEADER, NO_LEADER, NO_LEADER]) as made,
        client(made) as store,
        pytest.raises(CasOutcomeUnknown, match="alarm disarm"),
    ):
        store.put_key("nodes/n1", b"", 3)


def test_a_write_that_was_not_sent_takes_the_next_endpoint() -> None:
    with gateways([(200, PUT)]) as made, client(made, f"http://127.0.0.1:{free_port()}") as store:
        assert store.create_key("nodes/n1", b"") == 9


def test_a_silent_endpoint_costs_a_write_its_outcome_and_a_read_a_part_of_its_time(silent: str) -> None:
    with gateways([(200, FOUND)]) as made:
        with client(made, silent, timeout_s=BRIEF_S) as store, pytest.raises(CasOutcomeUnknown):
            store.delete_key("nodes/n1", 3)
        with client(made, silent) as store:
            assert store.read_key("nodes/n1") == Versioned(b"abc", 7)
    with client([], silent, timeout_s=BRIEF_S) as store, pytest.raises(CasUnavailable):
        store.list_keys("nodes")


@pytest.mark.parametrize("answer", [OLD_TOKEN, OLD_REVISION])
def test_an_old_token_is_replaced_and_the_write_is_sent_again(answer: Answer) -> None:
    """Etcd has refused the write before it did anything."""
    script: list[Answer] = [(200, {"token": "a"}), (200, PUT), answer, (200, {"token": "b"}), (200, PUT)]
    with gateways(script) as made, client(made, account=EtcdAccount("u", "p")) as store:
        store.put_key("nodes/n1", b"", 3)
        store.put_key("nodes/n1", b"", 9)
        assert [token for _, token, _ in made[0].requests] == [None, "a", "a", None, "b"]


def test_a_token_that_is_refused_at_once_is_the_operators() -> None:
    script: list[Answer] = [(200, {"token": "a"}), OLD_TOKEN]
    with gateways(script) as made, client(made, account=EtcdAccount("u", "p")) as store, pytest.raises(CasRefused):
        store.read_key("nodes/n1")


def test_an_account_that_gets_no_token_has_sent_no_write() -> None:
    with gateways([NO_LEADER, NO_LEADER, NO_LEADER, NO_LEADER]) as made:
        with client(made, account=EtcdAccount("u", "p")) as store, pytest.raises(CasUnavailable):
            store.create_key("nodes/n1", b"")
        assert all(path == "/v3/auth/authenticate" for path, _, _ in made[0].requests)


def test_conditions_are_sent_as_comparisons_of_revisions() -> None:
    with gateways([(200, EMPTY)]) as made, client(made) as store:
        with pytest.raises(VersionConflict):
            store.put_key("nodes/n1", b"abc", 7)
        [(path, _, body)] = made[0].requests
        key = "cC9ub2Rlcy9uMQ=="
        assert path == "/v3/kv/txn"
        assert body == {
            "compare": [{"key": key, "target": "MOD", "result": "EQUAL", "modRevision": "7"}],
            "success": [{"requestPut": {"key": key, "value": "YWJj"}}],
        }
