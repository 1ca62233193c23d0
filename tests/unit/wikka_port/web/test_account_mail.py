"""Mail of accounts: confirmed, reset, changed; and answers that do not tell whose address it is."""

from __future__ import annotations

import email
import email.policy
import errno
import re
import smtplib
import socket
import ssl
from collections.abc import Iterator
from functools import partial

import pytest
from werkzeug.test import TestResponse

from tests.support.smtp_server import SmtpServer
from tests.support.wiki_client import WikiClient
from wikka_port.accounts.directory import Directory
from wikka_port.accounts.mail import BEGINS_S, Mail, NoMailServer, Outbox, message_of
from wikka_port.config import MailConfig
from wikka_port.store import StoreUnavailable

PASSWORD = "correct horse battery"
PUBLIC = "https://wiki.example"
ADDRESS = "ada@example.org"
SAYS = f"5.1.1 <{ADDRESS}> is unknown here".encode()


class MailedWiki(WikiClient):
    smtp: SmtpServer

    def mails(self) -> list[tuple[str, str]]:
        """(recipient, text), all that was sent until now."""
        self.application._site.accounts.registration.outbox.wait()  # type: ignore[attr-defined]
        return [(mail["To"], mail.get_content()) for mail in self.smtp.mails]

    def link(self) -> str:
        """The path in the newest mail."""
        found = re.findall(rf"{PUBLIC}(/-/\S+token=\S+)", self.mails()[-1][1])
        assert len(found) == 1
        return str(found[0])

    def follow(self, path: str, **fields: str) -> TestResponse:
        """Open it, and press its button, even where it has none any more."""
        where, _, token = path.partition("?token=")
        return self.post(where, {**self.form(path), "token": token, **fields})

    def register(self, name: str, email: str) -> TestResponse:
        fields = {"user": name, "password": PASSWORD, "email": email}
        return self.post("/-/register", {**self.form("/-/register"), **fields})

    def sign_in(self, name: str, password: str = PASSWORD) -> TestResponse:
        return self.post("/-/login", {**self.form("/-/login"), "user": name, "password": password})


def mailed(smtp: SmtpServer, **config: str) -> MailedWiki:
    server = MailConfig("127.0.0.1", smtp.port, tls="none", sender="wiki@wiki.example")
    web = MailedWiki(mail=server, public_url=PUBLIC, **config)
    web.smtp = smtp
    return web


@pytest.fixture
def web() -> Iterator[MailedWiki]:
    with SmtpServer() as smtp:
        yield mailed(smtp)


def test_an_account_begins_once_its_address_is_confirmed(web: MailedWiki) -> None:
    assert "A link was sent" in web.register("Ada", "ada@example.org").text
    assert "confirm your mail" in web.sign_in("Ada").text
    assert [recipient for recipient, _ in web.mails()] == ["ada@example.org"]
    path = web.link()
    assert "Sign in" in web.get(path).text
    assert "confirm your mail" in web.sign_in("Ada").text, "looking at the link does nothing"
    assert "is confirmed" in web.follow(path).text
    assert web.sign_in("ada@EXAMPLE.org").status_code == 303
    assert web.follow(path).status_code == 403, "it was good once"


def test_a_link_is_good_for_half_an_hour(web: MailedWiki) -> None:
    web.register("Ada", "ada@example.org")
    path = web.link()
    web.now += 30 * 60
    assert web.follow(path).status_code == 403


def test_with_approval_a_confirmed_account_waits() -> None:
    with SmtpServer() as smtp:
        web = mailed(smtp, registration="approval")
        web.register("Ada", "ada@example.org")
        assert "let you in" in web.follow(web.link()).text
        assert "approval" in web.sign_in("Ada").text


def test_addresses_in_mails_are_of_the_public_address_whatever_the_host_says(web: MailedWiki) -> None:
    csrf = web.form("/-/register")
    fields = {**csrf, "user": "Ada", "password": PASSWORD, "email": "ada@example.org"}
    web.client.post("/-/register", data=fields, headers={"Host": "localhost:6666"})
    assert "6666" not in web.mails()[-1][1]
    assert PUBLIC in web.mails()[-1][1]


