"""(pure) Messages between servers and masters as plain data: one registry of names, fields and answers.

    request    [name, {field: value, ...}]         response    the answer

Names of messages and of fields are the format; tests/golden/peer-messages.txt records them.  A new message needs an
entry here.  A new field needs a default in its class, so that the message of an older peer can be read.

Knows nothing of frames, nor of the meaning of a message.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

from columnar.cluster import peer_requests, row_forms, view_check_requests, view_forms
from columnar.cluster.value_codec import (
    BOOL,
    BYTES,
    FLOAT,
    INCARNATION,
    INT,
    NOTHING,
    OWNERSHIP_PERIOD,
    REGION,
    TABLE,
    TEXT,
    TRIPLE,
    BadValue,
    Codec,
    by_name,
    maybe,
    pair,
    record,
    several,
)
from columnar.cluster.write_codec import WRITES
from columnar.errors import DamagedData
from columnar.model import owner_messages as owners
from columnar.model import region_messages as regions
from columnar.model import route as routes
from columnar.model import trigger_registration, view_set
from columnar.model.flow_status import FlowStatus
from columnar.model.follower_numbers import Numbers
from columnar.model.measures import Family
from columnar.model.owner import Owner
from columnar.model.read import Projection, ReadSpec, ScanSpec
from columnar.model.region_messages import Message
from columnar.model.row_ranges import RowRange
from columnar.model.slow_request import SlowRequest
from columnar.model.trigger_registration import Registration
from columnar.model.trigger_set import STATES, Replay, State, Trigger, Triggers
from columnar.model.trigger_status import TriggerStatus
from columnar.model.view_generations import Swap
from columnar.model.view_set import KeptView, Reads, ViewSet
from columnar.model.view_status import ViewStatus

R = TypeVar("R")

# --- values within messages --------------------------------------------------------------------------

_RANGE: Final = pair(INT, INT)
_PROJECTION: Final = record(Projection, {"families": several(pair(BYTES, maybe(several(BYTES))))})
_READ: Final = record(
    ReadSpec,
    {
        "projection": _PROJECTION,
        "time_range": _RANGE,
        "max_versions": INT,
        "family_ranges": several(pair(BYTES, _RANGE)),
    },
)
_SCAN: Final = record(
    ScanSpec,
    {
        "start": BYTES,
        "stop": BYTES,
        "read": _READ,
        "reversed": BOOL,
        "batch": INT,
        "sort_columns": BOOL,
        "filter_string": maybe(BYTES),
        "limit": INT,
    },
)


def _decode_registration(plain: Any) -> Registration:
    try:
        return trigger_registration.from_json(BYTES.decode(plain))
    except DamagedData as error:
        raise BadValue(error.text) from None


def _decode_state(plain: Any) -> State:
    state = STATES.get(TEXT.decode(plain))
    if state is None:
        raise BadValue("no state of a trigger")
    return state


_TRIGGER: Final = record(
    Trigger,
    {
        "registration": Codec(trigger_registration.to_json, _decode_registration),
        "state": Codec(TEXT.encode, _decode_state),
        "number": INT,
        "unusable_reason": TEXT,
        "replay": maybe(record(Replay, {"number": INT, "from_ms": INT})),
    },
    unusable_reason="rests",
)
_NUMBERS: Final = record(Numbers, {"given": INT, "removed": several(_RANGE)})
_TRIGGERS: Final = record(Triggers, {"all": several(_TRIGGER), "numbers": maybe(_NUMBERS)})


def _decode_view_state(plain: Any) -> view_set.State:
    state = view_set.STATES.get(TEXT.decode(plain))
    if state is None:
        raise BadValue("no state of a view")
    return state


_READS: Final = record(Reads, {"table": TEXT, "families": several(TEXT)})
_VIEW: Final = record(
    KeptView,
    {
        "name": TEXT,
        "definition": BYTES,
        "reads": several(_READS),
        "state": Codec(TEXT.encode, _decode_view_state),
        "number": INT,
        "unusable_reason": TEXT,
    },
    unusable_reason="rests",
)
_SWAP: Final = record(Swap, {"name": TEXT, "live": TEXT, "kept": TEXT, "until_ms": INT})
_VIEWS: Final = record(ViewSet, {"all": several(_VIEW), "numbers": maybe(_NUMBERS), "swaps": several(_SWAP)})
_CHANGE: Final = record(regions.RegionChange, {"gone": several(REGION), "fresh": several(REGION), "epoch": INT})
_LOAD: Final = record(regions.RegionLoad, {"info": REGION, "size_bytes": INT, "limit_bytes": INT})
_ROUTE: Final = record(
    routes.Route,
    {"region": REGION, "server": INCARNATION, "epoch": INT, "source": maybe(OWNERSHIP_PERIOD), "blocked_reason": TEXT},
    blocked_reason="shut",
)
_ROUTES_VERSION: Final = record(routes.RoutesVersion, {"number": INT, "needs_all": BOOL})
_OWNER: Final = record(
    Owner,
    {
        "server": INCARNATION,
        "epoch": INT,
        "generation": INT,
        "source": maybe(OWNERSHIP_PERIOD),
        "unreplayed_logs": several(OWNERSHIP_PERIOD),
    },
    unreplayed_logs="behind",
)
_SEALED: Final = several(pair(INCARNATION, several(pair(TEXT, INT))))
_HANDOVER_RESULT: Final = record(owners.HandoverResult, {"given": INT, "closed": INT, "lost": INT, "scanners": INT})
_GIVEN_UP: Final = record(owners.GivenUp, {"epoch": INT, "has_unreplayed_log": BOOL}, has_unreplayed_log="is_behind")
_RATES: Final = record(
    owners.RegionRates,
    {
        "region": INT,
        "reads_per_s": FLOAT,
        "writes_per_s": FLOAT,
        "deliveries_per_s": FLOAT,
        "size_bytes": INT,
        "limit_bytes": INT,
        "write_fault": TEXT,
    },
)
_SLOW_REQUEST: Final = record(
    SlowRequest, {"at_ms": INT, "took_ms": INT, "method": TEXT, "about": TEXT, "server": TEXT}
)
_TRIGGER_STATUS: Final = record(
    TriggerStatus,
    {
        "name": TEXT,
        "table": TEXT,
        "function": TEXT,
        "state": TEXT,
        "lag_changes": INT,
        "lag_seconds": FLOAT,
        "parked": INT,
        "letters": INT,
        "error": TEXT,
        "rate_per_s": FLOAT,
        "share": INT,
        "process": TEXT,
        "settings": TEXT,
        "allows_cycle": BOOL,
    },
)
_VIEW_STATUS: Final = record(
    ViewStatus,
    {
        "name": TEXT,
        "lag_changes": INT,
        "lag_seconds": FLOAT,
        "rejected": INT,
        "rows_built": INT,
        "error": TEXT,
    },
)
_FLOW_STATUS: Final = record(
    FlowStatus,
    {
        "kind": TEXT,
        "name": TEXT,
        "reads": several(TEXT),
        "writes": several(TEXT),
        "seen": several(TEXT),
        "state": TEXT,
        "lag_changes": INT,
        "lag_seconds": FLOAT,
        "rate_per_s": FLOAT,
        "delivered": INT,
        "failed": INT,
        "parked": INT,
        "dead": INT,
        "runs": several(FLOAT),
        "idle_s": FLOAT,
        "error": TEXT,
    },
)
_FIGURES: Final = record(
    row_forms.Figures,
    {
        "open_regions": INT,
        "open_scanners": INT,
        "connections": INT,
        "requests": by_name(INT),
        "remarks": several(TEXT),
    },
)
_SAMPLE: Final = pair(several(TEXT), several(FLOAT))
_FAMILY: Final = record(
    Family, {"name": TEXT, "kind": TEXT, "about": TEXT, "labels": several(TEXT), "samples": several(_SAMPLE)}
)
_ADDRESS: Final = record(owners.Address, {"server": INCARNATION, "host": TEXT, "port": INT})
_FORM: Final = record(row_forms.ReplyForm, {"service": INT, "protocol": INT, "in_order": BOOL})
_GROUP: Final = record(
    peer_requests.RowGroup,
    {"rows": several(BYTES), "read": _READ, "filter_string": maybe(BYTES), "offset": INT, "limit": INT},
)
_FOUND: Final = record(
    peer_requests.RowsFound,
    {"rows": several(maybe(BYTES)), "not_local_rows": several(INT)},
    not_local_rows="elsewhere",
)
_APPLIED: Final = record(
    peer_requests.Applied, {"not_local_rows": several(INT), "sequence": maybe(TRIPLE)}, not_local_rows="elsewhere"
)
_INGESTED: Final = record(peer_requests.Ingested, {"came": BOOL, "is_not_local": BOOL}, is_not_local="is_elsewhere")
_DELETED: Final = record(
    peer_requests.RowsDeleted,
    {"rows": maybe(INT), "next_row": maybe(BYTES), "is_not_local": BOOL},
    is_not_local="is_elsewhere",
)
_STATE: Final = record(
    row_forms.RegionState,
    {
        "info": REGION,
        "folder": TEXT,
        "is_open": BOOL,
        "reads": INT,
        "writes": INT,
        "log_records": INT,
        "log_bytes": INT,
        "size_bytes": INT,
    },
)
_ROWS: Final = record(RowRange, {"start": BYTES, "stop": maybe(BYTES)})
_PLACE: Final = record(row_forms.Place, {"row": maybe(BYTES), "is_after_row": BOOL}, is_after_row="past")
_BLOCK: Final = record(row_forms.Block, {"data": BYTES, "row_count": INT, "cell_count": INT, "last_row": BYTES})


def _decode_cell(plain: Any) -> tuple[bytes, bytes, int]:
    if type(plain) is not list or len(plain) < 3:
        raise BadValue("no cell")
    return BYTES.decode(plain[0]), BYTES.decode(plain[1]), INT.decode(plain[2])


_CELL: Final[Codec[tuple[bytes, bytes, int]]] = Codec(list, _decode_cell)
_SCANNED: Final = record(
    peer_requests.Scanned,
    {
        "blocks": several(_BLOCK),
        "rows": several(pair(BYTES, several(_CELL))),
        "place": maybe(_PLACE),
        "cells_read": INT,
        "is_not_local": BOOL,
    },
    is_not_local="elsewhere",
)


# --- messages ----------------------------------------------------------------------------------------


class _Entry:
    """Constant."""

    __slots__ = ("answer", "fields", "kind", "message", "name")

    def __init__(
        self, name: str, kind: type[Message[Any]], fields: dict[str, Codec[Any]], answer: Codec[Any] = NOTHING
    ) -> None:
        self.name = name
        self.kind = kind
        self.fields = tuple(fields)
        self.message: Codec[Any] = record(kind, fields)
        self.answer = answer


_NUMBER_LIST: Final[Codec[list[int]]] = Codec(list, lambda plain: list(several(INT).decode(plain)))
_TABLE_NAME: Final[dict[str, Codec[Any]]] = {"table": TEXT}
_ONE_REGION: Final[dict[str, Codec[Any]]] = {"region": REGION}
_ONE_CHANGE: Final[dict[str, Codec[Any]]] = {"change": _CHANGE}
_OWNED: Final[dict[str, Codec[Any]]] = {"region": REGION, "owner": _OWNER, "sealed": _SEALED}
_ENTRIES: Final = (
    _Entry("publish", regions.Publish, {"table": TABLE, "is_enabled": BOOL, "regions": several(REGION)}),
    _Entry("withdraw", regions.Withdraw, _TABLE_NAME),
    _Entry("close_table", regions.CloseTable, _TABLE_NAME),
    _Entry("close_regions", regions.CloseRegions, {"regions": several(REGION)}),
    _Entry("follow_schema", regions.FollowSchema, _TABLE_NAME),
    _Entry("prepare_regions", regions.PrepareRegions, {"table": TABLE, "regions": several(REGION)}),
    _Entry("publish_triggers", regions.PublishTriggers, {"triggers": _TRIGGERS}),
    _Entry("check_function", regions.CheckFunction, {"function": TEXT}, maybe(TEXT)),
    _Entry("check_source", regions.CheckSource, {"functions": several(TEXT)}, maybe(TEXT)),
    _Entry("reload_functions", regions.ReloadFunctions, {}),
    _Entry("undelivered", regions.Undelivered, {"table": TEXT, "triggers": several(TEXT)}, by_name(INT)),
    _Entry("log_reach", regions.LogReach, _TABLE_NAME, INT),
    _Entry("publish_views", regions.PublishViews, {"views": _VIEWS}),
    _Entry("shown_regions", regions.BackfilledRegions, {"views": several(TEXT)}, by_name(_NUMBER_LIST)),
    _Entry("hold_deliveries", regions.PauseDeliveries, {}),
    _Entry("release_deliveries", regions.ReleaseDeliveries, {}),
    _Entry("copy_region", regions.CopyRegion, {"region": REGION, "path": TEXT}),
    _Entry("middle_row", regions.MiddleRow, _ONE_REGION, maybe(BYTES)),
    _Entry("begin_change", regions.BeginChange, _ONE_CHANGE),
    _Entry("finish_change", regions.FinishChange, _ONE_CHANGE, FLOAT),
    _Entry("call_off_change", regions.CallOffChange, _ONE_CHANGE),
    _Entry("settle_change", regions.SettleChange, _ONE_CHANGE),
    _Entry("give_back_space", regions.ReclaimSpace, _ONE_REGION),
    _Entry("loads", regions.Loads, {}, several(_LOAD)),
    _Entry("commit", regions.Commit, _ONE_CHANGE),
    _Entry("shown", regions.Backfilled, {"view": TEXT}),
    _Entry("open_region", owners.OpenRegion, {**_OWNED, "is_doubted": BOOL}),
    _Entry("close_region", owners.CloseRegion, {"region": REGION, "epoch": INT}, _GIVEN_UP),
    _Entry("renumber_region", owners.RenumberRegion, _OWNED),
    _Entry("slow_requests", owners.SlowRequests, {}, several(_SLOW_REQUEST)),
    _Entry("rates", owners.Rates, {}, several(_RATES)),
    _Entry("measures", owners.Measures, {}, several(_FAMILY)),
    _Entry("listening", owners.Listening, {"host": TEXT, "port": INT, "thrift2_port": INT}),
    _Entry("addresses", owners.Addresses, {"servers": several(_ADDRESS)}),
    _Entry("hand_over", owners.HandOver, {"within_ms": INT}, _HANDOVER_RESULT),
    _Entry("give_back", owners.ReturnConnections, {"connections": INT, "within_ms": INT}, INT),
    _Entry("cannot_open", owners.CannotOpen, {"region": REGION, "epoch": INT, "why": TEXT, "is_damaged": BOOL}),
    _Entry(
        "change_routes",
        routes.ChangeRoutes,
        {"number": INT, "gone": several(REGION), "routes": several(_ROUTE)},
        _ROUTES_VERSION,
    ),
    _Entry("replace_routes", routes.ReplaceRoutes, {"number": INT, "routes": several(_ROUTE)}, _ROUTES_VERSION),
    _Entry(
        "rows", peer_requests.Rows, {"table": TEXT, "form": _FORM, "groups": several(_GROUP), "max_bytes": INT}, _FOUND
    ),
    _Entry("apply", peer_requests.Apply, {"table": TEXT, "rows": WRITES}, _APPLIED),
    _Entry(
        "ingest",
        peer_requests.Ingest,
        {
            "table": TEXT,
            "first": BYTES,
            "last": BYTES,
            "highest_timestamp": INT,
            "rows": INT,
            "files": several(pair(TEXT, several(TEXT))),
        },
        _INGESTED,
    ),
    _Entry("delete_rows", peer_requests.DeleteRows, {"table": TEXT, "start": BYTES, "stop": BYTES}, _DELETED),
    _Entry(
        "scan",
        peer_requests.Scan,
        {
            "table": TEXT,
            "spec": _SCAN,
            "place": _PLACE,
            "max_rows": INT,
            "max_cells": INT,
            "max_bytes": INT,
            "form": maybe(_FORM),
            "versions": BOOL,
            "rows": maybe(_ROWS),
            "values": BOOL,
        },
        _SCANNED,
    ),
    _Entry("tend", peer_requests.Tend, {"region": REGION, "work": TEXT}, BOOL),
    _Entry("flow_looks", peer_requests.FlowStatuses, {}, several(_FLOW_STATUS)),
    _Entry("trigger_looks", peer_requests.TriggerStatuses, {}, several(_TRIGGER_STATUS)),
    _Entry("view_looks", peer_requests.ViewStatuses, {}, several(_VIEW_STATUS)),
    _Entry(
        "wait_for_delivery",
        peer_requests.WaitForDelivery,
        {"trigger": TEXT, "token": TEXT, "timeout_ms": INT, "regions": several(REGION), "saved": BOOL},
        record(peer_requests.Waited, {"is_delivered": BOOL, "is_not_local": BOOL}, is_not_local="is_elsewhere"),
    ),
    _Entry("log_again", peer_requests.LogAgain, {"table": TEXT, "row": BYTES, "trigger": TEXT, "change": BYTES}, BOOL),
    _Entry("view_source_part", view_check_requests.SourcePart, view_forms.SOURCE_PART, view_forms.SOURCE_FOUND),
    _Entry("view_groups_part", view_check_requests.GroupsPart, view_forms.GROUPS_PART, view_forms.GROUPS_FOUND),
    _Entry("view_rows", view_check_requests.ReadSourceRows, view_forms.READ_SOURCE_ROWS, view_forms.SNAPSHOTS),
    _Entry("view_members", view_check_requests.ReadGroupMembers, view_forms.READ_GROUP_MEMBERS, view_forms.SNAPSHOTS),
    _Entry("view_say_again", view_check_requests.SayAgain, view_forms.SAY_AGAIN, view_forms.SAID),
    _Entry("view_mend_group", view_check_requests.RepairGroup, view_forms.REPAIR_GROUP, view_forms.REPAIR_RESULT),
    _Entry("own_figures", peer_requests.OwnFigures, {}, _FIGURES),
    _Entry("region_states", peer_requests.RegionStates, {"tables": several(TEXT)}, several(_STATE)),
)
_BY_KIND: Final[dict[type[Any], _Entry]] = {entry.kind: entry for entry in _ENTRIES}
_BY_NAME: Final = {entry.name: entry for entry in _ENTRIES}


def kinds() -> tuple[type[Message[Any]], ...]:
    """The classes of all messages."""
    return tuple(_BY_KIND)


def fields_of(kind: type[Message[Any]]) -> tuple[str, ...]:
    """The fields of a message as they travel.  KeyError: the message has no codec."""
    return _BY_KIND[kind].fields


def to_plain(message: Message[Any]) -> tuple[str, dict[str, Any]]:
    """Return (name, fields) for ``peer_frames.request_frame``."""
    entry = _BY_KIND[type(message)]
    return entry.name, entry.message.encode(message)


def from_plain(name: str, fields: dict[str, Any]) -> Message[Any]:
    """BadValue; also for a message that only a newer version knows, which its sender should not have sent."""
    entry = _BY_NAME.get(name)
    if entry is None:
        raise BadValue(f"'{name}' is no message that this version knows")
    message: Message[Any] = entry.message.decode(fields)
    return message


def answer_to_plain(message: Message[R], answer: R) -> Any:
    return _BY_KIND[type(message)].answer.encode(answer)


def answer_from_plain(message: Message[R], plain: Any) -> R:
    """The answer to ``message``.  BadValue."""
    answer: R = _BY_KIND[type(message)].answer.decode(plain)
    return answer
