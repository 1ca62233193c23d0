"""FindCoordinator, the requests of groups of consumers, and their committed offsets.

The port that a client has reached is the coordinator of every group for it: the port asks the group's real one, at the
owner of the group's row (``group_coordinators``).  So the members of a group meet, whichever servers they have reached.

Owned by the loop.
"""

from __future__ import annotations

import contextlib

from columnar.errors import CallerError
from columnar.kafka import group_messages
from columnar.kafka.call import BROKER_ID, Call, Handler, Values, error_of
from columnar.kafka.errors import KafkaError
from columnar.kafka.group_messages import pack_message, unpack_message
from columnar.kafka.group_state import Phase
from columnar.kafka.schemas import (
    DELETE_GROUPS,
    DESCRIBE_GROUPS,
    FIND_COORDINATOR,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    LIST_GROUPS,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    SYNC_GROUP,
)
from columnar.model.topic import GROUP_BYTES, METADATA_BYTES, CommittedOffset, TopicDescription
from columnar.topics.group_offsets import GROUPS
from columnar.topics.topic_calls import TopicClient
from columnar.topics.topic_service import TopicService
from columnar.wire.local_calls import CallFailed, LocalService

_CONSUMERS, _TRANSACTIONS = 0, 1  # types of keys
_NEEDS_ID = 4  # the version from which a member joins with an id that it was given
_OFFSETS_OF_ALL = 2  # the version from which a request without topics means all
_CLASSIC = "classic"  # the only type of groups
_ANY_TYPE = ("classic", "consumer")  # of types that tools ask for to see groups of consumers