def test_a_reset_sets_a_password_once_and_ends_all_sessions(web: MailedWiki) -> None:
    web.register("Ada", "ada@example.org")
    web.follow(web.link())
    web.sign_in("Ada")
    other = web.other_visitor()
    other.post("/-/reset", {**other.form("/-/reset"), "user": "Ada"})
    path = other.link()
    assert other.follow(path, password="short").status_code == 400, "and the link is still good"
    assert other.follow(path, password="a new good one").status_code == 200
    assert 'class="me"' not in web.get("/-/pageindex").text
    assert other.follow(path, password="another one yet").status_code == 403
    assert web.sign_in("Ada").status_code == 403
    assert web.sign_in("Ada", "a new good one").status_code == 303
    assert "password" in web.mails()[-1][1], "the owner is told of it"


def test_a_link_of_before_the_password_changed_is_no_good(web: MailedWiki) -> None:
    web.register("Ada", "ada@example.org")
    web.follow(web.link())
    paths = []
    for _ in range(2):
        web.post("/-/reset", {**web.form("/-/reset"), "user": "Ada"})
        paths.append(web.link())
    assert web.follow(paths[1], password="a new good one").status_code == 200
    assert web.follow(paths[0], password="a thief's one").status_code == 403


def test_a_new_address_counts_once_it_is_confirmed(web: MailedWiki) -> None:
    web.register("Ada", "ada@example.org")
    web.follow(web.link())
    web.sign_in("Ada")
    fields = {**web.form("/-/settings"), "do": "mail", "email": "ada@new.example"}
    assert web.post("/-/settings", {**fields, "current": "wrong"}).status_code == 403
    assert web.post("/-/settings", {**fields, "current": PASSWORD}).status_code == 200
    directory = Directory(web.wiki.rows, lambda: 0)
    assert directory.account("Ada").email == "ada@example.org"  # type: ignore[union-attr]
    web.follow(web.link())
    assert directory.account("Ada").email == "ada@new.example"  # type: ignore[union-attr]
    assert directory.by_address("ada@example.org") is None


def asked_for_address(web: MailedWiki, email: str, password: str = PASSWORD) -> str:
    """The path in the mail to the new address."""
    fields = {**web.form("/-/settings"), "do": "mail", "email": email, "current": password}
    assert web.post("/-/settings", fields).status_code == 200
    assert web.mails()[-1][0] == email
    return web.link()


def test_a_new_address_of_before_the_password_changed_is_no_good(web: MailedWiki) -> None:
    """Who had learnt the password could take the account back with a mail that he kept."""
    web.register("Ada", "ada@example.org")
    web.follow(web.link())
    thief = web.other_visitor()
    thief.sign_in("Ada")
    kept = asked_for_address(thief, "thief@example.org")
    web.sign_in("Ada")
    fields = {**web.form("/-/settings"), "do": "password", "current": PASSWORD, "password": "a new good one"}
    assert web.post("/-/settings", fields).status_code == 200
    assert thief.follow(kept).status_code == 403
    account = Directory(web.wiki.rows, lambda: 0).account("Ada")
    assert account is not None
    assert account.email == "ada@example.org"


def test_of_two_new_addresses_the_one_that_is_confirmed_counts(web: MailedWiki) -> None:
    """The link to an address that was a slip is of no use to its owner behind the right one."""
    web.register("Ada", "ada@example.org")
    web.follow(web.link())
    web.sign_in("Ada")
    slip = asked_for_address(web, "adda@example.org")
    right = asked_for_address(web, "ada@new.example")
    assert web.follow(right).status_code == 200
    assert web.follow(slip).status_code == 403
    assert Directory(web.wiki.rows, lambda: 0).account("Ada").email == "ada@new.example"  # type: ignore[union-attr]


def test_the_address_of_before_is_told_that_another_one_counts(web: MailedWiki) -> None:
    web.register("Ada", "ada@example.org")
    web.follow(web.link())
    web.sign_in("Ada")
    web.follow(asked_for_address(web, "ada@new.example"))
    recipient, text = web.mails()[-1]
    assert recipient == "ada@example.org"
    assert "tell an administrator" in text
    assert "ada@new.example" not in text


