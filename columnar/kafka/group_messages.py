"""(pure) What a port asks the coordinator of a group, which is at the owner of the group's row, and its answers.

    message := msgpack {"kind": text, field: value ...}         fields of a request of Kafka's protocol and of ``Join``

A message travels in ``columnarConsumerGroup`` of the Thrift service.  Both ends are servers of one version or of two
that follow each other: a field that is not known is ignored, and one that is missing has the value of nothing.

Knows nothing of groups.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import msgpack

from columnar.errors import IllegalArgument

MESSAGE_BYTES: Final = 8 * 1024 * 1024  # two times what a group holds
JOIN, SYNC, BEAT, LEAVE, COMMIT, DESCRIBE = "join", "sync", "beat", "leave", "commit", "describe"

Values: TypeAlias = dict[str, Any]


def pack_message(kind: str, fields: Values) -> bytes:
    packed: bytes = msgpack.packb({**fields, "kind": kind})
    return packed


def unpack_message(data: bytes) -> Values:
    """Raises IllegalArgument for bytes that no server sends."""
    if len(data) > MESSAGE_BYTES:
        raise IllegalArgument(f"a request to a group of {len(data)} bytes: it has at most {MESSAGE_BYTES}")
    try:
        found = msgpack.unpackb(data)
    except (ValueError, msgpack.UnpackException):
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("kind"), str):
        raise IllegalArgument("a request to a group is a message of another server, and no client's")
    return found
