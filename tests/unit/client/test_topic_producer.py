"""A producer of a topic over a connection that breaks: each record is in the log once, under the offset it was told."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from columnar.client import topics
from columnar.client.errors import StoreIOError
from columnar.client.store_socket import NotConnected
from columnar.client.topics import Topic
from columnar.model.record_batch import BatchFault, checked_heads, records_of
from columnar.model.topic import TopicDescription, TopicSettings
from columnar.topics.producer_state import Producer, Repeated, appended, judge


class Broken:
    """A connection to a store with one partition; ``faults`` are raised after the store has taken a batch."""

    def __init__(self, *faults: BaseException) -> None:
        self.faults = list(faults)
        self.values: list[bytes | None] = []
        self.reopened = 0
        self._ids = iter(range(100))
        self._producers: dict[int, Producer] = {}
        settings = TopicSettings()
        self.topics = SimpleNamespace(describe=lambda name: TopicDescription(name, 1, 1, settings))

    def call(self, method: str, *args: Any) -> Any:
        if method == "columnarTopicProducer":
            return next(self._ids)
        assert method == "columnarPartitionProduce"
        offset = self._append(args[1])
        if self.faults:
            raise self.faults.pop(0)
        return SimpleNamespace(error=0, baseOffset=offset)

    def _append(self, data: bytes) -> int:
        heads = checked_heads(data)
        assert not isinstance(heads, BatchFault)
        (head,) = heads
        known = self._producers.get(head.producer)
        verdict = judge(known, head)
        if isinstance(verdict, Repeated):
            return verdict.offset
        assert verdict is None
        offset = len(self.values)
        self._producers[head.producer] = appended(known, head, offset, 0)
        self.values += [record.value for record in records_of(data, head)]
        return offset

    def close(self) -> None:
        pass

    def open(self) -> None:
        self.reopened += 1


def broken() -> NotConnected:
    return NotConnected(NotConnected.END_OF_FILE, "the other side has ended the connection")


def refused(*, can_retry: bool) -> StoreIOError:
    error = StoreIOError(b"org.apache.hadoop.hbase.NotServingRegionException: it moves")
    error.canRetry = can_retry
    return error


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "PAUSE_S", 0.0)


@pytest.mark.parametrize("fault", [broken(), ConnectionResetError(), refused(can_retry=True)])
def test_a_batch_whose_answer_is_lost_is_sent_again_and_is_there_once(fault: Exception) -> None:
    store = Broken(fault, fault)
    topic = Topic(store, "edits")  # type: ignore[arg-type]
    assert [topic.produce(value)[1] for value in (b"one", b"two")] == [0, 1]
    assert store.values == [b"one", b"two"]
    assert store.reopened == (0 if isinstance(fault, StoreIOError) else 2)


@pytest.mark.parametrize(
    "faults", [[broken()] * topics.TRIES, [refused(can_retry=False)], [KeyboardInterrupt()], [RuntimeError()]]
)
def test_records_behind_a_batch_whose_outcome_is_unknown_are_no_repeats_of_it(faults: list[BaseException]) -> None:
    store = Broken(*faults)
    topic = Topic(store, "edits")  # type: ignore[arg-type]
    with pytest.raises(type(faults[0])):
        topic.produce(b"one")
    assert topic.produce(b"two")[1] == 1
    assert store.values == [b"one", b"two"]
