"""Blocks of accounts and networks (``wikka_port.rights.blocks``) and what they stop."""

from __future__ import annotations

import re

import pytest

from wikka_port.rights.blocks import (
    BadBlock,
    Block,
    Blocks,
    block_column,
    block_in,
    pack_block,
    target_of,
    until_of,
)
from wikka_port.rights.judging import Guarded, may
from wikka_port.rights.rules import PageRights, Privilege, Rules
from wikka_port.schema import TIME_MAX_MS
from wikka_port.texts import _, speak
from wikka_port.texts.catalogue import ENGLISH, Languages
from wikka_port.visitors import Visitor

HOUR = 3_600_000
WRITING = (Privilege.WRITE, Privilege.COMMENT_POST, Privilege.CLAIM, Privilege.RENAME, Privilege.DELETE)
READING = (Privilege.READ, Privilege.COMMENT_READ)


def visitor(name: str | None = None, address: str = "", *, admin: bool = False) -> Visitor:
    return Visitor(name, name or "Visitor", "active" if name else "anonymous", admin, "", address=address)


def cells(*blocks: Block) -> dict[bytes, bytes]:
    return {block_column(one.id): pack_block(one) for one in blocks}


def block(number: int, **given: object) -> Block:
    return Block(f"{number:016x}", **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("address", ["203.0.113.7", "::ffff:203.0.113.7"])
def test_a_network_is_stopped_whoever_writes_without_an_account(address: str) -> None:
    blocks = Blocks(cells(block(1, network="203.0.113.0/24", reason="spam")))
    assert blocks.of(visitor(address=address)).reason == "spam"  # type: ignore[union-attr]
    assert blocks.of(visitor("Ann", address)) is None
    assert blocks.of(visitor(address="203.0.114.7")) is None
    assert blocks.of(visitor(address="")) is None
    assert blocks.of_address(address) is not None, "nobody registers from there"


def test_a_network_can_be_blocked_for_accounts_too_and_never_for_administrators() -> None:
    blocks = Blocks(cells(block(1, network="2001:db8::/32", accounts=True)))
    assert blocks.of(visitor("Ann", "2001:db8::1")) is not None
    assert blocks.of(visitor("Root", "2001:db8::1", admin=True)) is None


def test_the_narrowest_block_is_named() -> None:
    wide, narrow = block(1, network="203.0.0.0/16"), block(2, network="203.0.113.7/32")
    assert Blocks(cells(wide, narrow)).of(visitor(address="203.0.113.7")) == narrow
    hard = block(3, network="203.0.0.0/16", accounts=True)
    assert Blocks(cells(hard, narrow)).of(visitor("Ann", "203.0.113.7")) == hard


def test_an_account_is_stopped_by_its_folded_name_until_the_end() -> None:
    one = block(1, user="Änn", until_ms=10)
    assert Blocks(cells(one), 9).of(visitor("ann")) == one
    assert not Blocks(cells(one), 10)
    assert Blocks(cells(one, block(2, user="B", until_ms=30)), 9).end_ms == 10


def test_may_lets_a_blocked_visitor_read_alone() -> None:
    rules = Rules(cells(block(1, network="203.0.113.0/24"), block(2, user="Ann")))
    page = Guarded("P", PageRights("Ann"), True, rules)
    for who in (visitor(address="203.0.113.7"), visitor("Ann")):
        assert all(may(who, page, one) for one in READING)
        refused = [may(who, page, one) for one in WRITING]
        assert not any(refused)
        assert all(one.block is not None for one in refused)
        assert not may(who, page, Privilege.ADMINISTER)
    assert may(visitor("Ben", "203.0.113.7"), page, Privilege.WRITE)


def test_targets_and_ends_as_people_type_them() -> None:
    assert target_of(" Ann  Lee ") == ("Ann Lee", "")
    assert target_of("203.0.113.77/24") == ("", "203.0.113.0/24")
    assert target_of("2001:DB8::1") == ("", "2001:db8::1/128")
    assert until_of("", 5) == 0
    assert until_of("3 days", 5) == 5 + 72 * HOUR
    assert until_of("12h", 5) == 5 + 12 * HOUR
    assert until_of("2 weeks", 0) == 14 * 24 * HOUR
    assert until_of("1970-01-02", 5) == 24 * HOUR
    for wrong in ("", "a/b", "0.0.0.0/0", "10.0.0.0/7", "::/0"):
        with pytest.raises(BadBlock):
            target_of(wrong)
    for wrong in ("soon", "1969-01-01", "9999-12-31", "-3 days", "3 m", "3 tage", "3 ", "3 days days", "12345 h"):
        with pytest.raises(BadBlock):
            until_of(wrong, 5)


def test_each_language_accepts_the_spans_that_its_own_form_shows() -> None:
    """And its error; English ones count in every language, since commands and pages of help have them."""
    asked = "How long: 12 h, 3 days, 2 weeks; until 2026-12-24; or empty, for good"
    wanted = [12 * HOUR, 3 * 24 * HOUR, 14 * 24 * HOUR]
    try:
        languages = Languages.found()
        for language in map(languages.catalogue, languages.names):
            speak(language)
            shown = _(asked).partition(":")[2].partition(";")[0].split(",")
            assert [until_of(one, 0) for one in shown] == wanted, language.code
            with pytest.raises(BadBlock) as refused:
                until_of("soon", 0)
            in_error = re.findall(r"\d+ \w+", str(refused.value))[:2]
            assert [until_of(one, 0) for one in in_error] == [3 * 24 * HOUR, 12 * HOUR], language.code
            for text in ("3 days", "12h", "2 WEEKS", "1 month"):
                assert until_of(text, 0) > 0
    finally:
        speak(ENGLISH)


def test_a_damaged_cell_is_no_block() -> None:
    one = block(1, user="A", until_ms=3, reason="r", by="Root", made_ms=2)
    assert block_in(block_column(one.id), pack_block(one)) == one
    for wrong in (b"", b"[]", b'{"user": ""}', b'{"network": "x"}', b'{"later": 1}'):
        assert block_in(block_column(one.id), wrong) is None
    assert not Blocks({block_column("x"): b"no", b"acl:read:": b"*"})


def test_the_end_of_a_block_is_a_moment_that_the_wiki_can_write() -> None:
    assert until_of("3 days", 1_000) == 3 * 24 * 3_600_000 + 1_000
    assert until_of("9999 months", 1_000) == TIME_MAX_MS
