"""Tokens and rates, with a clock of our own."""

from __future__ import annotations

import os
import re
import signal

import pytest

from tests.support.wiki_client import WikiClient
from wikka_port.edit_buckets import SLOTS_PER_SET, EditBuckets
from wikka_port.security import FormTokens, RateLimiter, is_address, is_visitor, network_of, new_visitor


class Clock:
    def __init__(self) -> None:
        self.now = 5_000.0

    def __call__(self) -> float:
        return self.now


def test_a_token_is_good_for_its_visitor_and_its_time() -> None:
    clock = Clock()
    tokens = FormTokens(b"k" * 32, clock, 100)
    visitor = new_visitor()
    token = tokens.issue(visitor)
    assert tokens.accepts(token, visitor)
    assert not tokens.accepts(token, new_visitor())
    assert not FormTokens(b"o" * 32, clock, 100).accepts(token, visitor)
    clock.now += 101
    assert not tokens.accepts(token, visitor)


def test_a_token_is_of_one_session() -> None:
    tokens = FormTokens(b"k" * 32, Clock(), 100)
    visitor = new_visitor()
    token = tokens.issue(visitor, "session:1")
    assert tokens.accepts(token, visitor, "session:1")
    assert not tokens.accepts(token, visitor, "session:2")
    assert not tokens.accepts(token, visitor)
    assert not tokens.accepts(tokens.issue(visitor), visitor, "session:1")


def test_limits_of_another_purpose_count_apart() -> None:
    buckets = EditBuckets.opened(100)
    edits, attempts = (RateLimiter(60, 1, buckets, Clock(), purpose) for purpose in ("", "sign-in "))
    assert edits.wait_s("10.0.0.1") == 0
    assert attempts.wait_s("10.0.0.1") == 0
    assert attempts.wait_s("10.0.0.1") > 0


@pytest.mark.parametrize("token", ["", ".", "zz.", "1.2", "é.é", "1388." + "0" * 64, "\x00", "9" * 10_000])
def test_nonsense_is_no_token(token: str) -> None:
    assert not FormTokens(b"k" * 32, Clock(), 100).accepts(token, new_visitor())


def test_no_visitor_no_token() -> None:
    tokens = FormTokens(b"k" * 32, Clock(), 100)
    assert not tokens.accepts(tokens.issue(""), "")
    assert not is_visitor("é" * 32)


def test_a_bucket_empties_and_fills() -> None:
    clock = Clock()
    limiter = RateLimiter(60, 3, EditBuckets.opened(10), clock)
    assert [limiter.wait_s("1.2.3.4") for _ in range(4)] == [0, 0, 0, 1.0]
    assert limiter.wait_s("1.2.3.5") == 0
    clock.now += 1
    assert limiter.wait_s("1.2.3.4") == 0
    assert limiter.wait_s("1.2.3.4") > 0
    clock.now -= 100  # a clock that was set back
    assert limiter.wait_s("1.2.3.4") > 0


def test_the_table_of_buckets_is_bounded() -> None:
    buckets = EditBuckets.opened(100)
    limiter = RateLimiter(60, 1, buckets, Clock())
    for n in range(1_000):
        limiter.wait_s(f"10.0.{n // 256}.{n % 256}")
    assert 80 <= len(buckets) <= 100 + SLOTS_PER_SET
    assert limiter.wait_s("10.0.3.231") > 0, "the newest is known"


def test_no_limit() -> None:
    buckets = EditBuckets.opened(100)
    limiter = RateLimiter(0, 1, buckets, Clock())
    assert {limiter.wait_s("1.2.3.4") for _ in range(50)} == {0}
    assert len(buckets) == 0


def test_processes_have_one_limit_together_and_one_that_is_killed_holds_up_nobody() -> None:
    buckets = EditBuckets.opened(10)
    limiter = RateLimiter(60, 3, buckets, Clock())
    for _ in range(3):
        child = os.fork()
        if child == 0:
            limiter.wait_s("1.2.3.4")
            buckets.locked().__enter__()
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(child, 0)
    assert limiter.wait_s("1.2.3.4") > 0
    assert limiter.wait_s("1.2.3.5") == 0


def test_one_visitor_is_one_network() -> None:
    assert network_of("2001:db8::1") == network_of("2001:db8::ffff") != network_of("2001:db8:0:1::1")
    assert network_of("10.0.0.1") != network_of("10.0.0.2")
    assert network_of("nonsense") == "nonsense"


def test_addresses_are_no_names() -> None:
    assert is_address("127.0.0.1")
    assert is_address("[::1]")
    assert not is_address("Ada")


def test_answers_to_get_say_how_long_they_took_and_those_to_forms_do_not() -> None:
    web = WikiClient()
    web.wiki.save("P", "text", author="Ann", base=0)
    for path in ("/P", "/-/login", "/Nowhere", "/-/recentchanges.xml", "/health"):
        assert re.fullmatch(r"page;dur=\d+\.\d", web.get(path).headers["Server-Timing"]), path
        assert "Server-Timing" in web.client.head(path).headers
    form = web.form("/-/login")
    assert "Server-Timing" not in web.post("/-/login", {**form, "user": "Nix", "password": "x"}).headers
    assert "Server-Timing" not in web.save("/P", "another text").headers
