"""The wiki's connection to the store: a bounded pool of connections that outlives outages of the store.

``Store.run(work)`` lends a connection to ``work``.  If the connection breaks, ``run`` repeats the work over a new
one, a bounded number of times, and then raises StoreUnavailable; so **work must be idempotent**.  All the wiki's
writes carry their own timestamps, and a revision is recognised by its content (``schema.revision_token``).

An error of the server (``IOError``, ``IllegalArgument`` of happybase) is no broken connection and is raised at once.
Work is also repeated if a region is busy or in transition, and if the outcome of a write is unknown because its region
server died.  ``run`` raises NotPrepared if a table or family is missing, as in an older wiki's folder before
``wikka prepare``.

Knows nothing of pages.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Final, TypeVar

from thriftpy2.protocol.exc import TProtocolException
from thriftpy2.transport import TTransportException

from columnar.client import ClientTls, Connection
from columnar.client.errors import AlreadyExists, IllegalArgument, IOError, NotColumnar, hbase_class
from wikka_port.counters import Counters, StoreOutcome
from wikka_port.limits import ROWS_PER_CALL

_log = logging.getLogger(__name__)

PAUSES_S: Final = (0.05, 0.25, 0.7)  # before the second, third and fourth attempt
TIMEOUT_MS: Final = 20_000  # one call; longer than the slowest that a healthy store answers
PREPARE_TIMEOUT_MS: Final = 180_000  # one call that registers triggers: the store starts their processes meanwhile
BUSY_S: Final = 20.0  # for a free connection of the pool
_BROKEN: Final = (TTransportException, TProtocolException, OSError, EOFError)
_ANSWERS: Final = (IOError, IllegalArgument, AlreadyExists, NotColumnar)
_TO_BE_REPEATED: Final = frozenset(
    {"RegionTooBusyException", "NotServingRegionException", "CallQueueTooBigException", "CallTimeoutException"}
)
_MISSING: Final = frozenset({"TableNotFoundException", "NoSuchColumnFamilyException"})
_UNLOCATED: Final = "servers with issues: null"  # HBase's RetriesExhaustedWithDetailsException, of batches

T = TypeVar("T")


class StoreUnavailable(Exception):
    """The store does not answer.  The last call may or may not have been carried out, and may be repeated."""

    def __init__(self, address: str, why: str) -> None:
        super().__init__(f"the store at {address} does not answer: {why}")
        self.address = address
        self.why = why


class NotPrepared(StoreUnavailable):
    """A table or a family is missing, so nothing was done; ``wikka prepare`` creates it."""

    def __init__(self, address: str, what: str) -> None:
        super().__init__(address, what)
        self.args = (f"the store at {address} is not prepared for this wiki ({what}); run: wikka prepare",)


class Store:
    """A pool of at most ``pool`` connections, made when they are needed.  Thread-safe."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        pool: int = 16,
        timeout_ms: int = TIMEOUT_MS,
        tls: ClientTls | None = None,
        counters: Counters | None = None,
    ) -> None:
        """``host`` may be several addresses with commas, as ``columnar.client.Connection`` takes them."""
        self._counters = counters or Counters.of_process()
        self.host, self.port = host, port
        self._tls = tls
        self._timeout_ms = timeout_ms
        self._free = threading.BoundedSemaphore(pool)
        self._idle: queue.LifoQueue[Connection] = queue.LifoQueue()
        self._is_columnar: bool | None = None

    @property
    def address(self) -> str:
        return self.host if "," in self.host else f"{self.host}:{self.port}"

    def run(self, work: Callable[[Connection], T], *, pauses_s: tuple[float, ...] = PAUSES_S) -> T:
        """Return the result of ``work``.  Raises StoreUnavailable once all attempts have failed."""
        began = time.monotonic()
        outcome: StoreOutcome = "ok"
        try:
            return self._run(work, pauses_s)
        except StoreUnavailable:
            outcome = "unavailable"
            raise
        except _ANSWERS:
            outcome = "refused"
            raise
        finally:
            self._counters.store_done(outcome, time.monotonic() - began)

    def _run(self, work: Callable[[Connection], T], pauses_s: tuple[float, ...]) -> T:
        if not self._free.acquire(timeout=BUSY_S):
            raise StoreUnavailable(self.address, f"all connections were in use for {BUSY_S:.0f} s")
        try:
            for pause in pauses_s:
                try:
                    return self._attempt(work)
                except NotPrepared:
                    raise
                except StoreUnavailable as away:
                    _log.debug("%s; again in %.2f s", away, pause)
                    time.sleep(pause)
            return self._attempt(work)
        finally:
            self._free.release()

    def _attempt(self, work: Callable[[Connection], T]) -> T:
        connection: Connection | None = None
        try:
            connection = self._connected()
            result = work(connection)
        except _ANSWERS as error:
            if connection is not None:
                self._idle.put(connection)  # an answer was read to its end
            if hbase_class(error) in _TO_BE_REPEATED:
                raise StoreUnavailable(self.address, hbase_class(error)) from error
            if hbase_class(error) in _MISSING:
                raise NotPrepared(self.address, _why(error)) from error
            if _UNLOCATED in _why(error):
                raise StoreUnavailable(self.address, "no server has the table's rows") from error
            raise
        except _BROKEN as error:
            _close(connection)
            self.close()  # idle connections are most likely broken too, and would use up the attempts
            raise StoreUnavailable(self.address, _why(error)) from error
        except BaseException:
            _close(connection)  # a reply may be half read
            raise
        self._idle.put(connection)
        return result

    def _connected(self) -> Connection:
        with contextlib.suppress(queue.Empty):
            return self._idle.get_nowait()
        return Connection(self.host, self.port, timeout=self._timeout_ms, tls=self._tls, routing=True)

    @property
    def is_columnar(self) -> bool:
        """Whether the store is a Columnar and no plain HBase; read once."""
        if self._is_columnar is None:
            self._is_columnar = self.run(lambda connection: connection.is_columnar)
        return self._is_columnar

    def is_up(self) -> bool:
        try:
            self.run(lambda connection: connection.tables(), pauses_s=())
        except (StoreUnavailable, *_ANSWERS):
            return False
        return True

    def close(self) -> None:
        """Close idle connections.  Connections in use are closed by a later ``close``, once they are idle."""
        with contextlib.suppress(queue.Empty):
            while True:
                _close(self._idle.get_nowait())


