"""A client's copy of the owners: what answers, refusals and broken connections do to it."""

from __future__ import annotations

from columnar.client.addresses import Address
from columnar.client.locations import KEPT_S, MOST_TABLES, RETRY_S, Locations, Piece
from columnar.model.region_location import Location, NewOwner

ONE, TWO, THREE = (Address(f"h{n}", n) for n in (1, 2, 3))
T = b"t"


def location(start: bytes, end: bytes, owner: Address | None, epoch: int = 5) -> Location:
    host, port = owner or ("", 0)
    return Location(start, end, "s" if owner else "", 1, host, port, epoch)


def taken(*locations: Location, now_s: float = 0.0) -> Locations:
    found = Locations()
    found.store_locations(T, locations, "gateway", now_s)
    found.check_invariants()
    return found


def thirds() -> Locations:
    return taken(location(b"", b"h", ONE), location(b"h", b"q", TWO), location(b"q", b"", TWO))


def test_the_owner_of_a_row() -> None:
    found = thirds()
    assert [found.owner(T, row) for row in (b"", b"a", b"h", b"p\xff", b"q", b"\xff")] == [ONE, ONE, TWO, TWO, TWO, TWO]
    assert found.owner(b"other", b"a") is None
    assert found.cut(T, [b"z", b"a", b"h", b"b"]) == {TWO: [0, 2], ONE: [1, 3]}
    assert found.last_owner(T) == TWO


def test_neighbours_of_one_owner_are_one_piece() -> None:
    found = thirds()
    assert found.piece(T, b"a") == Piece(ONE, b"h")
    assert found.piece(T, b"i") == Piece(TWO, b"")
    assert found.piece(b"other", b"a") == Piece(None, b"")


def test_a_refusal_corrects_the_row_region() -> None:
    found = thirds()
    found.moved(T, b"z", NewOwner("h3", 3, 7, 6), "gateway")
    assert [found.owner(T, row) for row in (b"a", b"i", b"z")] == [ONE, TWO, THREE]
    assert not found.is_outdated(T, KEPT_S - 1), "nothing else is wrong"
    found.moved(b"other", b"z", NewOwner("h3", 3, 7, 6), "gateway")


def test_an_older_refusal_makes_the_table_be_asked_for_again() -> None:
    """After a split the epochs of the regions begin anew."""
    found = thirds()
    found.moved(T, b"z", NewOwner("h3", 3, 7, 5), "gateway")
    assert found.owner(T, b"z") == TWO
    assert not found.is_outdated(T, RETRY_S / 2), "but not at each call"
    assert found.is_outdated(T, RETRY_S)
    found.store_locations(T, [location(b"", b"", THREE, 1)], "gateway", 1.0)
    assert found.owner(T, b"z") == THREE
    assert not found.is_outdated(T, 1.0 + RETRY_S)


def test_an_old_copy_is_asked_for_again() -> None:
    """A server's connection may have been handed to another one, which forwards: nothing refuses."""
    found = taken(location(b"", b"", ONE), now_s=3.0)
    assert not found.is_outdated(T, 3.0 + KEPT_S - 0.1)
    assert found.is_outdated(T, 3.0 + KEPT_S)
    assert found.is_outdated(b"other", 3.0)


def test_rows_of_a_server_that_left_go_to_any() -> None:
    found = thirds()
    found.left(TWO)
    assert [found.owner(T, row) for row in (b"a", b"i", b"z")] == [ONE, None, None]
    assert found.is_outdated(T, RETRY_S)
    found.left(THREE)
    assert found.owner(T, b"a") == ONE


def test_an_answer_that_covers_no_table_is_any_server() -> None:
    holes = [
        [],
        [location(b"a", b"", ONE)],
        [location(b"", b"m", ONE)],
        [location(b"", b"h", ONE), location(b"i", b"", TWO)],
        [location(b"", b"", ONE), location(b"", b"", TWO)],
        [location(b"", b"h", ONE), location(b"h", b"h", TWO), location(b"h", b"", TWO)],
    ]
    for locations in holes:
        assert taken(*locations).piece(T, b"k") == Piece(None, b""), locations


def test_hosts_that_are_no_address_are_the_gateway() -> None:
    for host in ("0.0.0.0", "::", ""):
        found = taken(location(b"", b"", Address(host, 7)))
        assert found.owner(T, b"a") == Address("gateway", 7)
        found.moved(T, b"a", NewOwner(host, 8, 1, 9), "gateway")
        assert found.owner(T, b"a") == Address("gateway", 8)
    assert taken(location(b"", b"", None)).owner(T, b"a") is None, "one process that serves everything"


def test_the_table_asked_for_first_is_dropped() -> None:
    found = Locations()
    for n in range(MOST_TABLES + 5):
        found.store_locations(b"%d" % n, [location(b"", b"", ONE)], "gateway", 0.0)
    found.check_invariants()
    assert found.owner(b"4", b"a") is None
    assert found.owner(b"5", b"a") == ONE


def test_a_table_of_which_nobody_knows_is_asked_for_again() -> None:
    found = Locations()
    found.no_answer(T, 0.0)
    assert found.owner(T, b"a") is None
    assert not found.is_outdated(T, RETRY_S / 2)
    assert found.is_outdated(T, RETRY_S)
