"""Mail by SMTP, sent by a separate thread.

``Outbox.post`` queues a function that will write the letter, and returns; only BEGINS_S later the thread looks up
whether an address has an account.  If the letter were written at once, it would compete with the answer for the
interpreter, and the answer for an address with an account would take twice as long, which reveals the account.  A mail
that cannot be sent is logged without its text, which contains a link; the person requests a new one.  Mails that are
queued when the process ends are lost.

The log has what ``words_of`` says of a failure.  The text of an error is never logged: servers repeat addresses of
people in their answers.
"""

from __future__ import annotations

import errno
import logging
import queue
import smtplib
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from typing import Final

from wikka_port.accounts.records import Account
from wikka_port.accounts.user_names import ENCODED
from wikka_port.config import MailConfig
from wikka_port.store import StoreUnavailable
from wikka_port.texts import N_
from wikka_port.texts.catalogue import Catalogue
from wikka_port.urls import site_path

log = logging.getLogger(__name__)
WAITING_MAX: Final = 200  # mails of one process
TIMEOUT_S: Final = 20.0
BEGINS_S: Final = 2.0  # after ``post``; much longer than any answer, and nothing beside the transport of a mail


@dataclass(frozen=True, slots=True)
class Letters:
    site_name_of: Callable[[], str]
    base: str  # the wiki's public address, without a slash at its end
    language_of: Callable[[str], Catalogue]  # by the code in an account's settings; "": the wiki's

    def address(self, handler: str, token: str) -> str:
        return self.base + site_path(handler, token=token)

    def confirm(self, account: Account, token: str) -> tuple[str, str]:
        return self._letter(
            account,
            N_("please confirm your mail address"),
            N_("""\
Somebody, most likely you, gave this address for the account "{name}".
To confirm it, open this page within 30 minutes:

    {address}

If it was not you, nothing has to be done."""),
            self.address("confirm", token),
        )

    def has_account(self, account: Account) -> tuple[str, str]:
        return self._letter(
            account,
            N_("you have an account already"),
            N_("""\
Somebody, most likely you, wanted to register with this address.
It belongs to the account "{name}" already. If the password is forgotten,
a new one can be set from this page:

    {address}

If it was not you, nothing has to be done."""),
            self.base + site_path("reset"),
        )

    def reset(self, account: Account, token: str) -> tuple[str, str]:
        return self._letter(
            account,
            N_("a new password"),
            N_("""\
Somebody, most likely you, asked for a new password of the account "{name}".
To set one, open this page within 30 minutes:

    {address}

If it was not you, nothing has to be done; the old password stays."""),
            self.address("reset", token),
        )

    def changed_password(self, account: Account) -> tuple[str, str]:
        return self._letter(
            account,
            N_("your password was changed"),
            N_("""\
The password of the account "{name}" was changed.

If it was not you, set a new password at once from this page, and
tell an administrator:

    {address}"""),
            self.base + site_path("reset"),
        )

    def moved(self, account: Account) -> tuple[str, str]:
        """Write to the account's former address that the address has changed."""
        return self._letter(
            account,
            N_("your mail address was changed"),
            N_("""\
The account "{name}" has another mail address from now on, and mails
about it do not come here any more.

If it was not you, tell an administrator at once."""),
        )

    def _letter(self, account: Account, subject: str, text: str, address: str = "") -> tuple[str, str]:
        said = self.language_of(account.settings.language)
        body = said.gettext(text).format(name=account.name, address=address)
        name = self.site_name_of()
        return f"{name}: {said.gettext(subject)}", f"{body}\n\n-- \n{name}, {self.base}/\n"


@dataclass(frozen=True, slots=True)
class Mail:
    to: str
    subject: str
    text: str = field(repr=False)
    message_id: str = ""  # before the "@"; "": a random one
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)  # further ones


Letter = Callable[[], Mail | None]  # writes the mail, or returns None if nobody shall get one


class Outbox:
    """A queue of letters with its thread.  Thread-safe.

    The first letter starts the thread, so that it runs in this process and not in the parent before a fork.
    """

    def __init__(self, deliver: Callable[[Mail], None] | None) -> None:
        """Send mails by ``deliver``; with None no mail is configured, and none is sent."""
        self._deliver = deliver
        self._waiting: queue.Queue[tuple[float, Letter]] = queue.Queue(WAITING_MAX)  # when it is due
        self._hurry = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None  # guarded by _lock

    @property
    def is_open(self) -> bool:
        return self._deliver is not None

    def post(self, letter: Letter) -> None:
        try:
            self._waiting.put_nowait((time.monotonic() + BEGINS_S, letter))
        except queue.Full:
            log.error("a mail was not sent: %d wait already", WAITING_MAX)
            return
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="wikka-mail", daemon=True)
                self._thread.start()

    def _work(self) -> None:
        while True:
            due_s, letter = self._waiting.get()
            self._hurry.wait(max(0.0, due_s - time.monotonic()))
            try:
                mail = letter()
                if mail is not None and self._deliver is not None:
                    self._deliver(mail)
            except StoreUnavailable as away:
                log.error("a mail was not sent: %s", away)
            except (OSError, ValueError) as problem:  # every SMTPException is an OSError
                log.error("a mail was not sent: %s", words_of(problem))
            except Exception as problem:  # whatever one mail does, the thread goes on to the next
                log.exception("a mail was not sent: %s", type(problem).__name__, exc_info=False)
            finally:
                self._waiting.task_done()

    def wait(self) -> None:
        """Wait until every queued letter was sent or has failed, without pauses; for commands at their end."""
        self._hurry.set()
        self._waiting.join()
        self._hurry.clear()


