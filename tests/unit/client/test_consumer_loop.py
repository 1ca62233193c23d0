"""The loop of a consumer: its steps and commits, the thread that renews its lease, and the errors that end it."""

from __future__ import annotations

import queue
import time
from types import SimpleNamespace
from typing import Any

import pytest

from columnar.client import changes, consumer_loop, consuming
from columnar.client.changes import Change
from columnar.client.consumer_loop import Commit, ConsumerLoop, Handle, HandlerFailed, Pause, Poll, WorkTime
from columnar.client.consuming import Consumer, LeaseRenewal
from columnar.client.errors import StoreIOError
from columnar.client.group_cursor import CommitRefused, GroupCursor, cursor_of_member
from columnar.model.change_events import ChangeEvent

WAIT_S = 20.0


class Own:
    """A connection that the thread has opened."""

    def __init__(self) -> None:
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True


class Store:
    """The consumer's connection, and the group's changes; ``outcomes`` of renewals, in their order."""

    def __init__(self, *outcomes: Exception | None) -> None:
        self.outcomes = list(outcomes)
        self.opened: list[Own] = []
        self.renewed: queue.Queue[object] = queue.Queue()  # the connection of each renewal
        self.changes: Any = SimpleNamespace(group="g", member="m", renew_lease=self.renew_lease)

    def another(self, _timeout_ms: int) -> Own:
        self.opened.append(Own())
        return self.opened[-1]

    def renew_lease(self, connection: object) -> None:
        outcome = self.outcomes.pop(0) if self.outcomes else None
        self.renewed.put(connection)
        if outcome is not None:
            raise outcome


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consuming, "RENEWED_S", 0.001)


def test_a_lease_is_renewed_over_one_connection_of_its_own() -> None:
    store = Store()
    with LeaseRenewal(store, store.changes, 60.0) as renewal:  # type: ignore[arg-type]
        renewal.work.begin_work()
        used = [store.renewed.get(timeout=WAIT_S) for _ in range(3)]
        renewal.work.end_work()
    assert used == store.opened * 3, "the consumer's own connection is another thread's"
    assert store.opened[0].is_closed


def test_a_renewal_that_fails_is_followed_by_others_over_a_new_connection(caplog: pytest.LogCaptureFixture) -> None:
    store = Store(None, ConnectionResetError("cut"), StoreIOError(b"it moves"))
    with LeaseRenewal(store, store.changes, 60.0) as renewal:  # type: ignore[arg-type]
        renewal.work.begin_work()
        used = [store.renewed.get(timeout=WAIT_S) for _ in range(5)]
    first, second, third = store.opened
    assert used == [first, first, second, third, third]
    assert all(one.is_closed for one in store.opened)
    assert [record.message for record in caplog.records] == [
        "group g: the lease is not renewed now: cut",
        "group g: the lease is not renewed now: it moves",
    ]


def test_without_work_and_for_work_that_lasts_too_long_nothing_is_renewed() -> None:
    store = Store()
    with LeaseRenewal(store, store.changes, 0.0) as renewal:  # type: ignore[arg-type]
        renewal.work.begin_work()
        with pytest.raises(queue.Empty):
            store.renewed.get(timeout=0.05)
    store = Store()
    with LeaseRenewal(store, store.changes, 60.0) as renewal:  # type: ignore[arg-type]
        renewal.work.begin_work()
        store.renewed.get(timeout=WAIT_S)
        renewal.work.end_work()
        before = store.renewed.qsize()
        time.sleep(0.1)  # long enough for a hundred
        assert store.renewed.qsize() <= before + 1, "one may have been under way"


class Polled:
    """The changes of a group, whose polls fail."""

    group, member = "g", "m"

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.polls = 0

    def poll(self, _wait_ms: int) -> list[Any]:
        self.polls += 1
        raise self.error

    def leave_group(self) -> None:
        pass


@pytest.mark.parametrize(
    ("error", "polls"),
    [
        (StoreIOError(b"org.apache.hadoop.hbase.TableNotFoundException: no table t"), 1),
        (StoreIOError(b"org.apache.hadoop.hbase.RegionTooBusyException: later"), consumer_loop.STORE_TRIES),
    ],
)
def test_an_error_that_lasts_ends_the_loop_at_once(
    error: StoreIOError, polls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumer_loop, "FIRST_PAUSE_S", 0.0)
    polled: Any = Polled(error)
    with pytest.raises(StoreIOError):
        Consumer(Store(), polled, print, batch=1, tries=1, longest_s=1.0).run()  # type: ignore[arg-type]
    assert polled.polls == polls


class Steps:
    """A loop whose steps the test carries out."""

    def __init__(self, batch: int = 2, tries: int = 3) -> None:
        self.now_s = 0.0
        self.work = WorkTime(lambda: self.now_s, 10.0)
        self.loop = ConsumerLoop("g", self.work, batch=batch, tries=tries)
        self.steps = self.loop.steps()
        assert next(self.steps) == Poll(consumer_loop.STOP_MS)


