"""Refusals and errors of peers: the client hears what it would hear from the owner itself."""

from __future__ import annotations

import asyncio
from typing import Any

import msgpack
import pytest

from columnar import errors
from columnar.cluster import refusals
from columnar.cluster.hello import HELLO, Hello, obstacle
from columnar.cluster.refusals import Moved, PeerFault, Refusal, Unknown, refuse_not_local
from columnar.cluster.value_codec import BadValue
from columnar.errors import (
    CallerError,
    ColumnarError,
    NotServingRegion,
    OutcomeUnknown,
    RegionUnavailable,
    RetryLater,
    TableNotFound,
    Throttled,
)
from columnar.model.owner import Incarnation
from columnar.model.region_info import RegionInfo
from columnar.model.route import Route
from columnar.storage.api import StoreBusy, StoreClosed
from columnar.thrift import service as thrift
from columnar.thrift2 import service as thrift2

REGION, S1, S2 = RegionInfo("t", 3, b"a"), Incarnation("s1", 1), Incarnation("s2", 2)
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "VersionsNotPositive": (-1,),
    "FilterSyntaxError": ("what", 4),
    "IncompatibleFilter": (),
    "NoSuchColumnFamily": (b"f\xff", "t"),
    "NotALong": (3,),
    "AccessDenied": ("bob", "t, family=f", "READ"),
    "FolderTakenOver": ("85135ba5", 2, 3),
    "NotAMember": ("t", b"r", b"m:s", "no member"),
    "ImageTooBig": ("t", b"r", b"f", "view v"),
    "CellTooBig": ("a cell", 5, 4),
    "PutTooBig": (b"f:q", 5, 4),
    "ScannerNotFound": (7,),
    "Throttled": ("t", "over", 12, "10req/s"),
    "ClientGone": (),
    "TooManyHops": (16, 16),
    "RegionNotLocal": ("t", "0123456789abcdef"),
    "FolderInUse": ("folder", "me"),
    "RowTooBig": (b"r\xff", 5),
    "FilterTooExpensive": (b"r\xff", b"ValueFilter(=, 'regexstring:x')", "it takes too long"),
    "ServersEnded": ("t", b"r\xff", "s1.3"),
}
ALL = [
    found
    for found in vars(errors).values()
    if isinstance(found, type) and issubclass(found, ColumnarError) and found is not RegionUnavailable
]


def there(refusal: Refusal) -> Refusal:
    why, fields = refusals.to_plain(refusal)
    return refusals.from_plain(why, msgpack.unpackb(msgpack.packb(fields)))


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_every_error_of_ours_comes_back(kind: type[ColumnarError]) -> None:
    error = kind(*ARGUMENTS.get(kind.__name__, ("what it says",)))
    back: Any = there(error)
    assert type(back) is kind
    assert vars(back) == vars(error), "with its fields"
    assert (str(back), back.wire_message) == (str(error), error.wire_message)
    for method in ("get", "mutateRow", "createTable", "scannerGet"):
        assert thrift.to_wire(method, back) == thrift.to_wire(method, error)
    for method in ("get", "getScannerRows"):
        assert thrift2.to_wire(method, back) == thrift2.to_wire(method, error)


def test_an_error_of_another_module_comes_back_with_the_same_words_for_clients() -> None:
    for error in (StoreBusy("stalled"), StoreClosed("closed")):
        back = there(error)
        assert isinstance(back, ColumnarError)
        assert isinstance(error, type(back))
        assert back.wire_message == error.wire_message


def test_what_a_region_waits_for_does_not_travel() -> None:
    async def away() -> RegionUnavailable:
        return RegionUnavailable("r", asyncio.get_running_loop().create_future())

    error = asyncio.run(away())
    back = there(error)
    assert type(back) is NotServingRegion
    assert vars(back) == {"text": error.text}


def test_a_class_of_a_newer_version_is_one_of_its_group() -> None:
    why, fields = refusals.to_plain(Throttled("t", "over", 5, "1req/s"))
    for group, expected in (("RetryLater", RetryLater), ("CallerError", CallerError), ("", ColumnarError)):
        back = refusals.from_plain(why, fields | {"class": "Newer", "group": group})
        assert type(back) is expected
        assert str(back) == fields["text"]


def test_a_fault_of_the_peer_is_no_error_of_ours() -> None:
    """The client hears of an internal error, as of one here."""
    back = there(KeyError("x"))
    assert type(back) is PeerFault
    assert str(back) == "KeyError: 'x'"
    assert thrift.to_wire("get", back) is None
    assert type(refusals.from_plain("newer", {})) is PeerFault


@pytest.mark.parametrize("refusal", [Moved(REGION, S2, 9), Unknown("why")])
def test_refusals_come_back(refusal: Refusal) -> None:
    assert there(refusal) == refusal


@pytest.mark.parametrize(
    ("why", "fields"), [("moved", {}), ("unknown", {"text": 1}), ("error", {"class": "A"}), ("error", {"class": 1})]
)
def test_what_is_no_refusal_is_told(why: str, fields: dict[str, Any]) -> None:
    with pytest.raises(BadValue):
        refusals.from_plain(why, fields)


def test_a_forwarded_call_is_never_forwarded_again() -> None:
    assert refuse_not_local(Route(REGION, S2, 9), S1) == Moved(REGION, S2, 9)
    assert isinstance(refuse_not_local(Route(REGION, S1, 9), S1), Unknown), (
        "its copy is ahead of its master's word, or behind"
    )
    assert isinstance(refuse_not_local(None, S1), Unknown)


def test_words_for_clients() -> None:
    assert "region " + REGION.encoded in str(refusals.refuse_unavailable(REGION, "t"))
    assert "table t" in str(refusals.refuse_unavailable(None, "t"))
    assert isinstance(refusals.unsure(S1), OutcomeUnknown)
    assert refusals.unsure(S1).wire_message.startswith("CallTimeoutException: server s1.1 ")
    assert isinstance(there(TableNotFound("t")), TableNotFound)


def test_a_hello_is_of_the_cluster_and_of_the_master_that_leads() -> None:
    hello = Hello("c", S1, leader_epoch=4)
    assert HELLO.decode(HELLO.encode(hello) | {"newer": 1}) == hello
    assert obstacle(hello, "c", 4) is None
    assert obstacle(Hello("c", S1), "c", 4) is None, "a server"
    assert "not of d" in str(obstacle(hello, "d", 4))
    assert "5 has begun" in str(obstacle(hello, "c", 5))
    assert "version 0" in str(obstacle(Hello("c", S1, 0), "c", 0))