class GroupHandlers:
    def __init__(self, topics: TopicService, service: LocalService) -> None:
        self._topics = topics
        self._service = service
        self.handlers: dict[int, Handler] = {
            FIND_COORDINATOR.number: self.find_coordinator,
            JOIN_GROUP.number: self.join_group,
            SYNC_GROUP.number: self.sync_group,
            HEARTBEAT.number: self.beat,
            LEAVE_GROUP.number: self.leave_group,
            OFFSET_COMMIT.number: self.commit_offsets,
            OFFSET_FETCH.number: self.fetch_offsets,
            DESCRIBE_GROUPS.number: self.describe_groups,
            LIST_GROUPS.number: self.list_groups,
            DELETE_GROUPS.number: self.delete_groups,
        }

    async def find_coordinator(self, call: Call) -> Values:
        if call.fields["key_type"] != _CONSUMERS:
            text = "this store has no transactions"
            return {"error": KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "error_message": text, "id": -1}
        return {"id": BROKER_ID, "host": call.address.host, "port": call.address.port}

    async def _coordinate(self, call: Call, group: str, kind: str, fields: Values) -> Values:
        """Return the answer of the group's coordinator, or ``error``."""
        if not 0 < len(group.encode()) <= GROUP_BYTES:
            return {"error": KafkaError.INVALID_GROUP_ID}
        client, message = call.client, pack_message(kind, fields)
        row = GROUPS + group.encode()
        try:
            try:
                found = await self._call(client, row, message)
            except CallFailed as failed:
                if failed.kind != "TableNotFoundException":
                    raise
                await self._service.call_method(client.peer, client.user, client.has_gone, "columnarTopicPrepare")
                found = await self._call(client, row, message)
        except CallFailed as failed:
            error = error_of(failed)
            return {"error": KafkaError.COORDINATOR_NOT_AVAILABLE if error is KafkaError.REQUEST_TIMED_OUT else error}
        return unpack_message(found)

    async def _call(self, client: TopicClient, row: bytes, message: bytes) -> bytes:
        found: bytes = await self._service.call_method(
            client.peer,
            client.user,
            client.has_gone,
            "columnarConsumerGroup",
            row,
            message,
        )
        return found

    # --- members -----------------------------------------------------------------------------------------

    async def join_group(self, call: Call) -> Values:
        fields = call.fields
        if fields["instance"] is not None:  # static members are not built
            return {"error": KafkaError.UNSUPPORTED_VERSION, "member": fields["member"]}
        asked = {name: fields[name] for name in ("member", "session_ms", "rebalance_ms", "protocol_type")}
        asked["protocols"] = [(one["name"], one["metadata"]) for one in fields["protocols"]]
        asked |= {"client": call.client_id, "host": call.host, "needs_id": call.version >= _NEEDS_ID}
        found = await self._coordinate(call, fields["group"], group_messages.JOIN, asked)
        members = [{"member": one[0], "metadata": one[1]} for one in found.get("members", ())]
        return {"member": fields["member"], **found, "members": members}

    async def sync_group(self, call: Call) -> Values:
        fields = call.fields
        asked = {"member": fields["member"], "generation": fields["generation"]}
        asked["assignments"] = [(one["member"], one["assignment"]) for one in fields["assignments"]]
        return await self._coordinate(call, fields["group"], group_messages.SYNC, asked)

    async def beat(self, call: Call) -> Values:
        fields = call.fields
        asked = {"member": fields["member"], "generation": fields["generation"]}
        return await self._coordinate(call, fields["group"], group_messages.BEAT, asked)

    async def leave_group(self, call: Call) -> Values:
        """Take out one member, or from version 3 on several ones."""
        fields = call.fields
        left = []
        for one in fields["members"]:
            found = await self._coordinate(call, fields["group"], group_messages.LEAVE, {"member": one["member"]})
            left.append({**one, "error": found["error"]})
        if left:
            return {"members": left}
        return await self._coordinate(call, fields["group"], group_messages.LEAVE, {"member": fields["member"]})

    # --- offsets -----------------------------------------------------------------------------------------

    async def commit_offsets(self, call: Call) -> Values:
        fields = call.fields
        asked = {"member": fields["member"], "generation": fields["generation"]}
        judged = await self._coordinate(call, fields["group"], group_messages.COMMIT, asked)
        refused = judged["error"] or KafkaError.NONE
        offsets, topics = [], []
        for topic in fields["topics"]:
            known = None if refused else await self._found(call, topic["name"])
            partitions = [(one, refused or _refuse_offset(one, known)) for one in topic["partitions"]]
            offsets += [
                CommittedOffset(topic["name"], one["index"], one["offset"], one["metadata"] or "", known.id)
                for one, error in partitions
                if not error and known is not None
            ]
            answered = [{"index": one["index"], "error": error} for one, error in partitions]
            topics.append({"name": topic["name"], "partitions": answered})
        error = await self._store(call, fields["group"], offsets) if offsets else KafkaError.NONE
        for topic in topics if error else ():
            for one in topic["partitions"]:
                one["error"] = one["error"] or error
        return {"topics": topics}

    async def _found(self, call: Call, topic: str) -> TopicDescription | None:
        try:
            return await self._topics.topics.describe_topic(call.client, topic)
        except (CallFailed, CallerError):
            return None

    async def _store(self, call: Call, group: str, offsets: list[CommittedOffset]) -> KafkaError:
        try:
            await self._topics.groups.commit_offsets(call.client, group, offsets)
        except CallFailed as failed:
            error = error_of(failed)
            return KafkaError.COORDINATOR_NOT_AVAILABLE if error is KafkaError.REQUEST_TIMED_OUT else error
        except CallerError:
            return KafkaError.INVALID_REQUEST
        return KafkaError.NONE

    async def _committed(self, call: Call, group: str) -> list[CommittedOffset]:
        """Return the offsets of a group, but for those of topics that were dropped, or made again, since."""
        found = await self._topics.groups.committed_offsets(call.client, group)
        if not found:
            return []
        ids = {one.name: one.id for one in await self._topics.topics.read_topics(call.client)}
        return [one for one in found if one.topic in ids and one.topic_id in (0, ids[one.topic])]

    async def fetch_offsets(self, call: Call) -> Values:
        asked, error = call.fields["topics"], KafkaError.NONE
        committed: dict[tuple[str, int], CommittedOffset] = {}
        try:
            for one in await self._committed(call, call.fields["group"]):
                committed[one.topic, one.partition] = one
        except CallFailed as failed:
            error = error_of(failed)
            if error is KafkaError.UNKNOWN_TOPIC_OR_PARTITION:
                error = KafkaError.NONE  # nothing was ever committed in this store
            elif error is KafkaError.REQUEST_TIMED_OUT:
                error = KafkaError.COORDINATOR_NOT_AVAILABLE
        except CallerError:
            error = KafkaError.INVALID_GROUP_ID
        if asked is None:
            asked = [{"name": name, "partitions": [n for topic, n in committed if topic == name]}
                     for name in sorted({topic for topic, _ in committed})]  # fmt: skip
        topics = []
        for topic in asked:
            found = [(index, committed.get((topic["name"], index))) for index in topic["partitions"]]
            partitions = [
                {
                    "index": index,
                    "offset": one.offset if one else -1,
                    "metadata": one.metadata if one else "",
                    "error": error,
                }
                for index, one in found
            ]
            topics.append({"name": topic["name"], "partitions": partitions})
        return {"topics": topics, "error": error}

    # --- what operators ask --------------------------------------------------------------------------------

    async def describe_groups(self, call: Call) -> Values:
        return {"groups": [await self._describe(call, name) for name in call.fields["groups"]]}

    async def _describe(self, call: Call, name: str) -> Values:
        found = await self._coordinate(call, name, group_messages.DESCRIBE, {})
        if "state" not in found:
            return {"group": name, "error": found["error"]}
        if found["state"] == Phase.EMPTY.value:
            offsets: list[CommittedOffset] = []
            with contextlib.suppress(CallFailed):  # it is shown as a group without offsets
                offsets = await self._committed(call, name)
            return {"group": name, "state": Phase.EMPTY.value if offsets else "Dead", "protocol_type": "consumer"}
        members = [
            {"member": one[0], "client": one[1], "host": one[2], "metadata": one[3], "assignment": one[4]}
            for one in found["members"]
        ]
        shown = {key: found[key] for key in ("state", "protocol_type", "protocol")}
        return {"group": name, **shown, "members": members}

    async def list_groups(self, call: Call) -> Values:
        """Return the groups that have committed offsets, with the states that their coordinators tell."""
        wanted = call.fields["types"]
        if wanted and not any(one.lower() in _ANY_TYPE for one in wanted):
            return {"groups": []}
        try:
            names = await self._topics.groups.list_groups(call.client)
        except CallFailed as failed:
            error = error_of(failed)
            return {"error": KafkaError.NONE if error is KafkaError.UNKNOWN_TOPIC_OR_PARTITION else error}
        groups = [await self._listed(call, name) for name in names]
        states = [one.lower() for one in call.fields["states"]]
        return {"groups": [one for one in groups if not states or one["state"].lower() in states]}

    async def _listed(self, call: Call, name: str) -> Values:
        found = await self._coordinate(call, name, group_messages.DESCRIBE, {}) if call.version >= _NEEDS_ID else {}
        state = found.get("state", Phase.EMPTY.value)
        kind = found.get("protocol_type") or "consumer"
        return {"group": name, "protocol_type": kind, "state": state, "type": _CLASSIC}

    async def delete_groups(self, call: Call) -> Values:
        return {"groups": [{"group": one, "error": await self._delete(call, one)} for one in call.fields["groups"]]}

    async def _delete(self, call: Call, name: str) -> KafkaError:
        found = await self._coordinate(call, name, group_messages.DESCRIBE, {})
        if "state" not in found:
            return KafkaError(found["error"])
        if found["state"] != Phase.EMPTY.value:
            return KafkaError.NON_EMPTY_GROUP
        try:
            was_there = await self._topics.groups.drop_group(call.client, name)
        except CallFailed as failed:
            return error_of(failed)
        return KafkaError.NONE if was_there else KafkaError.GROUP_ID_NOT_FOUND


def _refuse_offset(asked: Values, topic: TopicDescription | None) -> KafkaError:
    """Return why a partition's offset is not stored."""
    if topic is None or not 0 <= asked["index"] < topic.partitions:
        return KafkaError.UNKNOWN_TOPIC_OR_PARTITION
    if len((asked["metadata"] or "").encode()) > METADATA_BYTES:
        return KafkaError.OFFSET_METADATA_TOO_LARGE
    return KafkaError.NONE
