"""The connection of a command to a server: ``--store``, and errors as one line with the next step.

The exit status is 1 if the server refused, 2 if it could not be reached or the command was used wrongly.
"""

from __future__ import annotations

import functools
import ssl
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import click
from thriftpy2.protocol.cybin import ProtocolError
from thriftpy2.thrift import TApplicationException, TException
from thriftpy2.transport import TTransportException

from columnar.client import ClientTls, Connection
from columnar.client.addresses import UNIX, addresses_of
from columnar.client.errors import AlreadyExists, IllegalArgument, IOError, NotColumnar, hbase_class
from columnar.client.store_options import client_settings, store_option
from columnar.client.store_socket import NoAnswer, NotSignedIn
from columnar.client.tls_options import tls_options
from columnar.client.user_options import ClientUser, user_options
from columnar.errors import CallerError, HostError
from columnar.runtime.file_errors import is_of_file, said_of
from columnar.security.scram import WRONG
from columnar.shell.meaning import family_meant, table_meant
from columnar.shell.session import Opened, Session, in_script, session_of
from columnar.shell.shell_output import Output
from columnar.shell.text import readable, typed
from columnar.shell.wrong_port import http_found

ANSWER_TIMEOUT_S: Final = 120
_START: Final = "start one with 'columnar standalone', or say where with --store HOST:PORT"
_NEXT_STEP: Final = {  # by HBase's exception class
    "TableNotFoundException": "'columnar tables' lists those there are",
    "TableExistsException": "choose another name, or drop it first with 'columnar drop'",
    "TableNotEnabledException": "'columnar enable TABLE' opens it again",
    "NoSuchColumnFamilyException": "'columnar tables' shows its families",
    "NamespaceNotFoundException": "'columnar namespace list' shows those there are",
    "AccessDeniedException": "'columnar whoami' says as whom the store knows you; --user NAME signs in as another user",
    "RegionTooBusyException": "try again; 'columnar trigger list' shows what is behind",
}


class Refused(click.ClickException):
    """The server refused the command."""

    exit_code = 1

    def show(self, file: Any = None) -> None:
        click.echo(f"columnar: {self.message}", err=True)


class Misused(Refused):
    """The command was used wrongly."""

    exit_code = 2


class Unreachable(Refused):
    exit_code = 2


@dataclass(frozen=True, slots=True)
class Server:
    """The connection and the output of a command."""

    connection: Connection
    output: Output
    address: str
    tls: ssl.SSLContext | None = None
    user: ClientUser | None = None
    unix_socket: str = ""  # the private one of a supervisor, in the place of a port

    def patient(self, seconds: float) -> Connection:
        """Return a new connection whose answers may take ``seconds`` longer; the caller closes it."""
        timeout_ms = round((seconds + ANSWER_TIMEOUT_S) * 1_000)
        if self.unix_socket:
            return Connection(unix_socket=self.unix_socket, timeout=timeout_ms)
        return Connection.at(self.address, timeout=timeout_ms, tls=self.tls, **secrets_of(self.user))


