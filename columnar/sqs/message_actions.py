"""The actions of SQS on messages: send, receive, delete, change the visibility; each alone and in batches.

    SendMessage               push: group, delay and name as the queue is; the name is a digest of the deduplication id
    ReceiveMessage            pop, in slices of WAIT_SLICE_MS; what comes for a client that has gone is rolled back
    DeleteMessage             commit, also after the visibility timeout; succeeds, as in SQS, where another receipt has
                              the message by now
    ChangeMessageVisibility   extend, or rollback for 0

Owned by the loop.
"""

from __future__ import annotations

import asyncio
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from columnar.errors import IllegalArgument
from columnar.queues import keys
from columnar.runtime.long_waits import LongWaits
from columnar.sqs.errors import SqsError, invalid_value, missing
from columnar.sqs.fields import Fields
from columnar.sqs.queue_addresses import message_id, queue_of_url
from columnar.sqs.queue_attributes import MOST_BYTES, KnownQueue
from columnar.sqs.received_message import received_message, sequence_number, wanted_system_names
from columnar.sqs.sent_message import LONGEST_ID, SentMessage, check_message
from columnar.sqs.store_queues import Client, StoreQueues

WAIT_SLICE_MS: Final = 2_000  # of a long poll: clients that have gone, and the server's stop, are noticed so soon
MOST_RECEIVED: Final = 10
LONGEST_VISIBILITY_S: Final = 43_200
LONGEST_WAIT_S: Final = 20


@dataclass(frozen=True, slots=True)
class Call:
    """A request of an action."""

    fields: Fields
    client: Client
    host: str  # as the client names it, for URLs
    is_tls: bool
    region: str
    access_key: str  # "": none was sent


class MessageActions:
    def __init__(self, queues: StoreQueues, waits: LongWaits) -> None:
        self._queues = queues
        self._waits = waits
        self.actions: Mapping[str, Callable[[Call], Awaitable[dict[str, Any]]]] = {
            "SendMessage": self._send,
            "SendMessageBatch": self._send_batch,
            "ReceiveMessage": self._receive,
            "DeleteMessage": self._delete,
            "DeleteMessageBatch": self._delete_batch,
            "ChangeMessageVisibility": self._change_visibility,
            "ChangeMessageVisibilityBatch": self._change_visibility_batch,
        }

    async def _known(self, call: Call) -> KnownQueue:
        return await self._queues.known(call.client, queue_of_url(call.fields.required_text("QueueUrl")))

    # --- send --------------------------------------------------------------------------------------------

    async def _send(self, call: Call) -> dict[str, Any]:
        queue = await self._known(call)
        sent = check_message(call.fields, queue, call.access_key)
        return (await self._push(call, queue, [sent]))[0]

    async def _send_batch(self, call: Call) -> dict[str, Any]:
        entries = call.fields.entries("SendMessageBatchRequestEntry")
        queue = await self._known(call)
        sent, ids, failed = [], [], []
        total = 0
        for entry in entries:
            total += len(entry.optional_text("MessageBody").encode())
            try:
                one = check_message(entry, queue, call.access_key)
            except SqsError as error:
                failed.append(_failed_entry(entry, error))
                continue
            total += one.size_bytes - len(one.message.body)
            sent.append(one)
            ids.append(entry.required_text("Id"))
        if total > MOST_BYTES:
            text = f"Batch requests cannot be longer than {MOST_BYTES} bytes. You have sent {total} bytes."
            raise SqsError("BatchRequestTooLong", text)
        pushed = await self._push(call, queue, sent) if sent else []
        return _batch([{"Id": one, **answer} for one, answer in zip(ids, pushed, strict=True)], failed)

    async def _push(self, call: Call, queue: KnownQueue, sent: list[SentMessage]) -> list[dict[str, Any]]:
        pushed = await self._queues.push(call.client, queue.name, [one.message for one in sent])
        answers = []
        for one, stored in zip(sent, pushed, strict=True):
            number = int(stored.id)
            answer = {"MessageId": message_id(queue.name, number), **one.answer}
            if queue.settings.fifo:
                answer["SequenceNumber"] = sequence_number(number)
            answers.append(answer)
        return answers

    # --- receive -----------------------------------------------------------------------------------------

    async def _receive(self, call: Call) -> dict[str, Any]:
        fields = call.fields
        count = fields.number("MaxNumberOfMessages", 1, MOST_RECEIVED) or 1
        visibility_s = fields.number("VisibilityTimeout", 0, LONGEST_VISIBILITY_S)
        wait_s = fields.number("WaitTimeSeconds", 0, LONGEST_WAIT_S)
        wanted = wanted_system_names(fields)
        names = fields.names("MessageAttributeNames")
        if len(fields.optional_text("ReceiveRequestAttemptId")) > LONGEST_ID:
            raise invalid_value(f"ReceiveRequestAttemptId can only include alphanumeric and punctuation characters. "
                                f"1 to {LONGEST_ID} in length")  # fmt: skip
        queue = await self._known(call)
        if wait_s is None:
            wait_s = queue.attributes.number("ReceiveMessageWaitTimeSeconds")
        lease_ms = 0 if visibility_s is None else lease_of(visibility_s)
        found = await self._pop(call.client, queue, count, wait_s * 1_000, lease_ms)
        if not found:
            return {}
        return {"Messages": [received_message(one, queue, call.region, wanted, names) for one in found]}

    async def _pop(self, client: Client, queue: KnownQueue, count: int, wait_ms: int, lease_ms: int) -> list[Any]:
        loop = asyncio.get_running_loop()
        end_s = loop.time() + wait_ms / 1_000
        while True:
            left_ms = max(0, round((end_s - loop.time()) * 1_000))
            found = await self._queues.pop(client, queue.name, count, min(left_ms, WAIT_SLICE_MS), lease_ms)
            if found and wait_ms and client.has_gone():
                await self._queues.settle_leases(client, queue.name, [one.receipt for one in found], "rollback")
                return []
            if found or left_ms <= WAIT_SLICE_MS or client.has_gone() or self._waits.is_ending:
                return found

    # --- delete and visibility ---------------------------------------------------------------------------

    async def _delete(self, call: Call) -> dict[str, Any]:
        queue = await self._known(call)
        receipt = _receipt_of(call.fields)
        await self._queues.settle_leases(call.client, queue.name, [receipt], "commit")
        return {}

    async def _delete_batch(self, call: Call) -> dict[str, Any]:
        entries = call.fields.entries("DeleteMessageBatchRequestEntry")
        queue = await self._known(call)
        receipts, failed = _checked_entries(entries, _receipt_of)
        if receipts:
            await self._queues.settle_leases(call.client, queue.name, list(receipts.values()), "commit")
        return _batch([{"Id": one} for one in receipts], failed)

    async def _change_visibility(self, call: Call) -> dict[str, Any]:
        queue = await self._known(call)
        receipt, visibility_s = _visibility_of(call.fields)
        if not await self._set_visibility(call.client, queue.name, receipt, visibility_s):
            raise _not_in_flight()
        return {}

    async def _change_visibility_batch(self, call: Call) -> dict[str, Any]:
        entries = call.fields.entries("ChangeMessageVisibilityBatchRequestEntry")
        queue = await self._known(call)
        changes, failed = _checked_entries(entries, _visibility_of)
        done = []
        for one, (receipt, visibility_s) in changes.items():
            if await self._set_visibility(call.client, queue.name, receipt, visibility_s):
                done.append({"Id": one})
            else:
                failed.append(_failure(one, _not_in_flight()))
        return _batch(done, failed)

    async def _set_visibility(self, client: Client, queue: bytes, receipt: bytes, visibility_s: int) -> bool:
        what = "extend" if visibility_s else "rollback"
        return (await self._queues.settle_leases(client, queue, [receipt], what, visibility_s * 1_000))[0]