def answer_and_work(web: MailedWiki, path: str, fields: dict[str, str]) -> tuple[int, str, list[str]]:
    """Of the request itself: what the mail's thread does is nobody's to see."""
    form = web.form(path)
    web.mails()
    web.wiki.calls.clear()
    held = web.application._site.accounts.registration.outbox._waiting  # type: ignore[attr-defined]
    put = held.put_nowait
    letters = []
    held.put_nowait = letters.append  # the letter is written later
    answer = web.post(path, {**form, **fields})
    calls = list(web.wiki.calls)
    held.put_nowait = put
    for letter in letters:
        put(letter)
    web.mails()
    text = re.sub('name="csrf" value="[^"]*"', "", answer.text)
    for value in fields.values():
        text = text.replace(value, "")
    return answer.status_code, text, calls


def test_a_reset_tells_nobody_who_has_an_account(web: MailedWiki) -> None:
    web.register("Ada", "ada@example.org")
    web.follow(web.link())
    sent = len(web.mails())
    seen = [
        answer_and_work(web, "/-/reset", {"user": user})
        for user in ("Ada", "Nix", "ada@example.org", "nix@example.org")
    ]
    assert all(one == seen[0] for one in seen)
    assert seen[0][0] == 200
    assert [recipient for recipient, _ in web.mails()[sent:]] == ["ada@example.org"] * 2


def test_a_registration_tells_nobody_whose_address_is_known(web: MailedWiki) -> None:
    web.register("Ada", "ada@example.org")
    web.follow(web.link())
    sent = len(web.mails())
    seen = [
        answer_and_work(web, "/-/register", {"user": user, "email": email, "password": PASSWORD})
        for user, email in (("Eve", "eve@example.org"), ("Bob", "ada@example.org"))
    ]
    assert seen[0][:2] == seen[1][:2]
    put, changed, refused = (
        [steps.count(what) for _, _, steps in seen] for what in ("rows.put", "rows.change", "rows.refused")
    )
    writes = [a + b - c for a, b, c in zip(put, changed, refused, strict=True)]
    assert writes[0] == writes[1], "as many are on disk"
    assert [recipient for recipient, _ in web.mails()[sent:]] == ["eve@example.org", "ada@example.org"]
    assert 'account "Ada" already' in web.mails()[-1][1]
    for name in ("Eve", "Bob"):
        assert web.register(name, "new@example.org").status_code == 409, "both names are taken for now"
        assert "confirm your mail" in web.sign_in(name).text


def test_a_name_whose_address_nobody_confirmed_is_free_after_a_day(web: MailedWiki) -> None:
    web.register("Ada", "ada@example.org")
    web.now += 24 * 3600 + 1
    assert "A link was sent" in web.register("Ada", "eve@example.org").text
    web.follow(web.link())
    directory = Directory(web.wiki.rows, lambda: 0)
    account = directory.account("Ada")
    assert account is not None
    assert (account.email, account.status) == ("eve@example.org", "active")
    assert directory.by_address("ada@example.org") is None


