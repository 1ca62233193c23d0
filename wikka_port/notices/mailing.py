"""Mails of notices: which are due, to whom, and that each is sent once.

    outgoing   due ms (13), 00, folded account, 00, place of the notice   o (10 days)   o:how    a notice to be mailed
               "lease"                                                                  o:owner  "UNTIL:TOKEN"

``fan_out`` puts a row for each watcher who wants mails: due at once, or for a digest after the next midnight (UTC).
So the rows of a digest are neighbours, and a repeated delivery puts the same rows.  The process with the lease sends:
    1. read     the rows that are due, at most MAILS_AT_ONCE, and their notices from ``inbox``
    2. judge    the account wants mails, and may read the page at this moment; else the rows are removed
    3. send     one mail of a notice, or one digest of an account's rows
    4. mark     the rows are removed
A crash before 3, or a mail server that cannot be reached, leaves the rows for the next run.  After a crash between the
server's answer and 4 the mail is sent again with the same Message-ID, which is made from account and notices: mail
programs show such a mail once.  Nothing at our end can do more: the server has no call that answers whether it has a
mail.

A fault of one mail holds up no other: its rows are due RETRY_MS later, and the run goes on.  Each row says so
(``o:later``) before its notice gets a row of the later time, and goes after that.  So a crash in between leaves rows
that the next run moves and does not mail.
    the server, or our end, refuses the mail     it is given up after ATTEMPTS
    the connection breaks, or the like           the server may be the cause, so two mails in a row end the run, and a
                                                 mail is given up after FAULTS_MAX, some four days as RFC 5321 has it
    anything else                                a fault of ours; it is given up after FAULTS_MAX, too

A run reads MAILS_AT_ONCE rows.  A digest at that cut is left to the next run, which has it whole: an account gets one
mail a day, and a further one only beyond DIGEST_NOTICES.

The lease keeps two processes from sending the same row at the same time.  It is renewed before each mail, for much
longer than a mail server may take to answer.

Neither text nor address is ever logged, nor what a server says (``mail.words_of``).
"""

from __future__ import annotations

import hashlib
import logging
import secrets
import smtplib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, Protocol

from wikka_port.accounts.directory import Directory
from wikka_port.accounts.mail import TIMEOUT_S, Mail, NoMailServer, words_of
from wikka_port.accounts.records import Account
from wikka_port.accounts.rows import Rows
from wikka_port.limits import DIGEST_NOTICES, MAILS_AT_ONCE
from wikka_port.notices.notice_rows import (
    DAILY,
    HOW,
    INBOX,
    OUTGOING,
    Notice,
    notice_of,
    outgoing_row,
    parse_outgoing_row,
    rows_of_account,
)
from wikka_port.store import StoreUnavailable

log = logging.getLogger(__name__)
EVERY_S: Final = 10.0
LEASE_MS: Final = 120_000
LEASE_ROW: Final = b"lease"  # after every time
OWNER: Final = b"o:owner"
RETRY_MS: Final = 3_600_000
ATTEMPTS: Final = 5  # of a mail that is refused
FAULTS_MAX: Final = 100  # attempts of a mail that fails otherwise
FAULTS_IN_ROW: Final = 2  # mails after which a run ends
_COUNT: Final = b"o:attempts"
_LATER: Final = b"o:later"  # "DUE:ATTEMPTS" of a row that is being put off
# Refusals of the very mail: by the server, by our end for want of an extension, or since it cannot be written.
_REFUSALS: Final = (
    smtplib.SMTPRecipientsRefused,
    smtplib.SMTPDataError,
    smtplib.SMTPNotSupportedError,
    ValueError,
)
assert LEASE_MS > 2 * TIMEOUT_S * 1_000, "a mail is sent well within the lease"
assert MAILS_AT_ONCE % DIGEST_NOTICES == 0, "digests of an account with more notices than a run reads are cut alike"


@dataclass(frozen=True, slots=True)
class Due:
    """Rows of ``outgoing`` that one mail serves."""

    account: bytes
    rows: Sequence[bytes]
    notices: Sequence[Notice]
    is_digest: bool
    attempts: int

    @property
    def message_id(self) -> str:
        """The same for the same account and notices, and without the account's name."""
        digest = hashlib.sha256(b"\n".join((self.account, *(one.place for one in self.notices))))
        return digest.hexdigest()[:32]


class Writer(Protocol):
    """Judges rights and writes the text; ``handlers.notice_mail``."""

    def letter(self, account: Account, due: Due) -> Mail | None:
        """Return the mail, or None if the account may read none of the pages, or wants no mail."""


