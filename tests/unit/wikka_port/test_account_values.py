"""Sessions, settings and names of accounts as values: their bytes, and what may be one."""

from __future__ import annotations

import pytest

from wikka_port.accounts import tables
from wikka_port.accounts.sessions import (
    Session,
    Ticket,
    cookie_value,
    pack_session,
    session_column,
    ticket_of,
    unpack_session,
)
from wikka_port.accounts.settings import DEFAULT, Settings, settings_cells, settings_in
from wikka_port.accounts.tables import audit_row, email_row, token_row, user_row
from wikka_port.accounts.user_names import Unsuitable, checked_address, checked_name, checked_password

TOKEN = "t" * 43


def test_the_bytes_of_a_session() -> None:
    session = Session(1_700_000_000_000, 1_700_000_300_000, "192.0.2.0", "A browser")
    assert pack_session(session) == b"1700000000000\n1700000300000\n192.0.2.0\nA browser"
    assert unpack_session(pack_session(session)) == session
    assert unpack_session(pack_session(Session(1, 2, "n", "two\nlines " + "x" * 500))) == Session(
        1, 2, "n", ("two lines " + "x" * 500)[:200]
    )
    for damaged in (b"", b"1\n2\n3", b"a\n2\nn\na", b"1\n2\nn\na\nb", b"-1\n2\nn\na", b"\xff"):
        assert unpack_session(damaged) is None


def test_the_bytes_of_rows_and_columns() -> None:
    """On disk for ever."""
    digest = b"6d5ac5b4b1ec4b8d"
    assert cookie_value(b"ada", TOKEN) == f"YWRh.{TOKEN}"
    assert ticket_of(f"YWRh.{TOKEN}") == Ticket(b"ada", session_column(TOKEN))
    assert session_column(TOKEN).startswith(b"session:")
    assert len(session_column(TOKEN)) == len(b"session:") + 64
    assert user_row("Ádà Lovelace") == b"ada lovelace"
    assert token_row("abc") == b"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert email_row(b"key", " Ada@Example.ORG ") == email_row(b"key", "ada@example.org")
    assert email_row(b"key", "ada@example.org") != email_row(b"other", "ada@example.org")
    assert audit_row(1_700_000_000_000, digest) == b"1" + b"8299999999999" + digest


def test_a_session_is_over_by_disuse_and_by_age() -> None:
    session = Session(0, 0, "n", "a")
    month_ms, half_year_ms = tables.SESSION_S * 1000, tables.SESSION_LONGEST_S * 1000
    assert not session.is_over(month_ms - 1)
    assert session.is_over(month_ms)
    used = Session(0, half_year_ms - 5, "n", "a")
    assert not used.is_over(half_year_ms - 1)
    assert used.is_over(half_year_ms)


@pytest.mark.parametrize(
    ("agent", "shown"),
    [
        ("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox on Linux"),
        ("Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/140.0 Safari/537.36 Edg/140.0", "Edge on Windows"),
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Safari/604.1", "Safari on iPhone"),
        ("curl/8.0", "curl/8.0"),
        ("", "Unknown browser"),
    ],
)
def test_browsers_have_short_names(agent: str, shown: str) -> None:
    assert Session(0, 0, "n", agent).browser == shown


def test_settings_to_cells_and_back() -> None:
    settings = Settings("Europe/Berlin", "dark", 40, 20, True)
    assert settings_in(settings_cells(settings)) == settings
    assert settings_cells(DEFAULT)[b"settings:theme"] == b"auto"
    assert settings_in({}) is DEFAULT
    newer = {
        b"settings:theme": b"sepia",
        b"settings:zone": b"Mars/Crater",
        b"settings:fonts": b"x",
        b"settings:changes": b"x",
    }
    assert settings_in(newer) == DEFAULT, "what is not known counts as the default"


@pytest.mark.parametrize("name", ["Ada", "Ада", "李明", "O'Brien", "Ann J.", "  two   words ", "Jean-Luc", "x1"])
def test_names_that_people_have(name: str) -> None:
    assert checked_name(name) == " ".join(name.split())


@pytest.mark.parametrize(
    "name", ["x", "123", "Ann#", "An(n", "a/b", "visitor 1", "VISITOR", "a\nb", "A\x00da", "Nobody", "~Ann"]
)
def test_names_that_nobody_can_have(name: str) -> None:
    with pytest.raises(Unsuitable):
        checked_name(name)


def test_passwords_are_one_however_they_are_composed() -> None:
    assert checked_password("cafe\u0301 cafe\u0301 1", name="Ada") == checked_password("caf\xe9 caf\xe9 1", name="Ada")
    for bad in ("x" * 257 + "abcde", "a" * 50, "my ada lovelace word"):
        with pytest.raises(Unsuitable):
            checked_password(bad, name="Ada Lovelace")


@pytest.mark.parametrize(
    "address",
    [
        *("a@b", "a@b\r\nBcc: c@d", "a b@c.de", "<a@b.de>", "a@b.de,c@d.ef", "@b.de", "a@", "a@b..de"),
        *("a" * 250 + "@b.de", "=?utf-8?b?'}?=@b.de", "=?utf-8?q?ada?=@b.de", "a@b.=?"),
    ],
)
def test_what_is_no_mail_address(address: str) -> None:
    if address == "a@b":
        assert checked_address(address) == "a@b", "within a machine or a house it is one"
        return
    with pytest.raises(Unsuitable):
        checked_address(address)
