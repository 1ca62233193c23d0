"""The order of appends that overlap, however long each of them takes."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from columnar.kafka.call import Address, Call
from columnar.kafka.errors import KafkaError
from columnar.kafka.record_handlers import RecordHandlers
from columnar.model.topic import Produced, TopicError
from columnar.topics.topic_calls import TopicClient
from columnar.wire.local_calls import CallFailed


class Partitions:
    """Stand-ins of partitions, which take one record a batch: its number has to be the next one."""

    def __init__(self) -> None:
        self.appended: list[int] = []
        self.delays: dict[int, asyncio.Future[None]] = {}  # of an append before it reaches the partition, by number

    async def produce(self, _client: TopicClient, _topic: str, _index: int, batches: bytes) -> Produced:
        number = int(batches)
        if number in self.delays:
            await self.delays[number]
        if number != len(self.appended):
            return Produced(TopicError.OUT_OF_ORDER_SEQUENCE_NUMBER)
        self.appended.append(number)
        return Produced(TopicError.NONE, number)


def produce(handlers: RecordHandlers, number: int, peer: str = "one:1") -> asyncio.Task[Any]:
    partition = {"index": 0, "records": b"%d" % number}
    fields = {"acks": -1, "transactional_id": None, "topics": [{"name": "t", "partitions": [partition]}]}
    client = TopicClient(peer, "", lambda: False)

    async def done() -> int:
        answer = await handlers.produce(Call(7, fields, client, "", "", Address("", 0)))
        assert answer is not None
        return int(answer["topics"][0]["partitions"][0]["error"])

    return asyncio.ensure_future(done())


def test_an_append_that_is_late_does_not_refuse_those_behind_it() -> None:
    async def run() -> None:
        partitions = Partitions()
        handlers = RecordHandlers(cast(Any, partitions))
        late = partitions.delays[0] = asyncio.get_running_loop().create_future()
        sent = [produce(handlers, number) for number in range(4)]
        other = produce(handlers, 5, "other:2")
        assert await other == TopicError.OUT_OF_ORDER_SEQUENCE_NUMBER, "it waits for no other connection"
        assert not any(one.done() for one in sent)
        late.set_result(None)
        assert await asyncio.gather(*sent) == [TopicError.NONE] * 4
        assert partitions.appended == [0, 1, 2, 3]
        assert await produce(handlers, 9) == TopicError.OUT_OF_ORDER_SEQUENCE_NUMBER, "nothing came before it"
        assert not handlers._appending

    asyncio.run(asyncio.wait_for(run(), 20))


def test_an_append_that_fails_refuses_those_behind_it_and_holds_up_nobody() -> None:
    async def run() -> None:
        partitions = Partitions()
        handlers = RecordHandlers(cast(Any, partitions))
        late = partitions.delays[0] = asyncio.get_running_loop().create_future()
        sent = [produce(handlers, number) for number in range(3)]
        await asyncio.sleep(0)
        late.set_exception(CallFailed("IOException", "the owner has gone"))
        found = await asyncio.gather(*sent)
        assert found == [KafkaError.REQUEST_TIMED_OUT, *[TopicError.OUT_OF_ORDER_SEQUENCE_NUMBER] * 2]
        assert not handlers._appending

    asyncio.run(asyncio.wait_for(run(), 20))
