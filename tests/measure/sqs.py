"""``python -m tests.measure.sqs``: messages a second over the SQS port, and how soon a waiting receiver has one.

A store of its own process on loopback; this process has the clients, which send prepared requests over connections that
they keep, so that it is the store that is measured and not a library.

    send            SendMessage with a body of BODY_BYTES, durable before its answer
    send by ten     SendMessageBatch of ten of them
    take            ReceiveMessage of one, then DeleteMessage: two requests for each message
    take by ten     ReceiveMessage of ten, then DeleteMessageBatch
    long poll       milliseconds from the answer to a send until a receiver that waited has the message

    --connections 64  --seconds 5  --servers 1
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from tests.support.cluster_process import ClusterProcess
from tests.support.ports import free_port

BODY_BYTES: Final = 200
POLLS: Final = 300
_HEAD: Final = "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Amz-Target: AmazonSQS.{}\r\nContent-Length: {}\r\n\r\n"


class Client:
    """A connection that sends one request after the other."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def connect(cls, port: int) -> Client:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def call(self, action: str, **parameters: Any) -> dict[str, Any]:
        body = json.dumps(parameters).encode()
        self._writer.write(_HEAD.format(action, len(body)).encode() + body)
        head = await self._reader.readuntil(b"\r\n\r\n")
        size = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        answer: dict[str, Any] = json.loads(await self._reader.readexactly(size))
        assert head.startswith(b"HTTP/1.1 200"), answer
        return answer

    def close(self) -> None:
        self._writer.close()


Step = Callable[[Client], Awaitable[int]]  # one round of requests; returns the messages that it moved


async def rate(clients: list[Client], seconds: float, step: Step) -> float:
    """Return messages a second of all clients together."""
    until_s = time.perf_counter() + seconds

    async def repeat(client: Client) -> int:
        moved = 0
        while time.perf_counter() < until_s:
            moved += await step(client)
        return moved

    began_s = time.perf_counter()
    moved = sum(await asyncio.gather(*map(repeat, clients)))
    return moved / (time.perf_counter() - began_s)


async def poll_times(url: str, receiver: Client, sender: Client) -> list[float]:
    """Return the milliseconds from the answer to a send until a waiting receiver has the message."""
    times = []
    for _ in range(POLLS):
        waiting = asyncio.ensure_future(receiver.call("ReceiveMessage", QueueUrl=url, WaitTimeSeconds=20))
        await asyncio.sleep(0.003)  # it is the wait that is measured: the receiver is there before the message
        await sender.call("SendMessage", QueueUrl=url, MessageBody="a")
        sent_s = time.perf_counter()
        (message,) = (await waiting)["Messages"]
        times.append(max(0.0, (time.perf_counter() - sent_s) * 1_000))
        await sender.call("DeleteMessage", QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    return sorted(times)


async def measure(port: int, connections: int, seconds: float) -> None:
    clients = [await Client.connect(port) for _ in range(connections)]
    url = (await clients[0].call("CreateQueue", QueueName="measured"))["QueueUrl"]
    body = "x" * BODY_BYTES
    entries = [{"Id": str(n), "MessageBody": body} for n in range(10)]

    async def send(client: Client) -> int:
        await client.call("SendMessage", QueueUrl=url, MessageBody=body)
        return 1

    async def send_ten(client: Client) -> int:
        await client.call("SendMessageBatch", QueueUrl=url, Entries=entries)
        return 10

    async def take(client: Client) -> int:
        found = (await client.call("ReceiveMessage", QueueUrl=url)).get("Messages", ())
        for one in found:
            await client.call("DeleteMessage", QueueUrl=url, ReceiptHandle=one["ReceiptHandle"])
        return len(found)

    async def take_ten(client: Client) -> int:
        found = (await client.call("ReceiveMessage", QueueUrl=url, MaxNumberOfMessages=10)).get("Messages", ())
        receipts = [{"Id": str(n), "ReceiptHandle": one["ReceiptHandle"]} for n, one in enumerate(found)]
        if receipts:
            await client.call("DeleteMessageBatch", QueueUrl=url, Entries=receipts)
        return len(found)

    steps: tuple[tuple[str, Step], ...] = (
        ("send", send), ("take", take), ("send by ten", send_ten), ("take by ten", take_ten)
    )  # fmt: skip
    for name, step in steps:
        print(f"{name:12} {await rate(clients, seconds, step):8,.0f} messages/s")
    empty = (await clients[0].call("CreateQueue", QueueName="polled"))["QueueUrl"]
    times = await poll_times(empty, clients[0], clients[1])
    print(f"{'long poll':12} p50 {statistics.median(times):.2f} ms, p99 {times[int(len(times) * 0.99)]:.2f} ms")
    for one in clients:
        one.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--servers", type=int, default=1)
    asked = parser.parse_args()
    port = free_port()
    with (
        tempfile.TemporaryDirectory() as folder,
        ClusterProcess(Path(folder) / "data", asked.servers, "--sqs-port", str(port)),
    ):
        asyncio.run(measure(port, asked.connections, asked.seconds))


if __name__ == "__main__":
    main()