def with_server(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--store``, the options of TLS and sign-in, and ``--json``; the command gets a ``Server`` first."""

    @client_settings
    @store_option
    @tls_options
    @user_options
    @click.option("--json", "as_json", is_flag=True, help="Print JSON.")
    @functools.wraps(command)
    def connected(store: str, as_json: bool, tls: ClientTls | None, user: ClientUser | None, **arguments: Any) -> Any:
        session = session_of(click.get_current_context())
        output = output_of(as_json)
        with report_errors(store), _connection_to(session, store, tls, user) as (connection, context):
            try:
                return command(Server(connection, output, store, context, user), **arguments)
            except IOError as error:
                hint = _meant(connection, hbase_class(error), arguments)
                raise Refused(_refusal(error, hint)) from None

    return connected


def output_of(as_json: bool) -> Output:
    """Return the output of the running command."""
    session = session_of(click.get_current_context())
    return Output(as_json, pages=session is not None and session.pages)


@contextmanager
def _connection_to(
    session: Session | None, store: str, tls: ClientTls | None, user: ClientUser | None
) -> Iterator[Opened]:
    """Yield the connection that a shell keeps, or a new one for this command."""
    if session is not None:
        with session.connection.lent(store, tls, user) as opened:
            yield opened
        return
    opened = connect(store, tls, user)
    try:
        yield opened
    finally:
        opened[0].close()


def connect(store: str, tls: ClientTls | None, user: ClientUser | None = None) -> Opened:
    context = tls.context() if tls is not None else None
    secrets = secrets_of(user)
    try:
        if store.startswith(UNIX):
            return Connection.at(store, timeout=ANSWER_TIMEOUT_S * 1_000, **secrets), None
        connection = Connection.at(
            store, timeout=ANSWER_TIMEOUT_S * 1_000, tls=context, autoconnect=False, **secrets
        )  # fails if the network could read a token
        _check_port(store, context)
        connection.open()
        return connection, context
    except NotSignedIn:
        if user is not None:
            user.forget_typed()
        raise


def secrets_of(user: ClientUser | None) -> dict[str, Any]:
    """Return the arguments of ``Connection`` that sign the user in; none for nobody."""
    return user.secrets() if user is not None else {}


def _check_port(store: str, context: ssl.SSLContext | None) -> None:
    """Raise Unreachable if the first address that answers has a wrong port, or OSError if the only one does not."""
    addresses = addresses_of(store)
    # The client has one timeout for connecting and for answers, and answers may take long (a filtered
    # scan): a silent host and a wrong port are found out with a connection of its own.
    for address in addresses:
        try:
            wrong = http_found(*address, context)
        except ssl.SSLError:
            raise
        except OSError:
            if len(addresses) == 1:
                raise
            continue
        if wrong:
            raise Unreachable(f"cannot talk to {address}: {wrong}; look at --store")
        break


def require_confirmation(question: str, yes: bool) -> None:
    """Ask before a change that cannot be undone; with ``yes`` the person has agreed beforehand."""
    if yes:
        return
    if not somebody_answers():
        raise Misused(f"{question} Nobody can be asked here: say --yes")
    click.confirm(question, abort=True, err=True)


def somebody_answers() -> bool:
    """Return whether a person can answer a question, which goes to stderr because stdout may be a file."""
    return sys.stdin.isatty() and not in_script()


@contextmanager
def report_errors(store: str, step: str = _START) -> Iterator[None]:
    """Turn errors of client and server into click's, which print a line and set the exit status.

    ``step`` is the next step to print if the store cannot be reached.
    """
    try:
        yield
    except (CallerError, HostError) as error:
        raise Misused(error.text) from None
    except (IOError, IllegalArgument, AlreadyExists) as error:
        raise Refused(_refusal(error)) from None
    except NotColumnar as error:
        raise Refused(error.args[0]) from None
    except NotSignedIn as error:
        raise Refused(_not_signed_in(error)) from None
    except (TTransportException, OSError, EOFError) as error:
        if isinstance(error, BrokenPipeError):
            raise  # our own output: click ends quietly
        if isinstance(error, OSError) and is_of_file(error):
            raise Misused(said_of(error)) from None
        if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError):
            # A certificate is refused by the first answer, not by the handshake.
            raise Unreachable(
                f"{store} ended the connection: {error.reason}; show a certificate that it accepts with "
                "--tls-client-cert and --tls-client-key"
            ) from None
        raise Unreachable(_silence(store, error, step)) from None
    except TApplicationException as error:
        step = "look at --store" if error.type == TApplicationException.UNKNOWN_METHOD else "its log says more"
        raise Refused(f"{store} failed: {error.message}; {step}") from None
    except (TException, ProtocolError) as error:
        raise Unreachable(f"{store} does not speak HBase's Thrift API: {error}; look at --store") from None


def _not_signed_in(error: NotSignedIn) -> str:
    if error.message.endswith(WRONG):
        return (
            f"{error.message}; look at --user and the file, or have an administrator set a password with "
            "'columnar user password NAME'"
        )
    return error.message


def _silence(store: str, error: Exception, step: str) -> str:
    """Return why nothing came from the store, and the next step; ``step`` only if the connection was not accepted."""
    if isinstance(error, NoAnswer):
        return (
            f"{store} did not answer within {error.seconds:g} s, so the outcome is unknown; 'columnar servers', with "
            "--data DIR where no server is up, and the store's log say what keeps it"
        )
    if _had_begun(error):
        return (
            f"{store} ended the connection before it answered, so the outcome is unknown; look at the store's log, and "
            "at --store"
        )
    why = getattr(error, "message", None) or getattr(error, "strerror", None) or str(error)
    if isinstance(error.__cause__, OSError | ValueError):  # of a handshake, so something listens there
        return f"cannot talk to {store}: {why}; look at --store and --tls-ca"
    return f"cannot talk to {store}: {why}; {step}"


def _had_begun(error: Exception) -> bool:
    """Return whether the connection was open before it ended."""
    if isinstance(error, TTransportException):
        return bool(error.type == TTransportException.END_OF_FILE)
    if isinstance(error, ConnectionRefusedError):
        return False
    return isinstance(error, ConnectionError | TimeoutError | ssl.SSLEOFError | EOFError)


def _meant(connection: Connection, error_class: str, arguments: dict[str, Any]) -> str | None:
    """Return what to write instead, or None.

    Reads the server's names in a further call, so it is for use after a refusal only.
    """
    try:
        if error_class == "TableNotFoundException":
            return table_meant(arguments, [readable(name) for name in connection.tables()])
        if error_class == "NoSuchColumnFamilyException":
            return family_meant(arguments, list(map(readable, connection.table(typed(arguments["table"])).families())))
    except (TException, ProtocolError, OSError, EOFError, KeyError):  # the refusal itself is reported
        return None
    return None


def _refusal(error: Any, hint: str | None = None) -> str:
    message = error.message
    text = message.decode(errors="replace") if isinstance(message, bytes) else str(message)
    line = text.strip().split("\n")[0]  # HBase sends its stack trace after it
    step = hint or _NEXT_STEP.get(hbase_class(error))
    if step is None or step.replace("'", "") in line.replace("'", ""):  # the server said it for all clients
        return line
    return f"{line.removesuffix('.')}; {step}"
