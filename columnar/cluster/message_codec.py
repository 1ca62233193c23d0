"""(pure) Messages between servers and masters as plain data: their names, and the codecs of their fields and answers.

    request    [name, {field: value, ...}]         response    the answer

A message is a class of the modules below; ``value_codec`` derives the form of its fields and of its answer from the
class.  The names of messages and fields are part of the format; tests/golden/peer-messages.txt records them.  A new
field needs a default in its class, so that the message of an older peer can be read.

Knows nothing of frames, nor of the meaning of a message.
"""

from __future__ import annotations

import re
from typing import Any, Final, TypeVar, get_args

from columnar.cluster import peer_requests
from columnar.cluster.value_codec import BadValue, codec_of
from columnar.model import node_messages, owner_messages, region_messages, route
from columnar.model.region_messages import Message

R = TypeVar("R")

_MODULES: Final = (region_messages, owner_messages, node_messages, route, peer_requests)
# Names that are older than their class.  Any other message is named after its class: "open_region" for OpenRegion.
_OLDER_NAMES: Final = {
    "Backfilled": "shown",
    "BackfilledRegions": "shown_regions",
    "FlowStatuses": "flow_looks",
    "GroupsPart": "view_groups_part",
    "PauseDeliveries": "hold_deliveries",
    "ReadGroupMembers": "view_members",
    "ReadSourceRows": "view_rows",
    "ReclaimSpace": "give_back_space",
    "RepairGroup": "view_mend_group",
    "ReturnConnections": "give_back",
    "SayAgain": "view_say_again",
    "SourcePart": "view_source_part",
    "TriggerStatuses": "trigger_looks",
    "ViewStatuses": "view_looks",
}


def _name_of(kind: type[Message[Any]]) -> str:
    return _OLDER_NAMES.get(kind.__name__) or re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()


_NAMES: Final[dict[type[Message[Any]], str]] = {
    kind: _name_of(kind)
    for module in _MODULES
    for kind in vars(module).values()
    if isinstance(kind, type) and issubclass(kind, Message) and kind is not Message
}
_ANSWERS: Final[dict[Any, Any]] = {kind: get_args(vars(kind)["__orig_bases__"][0])[0] for kind in _NAMES}  # ``R``
_BY_NAME: Final = {name: kind for kind, name in _NAMES.items()}
assert len(_BY_NAME) == len(_NAMES), "each message has a name of its own"


def kinds() -> tuple[type[Message[Any]], ...]:
    """Return the classes of all messages."""
    return tuple(_NAMES)


def to_plain(message: Message[Any]) -> tuple[str, dict[str, Any]]:
    """Return (name, fields) for ``peer_frames.request_frame``."""
    kind = type(message)
    return _NAMES[kind], codec_of(kind).encode(message)


def from_plain(name: str, fields: dict[str, Any]) -> Message[Any]:
    """Decode a message.

    Raises BadValue, also for a message that only a newer version knows and that its sender should not have sent.
    """
    kind = _BY_NAME.get(name)
    if kind is None:
        raise BadValue(f"'{name}' is no message that this version knows")
    message: Message[Any] = codec_of(kind).decode(fields)
    return message


def answer_to_plain(message: Message[R], answer: R) -> Any:
    return codec_of(_ANSWERS[type(message)]).encode(answer)


def answer_from_plain(message: Message[R], plain: Any) -> R:
    """Decode the answer to ``message``.  Raises BadValue."""
    answer: R = codec_of(_ANSWERS[type(message)]).decode(plain)
    return answer
