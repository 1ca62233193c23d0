"""A wiki of which somebody watches a page, and the mails of its notices, by senders that may fall after a step."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.smtp_server import SmtpServer
from tests.support.wiki_client import WikiClient
from wikka_port.accounts.directory import Directory
from wikka_port.accounts.mail import Mail, deliver_by
from wikka_port.accounts.settings import settings_of
from wikka_port.config import MailConfig
from wikka_port.notice_mail import NoticeWriter
from wikka_port.notices.mailing import LEASE_MS, LEASE_ROW, Sender
from wikka_port.notices.notice_rows import OUTGOING
from wikka_port.texts.catalogue import Languages

PUBLIC = "https://wiki.example"
MAILED = MailConfig("127.0.0.1", 1, "none", sender="wiki@wiki.example")


class Crash(BaseException):
    """The process ends here."""


class Post:
    """A wiki whose user Ada watches Home, and what its senders deliver."""

    def __init__(self, how: str = "now") -> None:
        self.web = WikiClient(edit_burst=10_000, mail=MAILED, public_url=PUBLIC)
        self.wiki = self.web.wiki
        self.wiki.save("Home", "A text.", author="Ann", base=0)
        self.directory = Directory(self.wiki.rows, lambda: 0)
        self.ada, self.bob = self.watcher("Ada", "ada@mail.example", how), self.web.signed_in("Bob")
        self.now = 1_760_000_000_000
        self.tick_ms = 0  # the clock goes on by it with each look
        self.mails: list[Mail] = []

    def watcher(self, name: str, address: str, how: str = "now") -> WikiClient:
        """Make an account that watches Home and gets mails."""
        browser = self.web.signed_in(name)
        account = self.directory.account(name)
        assert account is not None
        self.directory.set_email(account, address)
        self.directory.set_settings(account, settings_of({"mail": how}))
        browser.post("/Home/watch", {**browser.form("/Home/watch"), "do": "page"})
        return browser

    def edit(self, text: str, note: str = "") -> None:
        self.bob.save("/Home", text, note=note)

    def sender(self, fall: str = "", deliver: Callable[[Mail], None] | None = None) -> Sender:
        def done(step: str) -> None:
            if step == fall:
                raise Crash

        languages = Languages.found(None)
        writer = NoticeWriter(self.wiki, self.web.config, self.directory, languages, PUBLIC)
        return Sender(
            self.wiki.rows,  # type: ignore[arg-type]
            self.directory,
            writer,
            deliver or self.mails.append,
            self.clock_ms,
            done,
        )

    def clock_ms(self) -> int:
        self.now += self.tick_ms
        return self.now

    def tried_by(self, server: SmtpServer) -> int:
        """Run a sender that mails by ``server``, after every lease; return how many mails the server took."""
        self.now += LEASE_MS + 1
        return self.sender(deliver=by(server)).run()

    def waiting(self) -> int:
        return sum(row != LEASE_ROW for row in self.wiki.rows.data.get(OUTGOING, {}))


def by(server: SmtpServer) -> Callable[[Mail], None]:
    return deliver_by(MailConfig("127.0.0.1", server.port, "none", sender="wiki@wiki.example"))
