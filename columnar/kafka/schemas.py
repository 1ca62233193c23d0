"""(pure) The messages of Kafka's protocol that are served: a table of fields for each API, with their versions.

The tables follow the message definitions of Apache Kafka 4.0 (clients/src/main/resources/common/message).  A field is
in the versions from ``since`` to ``until``, and may be null from ``nullable`` on.  Tagged fields are not listed: those
of requests are skipped, and answers have none.

The versions of each API are what present clients need at least, and what adds something that this store has:

    Produce 3        batches of format 2, the only one that is stored; 7: batches may be compressed by zstd
    Fetch 4          the same; 7: sessions, which are refused; 10: zstd
    Metadata 4       whether a topic may be made; 8: the last one without tags
    JoinGroup 4      a member joins with an id that it was given, so that a lost answer leaves no member behind; 5: what
                     clients use that are told that the broker is Kafka 2.3
    ListOffsets 1    by time, one offset; 0 is the old form
    OffsetCommit 2   with the member's generation; OffsetFetch 1: offsets of the store, not of ZooKeeper
    ApiVersions 3    the form with tags, which new clients try first

Knows nothing of bytes (``codec``) and of what requests do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

LAST: Final = 1_000  # no version is so high
NEVER: Final = LAST


@dataclass(frozen=True, slots=True)
class Array:
    of: Kind


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    kind: Kind
    since: int = 0
    until: int = LAST  # the last version that has it
    nullable: int = NEVER  # the first version in which it may be null
    default: Any = None  # None: that of its kind

    def is_in(self, version: int) -> bool:
        return self.since <= version <= self.until

    def value_without(self) -> Any:
        """Return the value of a field that is not given."""
        if self.default is not None or self.nullable != NEVER:
            return self.default
        return () if isinstance(self.kind, Array) else _EMPTY.get(self.kind, 0)  # type: ignore[arg-type]

    def element(self) -> Field:
        """Return the field as one element of its array, which is never null."""
        return Field(self.name, self.kind)


Kind: TypeAlias = "str | Array | tuple[Field, ...]"

_EMPTY: Final = {"string": "", "bytes": b"", "uuid": bytes(16), "bool": False}


@dataclass(frozen=True, slots=True)
class Api:
    number: int
    name: str
    first: int  # version
    last: int  # version
    flexible: int  # the first version with tags and compact sizes
    request: tuple[Field, ...]
    response: tuple[Field, ...]
    has_plain_head: bool = False  # its answers' heads never have tags

    def serves(self, version: int) -> bool:
        return self.first <= version <= self.last


_THROTTLE: Final = Field("throttle_ms", "int32")
_ERROR: Final = Field("error", "int16")


def _throttle(since: int) -> Field:
    return Field("throttle_ms", "int32", since)


def _array(name: str, *fields: Field, since: int = 0, until: int = LAST, nullable: int = NEVER) -> Field:
    return Field(name, Array(fields), since, until, nullable)


# --- records -------------------------------------------------------------------------------------------------

PRODUCE: Final = Api(
    0, "Produce", 3, 8, 9,
    (
        Field("transactional_id", "string", nullable=0),
        Field("acks", "int16"),
        Field("timeout_ms", "int32"),
        _array("topics", Field("name", "string"),
               _array("partitions", Field("index", "int32"), Field("records", "bytes", nullable=0))),
    ),
    (
        _array("topics", Field("name", "string"),
               _array("partitions", Field("index", "int32"), _ERROR, Field("base_offset", "int64"),
                      Field("append_ms", "int64", default=-1), Field("log_start", "int64", 5, default=-1),
                      _array("record_errors", Field("index", "int32"), Field("message", "string", nullable=8), since=8),
                      Field("error_message", "string", 8, nullable=8))),
        _THROTTLE,
    ),
)  # fmt: skip
FETCH: Final = Api(
    1, "Fetch", 4, 11, 12,
    (
        Field("replica_id", "int32", default=-1),
        Field("max_wait_ms", "int32"),
        Field("min_bytes", "int32"),
        Field("max_bytes", "int32"),
        Field("isolation_level", "int8"),
        Field("session_id", "int32", 7),
        Field("session_epoch", "int32", 7, default=-1),
        _array("topics", Field("name", "string"),
               _array("partitions", Field("index", "int32"), Field("leader_epoch", "int32", 9, default=-1),
                      Field("offset", "int64"), Field("log_start", "int64", 5, default=-1),
                      Field("max_bytes", "int32"))),
        _array("forgotten", Field("name", "string"), Field("partitions", Array("int32")), since=7),
        Field("rack", "string", 11),
    ),
    (
        _THROTTLE,
        Field("error", "int16", 7),
        Field("session_id", "int32", 7),
        _array("topics", Field("name", "string"),
               _array("partitions", Field("index", "int32"), _ERROR, Field("high_watermark", "int64"),
                      Field("last_stable", "int64", default=-1), Field("log_start", "int64", 5, default=-1),
                      _array("aborted", Field("producer", "int64"), Field("first", "int64"), nullable=4),
                      Field("read_replica", "int32", 11, default=-1), Field("records", "bytes", nullable=0))),
    ),
)  # fmt: skip
LIST_OFFSETS: Final = Api(
    2, "ListOffsets", 1, 5, 6,
    (
        Field("replica_id", "int32", default=-1),
        Field("isolation_level", "int8", 2),
        _array("topics", Field("name", "string"),
               _array("partitions", Field("index", "int32"), Field("leader_epoch", "int32", 4, default=-1),
                      Field("timestamp_ms", "int64"))),
    ),
    (
        _throttle(2),
        _array("topics", Field("name", "string"),
               _array("partitions", Field("index", "int32"), _ERROR, Field("timestamp_ms", "int64", default=-1),
                      Field("offset", "int64", default=-1), Field("leader_epoch", "int32", 4, default=-1))),
    ),
)  # fmt: skip
INIT_PRODUCER_ID: Final = Api(
    22, "InitProducerId", 0, 1, 2,
    (Field("transactional_id", "string", nullable=0), Field("timeout_ms", "int32")),
    (_THROTTLE, _ERROR, Field("producer_id", "int64", default=-1), Field("producer_epoch", "int16")),
)  # fmt: skip

# --- topics --------------------------------------------------------------------------------------------------

API_VERSIONS: Final = Api(
    18, "ApiVersions", 0, 3, 3,
    (Field("software_name", "string", 3), Field("software_version", "string", 3)),
    (
        _ERROR,
        _array("apis", Field("number", "int16"), Field("first", "int16"), Field("last", "int16")),
        _throttle(1),
    ),
    has_plain_head=True,
)  # fmt: skip
NO_OPERATIONS: Final = -(1 << 31)  # of authorized operations: they were not asked for
METADATA: Final = Api(
    3, "Metadata", 0, 8, 9,
    (
        _array("topics", Field("name", "string"), nullable=1),
        Field("may_create", "bool", 4, default=True),
        Field("cluster_operations", "bool", 8),
        Field("topic_operations", "bool", 8),
    ),
    (
        _throttle(3),
        _array("brokers", Field("id", "int32"), Field("host", "string"), Field("port", "int32"),
               Field("rack", "string", 1, nullable=1)),
        Field("cluster_id", "string", 2, nullable=2),
        Field("controller", "int32", 1),
        _array("topics", _ERROR, Field("name", "string"), Field("is_internal", "bool", 1),
               _array("partitions", _ERROR, Field("index", "int32"), Field("leader", "int32"),
                      Field("leader_epoch", "int32", 7, default=-1), Field("replicas", Array("int32")),
                      Field("in_sync", Array("int32")), Field("offline", Array("int32"), 5)),
               Field("operations", "int32", 8, default=NO_OPERATIONS)),
        Field("operations", "int32", 8, default=NO_OPERATIONS),
    ),
)  # fmt: skip
CREATE_TOPICS: Final = Api(
    19, "CreateTopics", 0, 4, 5,
    (
        _array("topics", Field("name", "string"), Field("partitions", "int32"), Field("replicas", "int16"),
               _array("assignments", Field("partition", "int32"), Field("brokers", Array("int32"))),
               _array("configs", Field("name", "string"), Field("value", "string", nullable=0))),
        Field("timeout_ms", "int32"),
        Field("only_validate", "bool", 1),
    ),
    (_throttle(2), _array("topics", Field("name", "string"), _ERROR, Field("error_message", "string", 1, nullable=1))),
)  # fmt: skip
DELETE_TOPICS: Final = Api(
    20, "DeleteTopics", 0, 3, 4,
    (Field("names", Array("string")), Field("timeout_ms", "int32")),
    (_throttle(1), _array("topics", Field("name", "string"), _ERROR)),
)  # fmt: skip
CREATE_PARTITIONS: Final = Api(
    37, "CreatePartitions", 0, 1, 2,
    (
        _array("topics", Field("name", "string"), Field("count", "int32"),
               _array("assignments", Field("brokers", Array("int32")), nullable=0)),
        Field("timeout_ms", "int32"),
        Field("only_validate", "bool"),
    ),
    (_THROTTLE, _array("topics", Field("name", "string"), _ERROR, Field("error_message", "string", nullable=0))),
)  # fmt: skip
DESCRIBE_CONFIGS: Final = Api(
    32, "DescribeConfigs", 0, 3, 4,
    (
        _array("resources", Field("type", "int8"), Field("name", "string"), Field("keys", Array("string"), nullable=0)),
        Field("with_synonyms", "bool", 1),
        Field("with_documentation", "bool", 3),
    ),
    (
        _THROTTLE,
        _array("resources", _ERROR, Field("error_message", "string", nullable=0), Field("type", "int8"),
               Field("name", "string"),
               _array("configs", Field("name", "string"), Field("value", "string", nullable=0),
                      Field("is_read_only", "bool"), Field("is_default", "bool", 0, 0),
                      Field("source", "int8", 1, default=-1), Field("is_sensitive", "bool"),
                      _array("synonyms", Field("name", "string"), Field("value", "string", nullable=0),
                             Field("source", "int8"), since=1),
                      Field("type", "int8", 3), Field("documentation", "string", 3, nullable=0))),
    ),
)  # fmt: skip

# --- groups --------------------------------------------------------------------------------------------------


def _instance(since: int) -> Field:
    """Return the field of a static member's name, which is refused; clients that have none send null."""
    return Field("instance", "string", since, nullable=since)


