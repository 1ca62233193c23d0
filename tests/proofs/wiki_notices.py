"""python -m tests.proofs.wiki_notices: 10,000 watchers delay no other trigger, and each notice is mailed once.

    lag      a page with ``--watchers`` watchers is edited, while edits of other pages are timed from their save until
             the trigger ``wiki-indexes`` has written them; the same edits are timed before without watchers.  The
             99th percentile may be higher by DELAY_MS at most.  The list is read every POLL_S: requests without a
             pause would be what delays triggers, since the store puts them before all background work
    mails    a process sends notices to a mail server of this test and is killed -9 ``--kills`` times, at random moments
             and right after the server's answer.  In the end each notice has reached the server, by its Message-ID, and
             mails of one Message-ID are equal; the number of repeated ones is printed

The exit status is 0 if both hold.  The seed decides the moments of the kills.
"""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

import click
from rich.console import Console

from columnar.client import Connection
from tests.proofs.verdict import end_report
from tests.support.smtp_server import SmtpServer
from tests.support.standalone_store import StoreProcess
from wikka_port import schema
from wikka_port.accounts.directory import Directory
from wikka_port.accounts.settings import settings_of
from wikka_port.config import MailConfig, WikiConfig
from wikka_port.names import page_key
from wikka_port.notice_mail import make_sender
from wikka_port.notices import mailing
from wikka_port.notices.notice_rows import (
    EDIT,
    INBOX,
    OUTGOING,
    WATCHERS,
    Notice,
    id_of_edit,
    inbox_row,
    page_target,
    watcher_row,
)
from wikka_port.pages import Saved, Wiki, clock_ms
from wikka_port.schema import Head

DELAY_MS: Final = 20.0
SETTLE_S: Final = 120.0
POLL_S: Final = 0.002
LEASE_MS: Final = 1_500  # of the killed senders: a test cannot wait two minutes for each


@dataclass(frozen=True, slots=True)
class Lag:
    before_ms: float  # p99 of another trigger without a fan-out
    during_ms: float
    fan_out_s: float
    notices: int
    edits: int  # timed beside the fan-out


def p99(times_ms: list[float]) -> float:
    return statistics.quantiles(times_ms, n=100)[98] if len(times_ms) > 1 else times_ms[0]


def measure_lag(wiki: Wiki, watchers: int, edits: int) -> Lag:
    wiki.save("Watched", "A text.", author="Ann", base=0)
    for number in range(edits):
        wiki.save(f"Other {number}", "A text.", author="Ann", base=0)
    assert wiki.settle("", SETTLE_S)
    _put_watchers(wiki, watchers)
    assert wiki.settle("", SETTLE_S)
    before = [_lag_ms(wiki, number, 1) for number in range(edits)]
    began = time.monotonic()
    saved = wiki.save("Watched", "An edit.", author="Bob", base=1, notify="Bob")
    last = _last_row(wiki, watchers, saved)
    during, bases = list[float](), [1] * edits
    while not wiki.rows.row(INBOX, last):  # an edit counts only if the fan-out was not over when it began
        number = len(during) % edits
        bases[number] += 1
        during.append(_lag_ms(wiki, number, bases[number]))
    took_s = time.monotonic() - began
    assert wiki.settle("", SETTLE_S)
    found = sum(1 for _ in wiki.rows.scan(INBOX))
    return Lag(p99(before), p99(during or before), took_s, found, len(during))


def _last_row(wiki: Wiki, watchers: int, saved: Saved) -> bytes:
    """Return the row of ``inbox`` that the fan-out of a save writes last."""
    history = page_key("Watched")
    head = Head(saved.number, saved.token.encode())
    notice = Notice(saved.time_ms, id_of_edit(history, head), EDIT, "Watched", history, head)
    return inbox_row(b"user%06d" % (watchers - 1), notice)


def _put_watchers(wiki: Wiki, watchers: int) -> None:
    target = page_target(page_key("Watched"))

    def put(connection: Connection) -> None:
        with connection.table(WATCHERS).batch(batch_size=500) as batch:
            for number in range(watchers):
                batch.put(watcher_row(target, b"user%06d" % number), {b"w:minor": b"", b"w:mail": b""})

    wiki.store.run(put)


def _lag_ms(wiki: Wiki, number: int, base: int) -> float:
    """Return the time from a save's answer until its entry stands in the list of changes."""
    saved = wiki.save(f"Other {number}", f"Edit {base}.", author="Bob", base=base)
    row = schema.change_row(page_key(f"Other {number}"), saved.time_ms, saved.number)
    began = time.monotonic()
    while not wiki.rows.row(schema.CHANGES, row):
        time.sleep(POLL_S)
        if time.monotonic() - began > SETTLE_S:
            raise TimeoutError("the list of changes does not get an edit")
    return (time.monotonic() - began) * 1_000


