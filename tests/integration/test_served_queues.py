"""Served queues on one process: the page's example, what functions and targets do wrong, restarts, administration."""

from __future__ import annotations

import io
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from columnar.client import Connection, IllegalArgument, Put, Send, Source, View
from columnar.client.errors import IOError as Refused
from tests.support import message_functions
from tests.support.deep import IS_DEEP
from tests.support.hook_server import HookServer, Posted, Reply
from tests.support.readme_blocks import blocks_of
from tests.support.shell import Shell
from tests.support.store_process import StoreProcess
from tests.support.store_thread import StoreThread

PAGE = Path(__file__).parents[2] / "docs" / "queues.md"
MODULE = message_functions.MODULE
WAIT_S = 60.0


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreThread]:
    folder = tmp_path_factory.mktemp("served")
    jobs = next(block for block in blocks_of(PAGE.read_text()) if block.file_name == "jobs.py")
    (folder / "jobs.py").write_text(jobs.text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{folder}:{':'.join(sys.path)}")
        with StoreThread(folder / "data", trigger_modules=("jobs", MODULE)) as made:
            with made.connection() as connection:
                connection.create_table("made", {"f": {}})
            yield made


def until(is_so: Callable[[], bool]) -> None:
    ends_s = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < ends_s
        time.sleep(0.01)


def drained(connection: Connection, queue: str) -> None:
    until(lambda: connection.queue(queue).stats().messages == 0)


def test_the_example_of_the_page(store: StoreThread) -> None:
    example = next(block for block in blocks_of(PAGE.read_text()) if block.file_name == "serve.py")
    printed = io.StringIO()
    with HookServer() as hooks:
        text = example.text.replace("9090", str(store.port)).replace("http://127.0.0.1:8080/hook", hooks.url)
        with redirect_stdout(printed):
            exec(compile(text, str(PAGE), "exec"), {})
        (posted,) = hooks.posted
    assert (posted.body, posted.headers["Columnar-Header-size"]) == (b"dog.png", "200")
    expected = [line.partition("  # ")[2] for line in text.splitlines() if line.startswith("print(")]
    expected += [line.removeprefix("# ") for line in text.splitlines() if line.startswith("# b'")]
    assert printed.getvalue().splitlines() == expected
    with store.connection() as connection:
        connection.queues.unserve("photos")


def test_what_functions_do_wrong_meets_their_own_message_alone(store: StoreThread) -> None:
    with store.connection() as connection:
        connection.queues.serve("obeyed", f"{MODULE}:obey", timeout_s=1, attempts=3)
        queue = connection.queue("obeyed")
        for order in ("raise", "later", "hang", "exit", "nothing"):
            queue.push(order.encode(), headers={b"do": order.encode()})
        drained(connection, "obeyed")
        log = {row: cells[b"f:log"] for row, cells in connection.table(b"made").scan() if b"f:log" in cells}
        seen = {body: sorted(set(attempts.split(b","))) for body, attempts in log.items()}
        assert seen.pop(b"raise") == [b"", b"1", b"2", b"3"]
        assert seen.pop(b"later") == [b"", b"1"], "its attempt does not count"
        assert log[b"later"].count(b"1") >= 2
        assert seen == {b"hang": [b"", b"1", b"2"], b"exit": [b"", b"1", b"2"], b"nothing": [b"", b"1"]}
        ((dead,),) = (queue.dead(),)
        assert (dead.body, dead.error, dead.attempts) == (b"raise", b"RuntimeError: as told at attempt 3", 3)
        (served,) = connection.queues.served()
        assert (served.queue, served.target, served.state, served.running) == (
            b"obeyed",
            f"{MODULE}:obey",
            "running",
            0,
        )
        assert served.failed >= 5
        connection.queues.unserve("obeyed")


def test_effects_bear_the_time_of_the_push(store: StoreThread) -> None:
    with store.connection() as connection:
        queue = connection.queue("late")
        queue.push(b"late", headers={b"k": b"v"})
        pushed_ms = queue.peek()[0].pushed_ms
        connection.queues.serve("late", f"{MODULE}:store", rate="100/s", writes=["made"])
        drained(connection, "late")
        cells = connection.table(b"made").row(b"late", include_timestamp=True)
        assert cells[b"f:h-k"] == (b"v", pushed_ms)
        connection.queues.unserve("late")


def test_a_wait_of_a_session_ends_at_a_queue_and_says_so(store: StoreThread) -> None:
    with store.connection() as connection:
        connection.create_table("plans", {"f": {}}, attributes={"SENDS": "true"})
        connection.queues.serve("planned", f"{MODULE}:store", writes=["made", "queue:reports"])
        connection.views.add(View("by_queue", Source("made", key=("f:of",))))
        assert connection.views.wait("by_queue", timeout_ms=60_000)
        session = connection.session()
        session.table("plans").mutate(b"r", [Put(b"f:v", b"1"), Send("queue:planned", b"planned")])
        refused = "view by_queue gets what was written to plans through queue:planned, and no wait goes on"
        with pytest.raises(IllegalArgument, match=refused):
            session.wait("by_queue", timeout_ms=60_000)
        with pytest.raises(IllegalArgument, match=r"no wait is for queue:planned.*columnar queue stats planned"):
            session.wait("queue:planned")
        assert session.wait("sends", timeout_ms=60_000)
        assert session.wait(timeout_ms=60_000), "it has left the outbox"
        drained(connection, "planned")
        assert connection.view("by_queue").get(b"planned").count == 1
        direct = connection.session()
        direct.table("made").put(b"d", {b"f:of": b"direct"})
        assert direct.wait("by_queue", timeout_ms=60_000)
        assert connection.view("by_queue").get(b"direct").count == 1
        flows = {(one["kind"], one["name"]): one for one in json.loads(connection.flows())["flows"]}
        assert flows["outbox", "sends"]["seen"] == ["queue:planned"]
        assert flows["push", f"planned to {MODULE}:store"]["writes"] == ["made", "queue:reports"]
        connection.queues.unserve("planned")
        connection.views.drop("by_queue")


def test_a_busy_target_is_waited_for_and_a_failing_one_gets_the_message_again(store: StoreThread) -> None:
    def answer(posted: Posted) -> Reply:
        if len(hooks.posted) == 1:
            return Reply(503, {"Retry-After": "1"})
        return Reply(500) if posted.attempt == 1 else Reply(200)

    with HookServer(answer) as hooks, store.connection() as connection:
        connection.queues.serve("busy", url=hooks.url)
        began_s = time.monotonic()
        connection.queue("busy").push(b"a")
        posted = hooks.until(3)
        assert time.monotonic() - began_s >= 1.0
        assert [one.attempt for one in posted] == [1, 1, 2], "the pause that the target asked for counts no attempt"
        drained(connection, "busy")
        connection.queues.unserve("busy")


def test_a_paused_queue_waits_and_a_served_one_may_change_its_target(store: StoreThread) -> None:
    with HookServer() as first, HookServer() as second, store.connection() as connection:
        queue = connection.queue("changing")
        connection.queues.serve("changing", url=first.url)
        queue.push(b"a")
        first.until(1)
        connection.queues.pause_serving("changing")
        queue.push(b"b")
        assert [one.state for one in connection.queues.served()] == ["paused"]
        connection.queues.serve("changing", url=second.url)
        connection.queues.resume_serving("changing")
        assert second.until(1)[0].body == b"b"
        drained(connection, "changing")
        connection.queues.unserve("changing")
        queue.push(b"c")
        assert connection.queues.served() == []
        assert queue.stats().ready == 1
        assert len(first.posted) + len(second.posted) == 2


def test_what_cannot_be_served_is_refused(store: StoreThread) -> None:
    with store.connection() as connection:
        serve = connection.queues.serve
        with pytest.raises(Refused, match="has no attribute"):
            serve("none", f"{MODULE}:nothing")
        with pytest.raises(Refused, match="not allowed for triggers"):
            serve("none", "os:system")
        with pytest.raises(IllegalArgument, match="http://host"):
            serve("none", url="ftp://host/")
        with pytest.raises(IllegalArgument, match="a queue's name"):
            serve("a/b", f"{MODULE}:store")
        with pytest.raises(IllegalArgument, match="1 to 64 times side by side"):
            serve("none", f"{MODULE}:store", side_by_side=100)
        with pytest.raises(ValueError, match="either a function or a url"):
            serve("none")
        with pytest.raises(Refused, match="queue none is not served"):
            connection.queues.unserve("none")
        connection.queues.serve("none", f"{MODULE}:store")
        with pytest.raises(IllegalArgument, match="no replay"):
            connection.triggers.replay("queue:none")
        assert connection.triggers.list() == []
        connection.queues.unserve("none")


def test_the_command_line(store: StoreThread) -> None:
    shell = Shell(f"127.0.0.1:{store.port}")
    assert shell.out("queue", "served") == ""
    shell.out("queue", "serve", "typed", f"{MODULE}:store", "--rate", "50/s", "--timeout", "10s", "--attempts", "4")
    assert f"typed\t{MODULE}:store\trunning\t0\t" in shell.out("queue", "served")
    shell.out("queue", "push", "typed", "typed")
    with store.connection() as connection:
        drained(connection, "typed")
        assert connection.queue("typed").stats().attempts == 4
    assert f"push typed to {MODULE}:store" in shell.out("flows")
    assert '"state": "paused"' in shell.out("queue", "pause", "typed") + shell.out("queue", "served", "--json")
    shell.out("queue", "resume", "typed")
    shell.out("queue", "unserve", "typed")


def test_a_stop_in_order_puts_messages_back_and_the_next_start_delivers_them_at_once(tmp_path: Path) -> None:
    may_end = threading.Event()

    def answer(posted: Posted) -> Reply:
        if len(hooks.posted) == 1:
            may_end.wait(WAIT_S)
        return Reply()

    with HookServer(answer) as hooks:
        with StoreThread(tmp_path / "data") as store, store.connection() as connection:
            connection.queues.serve("kept", url=f"{hooks.url}?secret=1")
            connection.queue("kept").push(b"a")
            hooks.until(1)
            (flow,) = [one for one in json.loads(connection.flows())["flows"] if one["kind"] == "push"]
            assert (flow["name"], flow["parked"]) == (f"kept to {hooks.url}", 1), "the query may be a secret"
            assert connection.queues.served()[0].target == f"{hooks.url}?secret=1"
        with StoreThread(tmp_path / "data") as store, store.connection() as connection:
            began_s = time.monotonic()
            posted = hooks.until(2)
            assert [one.attempt for one in posted] == [1, 1]
            assert time.monotonic() - began_s < 5, "no lease is waited for"
            may_end.set()
            drained(connection, "kept")


@pytest.mark.skipif(not IS_DEEP, reason="waits until a lease is over: COLUMNAR_DEEP=1")
def test_served_queues_survive_kills_of_the_store(tmp_path: Path) -> None:
    """A message that was out when the store was killed comes again; none is lost, and a committed one never comes."""
    store = StoreProcess(tmp_path / "data")
    store.start()
    seen: dict[bytes, int] = {}
    stuck = [True]

    def answer(posted: Posted) -> Reply:
        if posted.body == b"out" and stuck[0]:
            store.kill()
        return Reply()

    with HookServer(answer) as hooks:
        with Connection("127.0.0.1", store.port, timeout=20_000) as connection:
            connection.queues.serve("killed", url=hooks.url, side_by_side=1)
            queue = connection.queue("killed")
            queue.push_many([b"before", b"out", b"after"])
        hooks.until(2)
        stuck[0] = False
        store.start()
        try:
            with Connection("127.0.0.1", store.port, timeout=20_000) as connection:
                drained(connection, "killed")
        finally:
            store.kill()
        for one in hooks.posted:
            seen[one.body] = seen.get(one.body, 0) + 1
    assert seen == {b"before": 1, b"out": 2, b"after": 1}
