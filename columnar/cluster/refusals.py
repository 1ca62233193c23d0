"""(pure) Refusals between servers: why a call or a request was not carried out, or how it failed.

    ["moved", {region, server, epoch}]        another server owns the region: nothing was done
    ["unknown", {text}]                       the server does not know who owns it: nothing was done
    ["error", {class, text, group, fields}]   an error of ``columnar.errors``, with its fields; the class says what
                                              was done.  ``group`` is a class that every version knows
    ["fault", {text}]                         a fault in the server's own code; its log has the traceback

A server never forwards a call that came over a link: ``refuse_not_local`` is its answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from columnar import errors
from columnar.cluster.value_codec import TEXT, BadValue, Codec, codec_of
from columnar.errors import (
    CallerError,
    ColumnarError,
    DamagedData,
    HostError,
    NotServingRegion,
    OutcomeUnknown,
    RegionUnavailable,
    RetryLater,
    ServersEnded,
)
from columnar.model.owner import Incarnation
from columnar.model.region_info import RegionInfo
from columnar.model.route import Route


@dataclass(frozen=True, slots=True)
class Moved:
    region: RegionInfo
    server: Incarnation
    epoch: int


@dataclass(frozen=True, slots=True)
class Unknown:
    text: str


class PeerFault(Exception):
    """An unexpected exception at the peer: the client gets an internal error, as for one at this server."""


Refusal = Moved | Unknown | Exception


def refuse_not_local(route: Route | None, local_server: Incarnation) -> Moved | Unknown:
    """Return the answer to a forwarded call whose row this server does not own.

    ``route``: the row's route in this server's copy.
    """
    if route is None:
        return Unknown("no such table is known here")
    if route.server == local_server:
        return Unknown(f"region {route.region.encoded} is not owned here, and no other owner is known")
    return Moved(route.region, route.server, route.epoch)


MOVED: Final[Codec[Moved]] = codec_of(Moved)
UNKNOWN: Final[Codec[Unknown]] = codec_of(Unknown)

_GROUPS: Final[tuple[type[ColumnarError], ...]] = (CallerError, RetryLater, OutcomeUnknown, DamagedData, HostError)
_GROUP_OF: Final = {group.__name__: group for group in _GROUPS}
# Every class of ``columnar.errors`` by its name, except RegionUnavailable, whose future cannot be sent.
_CLASSES: Final[dict[str, type[ColumnarError]]] = {
    name: found
    for name, found in vars(errors).items()
    if isinstance(found, type) and issubclass(found, ColumnarError) and found is not RegionUnavailable
}
_FIELD_TYPES: Final = (str, bytes, int, float, bool, type(None))


def to_plain(refusal: Refusal) -> tuple[str, dict[str, Any]]:
    """Return (why, fields) for ``peer_frames.refused``."""
    if isinstance(refusal, Moved):
        return "moved", MOVED.encode(refusal)
    if isinstance(refusal, Unknown):
        return "unknown", UNKNOWN.encode(refusal)
    if isinstance(refusal, ColumnarError):
        return "error", _error_to_plain(refusal)
    return "fault", {"text": f"{type(refusal).__name__}: {refusal}"}


def from_plain(why: str, fields: dict[str, Any]) -> Refusal:
    """Decode a refusal.  Raises BadValue if it is malformed.  A reason of a newer version becomes a PeerFault."""
    if why == "moved":
        return MOVED.decode(fields)
    if why == "unknown":
        return UNKNOWN.decode(fields)
    if why == "error":
        return _error_from_plain(fields)
    text = fields.get("text")
    return PeerFault(text if isinstance(text, str) else f"refused as '{why}'")


def _error_to_plain(error: ColumnarError) -> dict[str, Any]:
    """Encode an error.

    A class of another module is sent as its nearest base class in ``columnar.errors`` with the same ``hbase_class``.
    """
    known = next(one for one in type(error).__mro__ if _is_known(one, error.hbase_class))
    group = next((one.__name__ for one in _GROUPS if isinstance(error, one)), "")
    items = vars(error).items() if known is type(error) else ()  # fields of another class mean nothing there
    fields = {name: value for name, value in items if name != "text" and type(value) in _FIELD_TYPES}
    return {"class": known.__name__, "text": error.text, "group": group, "fields": fields}


def _is_known(one: type, hbase_class: str) -> bool:
    if _CLASSES.get(one.__name__) is not one:
        return False
    return one is ColumnarError or getattr(one, "hbase_class", "") == hbase_class


def _error_from_plain(plain: dict[str, Any]) -> ColumnarError:
    try:
        name, text, group = (TEXT.decode(plain[field]) for field in ("class", "text", "group"))
    except KeyError as lacking:
        raise BadValue(f"an error without {lacking}") from None
    made = _CLASSES.get(name) or _GROUP_OF.get(group, ColumnarError)
    error = made.__new__(made)
    ColumnarError.__init__(error, text)  # the class's own would make a text from fields
    fields = plain.get("fields")
    if isinstance(fields, dict):
        error.__dict__.update(fields)
    return error


def refuse_unavailable(where: Route | RegionInfo | None, table: str) -> NotServingRegion:
    """Return the error of a call that found no owner in time: nothing was done.

    A route tells an operator where to look: at the server that should have served the region.
    """
    if isinstance(where, Route):
        owners = [where.server] if where.source is None else [where.source.server, where.server]
        what = f"region {where.region.encoded} of table {table}, of server {' or '.join(map(str, owners))},"
    else:
        what = f"region {where.encoded} of table {table}" if where is not None else f"table {table}"
    return NotServingRegion(f"{what} was not served by any server in time; nothing was done, try again")


def unsure(server: Incarnation) -> OutcomeUnknown:
    """Return the error of a write to a server that ended, or lost the region, before it answered."""
    return OutcomeUnknown(
        f"server {server} did not answer before it lost the region; read the row before you repeat it"
    )


def deadly(table: str, row: bytes, server: Incarnation) -> ServersEnded:
    """Return the error of a read during which two owners ended, of which ``server`` was the last."""
    return ServersEnded(table, row, str(server))
