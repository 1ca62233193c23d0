"""Sign-in: who a client becomes, what a refusal tells, what is remembered and for how long."""

from __future__ import annotations

import asyncio
import base64
import logging
import os
import pwd
import ssl
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from columnar.errors import SignInBusy, SignInRefused
from columnar.model.accounts import ROOT, Account, Token
from columnar.security import passwords as passwords_module
from columnar.security import sign_in as sign_in_module
from columnar.security.credentials import Credentials, hash_of, new_token, of_authorization, of_plain, plain_message
from columnar.security.passwords import Passwords
from columnar.security.sign_in import FailedAttempts, SignIn, origin_of
from tests.support.certificates import Authority

T = TypeVar("T")
SECRET = "correct horse"
TOKEN = new_token(lambda count: "x" * count)
HASH = Passwords(memory_kib=64).hashed(SECRET)
ANNA = Account("anna", HASH, tokens=(Token("ci", hash_of(TOKEN), 1_700_000_000),))
PEER = ("10.0.0.1", "10.0.0.1:4000")


class CountedPasswords(Passwords):
    def __init__(self) -> None:
        super().__init__(memory_kib=64)
        self.verified: list[str] = []
        self.on_the_way = asyncio.Event()
        self.gate: asyncio.Event | None = None

    async def verify(self, stored: str, password: str) -> bool:
        self.verified.append(stored)
        self.on_the_way.set()
        if self.gate is not None:
            await self.gate.wait()
        return await super().verify(stored, password)


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


def made(*accounts: Account, clock: Clock | None = None) -> tuple[SignIn, CountedPasswords]:
    passwords = CountedPasswords()
    sign_in = SignIn(passwords, now=clock or Clock(), own_uid=4711)
    sign_in.take_accounts({one.name: one for one in accounts or (ANNA,)})
    return sign_in, passwords


def test_a_password_or_a_token_makes_its_user() -> None:
    sign_in, _ = made()
    assert run(sign_in.verify(Credentials("anna", SECRET), *PEER)) == "anna"
    assert run(sign_in.verify(Credentials("anna", TOKEN), *PEER)) == "anna"
    assert run(sign_in.verify(Credentials("", TOKEN), *PEER)) == "anna"


@pytest.mark.parametrize(
    "credentials",
    [
        Credentials("anna", "wrong"),
        Credentials("anna", ""),
        Credentials("berta", SECRET),
        Credentials("berta", TOKEN),  # a token of another user
        Credentials("", SECRET),
        Credentials("", TOKEN + "x"),
        Credentials(ROOT, SECRET),
        Credentials("anna", HASH),
        Credentials("", hash_of(TOKEN)),
    ],
)
def test_the_rest_is_refused_with_one_text(credentials: Credentials) -> None:
    sign_in, passwords = made()
    with pytest.raises(SignInRefused) as refused:
        run(sign_in.verify(credentials, *PEER))
    assert refused.value.text == "the user or the password is not right"
    assert len(passwords.verified) == (1 if credentials.user else 0)  # an unknown user costs a hash, too
    assert sign_in.remembered(credentials) == ""


def test_no_account_makes_root() -> None:
    root = replace(ANNA, name=ROOT)
    sign_in, _ = made(root)
    for credentials in (Credentials(ROOT, SECRET), Credentials("", TOKEN)):
        with pytest.raises(SignInRefused):
            run(sign_in.verify(credentials, *PEER))


def test_a_verified_password_is_remembered_while_its_account_is_the_same() -> None:
    sign_in, passwords = made()
    right = Credentials("anna", SECRET)
    assert sign_in.remembered(right) == ""
    run(sign_in.verify(right, *PEER))
    assert sign_in.remembered(right) == "anna"
    assert sign_in.remembered(Credentials("anna", SECRET + "x")) == ""
    sign_in.take_accounts({"anna": ANNA, "berta": Account("berta")})
    assert sign_in.remembered(right) == "anna"
    sign_in.take_accounts({"anna": replace(ANNA, password=Passwords(memory_kib=64).hashed("new"))})
    assert sign_in.remembered(right) == ""
    assert len(passwords.verified) == 1
    sign_in.take_accounts({"anna": ANNA})  # what was dropped does not return
    assert sign_in.remembered(right) == ""