def lease_of(visibility_s: int) -> int:
    """Return the lease in ms; 0 means none in SQS, and the queue's setting in a pop."""
    return visibility_s * 1_000 or 1


def _receipt_of(fields: Fields) -> bytes:
    """Return the receipt of a request.  Raises SqsError."""
    handle = fields.required_text("ReceiptHandle")
    try:
        receipt = b64decode(handle, validate=True)
        keys.unpack_receipt(receipt)
    except (NotBase64, ValueError, IllegalArgument):
        text = f'The input receipt handle "{handle[:200]}" is not a valid receipt handle.'
        raise SqsError("ReceiptHandleIsInvalid", text) from None
    return receipt


def _visibility_of(fields: Fields) -> tuple[bytes, int]:
    visibility_s = fields.number("VisibilityTimeout", 0, LONGEST_VISIBILITY_S)
    if visibility_s is None:
        raise missing("VisibilityTimeout")
    return _receipt_of(fields), visibility_s


def _not_in_flight() -> SqsError:
    return SqsError("MessageNotInflight", "The message referred to isn't in flight: its visibility timeout has ended.")


def _checked_entries(
    entries: list[Fields], check: Callable[[Fields], Any]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return what ``check`` makes of each entry, by its id, and the failures of the others."""
    checked, failed = {}, []
    for entry in entries:
        try:
            checked[entry.required_text("Id")] = check(entry)
        except SqsError as error:
            failed.append(_failed_entry(entry, error))
    return checked, failed


def _failed_entry(entry: Fields, error: SqsError) -> dict[str, Any]:
    return _failure(entry.required_text("Id"), error)


def _failure(entry_id: str, error: SqsError) -> dict[str, Any]:
    form = error.form
    return {"Id": entry_id, "SenderFault": form.is_senders, "Code": form.code, "Message": error.text}


def _batch(done: list[dict[str, Any]], failed: list[dict[str, Any]]) -> dict[str, Any]:
    return {"Successful": done, "Failed": failed}