class NoMailServer(OSError):
    """The mail server cannot be reached, or refuses the sign-in: no mail can be sent at the moment."""


# The first kind that fits, and what an operator looks at.
_ADVICE: Final[tuple[tuple[type[Exception], str], ...]] = (
    (smtplib.SMTPAuthenticationError, "the server refuses the sign-in: see --smtp-user and --smtp-password-file"),
    (smtplib.SMTPSenderRefused, "the server refuses the sender: see --mail-from"),
    (smtplib.SMTPRecipientsRefused, "the server refuses the recipient, whom its own log names"),
    (smtplib.SMTPNotSupportedError, "the server lacks what --smtp-tls, --smtp-user or a letter of the address needs"),
    (smtplib.SMTPServerDisconnected, "the server broke the connection: its own log has the reason"),
    (smtplib.SMTPException, "the server refuses the mail: its own log has the reason"),
    (ssl.SSLError, "TLS with the server fails: see --smtp-tls, and its certificate"),
    (OSError, "the server cannot be reached: see --smtp, and whether it runs"),
    (ValueError, "the mail cannot be written: an address of the account, or --mail-from, is none"),
)


def words_of(problem: Exception) -> str:
    """Return class and code of a mail's failure, and what to look at, for the log: nothing that a server has said."""
    cause = problem.__cause__ if isinstance(problem, NoMailServer) else None
    found = cause if isinstance(cause, Exception) else problem
    advice = next((words for kind, words in _ADVICE if isinstance(found, kind)), "")
    return f"{type(found).__name__} {_code_of(found)}".rstrip() + (f" ({advice})" if advice else "")


def _code_of(problem: Exception) -> str:
    """Return the code of an answer of SMTP, or the name of an error of the system; "" if there is none."""
    if isinstance(problem, smtplib.SMTPRecipientsRefused):
        return ", ".join(sorted({str(code) for code, _ in problem.recipients.values()}))
    if isinstance(problem, smtplib.SMTPResponseException):
        return str(problem.smtp_code)
    number = problem.errno if isinstance(problem, OSError) else None
    return "" if number is None else errno.errorcode.get(number, str(number))


def deliver_by(config: MailConfig) -> Callable[[Mail], None]:
    """Return a function that sends a mail and waits until the server has it.

    The function raises NoMailServer before the mail is begun.  Another OSError, such as SMTPException, and ValueError
    are faults of this mail, or of the server while it took it.
    """

    def deliver(mail: Mail) -> None:
        server = _opened(config)
        try:
            server.send_message(message_of(mail, config.sender))
        finally:
            with suppress(smtplib.SMTPException):  # it has the mail or refused it, whatever it says to the farewell
                server.docmd("QUIT")
            server.close()

    return deliver


def _opened(config: MailConfig) -> smtplib.SMTP:
    """Connect and sign in.  Raises NoMailServer."""
    context = None if config.tls == "none" else ssl.create_default_context()
    server: smtplib.SMTP | None = None
    try:
        if config.tls == "tls":
            server = smtplib.SMTP_SSL(config.host, config.port, timeout=TIMEOUT_S, context=context)
        else:
            server = smtplib.SMTP(config.host, config.port, timeout=TIMEOUT_S)
        if config.tls == "starttls":
            server.starttls(context=context)
        if config.user:
            server.login(config.user, config.password)
    except (OSError, ValueError) as problem:
        if server is not None:
            server.close()
        raise NoMailServer(type(problem).__name__) from problem
    return server


def message_of(mail: Mail, sender: str) -> EmailMessage:
    """Return the message.  Raises ValueError for an address that no header can have."""
    if ENCODED in mail.to:
        raise ValueError("the address has an encoded word")
    message = EmailMessage()
    message["From"] = sender
    message["To"] = mail.to
    message["Subject"] = _in_header(mail.subject)
    message["Date"] = formatdate()
    domain = sender.rpartition("@")[2]
    given = f"<{mail.message_id}@{domain or 'localhost'}>" if mail.message_id else ""
    message["Message-ID"] = given or make_msgid(domain=domain or None)
    for name, value in mail.headers.items():
        message[name] = value
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(mail.text)
    return message


def _in_header(words: str) -> str:
    """Return words that stay what they are in a header, on one line.

    A header decodes encoded words, and before 3.11.10 Python wrote the line breaks in them as they are.  The name of a
    page would then make headers, and the text of the mail.
    """
    return " ".join(words.split()).replace(ENCODED, "= ?")
