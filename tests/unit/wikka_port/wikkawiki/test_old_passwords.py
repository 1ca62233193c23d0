"""Passwords of a WikkaWiki: each kind of hash verifies, lies in the store inside Argon2id alone, and costs the same."""

from __future__ import annotations

from hashlib import md5
from typing import Any

import bcrypt
import pytest

from wikka_port.accounts import passwords as module
from wikka_port.accounts.passwords import OldHash, OldHashes, Passwords, UnknownHash, with_entities

HASHES = Passwords(memory_kib=8)
TYPED = "pass&1<2>\"ä'"
AS_FORM = "pass&amp;1&lt;2&gt;&quot;ä'"


def hexadecimal(text: str, encoding: str = "utf-8") -> str:
    return md5(text.encode(encoding)).hexdigest()


def by_bcrypt(text: str) -> str:
    return bcrypt.hashpw(text.encode(), bcrypt.gensalt(4)).replace(b"$2b$", b"$2y$", 1).decode()


OLD = {
    "1.2": OldHash.of_md5(hexadecimal(TYPED), "", "plain"),
    "1.2 in Latin-1": OldHash.of_md5(hexadecimal(TYPED, "cp1252"), "", "plain"),
    "1.3": OldHash.of_md5(hexadecimal("5f3a09c1" + AS_FORM), "5f3a09c1", "html"),
    "1.3 from 1.2": OldHash.of_md5(hexadecimal(AS_FORM), "", "html"),
    "1.4.2": OldHash.of_bcrypt(by_bcrypt(AS_FORM)),
}
EVERY = OldHashes(md5=True, bcrypt_cost=4)


@pytest.mark.parametrize("version", OLD)
def test_a_password_of_each_version_signs_in_and_its_hash_is_in_no_store(version: str) -> None:
    old = OLD[version]
    stored = HASHES.wrapped(old)
    assert HASHES.verify(stored, TYPED, EVERY)
    assert not HASHES.verify(stored, TYPED + "x", EVERY)
    assert not HASHES.verify(stored, old.digest, EVERY), "the old hash itself is no password"
    assert old.digest not in stored
    assert old.digest[-31:] not in stored
    assert HASHES.is_outdated(stored)
    assert HASHES.is_wrapped(stored, old)
    assert not any(HASHES.is_wrapped(stored, other) for name, other in OLD.items() if name != version)
    assert not HASHES.is_outdated(HASHES.hashed(TYPED))


@pytest.mark.parametrize("password", ["wrong horse", "wröng"])
def test_every_attempt_costs_the_same_whatever_the_account_has(password: str, monkeypatch: pytest.MonkeyPatch) -> None:
    work: list[str] = []

    def counted(name: str, real: Any) -> Any:
        return lambda *given: (work.append(name), real(*given))[1]

    monkeypatch.setattr(module.bcrypt, "hashpw", counted("bcrypt", bcrypt.hashpw))
    monkeypatch.setattr(Passwords, "_is_hash_of", counted("argon2", Passwords._is_hash_of))
    stored = ["", HASHES.hashed("right"), *map(HASHES.wrapped, OLD.values())]
    costs = []
    for one in stored:
        work.clear()
        assert not HASHES.verify(one, password, EVERY)
        costs.append(sorted(work))
    assert costs == [["argon2"] * (1 if password.isascii() else 2) + ["bcrypt"]] * len(stored)
    work.clear()
    HASHES.verify("", password)
    assert work == ["argon2"], "a wiki without old hashes pays nothing for them"


@pytest.mark.parametrize(
    "given",
    [("", "", "plain"), ("x" * 32, "", "plain"), ("a" * 32, "a:b", "html"), ("!", "", "plain")],
)
def test_what_is_no_md5_is_refused(given: tuple[str, str, str]) -> None:
    with pytest.raises(UnknownHash):
        OldHash.of_md5(*given)


@pytest.mark.parametrize("digest", ["$2y$10$short", "$2y$13$" + "a" * 53, "$argon2id$", ""])
def test_what_is_no_bcrypt_or_too_expensive_is_refused(digest: str) -> None:
    with pytest.raises(UnknownHash):
        OldHash.of_bcrypt(digest)


@pytest.mark.parametrize(
    ("typed", "sent"),
    [
        ("a&b", "a&b;"),
        ("a&1", "a&amp;1"),
        ("a&amp;b", "a&amp;b"),
        ("a&copy", "a&copy;"),
        ("a&copyx<", "a&copyx;&lt;"),
        ("a&#65;b&#x4a;", "a&#65;b&#x4a;"),
        ("'\"", "'&quot;"),
        ("& &", "&amp; &amp;"),
    ],
)
def test_entities_are_those_of_the_forms(typed: str, sent: str) -> None:
    assert with_entities(typed) == sent


@pytest.mark.parametrize("kinds", [OldHashes(), OldHashes(md5=True), OldHashes(bcrypt_cost=10), EVERY])
def test_kinds_come_back(kinds: OldHashes) -> None:
    assert OldHashes.parse(kinds.pack()) == kinds
    assert OldHashes.parse(b"nonsense") == OldHashes()