def rows_in_steps(
    table: Any, keys: Iterable[bytes], *columns: bytes, include_timestamp: bool = False
) -> Iterator[tuple[bytes, Any]]:
    """Yield the rows of ``keys`` that have one of ``columns``, in calls of a bounded size."""
    left = iter(keys)
    while step := list(islice(left, ROWS_PER_CALL)):
        yield from table.rows(step, columns=list(columns), include_timestamp=include_timestamp)


def check_and_put(
    connection: Connection,
    table: bytes,
    row: bytes,
    column: bytes,
    expected: bytes | None,
    value: bytes,
    *,
    put: bytes | None = None,
) -> bool:
    """Call HBase's ``checkAndPut``, which happybase does not offer; with ``expected`` None the cell must be absent.

    ``put`` names the column that gets the value, if not ``column``.
    """
    from Hbase_thrift import Mutation  # type: ignore[import-not-found]  # there once happybase is imported

    mutation = Mutation(column=put or column, value=value)
    return bool(connection.client.checkAndPut(table, row, column, expected, mutation, {}))


def _close(connection: Connection | None) -> None:
    if connection is not None:
        with contextlib.suppress(*_BROKEN):
            connection.close()


def _why(error: BaseException) -> str:
    text = getattr(error, "message", "") or str(error) or type(error).__name__
    return text.decode(errors="replace") if isinstance(text, bytes) else str(text)