def test_a_token_ends_with_its_account() -> None:
    sign_in, _ = made()
    assert sign_in.remembered(Credentials("", TOKEN)) == "anna"
    sign_in.take_accounts({"anna": replace(ANNA, tokens=())})
    assert sign_in.remembered(Credentials("", TOKEN)) == ""


def test_an_account_that_changes_while_its_password_is_verified_signs_nobody_in() -> None:
    async def scene() -> None:
        sign_in, passwords = made()
        passwords.gate = asyncio.Event()
        verifying = asyncio.create_task(sign_in.verify(Credentials("anna", SECRET), *PEER))
        await passwords.on_the_way.wait()
        sign_in.take_accounts({})
        passwords.gate.set()
        with pytest.raises(SignInRefused):
            await verifying

    run(scene())


def test_many_connections_that_begin_at_once_cost_one_hash() -> None:
    async def scene() -> None:
        sign_in, passwords = made()
        users = await asyncio.gather(*(sign_in.verify(Credentials("anna", SECRET), *PEER) for _ in range(9)))
        assert users == ["anna"] * 9
        assert len(passwords.verified) == 1
        assert not sign_in._verifying

    run(scene())


def test_failures_are_bounded_by_user_and_by_origin_and_time_forgives() -> None:
    clock = Clock()
    sign_in, passwords = made(ANNA, Account("berta", HASH), clock=clock)
    for _ in range(10):
        with pytest.raises(SignInRefused):
            run(sign_in.verify(Credentials("anna", "wrong"), *PEER))
    with pytest.raises(SignInBusy, match="in 2 s"):
        run(sign_in.verify(Credentials("anna", SECRET), *PEER))
    assert len(passwords.verified) == 10, "what is refused for the number costs no hash"
    assert run(sign_in.verify(Credentials("berta", SECRET), *PEER)) == "berta"
    assert run(sign_in.verify(Credentials("anna", SECRET), "10.0.0.2", "10.0.0.2:1")) == "anna"
    clock.now_s += 2.0
    assert run(sign_in.verify(Credentials("anna", SECRET), *PEER)) == "anna"


def test_success_is_no_failure_however_often() -> None:
    sign_in, _ = made()
    for _ in range(300):
        assert run(sign_in.verify(Credentials("", TOKEN), *PEER)) == "anna"


def test_parallel_guesses_are_bounded_too() -> None:
    async def scene() -> None:
        sign_in, passwords = made()
        guesses = [sign_in.verify(Credentials("anna", f"guess{one}"), *PEER) for one in range(50)]
        found = await asyncio.gather(*guesses, return_exceptions=True)
        assert [type(one) for one in found].count(SignInRefused) == 10
        assert [type(one) for one in found].count(SignInBusy) == 40
        assert len(passwords.verified) == 10

    run(scene())


def test_what_is_remembered_has_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = FailedAttempts(1, 1.0, keys=5)
    for number in range(100):
        assert attempts.begin_attempt(str(number), 0.0) == 0
    assert len(attempts._paid_s) == 5
    monkeypatch.setattr(sign_in_module, "VERIFIED", 5)
    sign_in, _ = made()
    for number in range(8):
        run(sign_in._verify_password(number.to_bytes(4, "big"), Credentials("anna", SECRET)))
    run(sign_in.verify(Credentials("anna", SECRET), *PEER))
    assert len(sign_in._verified) == 5
    assert sign_in.remembered(Credentials("anna", SECRET)) == "anna"


def test_hashes_that_wait_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passwords_module, "HASHES_PENDING", 0)
    monkeypatch.setattr(passwords_module, "HASHES_AT_ONCE", 1)

    async def scene() -> None:
        passwords = Passwords(memory_kib=64)
        first = asyncio.create_task(passwords.verify(HASH, SECRET))
        await asyncio.sleep(0)
        with pytest.raises(SignInBusy):
            await passwords.verify(HASH, SECRET)
        assert await first
        assert await passwords.verify(HASH, SECRET)
        passwords.close()

    run(scene())


