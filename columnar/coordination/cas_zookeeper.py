"""A compare-and-set store in ZooKeeper 3.5 or later, over kazoo (``pip install columnar[zookeeper]``).

    key        ROOT/FOLDER/NAME, a persistent node; its parents are made with the first key below them
    version    the node's version: 0 when the node is created, one more with each value
    create     create
    put        setData with the version
    delete     one transaction: check of the second key, delete with the version
    read       a transaction that checks "/", then getData; both are sent together, and ZooKeeper keeps the order of a
               session's requests.  ``sync`` instead of the transaction is not enough: at the leader it waits for
               nothing, and the leader may not have applied a write that a follower has confirmed.  A transaction is
               confirmed by a majority
    list       sync, getChildren; then getData of all children at once.  It makes no transaction, which would be a write
               for each poll of each node

Sessions decide nothing here: no node is ephemeral, so a lost session loses only the calls in progress.

Threads of kazoo connect, choose servers and renew sessions.  A call waits for a connection until its time is over, then
raises CasUnavailable.  Since kazoo may send a request after its call has ended, a write without an answer raises
CasOutcomeUnknown, and may still take effect if its condition holds.

Knows nothing of leases.
"""

from __future__ import annotations

import logging
import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Any, Final

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import (
    AuthFailedError,
    BadVersionError,
    InvalidACLError,
    KazooException,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    RolledBackError,
    RuntimeInconsistency,
)
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.retry import KazooRetry
from kazoo.security import make_digest_acl

from columnar.coordination.cas import (
    FOLDER,
    CasOutcomeUnknown,
    CasRefused,
    CasUnavailable,
    Condition,
    VersionConflict,
    Versioned,
    check_key,
)

TIMEOUT_S: Final = 0.6  # of a call: a lease of 1.5 s survives two failed calls
SESSION_S: Final = 1.0  # a silent server is abandoned after two thirds; ZooKeeper grants at least 2 tickTime
_CONFLICTS: Final = (BadVersionError, NoNodeError, NodeExistsError)
_FOLLOWED: Final = (RolledBackError, RuntimeInconsistency)  # outcomes of the other operations of a failed transaction
_GRANTED: Final = "negotiated session timeout"  # in a text of kazoo, with milliseconds as this argument:
_GRANTED_ARGUMENT: Final = 2
_REFUSALS: Final = (AuthFailedError, InvalidACLError, NoAuthError)


@dataclass(frozen=True, slots=True)
class ZookeeperAccount:
    """User and password of the digest scheme; with them only this user may read and write the nodes."""

    user: str
    password: str


_log = logging.getLogger(__name__)
_logged_s: set[float] = set()  # granted sessions of which the log speaks


class _KazooLog(logging.Logger):
    """The log of a client of kazoo.

    kazoo logs a warning at each attempt to connect; our calls raise the errors, so that log is not needed.  But kazoo
    has no other way than its log to say which session the server has granted.
    """

    def __init__(self) -> None:
        super().__init__("kazoo", logging.CRITICAL)
        self.granted_s: float | None = None

    def log(self, level: int, msg: object, *args: object, **more: Any) -> None:
        if _GRANTED in str(msg) and len(args) > _GRANTED_ARGUMENT:
            found = args[_GRANTED_ARGUMENT]
            self.granted_s = found / 1_000 if isinstance(found, int) else None
        super().log(level, msg, *args, **more)


class _VerifyingHandler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo has no types
    """Connects by TLS and verifies the server's certificate and name.

    kazoo's own connections over TLS also trust the authorities of the system, and take a certificate of any name.
    """

    def __init__(self, tls: Callable[[], ssl.SSLContext]) -> None:
        super().__init__()
        self._tls = tls
        self.refusal = ""  # why the last certificate was refused; set by a thread of kazoo

    def create_connection(self, address: tuple[str, int], hostname: str, timeout: float, **_: Any) -> ssl.SSLSocket:
        plain = socket.create_connection(address, timeout)
        try:
            connected = self._tls().wrap_socket(plain, server_hostname=hostname)
        except ssl.SSLCertVerificationError as error:
            plain.close()
            self.refusal = f"the certificate of {hostname}:{address[1]}: {error.verify_message}"
            raise
        except BaseException:
            plain.close()
            raise
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.refusal = ""
        return connected