def test_a_letter_is_not_begun_while_its_answer_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or it would take the interpreter from the answer, which then tells by its time that there is somebody."""
    now, begun = [100.0], []
    monkeypatch.setattr("wikka_port.accounts.mail.time.monotonic", lambda: now[0])
    outbox = Outbox(lambda mail: None)
    paused: list[float] = []
    monkeypatch.setattr(outbox._hurry, "wait", lambda seconds: paused.append(seconds) or not begun)
    outbox.post(lambda: begun.append(now[0]))
    outbox.wait()
    assert paused == [BEGINS_S]
    assert begun == [100.0]


def test_no_more_than_a_few_mails_to_one(web: MailedWiki) -> None:
    web.register("Ada", "ada@example.org")
    web.follow(web.link())
    sent = len(web.mails())
    for _ in range(6):
        assert web.post("/-/reset", {**web.form("/-/reset"), "user": "ada"}).status_code == 200
    assert len(web.mails()) - sent == 3


def no_server(cause: Exception) -> NoMailServer:
    problem = NoMailServer(f"as {ADDRESS}")
    problem.__cause__ = cause
    return problem


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (OSError(f"nobody listens at {ADDRESS}"), "OSError (the server cannot be reached: see --smtp"),
        (ConnectionRefusedError(errno.ECONNREFUSED, ADDRESS), "ConnectionRefusedError ECONNREFUSED (the server cannot"),
        (no_server(socket.gaierror(-2, ADDRESS)), "gaierror -2 (the server cannot be reached"),
        (no_server(ssl.SSLCertVerificationError(1, ADDRESS)), "(TLS with the server fails: see --smtp-tls"),
        (no_server(smtplib.SMTPAuthenticationError(535, SAYS)), "SMTPAuthenticationError 535 (the server refuses th"),
        (smtplib.SMTPRecipientsRefused({ADDRESS: (550, SAYS)}), "SMTPRecipientsRefused 550 (the server refuses the r"),
        (smtplib.SMTPSenderRefused(553, SAYS, ADDRESS), "SMTPSenderRefused 553 (the server refuses the s"),
        (smtplib.SMTPDataError(554, SAYS), "SMTPDataError 554 (the server refuses the mail"),
        (smtplib.SMTPServerDisconnected(ADDRESS), "SMTPServerDisconnected (the server broke"),
        (smtplib.SMTPNotSupportedError(ADDRESS), "SMTPNotSupportedError (the server lacks"),
        (ValueError(ADDRESS), "ValueError (the mail cannot be written"),
        (KeyError(ADDRESS), "a mail was not sent: KeyError"),
    ],
    ids=lambda given: type(given).__name__ if isinstance(given, Exception) else "",
)
def test_a_mail_that_cannot_be_sent_is_logged_by_class_and_code_alone(
    problem: Exception, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither its link nor what the server says of people; and the next mail is sent."""
    sent = []

    def deliver(mail: Mail) -> None:
        if mail.to == ADDRESS:
            raise problem
        sent.append(mail.to)

    def away() -> Mail | None:
        raise StoreUnavailable("memory", "it is away")

    outbox = Outbox(deliver)
    outbox.post(lambda: Mail(ADDRESS, "subject", "a secret link"))
    outbox.post(away)
    outbox.post(lambda: Mail("eve@example.org", "subject", "a secret link"))
    outbox.wait()
    assert words in caplog.text
    assert "it is away" in caplog.text
    for said in ("secret link", ADDRESS, "ada@"):
        assert said not in caplog.text
    assert sent == ["eve@example.org"]


def test_whatever_one_mail_does_the_next_one_is_sent(caplog: pytest.LogCaptureFixture) -> None:
    """A stranger's address made the parser of headers fail, and with it the thread of all mails."""
    sent: list[str] = []

    def deliver(mail: Mail) -> None:
        if mail.to.startswith("odd"):
            raise IndexError(f"list index out of range for {mail.to}")
        sent.append(mail.to)

    outbox = Outbox(deliver)
    for address in ("odd@example.org", "ada@example.org"):
        outbox.post(partial(Mail, address, "subject", "text"))
    outbox._hurry.set()
    with outbox._waiting.all_tasks_done:
        assert outbox._waiting.all_tasks_done.wait_for(lambda: not outbox._waiting.unfinished_tasks, 30)
    assert sent == ["ada@example.org"]
    assert "IndexError" in caplog.text
    assert "odd@example.org" not in caplog.text


@pytest.mark.parametrize("address", ["=?utf-8?b?'}?=@mail.example", "=?utf-8?q?eve?=@mail.example"])
def test_an_address_that_a_header_would_decode_is_none(web: MailedWiki, address: str) -> None:
    refused = web.register("Eve", address)
    assert (refused.status_code, "This is no mail address." in refused.text) == (400, True)
    with pytest.raises(ValueError, match="encoded word"):
        message_of(Mail(address, "subject", "text"), "wiki@wiki.example")


@pytest.mark.parametrize(
    "words",
    [
        *("=?utf-8?q?a=0ABcc:=20eve=40x.example?=", "=?utf-8?q?a=0D=0A=0D=0ASend=20it?= b", "=?utf-8?b?!?="),
        *("=?=?utf-8?q?a=0D=0AB:=20c?=", "a\r\nBcc: b", "1 =? 2", "Größe 潮"),
    ],
)
def test_the_words_of_a_subject_stay_words(words: str) -> None:
    mail = Mail("ada@mail.example", f"Wiki: Bob edited {words}", "The text.", "id")
    given = message_of(mail, "wiki@wiki.example").as_bytes()
    read = email.message_from_bytes(given, policy=email.policy.default)
    assert read.get_content() == "The text.\n"
    assert {"Bcc", "B"}.isdisjoint(read.keys())
    assert read["Subject"] == f"Wiki: Bob edited {' '.join(words.split()).replace('=?', '= ?')}"
