"""Metadata, and the requests that make, change, describe and drop topics.

A client is told of one broker, the port that it has reached, which leads every partition: each server of a cluster
takes every call, and forwards it to the owner of the partition's row.

Owned by the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from columnar.errors import CallerError, IllegalArgument
from columnar.kafka.call import BROKER_ID, Call, Handler, Values, error_of
from columnar.kafka.errors import KafkaError
from columnar.kafka.schemas import CREATE_PARTITIONS, CREATE_TOPICS, DELETE_TOPICS, DESCRIBE_CONFIGS, METADATA
from columnar.model.topic import TopicDescription, TopicSettings, checked_name, checked_partitions, checked_settings
from columnar.topics.topic_service import TopicService
from columnar.wire.local_calls import CallFailed

_TOPIC: Final = 2  # a type of resources in DescribeConfigs
_GIVEN, _DEFAULT = 1, 5  # sources of a setting
_RETENTION_MS, _RETENTION_BYTES, _CLEANUP = "retention.ms", "retention.bytes", "cleanup.policy"
_DELETE: Final = "delete"  # the only policy


class TopicHandlers:
    def __init__(self, topics: TopicService, cluster_id: str, new_partitions: int) -> None:
        """Pass the number of partitions of a topic whose maker does not say one."""
        self._topics = topics
        self._cluster_id = cluster_id
        self._new_partitions = new_partitions
        self.handlers: dict[int, Handler] = {
            METADATA.number: self.list_metadata,
            CREATE_TOPICS.number: self.create_topics,
            DELETE_TOPICS.number: self.delete_topics,
            CREATE_PARTITIONS.number: self.create_partitions,
            DESCRIBE_CONFIGS.number: self.describe_configs,
        }

    # --- metadata ----------------------------------------------------------------------------------------

    async def list_metadata(self, call: Call) -> Values:
        asked = call.fields["topics"]
        if asked is None or (call.version == 0 and not asked):
            topics = await self._all_topics(call)
        else:
            topics = [await self._found(call, one["name"]) for one in asked]
        address = call.address
        return {
            "brokers": [{"id": BROKER_ID, "host": address.host, "port": address.port}],
            "cluster_id": self._cluster_id,
            "controller": BROKER_ID,
            "topics": topics,
        }

    async def _all_topics(self, call: Call) -> list[Values]:
        try:
            return [_described(one) for one in await self._topics.topics.list_topics(call.client)]
        except CallFailed as failed:
            if error_of(failed) is KafkaError.UNKNOWN_TOPIC_OR_PARTITION:
                return []
            raise

    async def _found(self, call: Call, name: str) -> Values:
        """Return what is told of a topic, which is made if the client allows it."""
        try:
            topic = await self._topics.topics.describe_topic(call.client, name)
            if topic is None and call.fields["may_create"]:
                await self._topics.topics.create_topic(
                    call.client, checked_name(name), self._new_partitions, TopicSettings()
                )
                topic = await self._topics.topics.find_topic(call.client, name)
        except CallFailed as failed:
            return {"name": name, "error": error_of(failed)}
        except CallerError:
            return {"name": name, "error": KafkaError.INVALID_TOPIC}
        if topic is None:
            return {"name": name, "error": KafkaError.UNKNOWN_TOPIC_OR_PARTITION}
        return _described(topic)

    # --- changes -----------------------------------------------------------------------------------------

    async def create_topics(self, call: Call) -> Values:
        done = []
        for topic in call.fields["topics"]:
            error, text = await self._create(call, topic)
            done.append({"name": topic["name"], "error": error, "error_message": text or None})
        return {"topics": done}

    async def _create(self, call: Call, topic: Values) -> tuple[KafkaError, str]:
        assignments = topic["assignments"]
        count = len(assignments) or topic["partitions"]
        count = self._new_partitions if count == -1 else count
        if topic["replicas"] not in (-1, 1):
            text = "this store names one server for each partition: give a replication factor of 1, or none"
            if not assignments:
                return KafkaError.INVALID_REPLICATION_FACTOR, text
        try:
            checked_name(topic["name"])
        except CallerError as refused:
            return KafkaError.INVALID_TOPIC, refused.text
        try:
            checked_partitions(count)
        except CallerError as refused:
            return KafkaError.INVALID_PARTITIONS, refused.text
        try:
            settings = _settings_of(topic["configs"])
            if call.fields["only_validate"]:
                is_new = await self._topics.topics.describe_topic(call.client, topic["name"]) is None
            else:
                is_new = await self._topics.topics.create_topic(call.client, topic["name"], count, settings)
        except CallerError as refused:
            return KafkaError.INVALID_CONFIG, refused.text
        except CallFailed as failed:
            return error_of(failed), failed.text
        if not is_new:
            return KafkaError.TOPIC_ALREADY_EXISTS, f"there is a topic {topic['name']}"
        return KafkaError.NONE, ""

    async def delete_topics(self, call: Call) -> Values:
        done = []
        for name in call.fields["names"]:
            try:
                was_there = await self._topics.topics.drop_topic(call.client, name)
                error = KafkaError.NONE if was_there else KafkaError.UNKNOWN_TOPIC_OR_PARTITION
            except CallFailed as failed:
                error = error_of(failed)
            except CallerError:
                error = KafkaError.INVALID_TOPIC
            done.append({"name": name, "error": error})
        return {"topics": done}

    async def create_partitions(self, call: Call) -> Values:
        done = []
        for topic in call.fields["topics"]:
            error, text = await self._add_partitions(call, topic)
            done.append({"name": topic["name"], "error": error, "error_message": text or None})
        return {"topics": done}

    async def _add_partitions(self, call: Call, topic: Values) -> tuple[KafkaError, str]:
        try:
            found = await self._topics.topics.describe_topic(call.client, topic["name"])
            if found is None:
                return KafkaError.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {topic['name'][:100]}"
            if topic["count"] <= found.partitions:
                text = f"it has {found.partitions} partitions: ask for more, they are never taken away"
                return KafkaError.INVALID_PARTITIONS, text
            checked_partitions(topic["count"])
            if not call.fields["only_validate"]:
                await self._topics.topics.configure_topic(call.client, found.name, lambda old: old, topic["count"])
        except CallFailed as failed:
            return error_of(failed), failed.text
        except CallerError as refused:
            return KafkaError.INVALID_PARTITIONS, refused.text
        return KafkaError.NONE, ""

    # --- settings ----------------------------------------------------------------------------------------

    async def describe_configs(self, call: Call) -> Values:
        return {"resources": [await self._resource(call, one) for one in call.fields["resources"]]}

    async def _resource(self, call: Call, asked: Values) -> Values:
        """Return the settings of a topic; a broker has none that clients may see."""
        answer: Values = {"type": asked["type"], "name": asked["name"]}
        if asked["type"] != _TOPIC:
            return answer
        try:
            topic = await self._topics.topics.describe_topic(call.client, asked["name"])
        except CallFailed as failed:
            return {**answer, "error": error_of(failed), "error_message": failed.text}
        except CallerError as refused:
            return {**answer, "error": KafkaError.INVALID_TOPIC, "error_message": refused.text}
        if topic is None:
            return {**answer, "error": KafkaError.UNKNOWN_TOPIC_OR_PARTITION}
        wanted = asked["keys"]
        settings = _listed(topic.settings)
        return {**answer, "configs": [one for one in settings if wanted is None or one["name"] in wanted]}


def _described(topic: TopicDescription) -> Values:
    return {
        "name": topic.name,
        "partitions": [
            {"index": index, "leader": BROKER_ID, "replicas": (BROKER_ID,), "in_sync": (BROKER_ID,)}
            for index in range(topic.partitions)
        ],
    }


def _settings_of(configs: Sequence[Values]) -> TopicSettings:
    """Return the settings of a new topic.  Raises IllegalArgument for one that this store does not have."""
    settings = TopicSettings()
    for one in configs:
        name, value = one["name"], one["value"] or ""
        if name == _CLEANUP and value == _DELETE:
            continue
        if name not in (_RETENTION_MS, _RETENTION_BYTES):
            raise IllegalArgument(
                f"{name[:100]}={value[:100]}: topics have {_RETENTION_MS}, {_RETENTION_BYTES} and {_CLEANUP}={_DELETE}"
            )
        try:
            number = int(value)
        except ValueError:
            raise IllegalArgument(f"{name}={value[:100]}: it is a number") from None
        settings = replace(settings, **{name.replace(".", "_"): number})
    return checked_settings(settings)


def _listed(settings: TopicSettings) -> list[Values]:
    given, usual = (settings.retention_ms, settings.retention_bytes), TopicSettings()
    listed = [(_CLEANUP, _DELETE, True)]
    listed.append((_RETENTION_MS, str(given[0]), given[0] == usual.retention_ms))
    listed.append((_RETENTION_BYTES, str(given[1]), given[1] == usual.retention_bytes))
    return [
        {"name": name, "value": value, "is_default": is_default, "source": _DEFAULT if is_default else _GIVEN}
        for name, value, is_default in listed
    ]
