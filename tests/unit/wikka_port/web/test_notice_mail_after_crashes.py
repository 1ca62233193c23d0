"""Mails of notices through a crash before each write: of a mail that is put off, and of the settings of mails."""

from __future__ import annotations

import re
import smtplib
from collections.abc import Callable
from functools import partial

import pytest

from tests.support.memory_notices import derive_watchers
from tests.support.notice_post import Crash, Post
from wikka_port.accounts.mail import Mail
from wikka_port.accounts.settings import settings_of
from wikka_port.notices.mailing import LEASE_MS, RETRY_MS
from wikka_port.notices.notice_rows import WATCHES


class Falls:
    """The process ends before the write of that number; counts writes, but for those of the lease."""

    def __init__(self, post: Post, number: int, *writes: str) -> None:
        self.post, self.left, self.writes = post, number, writes
        self.usual = post.wiki.rows.asked

    def __enter__(self) -> None:
        self.post.wiki.rows.asked = self.asked

    def __exit__(self, *_: object) -> None:
        self.post.wiki.rows.asked = self.usual

    def asked(self, what: str) -> None:
        if what in self.writes:
            self.left -= 1
            if self.left < 0:
                raise Crash
        self.usual(what)


def did_fall(work: Callable[[], object]) -> bool:
    try:
        work()
    except Crash:
        return True
    return False


@pytest.mark.parametrize("how", ["now", "daily"])
def test_a_crash_while_a_mail_is_put_off_sends_no_notice_twice(how: str) -> None:
    """At each write: the next process has all notices, each in one mail."""

    def refuse(mail: Mail) -> None:
        raise smtplib.SMTPRecipientsRefused({mail.to: (450, b"later")})

    number, fell = 0, True
    while fell:
        post = Post(how)
        for text in ("One.", "Two.", "Three."):
            post.edit(text)
        with Falls(post, number, "rows.put", "rows.delete", "rows.delete_rows"):
            fell = did_fall(post.sender(deliver=refuse).run)
        for pause_ms in (0, RETRY_MS, RETRY_MS):
            post.now += pause_ms + LEASE_MS + 1
            post.sender().run()
        told = [found for mail in post.mails for found in re.findall(r"/Home/diff\?a=\d&b=(\d)", mail.text)]
        assert sorted(told) == ["2", "3", "4"], number
        assert post.waiting() == 0
        number += 1
    assert number > 6, "there were writes to fall before"


def test_settings_of_mails_that_a_crash_cuts_short_are_not_half_set() -> None:
    """At each write: if the form shows what was chosen then notices are mailed, else saving it again does it."""
    number, fell = 0, True
    while fell:
        post = Post("")
        form = {**post.ada.form("/-/settings"), "do": "looks", "mail": "now"}
        with Falls(post, number, "rows.put", "rows.change", "rows.delete"):
            fell = did_fall(partial(post.ada.post, "/-/settings", form))
        derive_watchers(post.wiki.rows, dict(post.wiki.rows.data[WATCHES]))  # the trigger goes on
        account = post.directory.account("Ada")
        assert account is not None
        if account.settings.mail != "now":
            assert post.ada.post("/-/settings", form).status_code == 303
        post.edit("An edit.")
        assert post.sender().run() == 1, number
        number += 1
    assert number > 2, "there were writes to fall before"


def test_watches_that_lag_behind_the_settings_follow_when_these_are_saved() -> None:
    """As a crash of an older version left them."""
    post = Post("")
    account = post.directory.account("Ada")
    assert account is not None
    post.directory.set_settings(account, settings_of({"mail": "now"}))
    form = {**post.ada.form("/-/settings"), "do": "looks", "mail": "now"}
    assert post.ada.post("/-/settings", form).status_code == 303
    post.edit("An edit.")
    assert post.sender().run() == 1
