"""(pure) The parts of a check's messages as plain data (``message_codec``)."""

from __future__ import annotations

from typing import Any, Final

from columnar.cluster import view_check_requests as requests
from columnar.cluster.value_codec import BOOL, BYTES, INT, TEXT, TRIPLE, BadValue, Codec, maybe, pair, record, several
from columnar.cluster.write_codec import WRITES


def _decode_entry(plain: Any) -> requests.Entry:
    if type(plain) is not list or len(plain) != 3:
        raise BadValue("no entry of a view")
    return BYTES.decode(plain[0]), BYTES.decode(plain[1]), BYTES.decode(plain[2])


_ENTRY: Final[Codec[requests.Entry]] = Codec(list, _decode_entry)
_SNAPSHOT: Final = record(requests.EntriesSnapshot, {"print": BYTES, "entries": several(_ENTRY)})
SOURCE_PART: Final[dict[str, Codec[Any]]] = {
    "view": TEXT, "side": INT, "start": BYTES, "buckets": BYTES, "is_summed": BOOL,
}  # fmt: skip
SOURCE_FOUND: Final = record(
    requests.SourceFound,
    {
        "next_row": maybe(BYTES),
        "digest": BYTES,
        "rows": INT,
        "rejected": INT,
        "entries": several(pair(BYTES, several(_ENTRY))),
        "is_not_local": BOOL,
    },
    is_not_local="is_elsewhere",
)
GROUPS_PART: Final[dict[str, Codec[Any]]] = {
    "view": TEXT, "start": BYTES, "after": BYTES, "buckets": BYTES, "is_summed": BOOL,
}  # fmt: skip
GROUPS_FOUND: Final = record(
    requests.GroupsFound,
    {
        "next_row": maybe(BYTES),
        "after": BYTES,
        "digest": BYTES,
        "groups": INT,
        "members": INT,
        "wrong": several(pair(BYTES, TEXT)),
        "entries": several(_ENTRY),
        "is_not_local": BOOL,
    },
    is_not_local="is_elsewhere",
)
READ_SOURCE_ROWS: Final[dict[str, Codec[Any]]] = {"view": TEXT, "side": INT, "rows": several(BYTES)}
READ_GROUP_MEMBERS: Final[dict[str, Codec[Any]]] = {"view": TEXT, "members": several(pair(BYTES, BYTES))}
SNAPSHOTS: Final = several(maybe(_SNAPSHOT))
SAY_AGAIN: Final[dict[str, Codec[Any]]] = {"view": TEXT, "side": INT, "row": BYTES}
SAID: Final = record(
    requests.Said, {"sequence": TRIPLE, "writes": WRITES, "is_not_local": BOOL}, is_not_local="is_elsewhere"
)
REPAIR_GROUP: Final[dict[str, Codec[Any]]] = {"view": TEXT, "group": BYTES, "members": several(pair(BYTES, BYTES))}
REPAIR_RESULT: Final = record(
    requests.RepairResult, {"totals": INT, "ordered": INT, "is_not_local": BOOL}, is_not_local="is_elsewhere"
)