# --- mails -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Mailed:
    kills: int
    notices: int
    different: int  # Message-IDs
    repeated: int  # mails that came again
    unequal: int  # mails of one Message-ID that differ


def send_until_killed(store_port: int, smtp_port: int) -> None:
    """Send in a loop; the process is killed from outside."""
    mailing.LEASE_MS = LEASE_MS  # type: ignore[misc]
    wiki = Wiki("127.0.0.1", store_port)
    mail = MailConfig("127.0.0.1", smtp_port, "none", sender="wiki@wiki.example")
    sender = make_sender(wiki, WikiConfig(mail=mail, public_url="https://wiki.example"))
    print("sending", flush=True)
    while True:
        sender.run()
        time.sleep(0.05)


def kill_senders(wiki: Wiki, store_port: int, kills: int, each: int, seed: int) -> Mailed:
    """Let notices arise and kill the process that mails them, until all are mailed."""
    random = Random(seed)
    directory = Directory(wiki.rows, clock_ms)
    account = directory.make("Ada", status="active", email="ada@mail.example")
    settings = settings_of({"mail": "now"})
    directory.set_settings(account, settings)
    wiki.save("Mailed", "A text.", author="Ann", base=0)
    wiki.notices.watching.begin(account.row, page_target(page_key("Mailed")), "Mailed", settings)
    assert wiki.settle("", SETTLE_S)
    base = 1
    with SmtpServer() as smtp:
        for kill in range(kills + 1):
            for _ in range(each):
                wiki.save("Mailed", f"Edit {base}.", author="Bob", base=base, notify="Bob")
                base += 1
            assert wiki.settle("", SETTLE_S)
            sender = _start_sender(store_port, smtp.port)
            try:
                if kill == kills:
                    _await_empty(wiki)
                else:
                    smtp.next_mail(60)
                    if kill % 2:
                        time.sleep(random.uniform(0, 0.05))
            finally:
                sender.send_signal(signal.SIGKILL)
                sender.wait()
                sender.stdout.close()  # type: ignore[union-attr]
        mails = list(smtp.mails)
    counts = Counter(str(mail["Message-ID"]) for mail in mails)
    texts = {(str(mail["Message-ID"]), str(mail["Subject"]), mail.get_content()) for mail in mails}
    return Mailed(kills, base - 1, len(counts), len(mails) - len(counts), len(texts) - len(counts))


def _start_sender(store_port: int, smtp_port: int) -> subprocess.Popen[bytes]:
    code = f"from tests.proofs.wiki_notices import send_until_killed; send_until_killed({store_port}, {smtp_port})"
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=dict(os.environ))


def _await_empty(wiki: Wiki) -> None:
    deadline = time.monotonic() + SETTLE_S
    while any(row != mailing.LEASE_ROW for row, _ in wiki.rows.scan(OUTGOING)):
        if time.monotonic() > deadline:
            raise TimeoutError("notices stay unsent")
        time.sleep(0.1)


@click.command()
@click.option("--watchers", default=10_000, show_default=True)
@click.option("--edits", default=100, show_default=True, help="Timed edits of other pages, before and during.")
@click.option("--kills", default=20, show_default=True)
@click.option("--seed", default=20261129, show_default=True)
def main(watchers: int, edits: int, kills: int, seed: int) -> None:
    """Measure the lag of another trigger beside a fan-out, and kill the sender of mails."""
    console, folder = Console(), Path(tempfile.mkdtemp(prefix="wiki-notices-"))
    wrong = []
    flags = ("--trigger-modules", "wikka_port.triggers", "--log-level", "warning")
    with StoreProcess(folder / "data", *flags) as store:
        wiki = Wiki("127.0.0.1", store.port)
        wiki.prepare()
        lag = measure_lag(wiki, watchers, edits)
        console.print(f"seed {seed}; p99 of another trigger: {lag.before_ms:.1f} ms, and {lag.during_ms:.1f} ms beside")
        console.print(f"a fan-out to {lag.notices:,} of {watchers:,} in {lag.fan_out_s:.1f} s ({lag.edits} edits)")
        if lag.notices != watchers or lag.during_ms > lag.before_ms + DELAY_MS:
            wrong.append("another trigger was late, or watchers were not notified")
        mailed = kill_senders(wiki, store.port, kills, 3, seed)
        console.print(
            f"{mailed.kills} kills: {mailed.notices} notices, {mailed.different} mails, {mailed.repeated} twice"
        )
        if mailed.different != mailed.notices or mailed.unequal:
            wrong.append("a notice was not mailed, or mails of one Message-ID differ")
        wiki.store.close()
    end_report(console, wrong, folder)


if __name__ == "__main__":
    main()