class _NoAnswer(Exception):
    """The answer did not come: the request may have been carried out, or may be later."""


class CasZookeeper:
    """``CasStore`` over ZooKeeper."""

    def __init__(
        self, client: Any, root: str, timeout_s: float, log: _KazooLog, clock: Callable[[], float] = monotonic
    ) -> None:
        """Take a KazooClient and its log; ``connect`` makes them, and registers this object for changes of state."""
        self._client = client
        self._root = "/" + root.strip("/")
        self._timeout_s = timeout_s
        self._kazoo_log = log
        self._clock = clock
        self._is_connected = threading.Event()  # set and cleared by a thread of kazoo

    @classmethod
    def connect(
        cls,
        hosts: Sequence[str],
        root: str,
        *,
        timeout_s: float = TIMEOUT_S,
        session_s: float = SESSION_S,
        account: ZookeeperAccount | None = None,
        tls: Callable[[], ssl.SSLContext] | None = None,
    ) -> CasZookeeper:
        """Begin to connect without waiting for the connection.

        ``hosts`` are texts HOST:PORT; ``tls`` returns the context of a new connection, None: connections are plain.
        """
        found: dict[str, Any] = {}
        if account is not None:
            found["auth_data"] = [("digest", f"{account.user}:{account.password}")]
            found["default_acl"] = [make_digest_acl(account.user, account.password, all=True)]
        if tls is not None:
            found |= {"use_ssl": True, "handler": _VerifyingHandler(tls)}
        log = _KazooLog()
        client = KazooClient(
            ",".join(hosts),
            timeout=session_s,
            logger=log,
            connection_retry=KazooRetry(max_tries=-1, delay=0.02, max_delay=0.2, max_jitter=0.2),
            **found,
        )
        store = cls(client, root, timeout_s, log)
        client.add_listener(partial(store._heard, session_s))
        client.start_async()
        return store

    # --- CasStore ------------------------------------------------------------------------------------

    def create_key(self, key: str, value: bytes) -> int:
        check_key(key, value)
        until_s = self._clock() + self._timeout_s
        try:
            self._write(key, until_s, lambda: self._client.create_async(self._path(key), value))
        except VersionConflict as error:
            if not isinstance(error.__cause__, NoNodeError):
                raise
            self._make_folder(key, until_s)
            self._write(key, until_s, lambda: self._client.create_async(self._path(key), value))
        return 0

    def put_key(self, key: str, value: bytes, version: int) -> int:
        check_key(key, value)
        _check_version(key, version)
        until_s = self._clock() + self._timeout_s
        return int(self._write(key, until_s, lambda: self._client.set_async(self._path(key), value, version)).version)

    def delete_key(self, key: str, version: int, also: Condition | None = None) -> None:
        check_key(key)
        _check_version(key, version)
        until_s = self._clock() + self._timeout_s
        if also is None:
            self._write(key, until_s, lambda: self._client.delete_async(self._path(key), version))
            return
        _check_version(also.key, also.version)
        transaction = self._client.transaction()
        transaction.check(self._path(also.key), also.version)
        transaction.delete(self._path(key), version)
        outcomes = self._write(key, until_s, transaction.commit_async)
        for cause in (one for one in outcomes if isinstance(one, Exception) and not isinstance(one, _FOLLOWED)):
            if isinstance(cause, _CONFLICTS):
                raise VersionConflict(key) from cause
            raise CasRefused(_text(cause)) from cause

    def read_key(self, key: str) -> Versioned | None:
        check_key(key)
        until_s = self._clock() + self._timeout_s
        self._wait_connected(until_s)
        barrier = self._client.transaction()
        barrier.check("/", -1)
        barrier.commit_async()  # its outcome does not matter
        return self._read(until_s, [self._path(key)])[0]

    def list_keys(self, folder: str) -> dict[str, Versioned]:
        assert FOLDER.fullmatch(folder), folder
        until_s = self._clock() + self._timeout_s
        path = f"{self._root}/{folder}"
        self._wait_connected(until_s)
        self._client.sync_async(self._root)
        try:
            names = sorted(self._wait(self._client.get_children_async(path), until_s))
        except NoNodeError:
            return {}
        except _NoAnswer as error:
            raise CasUnavailable(str(error)) from error
        found = self._read(until_s, [f"{path}/{name}" for name in names])
        return {f"{folder}/{name}": one for name, one in zip(names, found, strict=True) if one is not None}

    def close(self) -> None:
        self._client.stop()
        self._client.close()

    # --- requests ------------------------------------------------------------------------------------

    def _heard(self, session_s: float, state: str) -> None:
        """Note the connection's state; called by a thread of kazoo."""
        if state == KazooState.CONNECTED:
            _check_session(session_s, self._kazoo_log.granted_s)
            self._is_connected.set()
        else:
            self._is_connected.clear()

    def _path(self, key: str) -> str:
        return f"{self._root}/{key}"

    def _wait_connected(self, until_s: float) -> None:
        if not self._is_connected.wait(max(0.0, until_s - self._clock())):
            refusal = getattr(self._client.handler, "refusal", "")
            if refusal:
                raise CasRefused(refusal)
            raise CasUnavailable("no server of ZooKeeper accepts a session")

    def _wait(self, result: Any, until_s: float) -> Any:
        """Wait for a result of kazoo and return it; raises kazoo's conflicts, CasRefused and _NoAnswer."""
        try:
            return result.get(timeout=max(0.0, until_s - self._clock()))
        except _CONFLICTS:
            raise
        except _REFUSALS as error:
            raise CasRefused(_text(error)) from error
        except (KazooException, self._client.handler.timeout_exception) as error:
            raise _NoAnswer(_text(error)) from error

    def _write(self, key: str, until_s: float, send: Callable[[], Any]) -> Any:
        self._wait_connected(until_s)
        try:
            return self._wait(send(), until_s)
        except _CONFLICTS as error:
            raise VersionConflict(key) from error
        except _NoAnswer as error:
            raise CasOutcomeUnknown(key, str(error)) from error

    def _make_folder(self, key: str, until_s: float) -> None:
        """Make the parents of the key; another client may make them meanwhile."""
        names = self._path(key).split("/")[1:-1]
        for depth in range(1, len(names) + 1):
            try:
                self._wait(self._client.create_async("/" + "/".join(names[:depth]), b""), until_s)
            except NodeExistsError:
                continue
            except _NoAnswer as error:
                raise CasUnavailable(str(error)) from error  # the key itself was not written

    def _read(self, until_s: float, paths: Sequence[str]) -> list[Versioned | None]:
        results = [self._client.get_async(path) for path in paths]
        try:
            return [self._versioned(result, until_s) for result in results]
        except _NoAnswer as error:
            raise CasUnavailable(str(error)) from error

    def _versioned(self, result: Any, until_s: float) -> Versioned | None:
        try:
            value, stat = self._wait(result, until_s)
        except NoNodeError:
            return None
        return Versioned(value, stat.version)


def _check_session(requested_s: float, granted_s: float | None) -> None:
    """Log once that the server grants a longer session than requested, because it notices a frozen server late."""
    if granted_s is None or granted_s <= requested_s or granted_s in _logged_s:
        return
    _logged_s.add(granted_s)
    _log.warning(
        "ZooKeeper grants sessions of %g s at the least, and %g s were requested: a frozen server of ZooKeeper can "
        "hold renewals up for %.1f s.  Set tickTime=%d in zoo.cfg, or a smaller minSessionTimeout",
        *(granted_s, requested_s, granted_s * 2 / 3, requested_s * 500),
    )


def _check_version(key: str, version: int) -> None:
    """Raise VersionConflict for a negative version, because ZooKeeper takes -1 to mean any version."""
    if version < 0:
        raise VersionConflict(key)


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ")