FIND_COORDINATOR: Final = Api(
    10, "FindCoordinator", 0, 2, 3,
    (Field("key", "string"), Field("key_type", "int8", 1)),
    (
        _throttle(1), _ERROR, Field("error_message", "string", 1, nullable=1), Field("id", "int32"),
        Field("host", "string"), Field("port", "int32"),
    ),
)  # fmt: skip
JOIN_GROUP: Final = Api(
    11, "JoinGroup", 0, 5, 6,
    (
        Field("group", "string"),
        Field("session_ms", "int32"),
        Field("rebalance_ms", "int32", 1, default=-1),
        Field("member", "string"),
        _instance(5),
        Field("protocol_type", "string"),
        _array("protocols", Field("name", "string"), Field("metadata", "bytes")),
    ),
    (
        _throttle(2), _ERROR, Field("generation", "int32", default=-1), Field("protocol", "string"),
        Field("leader", "string"), Field("member", "string"),
        _array("members", Field("member", "string"), _instance(5), Field("metadata", "bytes")),
    ),
)  # fmt: skip
SYNC_GROUP: Final = Api(
    14, "SyncGroup", 0, 3, 4,
    (
        Field("group", "string"), Field("generation", "int32"), Field("member", "string"), _instance(3),
        _array("assignments", Field("member", "string"), Field("assignment", "bytes")),
    ),
    (_throttle(1), _ERROR, Field("assignment", "bytes")),
)  # fmt: skip
HEARTBEAT: Final = Api(
    12, "Heartbeat", 0, 3, 4,
    (Field("group", "string"), Field("generation", "int32"), Field("member", "string"), _instance(3)),
    (_throttle(1), _ERROR),
)  # fmt: skip
LEAVE_GROUP: Final = Api(
    13, "LeaveGroup", 0, 3, 4,
    (
        Field("group", "string"), Field("member", "string", 0, 2),
        _array("members", Field("member", "string"), _instance(3), since=3),
    ),
    (
        _throttle(1), _ERROR,
        _array("members", Field("member", "string"), _instance(3), _ERROR, since=3),
    ),
)  # fmt: skip
OFFSET_COMMIT: Final = Api(
    8, "OffsetCommit", 2, 7, 8,
    (
        Field("group", "string"),
        Field("generation", "int32", default=-1),
        Field("member", "string"),
        _instance(7),
        Field("retention_ms", "int64", 2, 4, default=-1),
        _array("topics", Field("name", "string"),
               _array("partitions", Field("index", "int32"), Field("offset", "int64"),
                      Field("leader_epoch", "int32", 6, default=-1), Field("metadata", "string", nullable=0))),
    ),
    (_throttle(3), _array("topics", Field("name", "string"), _array("partitions", Field("index", "int32"), _ERROR))),
)  # fmt: skip
OFFSET_FETCH: Final = Api(
    9, "OffsetFetch", 1, 5, 6,
    (
        Field("group", "string"),
        _array("topics", Field("name", "string"), Field("partitions", Array("int32")), nullable=2),
    ),
    (
        _throttle(3),
        _array("topics", Field("name", "string"),
               _array("partitions", Field("index", "int32"), Field("offset", "int64"),
                      Field("leader_epoch", "int32", 5, default=-1), Field("metadata", "string", nullable=0), _ERROR)),
        Field("error", "int16", 2),
    ),
)  # fmt: skip
DESCRIBE_GROUPS: Final = Api(
    15, "DescribeGroups", 0, 4, 5,
    (Field("groups", Array("string")), Field("with_operations", "bool", 3)),
    (
        _throttle(1),
        _array("groups", _ERROR, Field("group", "string"), Field("state", "string"), Field("protocol_type", "string"),
               Field("protocol", "string"),
               _array("members", Field("member", "string"), _instance(4), Field("client", "string"),
                      Field("host", "string"), Field("metadata", "bytes"), Field("assignment", "bytes")),
               Field("operations", "int32", 3, default=NO_OPERATIONS)),
    ),
)  # fmt: skip
LIST_GROUPS: Final = Api(
    16, "ListGroups", 0, 5, 3,
    (Field("states", Array("string"), 4), Field("types", Array("string"), 5)),
    (
        _throttle(1), _ERROR,
        _array("groups", Field("group", "string"), Field("protocol_type", "string"), Field("state", "string", 4),
               Field("type", "string", 5)),
    ),
)  # fmt: skip
DELETE_GROUPS: Final = Api(
    42, "DeleteGroups", 0, 1, 2,
    (Field("groups", Array("string")),),
    (_THROTTLE, _array("groups", Field("group", "string"), _ERROR)),
)  # fmt: skip

APIS: Final = {
    api.number: api
    for api in (
        PRODUCE, FETCH, LIST_OFFSETS, METADATA, OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR, JOIN_GROUP, HEARTBEAT,
        LEAVE_GROUP, SYNC_GROUP, DESCRIBE_GROUPS, LIST_GROUPS, API_VERSIONS, CREATE_TOPICS, DELETE_TOPICS,
        INIT_PRODUCER_ID, DESCRIBE_CONFIGS, CREATE_PARTITIONS, DELETE_GROUPS,
    )
}  # fmt: skip
