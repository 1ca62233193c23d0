"""Visitors: hashes of networks, and what visitors without an account are called."""

from __future__ import annotations

from calendar import timegm

from wikka_port.visitors import NetworkHashes, unregistered


def at(year: int, month: int, day: int) -> float:
    return float(timegm((year, month, day, 12, 0, 0)))


def test_one_network_looks_alike_for_a_month_and_no_longer() -> None:
    now = [at(2026, 11, 1)]
    hashes = NetworkHashes(b"s" * 32, lambda: now[0])
    first = hashes.of("192.0.2.7")
    now[0] = at(2026, 11, 30)
    assert hashes.of("192.0.2.7") == first
    now[0] = at(2026, 12, 1)
    assert hashes.of("192.0.2.7") != first


def test_a_hash_needs_the_secret_and_tells_networks_apart() -> None:
    one, other = (NetworkHashes(secret * 32, lambda: at(2026, 11, 5)) for secret in (b"1", b"2"))
    assert one.of("192.0.2.7") != other.of("192.0.2.7")
    assert one.of("192.0.2.7") != one.of("192.0.2.8")
    assert one.of("2001:db8::1") == one.of("2001:db8::ffff")  # one /64 network is one visitor
    assert "192" not in unregistered(one.of("192.0.2.7")).signature


def test_a_visitor_without_an_account_has_no_rights_and_a_neutral_name() -> None:
    visitor = unregistered("7f3a" + "0" * 28)
    assert (visitor.name, visitor.signature, visitor.status, visitor.admin) == (
        None,
        "Visitor 7f3a",
        "anonymous",
        False,
    )
    assert not visitor.is_active
