"""Committed offsets of groups of consumers: a group is a row, and each of its offsets a cell.

    row        00 'g' GROUP
    column     h:NAME 00 partition:u32
    committed  := version:u8(2) offset:i64 topic:u64 metadata                                          big-endian

``topic`` is the id of the topic: a topic that is made again under its name has other records under its offsets.
Version 1 lacks it.

Owned by the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct, error
from typing import Final

from columnar.errors import DamagedData, IllegalArgument
from columnar.model.topic import GROUP_OFFSETS, HEADS, METADATA_BYTES, CommittedOffset, checked_group
from columnar.topics.topic_calls import TABLE, TopicCalls, TopicClient
from columnar.wire.idl import hbase

LISTED_GROUPS: Final = 1_000  # rows of one step of a list
GROUPS: Final = b"\x00g"
AFTER_GROUPS: Final = b"\x00h"
VERSION: Final = 2
_COMMITTED: Final = Struct(">BqQ")
_COMMITTED_1: Final = Struct(">Bq")
_U32: Final = Struct(">I")
assert (_COMMITTED.size, _COMMITTED_1.size) == (17, 9), "on disk: a new layout needs a new version"


class GroupOffsets:
    def __init__(self, calls: TopicCalls) -> None:
        self._calls = calls

    async def commit_offsets(self, client: TopicClient, group: str, offsets: Sequence[CommittedOffset]) -> None:
        """Store the offsets of a group; returns after the fsync."""
        row = _group_row(checked_group(group))
        changes = []
        if len(offsets) > GROUP_OFFSETS:
            raise IllegalArgument(f"{len(offsets)} offsets in one commit: it has at most {GROUP_OFFSETS}")
        for one in offsets:
            if len(one.metadata.encode()) > METADATA_BYTES:
                raise IllegalArgument(f"the metadata of a committed offset has at most {METADATA_BYTES} bytes")
            qualifier, value = committed_cell(one)
            changes.append(hbase.Mutation(column=HEADS + b":" + qualifier, value=value))
        if not changes:
            return
        await self._calls.call_prepared(client, "mutateRow", TABLE, row, changes, {})

    async def committed_offsets(self, client: TopicClient, group: str) -> list[CommittedOffset]:
        """Return all offsets that the group has committed, by topic and partition."""
        cells = await self._calls.read_heads(client, _group_row(checked_group(group)))
        return [unpack_committed(qualifier, value) for qualifier, value in sorted(cells.items())]

    async def list_groups(self, client: TopicClient) -> list[str]:
        """Return the groups that have committed offsets."""
        found: list[str] = []
        spans = (GROUPS, AFTER_GROUPS)
        scanner = await self._calls.call_or_none(client, "scannerOpenWithStop", TABLE, *spans, [HEADS], {})
        if scanner is None:
            return found
        try:
            while rows := await self._calls.call_store(client, "scannerGetList", scanner, LISTED_GROUPS):
                found += [row.row[len(GROUPS) :].decode() for row in rows]
        finally:
            await self._calls.call_store(client, "scannerClose", scanner)
        return found

    async def drop_group(self, client: TopicClient, group: str) -> bool:
        """Forget a group's offsets; return False if it has none."""
        row = _group_row(checked_group(group))
        if not await self._calls.read_heads(client, row):
            return False
        await self._calls.call_store(client, "deleteAllRow", TABLE, row, {})
        return True


def _group_row(group: str) -> bytes:
    return GROUPS + group.encode()


def committed_cell(one: CommittedOffset) -> tuple[bytes, bytes]:
    """Return qualifier and value of a committed offset."""
    packed = _COMMITTED.pack(VERSION, one.offset, one.topic_id) + one.metadata.encode()
    return one.topic.encode() + b"\x00" + _U32.pack(one.partition), packed


def unpack_committed(qualifier: bytes, data: bytes) -> CommittedOffset:
    """Return the committed offset of a cell.  Raises DamagedData."""
    topic, _, partition = qualifier.partition(b"\x00")
    form = _COMMITTED_1 if data[:1] == b"\x01" else _COMMITTED
    try:
        version, offset, *rest = form.unpack_from(data)
    except error as fault:
        raise DamagedData(f"a committed offset: {fault}") from None
    if version not in (1, VERSION):
        raise DamagedData(f"a committed offset has version {version}, and this program reads {VERSION}")
    topic_id = rest[0] if rest else 0
    metadata = data[form.size :].decode(errors="replace")
    return CommittedOffset(topic.decode(), _partition_of(partition), offset, metadata, topic_id)


def _partition_of(data: bytes) -> int:
    try:
        found: int = _U32.unpack(data)[0]
    except error as fault:
        raise DamagedData(f"the column of a committed offset: {fault}") from None
    return found