def test_no_line_has_a_secret(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    sign_in, _ = made()
    run(sign_in.verify(Credentials("anna", SECRET), *PEER))
    run(sign_in.verify(Credentials("", TOKEN), *PEER))
    with pytest.raises(SignInRefused):
        run(sign_in.verify(Credentials("anna\nforged line", "hidden"), *PEER))
    assert [record.name for record in caplog.records if record.name != "asyncio"] == ["columnar.audit"] * 3
    assert "signed in as anna by password" in caplog.text
    assert "token 'ci' of 2023-11-14" in caplog.text
    assert "anna\\x0Aforged line" in caplog.text
    for secret in (SECRET, TOKEN, HASH, "hidden", hash_of(TOKEN)):
        assert secret not in caplog.text
        assert secret not in repr(Credentials("anna", secret))


def test_the_socket_makes_root_of_the_stores_own_user_and_names_of_the_others() -> None:
    sign_in, _ = made()
    assert sign_in.known_uid(0) == sign_in.known_uid(4711) == ROOT
    name = pwd.getpwuid(1).pw_name
    assert sign_in.known_uid(1) is None
    assert run(sign_in.by_uid(1, "local")) == name
    assert sign_in.known_uid(1) == name
    unused = 4_000_000_000
    assert run(sign_in.by_uid(unused, "local")) == ""
    assert SignIn().known_uid(os.getuid()) == ROOT


@pytest.mark.parametrize(
    ("header", "user", "secret"),
    [
        ("Basic " + base64.b64encode(b"anna:a:b").decode(), "anna", "a:b"),
        ("basic  " + base64.b64encode("jürgen:ü".encode()).decode(), "jürgen", "ü"),
        ("Bearer clmn_abc", "", "clmn_abc"),
    ],
)
def test_authorization_headers(header: str, user: str, secret: str) -> None:
    assert of_authorization(header) == Credentials(user, secret)


@pytest.mark.parametrize(
    "header",
    ["", "Basic", "Basic !!", "Basic " + base64.b64encode(b"anna").decode(), "Basic OmE=", "Digest a", "Basic /w==",
     "Basic \xe9", "Bearer " + "x" * 5_000],
)  # fmt: skip
def test_authorization_headers_without_credentials(header: str) -> None:
    with pytest.raises(SignInRefused):
        of_authorization(header)


def test_plain_messages() -> None:
    assert of_plain(plain_message("anna", "s")) == of_plain(b"anna\0anna\0s") == Credentials("anna", "s")
    for bad in (b"", b"anna\0s", b"root\0anna\0s", b"\0\0s", b"\0anna\0s\0", b"\0\xff\0s"):
        with pytest.raises(SignInRefused):
            of_plain(bad)


def test_a_certificate_names_its_user(tmp_path: Path) -> None:
    sign_in, _ = made()
    authority = Authority(tmp_path, "ca")

    def user_of(subject: str, field: str = "CN") -> str:
        pem = Path(authority.sign(subject, field=field).cert).read_text()
        return sign_in.by_certificate(ssl.PEM_cert_to_DER_cert(pem), PEER[1])

    assert user_of("anna") == "anna"
    assert user_of("app.example.com") == "app.example.com"
    assert user_of("unit/CN=berta", "OU") == "berta"
    for subject, field in ((ROOT, "CN"), ("anna", "OU"), ("two words", "CN"), ("anna/CN=berta", "CN")):
        assert user_of(subject, field) == "", subject
    assert sign_in.by_certificate(b"no certificate", PEER[1]) == ""


def test_origins() -> None:
    assert origin_of("10.0.0.1") == origin_of("::ffff:10.0.0.1") == "10.0.0.1"
    assert origin_of("2001:db8::1") == origin_of("2001:db8::ffff:2") != origin_of("2001:db8:0:1::1")
    assert origin_of("fe80::1%eth0") == "fe80::/64"
    assert origin_of("uid 1000") == "uid 1000"


def test_salts_of_unknown_users_come_from_the_stores_key() -> None:
    def salt(key: str, user: str = "nobody") -> bytes:
        sign_in = SignIn(Passwords(memory_kib=64))
        sign_in.take_accounts({"anna": ANNA}, key)
        return sign_in.scram_verifier(user).salt

    assert salt("key") == salt("key") != salt("other")
    assert salt("key") != salt("key", "another")
    assert salt("") != salt(""), "a store without a key has one of each process"