def changes_of(*rows: bytes) -> list[Any]:
    return [Change(row, (), None, None, 1_000 + n, "1-2-3", False, b"p") for n, row in enumerate(rows)]


def test_a_commit_follows_when_each_batch_of_the_reply_was_handled() -> None:
    one = Steps()
    events = changes_of(b"a", b"b", b"c")
    assert one.steps.send(events) == Handle(events[:2])
    assert one.steps.send(None) == Handle(events[2:])
    assert one.steps.send(None) == Commit()
    assert one.loop.lag_at(5_000) is None, "its commit is not durable yet"
    assert one.steps.send(None) == Poll(consumer_loop.STOP_MS)
    assert (one.loop.handled, one.loop.lag_at(5_000)) == (3, 3_998)


def test_a_handler_that_raises_is_called_with_the_same_batch_and_its_lease_renewed_meanwhile() -> None:
    one = Steps()
    events = changes_of(b"a", b"b", b"c")
    assert not one.work.needs_lease
    assert one.steps.send(events) == Handle(events[:2])
    for pause_s in (0.5, 1.0):
        assert one.steps.throw(ValueError("no")) == Pause(pause_s)
        assert one.work.needs_lease, "the pause belongs to the batch"
        assert one.steps.send(None) == Handle(events[:2])
    one.now_s = 10.0
    assert not one.work.needs_lease, "it counts as hanging"
    with pytest.raises(HandlerFailed, match="3 times for 2 changes from row 'a'") as raised:
        one.steps.throw(ValueError("never"))
    assert raised.value.batch == events[:2]
    assert str(raised.value.__cause__) == "never"
    one.now_s = 0.0
    assert not one.work.needs_lease


def test_a_stopped_loop_commits_no_reply_of_which_a_batch_is_left() -> None:
    one = Steps(batch=1)
    events = changes_of(b"a", b"b")
    assert one.steps.send(events) == Handle(events[:1])
    one.loop.stop()
    assert next(one.steps, None) is None
    assert one.loop.handled == 1


def test_a_commit_is_repeated_and_a_refused_one_is_not(caplog: pytest.LogCaptureFixture) -> None:
    one = Steps()
    events = changes_of(b"a")
    assert one.steps.send(events) == Handle(events)
    assert one.steps.send(None) == Commit()
    assert one.steps.throw(ConnectionResetError("cut")) == Pause(0.5, is_broken=True)
    assert one.steps.send(None) == Commit()
    assert one.steps.throw(StoreIOError(b"org.apache.hadoop.hbase.RegionTooBusyException: later")) == Pause(1.0)
    assert one.steps.send(None) == Commit()
    assert one.steps.throw(CommitRefused("g", [b"a"])) == Poll(consumer_loop.STOP_MS)
    assert one.loop.refused == 1
    assert "their changes come again" in caplog.records[-1].message


def reply(position: bytes, ranges: int = 1, has_changed: bool = False, refused: tuple[bytes, ...] = ()) -> Any:
    return SimpleNamespace(
        events=b"", position=position, upToMs=1, ranges=ranges, hasChanged=has_changed, refused=list(refused)
    )


def new_cursor(monkeypatch: pytest.MonkeyPatch, *events: ChangeEvent) -> GroupCursor:
    """Return a cursor at a position, behind a reply with these events."""
    wanted: dict[str, Any] = dict.fromkeys(("before", "after", "snapshot", "consolidate"), False)
    wanted |= {"start": "now", "columns": (), "where": (), "rows": None, "part": None, "max_bytes": 0}
    cursor = cursor_of_member("g", "m", **wanted)
    cursor.accept_reply(reply(b"p1"))
    with monkeypatch.context() as patched:
        patched.setattr(changes, "unpack_events", lambda _bytes: events)
        cursor.accept_reply(reply(b"p2"))
    return cursor


def test_a_commit_names_the_reply_whose_events_were_all_handed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    event = ChangeEvent(b"r", (1, 2, 3), 1, False, (), None, None)
    first, last = changes_of(b"a", b"b")
    cursor = new_cursor(monkeypatch, event, event)
    assert cursor.commit_request(has_more=False).position == b"p2", "of a poll all were handed out"
    cursor.hand_out(first, has_more=True)
    assert cursor.commit_request(has_more=True).position == b"p1"
    cursor.accept_commit(reply(b""))
    assert cursor.commit_request(has_more=True) is None, "there is nothing new"
    cursor.hand_out(last, has_more=False)
    assert cursor.commit_request(has_more=False).position == b"p2"
    with pytest.raises(CommitRefused, match="'x'"):
        cursor.accept_commit(reply(b"", refused=(b"x",)))
    assert cursor.commit_request(has_more=False) is None, "others have the rest"


def test_an_empty_reply_because_ranges_changed_is_not_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    cursor = new_cursor(monkeypatch)
    assert cursor.is_at_end
    assert cursor.commit_request(has_more=False) is None
    cursor.accept_reply(reply(b"p2", ranges=3, has_changed=True))
    assert (cursor.is_at_end, cursor.ranges) == (False, 3)