class Sender:
    """Sends what is due.  Used by a single thread."""

    def __init__(
        self,
        rows: Rows,
        directory: Directory,
        writer: Writer,
        deliver: Callable[[Mail], None],
        clock_ms: Callable[[], int],
        on_step_done: Callable[[str], None] = lambda step: None,
    ) -> None:
        """``deliver`` raises what that of ``deliver_by`` does.

        Call ``on_step_done`` after each step, for tests that crash there.
        """
        self._rows = rows
        self._directory = directory
        self._writer = writer
        self._deliver = deliver
        self._clock = clock_ms
        self._on_step_done = on_step_done
        self._token = secrets.token_hex(8).encode()
        self._lease: bytes | None = None

    def run(self) -> int:
        """Send what is due, if no other process does; return the number of mails.  Raises StoreUnavailable."""
        if not self._take_lease():
            return 0
        sent = faults = 0
        for due in self._due():
            if faults == FAULTS_IN_ROW or not self._take_lease():
                break
            try:
                sent += self._send(due)
                faults = 0
            except NoMailServer as problem:
                log.warning("mails of notices are sent later: %s", words_of(problem))
                break
            except _REFUSALS as problem:
                faults = 0
                self._postpone(due, ATTEMPTS, problem)
            except OSError as problem:  # every SMTPException is one
                faults += 1
                self._postpone(due, FAULTS_MAX, problem)
            except StoreUnavailable:
                raise
            except Exception as problem:  # its text may have an address
                log.exception("a mail of notices failed: %s", type(problem).__name__, exc_info=False)
                self._postpone(due, FAULTS_MAX, problem)
        return sent

    def _take_lease(self) -> bool:
        """Take or renew the lease; return False if another process has it."""
        now = self._clock()
        stored = self._rows.row(OUTGOING, LEASE_ROW, [OWNER]).get(OWNER)
        until, _, owner = (stored or b"").partition(b":")
        if owner != self._token and until.isdigit() and int(until) > now:
            return False
        mine = b"%d:%s" % (now + LEASE_MS, self._token)
        return self._rows.change(OUTGOING, LEASE_ROW, {OWNER: stored}, {OWNER: mine})

    def _due(self) -> Iterator[Due]:
        end = b"%013d" % (self._clock() + 1)
        read = [one for one in list(self._rows.scan(OUTGOING, limit=MAILS_AT_ONCE)) if one[0] < end]
        for row, cells in read:
            if _LATER in cells:
                self._move(row, cells[_LATER], cells.get(HOW, b""))
        parsed = [(parse_outgoing_row(row), row, cells) for row, cells in read if _LATER not in cells]
        groups = [
            (account, how, [(place, row, cells) for (_, _, place), row, cells in group])
            for (_, account, how), group in groupby(parsed, key=lambda one: (*one[0][:2], one[2].get(HOW, b"")))
        ]
        if len(read) == MAILS_AT_ONCE and len(groups) > 1 and groups[-1][1] == DAILY:
            groups.pop()  # it may have more rows than were read
        for account, how, rows in groups:
            step = DIGEST_NOTICES if how == DAILY else 1
            for begin in range(0, len(rows), step):
                yield self._together(account, rows[begin : begin + step], how == DAILY)

    def _together(
        self, account: bytes, rows: Sequence[tuple[bytes, bytes, Mapping[bytes, bytes]]], is_digest: bool
    ) -> Due:
        keys = [rows_of_account(account)[0] + place for place, _, _ in rows]
        stored = self._rows.rows(INBOX, keys)
        notices = [one for key in keys if (one := notice_of(key, stored.get(key, {}))) is not None and key in stored]
        attempts = max(int(cells.get(_COUNT, b"0")) for _, _, cells in rows)
        return Due(account, [row for _, row, _ in rows], notices, is_digest, attempts)

    def _send(self, due: Due) -> int:
        account = self._directory.at(due.account) if due.notices else None
        mail = self._writer.letter(account, due) if account is not None else None
        self._on_step_done("written")
        if mail is not None:
            self._deliver(mail)
            self._on_step_done("sent")
        self._rows.delete_rows(OUTGOING, due.rows)
        self._on_step_done("marked")
        return mail is not None

    def _postpone(self, due: Due, most: int, problem: Exception) -> None:
        """Try a mail again later, its rows at one moment, or give it up after ``most`` attempts."""
        words = words_of(problem)
        if due.attempts + 1 >= most:
            log.warning("a mail of notices failed %d times, and is given up: %s", due.attempts + 1, words)
            self._rows.delete_rows(OUTGOING, due.rows)
            return
        log.warning("a mail of notices is sent later: %s", words)
        later = b"%d:%d" % (self._clock() + RETRY_MS, due.attempts + 1)
        for row in due.rows:
            self._rows.put(OUTGOING, row, {_LATER: later})
        for row in due.rows:
            self._move(row, later, DAILY if due.is_digest else b"")

    def _move(self, row: bytes, later: bytes, how: bytes) -> None:
        """Give the notice of a row that says ``later`` a row of that time; a second call changes nothing."""
        due_ms, _, attempts = later.partition(b":")
        _, account, place = parse_outgoing_row(row)
        self._rows.put(OUTGOING, outgoing_row(int(due_ms), account, place), {HOW: how, _COUNT: attempts})
        self._rows.delete(OUTGOING, row)


def start_sending(sender: Sender, stop: threading.Event | None = None, every_s: float = EVERY_S) -> threading.Thread:
    """Send in a thread of this process."""
    ended = stop or threading.Event()

    def work() -> None:
        while not ended.wait(every_s):
            try:
                sender.run()
            except StoreUnavailable:
                log.warning("mails of notices are sent later: the store does not answer")
            except Exception as problem:  # its text may have an address
                log.exception("mails of notices are sent later: %s", type(problem).__name__, exc_info=False)

    thread = threading.Thread(target=work, name="send-notices", daemon=True)
    thread.start()
    return thread
