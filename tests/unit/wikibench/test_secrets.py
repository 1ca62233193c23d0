"""What a report shows of a command line with secrets in it, and which errors name them."""

from __future__ import annotations

import pytest

from wikibench.errors import TargetError
from wikibench.secrets import redact_words, redacted, without_login
from wikibench.targets.target import parse_target


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        (["--header", "Authorization: Bearer SECRET123"], ["--header", "Authorization: …"]),
        (["--header=Cookie: a=SECRET123"], ["--header=Cookie: …"]),
        (["--header", "SECRET123"], ["--header", "…"]),
        (["--target", "http://bob:SECRET123@127.0.0.1:1/w"], ["--target", "http://127.0.0.1:1/w"]),
        (["--target=http://SECRET123@127.0.0.1:1"], ["--target=http://127.0.0.1:1"]),
        (["--target", "bob:SECRET123@127.0.0.1:1"], ["--target", "127.0.0.1:1"]),
        (["--target", "SECRET123@127.0.0.1:1"], ["--target", "127.0.0.1:1"]),
        (["--target", "http://bob:SE CRET SECRET123@127.0.0.1:1/a@b"], ["--target", "http://127.0.0.1:1/a@b"]),
        (["--target=SECRET123@127.0.0.1:1"], ["--target=127.0.0.1:1"]),
        (["--header", "--SECRET123"], ["--header", "…"]),
        (["day.trace", "--rewrite", "/wiki/=/", "--require", "p95<200ms"], None),
        (["--edit-path", "{page}/edit@x", "--report", "a@b"], None),
    ],
)
def test_words_of_a_command_line(typed: list[str], shown: list[str] | None) -> None:
    assert redact_words(typed) == (typed if shown is None else shown)
    assert "SECRET123" not in " ".join(redact_words(typed))


def test_texts_that_quote_a_secret() -> None:
    found = redacted({"a": ["x SECRET123", 1, None], "b": {"c": "en is short"}}, ["SECRET123", "en"])
    assert found == {"a": ["x …", 1, None], "b": {"c": "en is short"}}


def test_an_error_names_the_address_without_its_login() -> None:
    assert str(TargetError("http://bob:SECRET123@h:x/", "bad")) == "http://h:x/: bad"
    assert without_login("http://h/a@b") == "http://h/a@b"


def test_a_login_in_the_address_is_sent_unless_a_header_says_another() -> None:
    target = parse_target("http://bob:hunter%2f2@127.0.0.1:8080")
    assert target.origin == "http://127.0.0.1:8080"
    assert target.headers([("X", "y")]) == (("X", "y"), ("Authorization", "Basic Ym9iOmh1bnRlci8y"))
    assert target.headers([("authorization", "z")]) == (("authorization", "z"),)
    assert parse_target("http://127.0.0.1:8080").headers([]) == ()


@pytest.mark.parametrize(
    "address",
    [
        "http://bob:SECRET/SECRET@127.0.0.1:8080",
        "http://bob:SECRET?SECRET@127.0.0.1:8080/wiki",
        "http://bob:SECRET#SECRET@127.0.0.1:8080",
        "bob:SECRET/SECRET@127.0.0.1:8080",
        "ftp://bob:SECRET@127.0.0.1",
        "http://bob:SECRET@127.0.0.1:SECRET@",
        "http://bob:SECRET@/",
    ],
)
def test_an_address_that_is_none_is_said_without_what_may_be_a_password(address: str) -> None:
    with pytest.raises(TargetError) as caught:
        parse_target(address)
    assert "SECRET" not in str(caught.value)
