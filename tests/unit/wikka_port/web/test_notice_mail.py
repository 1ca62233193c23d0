"""Mails of notices: sent once through a crash at each step, within the reader's rights, ended by one click."""

from __future__ import annotations

import re
import smtplib
from email.errors import HeaderParseError

import pytest

from tests.support.notice_post import PUBLIC, Crash, Post, by
from tests.support.smtp_server import SmtpServer
from tests.support.wiki_client import WikiClient
from wikka_port.accounts.mail import Mail, NoMailServer, deliver_by
from wikka_port.config import MailConfig
from wikka_port.limits import DIGEST_NOTICES, MAILS_AT_ONCE
from wikka_port.notices.mailing import ATTEMPTS, FAULTS_IN_ROW, FAULTS_MAX, LEASE_MS, RETRY_MS
from wikka_port.notices.notice_rows import DAILY, DIGEST_AFTER_MS, OUTGOING, due_ms, outgoing_row, parse_outgoing_row
from wikka_port.rights.rules import PageRights, Privilege
from wikka_port.store import StoreUnavailable
from wikka_port.urls import page_path

DAY_MS = 24 * 3600 * 1000


def test_a_mail_says_what_has_changed_and_how_to_get_no_more() -> None:
    post = Post()
    post.edit("His edit.", "why <b>")
    assert post.sender().run() == 1
    (mail,) = post.mails
    assert (mail.to, mail.subject) == ("ada@mail.example", "Wiki: Bob edited Home")
    assert f"{PUBLIC}/Home/diff?a=1&b=2" in mail.text
    assert "why <b>" in mail.text
    link = mail.headers["List-Unsubscribe"].strip("<>")
    assert link in mail.text
    assert mail.headers["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert re.fullmatch(r"notice\.[0-9a-f]{32}", mail.message_id)
    assert "ada" not in mail.message_id
    assert (post.sender().run(), post.waiting()) == (0, 0)


@pytest.mark.parametrize("step", ["written", "sent", "marked"])
def test_after_a_crash_at_each_step_each_notice_is_one_mail(step: str) -> None:
    post = Post()
    for number in range(3):
        post.edit(f"Edit {number}.")
    with pytest.raises(Crash):
        post.sender(step).run()
    assert post.sender().run() == 0, "the lease of the process that ended is not over"
    post.now += LEASE_MS + 1
    post.sender().run()
    assert len({mail.message_id for mail in post.mails}) == 3
    assert len(post.mails) == (4 if step == "sent" else 3), "in this window the same mail goes twice"
    assert len({(mail.message_id, mail.subject, mail.text) for mail in post.mails}) == 3
    assert post.waiting() == 0


def test_a_sender_whose_lease_is_over_sends_nothing_that_the_next_one_has_sent() -> None:
    """A mail server hangs for longer than the lease: what it has not answered may go twice, and nothing else."""
    post = Post()
    for number in range(3):
        post.edit(f"Edit {number}.")

    def hang(mail: Mail) -> None:
        post.mails.append(mail)
        if len(post.mails) == 1:
            post.now += LEASE_MS + 1
            assert post.sender().run() == 3

    assert post.sender(deliver=hang).run() == 1
    assert len(post.mails) == 4
    assert len({mail.message_id for mail in post.mails}) == 3


def test_a_digest_has_all_notices_of_a_day() -> None:
    post = Post("daily")
    post.edit("One.", "first")
    post.edit("Two.", "second")
    post.now = 1_750_000_200_000
    assert post.sender().run() == 0
    post.now += DAY_MS + LEASE_MS
    assert post.sender().run() == 1
    assert post.mails[0].subject == "Wiki: News for you"
    assert re.findall("first|second", post.mails[0].text) == ["second", "first"], "the newest first"


def test_of_a_page_that_was_hidden_meanwhile_nothing_is_mailed() -> None:
    post = Post()
    post.edit("WORTGEHEIM")
    post.wiki.rights.change("Home", PageRights(), "Bob", {Privilege.READ: "Bob"})
    post.wiki.rights.memory.forget()
    assert (post.sender().run(), post.mails, post.waiting()) == (0, [], 0)


def test_a_notice_that_was_deleted_and_an_account_without_an_address_get_no_mail() -> None:
    post = Post()
    post.edit("An edit.")
    account = post.directory.account("Ada")
    assert account is not None
    post.wiki.notices.clear(account.row)
    assert (post.sender().run(), post.waiting()) == (0, 0)
    post.edit("Another edit.")
    post.directory.set_email(account, "")
    post.now += LEASE_MS + 1
    assert (post.sender().run(), post.waiting()) == (0, 0)


def test_a_refused_mail_is_tried_again_and_given_up_and_others_do_not_wait(caplog: pytest.LogCaptureFixture) -> None:
    post = Post()
    tried = 0

    def refuse(mail: Mail) -> None:
        nonlocal tried
        tried += 1
        raise smtplib.SMTPRecipientsRefused({mail.to: (550, f"no {mail.to}".encode())})

    post.edit("An edit.")
    for _ in range(ATTEMPTS + 2):
        post.sender(deliver=refuse).run()
        post.now += RETRY_MS + LEASE_MS
    assert (tried, post.waiting()) == (ATTEMPTS, 0)
    assert "ada@mail.example" not in caplog.text
    refused = "SMTPRecipientsRefused 550 (the server refuses the recipient"
    assert caplog.text.count(f"a mail of notices is sent later: {refused}") == ATTEMPTS - 1
    assert f"a mail of notices failed {ATTEMPTS} times, and is given up: {refused}" in caplog.text


def test_a_server_that_is_away_loses_nothing(caplog: pytest.LogCaptureFixture) -> None:
    post = Post()
    post.edit("An edit.")

    def away(mail: Mail) -> None:
        raise NoMailServer(f"for {mail.to}") from ConnectionRefusedError()

    assert (post.sender(deliver=away).run(), post.waiting()) == (0, 1)
    assert "ada@mail.example" not in caplog.text
    assert "mails of notices are sent later: ConnectionRefusedError (the server cannot be reached" in caplog.text
    post.now += LEASE_MS + 1
    assert post.sender().run() == 1


@pytest.mark.parametrize("address", ["ädä@mail.example", "dropped@mail.example"])
def test_a_mail_that_the_server_cannot_take_holds_up_no_other(address: str, caplog: pytest.LogCaptureFixture) -> None:
    """The server knows no SMTPUTF8, and breaks the connection at one recipient; that mail is the first of each run."""
    post = Post()
    post.watcher("Aaron", address)
    post.edit("An edit.")
    with SmtpServer(drops="dropped@") as server:
        assert (post.tried_by(server), post.waiting()) == (1, 1)
        assert [mail["To"] for mail in server.mails] == ["ada@mail.example"]
        assert (post.tried_by(server), server.connections) == (0, 2), "it is not due for an hour"
        post.edit("Another edit.")
        post.now += RETRY_MS
        assert (post.tried_by(server), post.waiting()) == (1, 2)
    assert address not in caplog.text


def test_a_mail_that_fails_as_nobody_foresaw_holds_up_no_other_and_ends_no_run(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A header that cannot be written raises what no server raises; three such mails are the first of each run."""
    post = Post()
    for number in range(3):
        post.watcher(f"A{number}", f"odd{number}@mail.example")
    post.edit("An edit.")

    def deliver(mail: Mail) -> None:
        if mail.to.startswith("odd"):
            raise HeaderParseError(f"of {mail.to}")
        post.mails.append(mail)

    assert (post.sender(deliver=deliver).run(), post.waiting()) == (1, 3)
    assert [mail.to for mail in post.mails] == ["ada@mail.example"]
    assert "HeaderParseError" in caplog.text
    assert "odd0@" not in caplog.text
    post.now += LEASE_MS + 1
    assert (post.sender().run(), post.waiting()) == (0, 3), "they are not due for an hour"
    post.now += RETRY_MS
    assert (post.sender().run(), post.waiting()) == (3, 0)


def test_a_store_that_goes_away_costs_no_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    post = Post()
    post.edit("An edit.")

    def away(*_given: object) -> None:
        raise StoreUnavailable("memory", "it is away")

    with monkeypatch.context() as gone:
        gone.setattr(post.directory, "at", away)
        with pytest.raises(StoreUnavailable):
            post.sender().run()
    post.now += LEASE_MS + 1
    assert post.sender().run() == 1


def test_the_name_of_a_page_makes_neither_headers_nor_the_text_of_a_mail() -> None:
    """A header decodes encoded words, with the line breaks in them."""
    name = "=?utf-8?q?a=0D=0AReply-To:=20eve=40x.example=0D=0A=0D=0ASend=20it?="
    post = Post()
    post.wiki.save(name, "A text.", author="Ann", base=0)
    post.ada.post(page_path(name, "watch"), {**post.ada.form(page_path(name, "watch")), "do": "page"})
    post.bob.save(page_path(name), "His edit.")
    with SmtpServer() as server:
        assert post.tried_by(server) == 1
        (mail,) = server.mails
    assert mail["Reply-To"] is None
    assert mail.get_content().splitlines()[0] == f"Bob edited {name}"
    assert mail["Subject"] == f"Wiki: Bob edited {name.replace('=?', '= ?')}"


def test_a_mail_that_fails_again_and_again_is_given_up_after_days() -> None:
    post = Post()
    post.edit("An edit.")
    tried = 0

    def drop(mail: Mail) -> None:
        nonlocal tried
        tried += 1
        raise smtplib.SMTPServerDisconnected("gone")

    for _ in range(FAULTS_MAX + 2):
        post.sender(deliver=drop).run()
        post.now += RETRY_MS + LEASE_MS
    assert (tried, post.waiting()) == (FAULTS_MAX, 0)
    assert FAULTS_MAX * RETRY_MS > 4 * DAY_MS, "a server that breaks off for four days loses nothing"


def test_two_mails_in_a_row_that_fail_end_the_run_and_lose_nothing() -> None:
    post = Post()
    for number in range(5):
        post.watcher(f"A{number}", f"dropped{number}@mail.example")
    post.edit("An edit.")
    with SmtpServer(drops="dropped") as server:
        assert (post.tried_by(server), server.connections) == (0, FAULTS_IN_ROW)
        assert (post.tried_by(server), server.connections) == (0, 2 * FAULTS_IN_ROW), "the next run goes on behind them"
        assert (post.tried_by(server), server.connections) == (1, 6)
        assert post.waiting() == 5


def test_mails_that_fail_between_others_end_no_run() -> None:
    post = Post()
    for name, address in (("Aaron", "dropped1"), ("Abel", "abel"), ("Abigail", "dropped2")):
        post.watcher(name, f"{address}@mail.example")
    post.edit("An edit.")
    with SmtpServer(drops="dropped") as server:
        assert (post.tried_by(server), post.waiting()) == (2, 2)


def test_refused_mails_in_a_row_end_no_run() -> None:
    """The server answers, so the fault is theirs."""
    post = Post()
    for number in range(3):
        post.watcher(f"A{number}", f"ä{number}@mail.example")
    post.edit("An edit.")
    with SmtpServer() as server:
        assert (post.tried_by(server), post.waiting()) == (1, 3)


def test_a_server_that_cannot_be_reached_or_refuses_the_sign_in_ends_the_run() -> None:
    post = Post()
    post.watcher("Aaron", "aaron@mail.example")
    post.edit("An edit.")
    with SmtpServer() as server:
        config = MailConfig("127.0.0.1", server.port, "none", "user", "password", sender="wiki@wiki.example")
        post.now += LEASE_MS + 1
        assert post.sender(deliver=deliver_by(config)).run() == 0, "the server knows no way to sign in"
        assert server.connections == 1
    post.now += LEASE_MS + 1
    assert post.sender(deliver=by(server)).run() == 0, "nobody listens any more"
    post.now += LEASE_MS + 1
    assert (post.sender().run(), post.waiting()) == (2, 0), "the next run has all of them"


@pytest.mark.parametrize("farewell", [b"421 too busy", b""])
def test_a_mail_that_the_server_has_is_not_sent_again_for_its_farewell(farewell: bytes) -> None:
    post = Post()
    post.edit("An edit.")
    with SmtpServer(farewell=farewell) as server:
        assert (post.tried_by(server), post.waiting(), len(server.mails)) == (1, 0, 1)


@pytest.mark.parametrize("left", [0, 1])
def test_an_account_at_the_cut_of_a_run_gets_one_digest(left: int) -> None:
    """Also in a run that reads rows which a crash left while their mail was put off."""
    post = Post("daily")
    post.watcher("Zoe", "zoe@mail.example", "daily")
    notices = MAILS_AT_ONCE // 2 + 10
    assert notices > DIGEST_NOTICES
    for number in range(notices):
        post.edit(f"Edit {number}.")
    _, account, place = parse_outgoing_row(min(post.wiki.rows.data[OUTGOING]))
    for number in range(left):
        post.wiki.rows.put(OUTGOING, outgoing_row(number, account, place), {b"o:later": b"9000000000000:1"})
    post.now += DAY_MS
    for _ in range(4):
        post.now += LEASE_MS + 1
        post.sender().run()
    by_account = {name: [mail for mail in post.mails if mail.to.startswith(name)] for name in ("ada", "zoe")}
    sizes = {name: [mail.text.count("/Home/diff?") for mail in mails] for name, mails in by_account.items()}
    whole = [DIGEST_NOTICES, notices - DIGEST_NOTICES]
    assert sizes == {"ada": whole, "zoe": whole}, "a second one only beyond the bound of a mail"
    assert post.waiting() == left


def test_a_notice_of_the_last_moment_that_comes_after_midnight_is_in_the_digest_of_its_day() -> None:
    midnight = due_ms(1_750_000_000_000, DAILY) - DIGEST_AFTER_MS
    assert midnight % DAY_MS == 0
    assert due_ms(midnight - 1, DAILY) == midnight + DIGEST_AFTER_MS
    assert due_ms(midnight, DAILY) == midnight + DAY_MS + DIGEST_AFTER_MS
    post = Post("daily")
    post.edit("One.")
    post.now = midnight + 5_000
    assert post.sender().run() == 0
    post.edit("Two.")
    post.now = midnight + DIGEST_AFTER_MS + LEASE_MS
    assert (post.sender().run(), post.mails[0].text.count("/Home/diff?")) == (1, 2)


def test_a_digest_that_failed_is_one_digest_again() -> None:
    post = Post("daily")
    post.edit("One.")
    post.edit("Two.")
    post.now += DAY_MS
    post.tick_ms = 1
    first: list[Mail] = []

    def refuse(mail: Mail) -> None:
        first.append(mail)
        raise smtplib.SMTPRecipientsRefused({mail.to: (450, b"later")})

    post.sender(deliver=refuse).run()
    post.now += RETRY_MS + LEASE_MS
    assert post.sender().run() == 1
    assert post.mails[0].message_id == first[0].message_id


def test_one_click_ends_the_mails_without_a_sign_in() -> None:
    post = Post()
    post.edit("An edit.")
    post.sender().run()
    link = post.mails[0].headers["List-Unsubscribe"].strip("<>").removeprefix(PUBLIC)
    stranger = post.web.other_visitor()
    assert "No more mails" in stranger.get(link).text
    account = post.directory.account("Ada")
    assert account is not None
    assert account.settings.mail == "now", "a program that opens the links of a mail ends nothing"
    for bad in (link[:-1] + ("0" if link[-1] != "0" else "1"), "/-/unsubscribe", "/-/unsubscribe?token=x.y"):
        assert stranger.post(bad, {"List-Unsubscribe": "One-Click"}).status_code == 404
    foreign = stranger.post(link, {}, headers={"Origin": "https://evil.example"})
    assert foreign.status_code == 403
    assert stranger.post(link, {"List-Unsubscribe": "One-Click"}).status_code == 200
    account = post.directory.account("Ada")
    assert account is not None
    assert account.settings.mail == ""
    post.edit("Another edit.")
    assert (post.sender().run(), post.waiting()) == (0, 0)
    assert "Another edit" not in "".join(mail.text for mail in post.mails)


def test_the_settings_offer_mails_only_where_the_wiki_sends_some() -> None:
    assert 'name="mail"' in Post().ada.get("/-/settings").text
    without = WikiClient().signed_in("Ada").get("/-/settings").text
    assert 'name="mail"' not in without
    assert "This wiki sends no mails." in without
