"""Sessions: a client's own writes, for which it waits until they have reached triggers and views.

Each write through a table of the session adds a token for each region that it wrote into.  Only the first and the last
change of each region are kept, so a session stays small, however much it writes; a wait covers all changes from the
first to the last, because a trigger may have a later one before an earlier one.  A session is used as its connection
is, from one thread at a time, and costs the store nothing until it waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from columnar.client.delivery_waits import wait_within
from columnar.client.errors import WrongArgument
from columnar.client.row_operations import Increment, Operation, to_wire
from columnar.client.table import Table

if TYPE_CHECKING:
    from columnar.client.connection import Connection

SESSION_REGIONS: Final = 1_000  # whose changes a session keeps; beyond it waits for all writes, whoever made them
ALL: Final = "*"  # the token of a session that waits for all writes
WAIT_MS: Final = 5_000
Place = tuple[int, int]  # epoch and n of a change


class Session:
    """The writes of one client, made by ``connection.session()``."""

    def __init__(self, connection: Connection, token: str = "") -> None:
        """Raises WrongArgument if ``token`` is not of a session or a write."""
        self._connection = connection
        self._ends: dict[int, tuple[Place, Place]] = {}  # origin -> the first and the last change
        self._is_unsure = token == ALL
        if not self._is_unsure:
            self.add(token)

    def table(self, name: bytes | str, use_prefix: bool = True) -> Table:
        """Return a table whose writes are the session's."""
        return SessionTable(self._connection.table(name, use_prefix).name, _Recording(self._connection, self))

    def add(self, token: str) -> None:
        """Add a write that was made elsewhere: its ``sequence``, or the ``token`` of a session."""
        if token == ALL:
            self._is_unsure = True
            return
        for one in filter(None, token.split(",")):
            try:
                origin, *ends = (int(part) for part in one.split("-"))
                first, last = (ends[0], ends[1]), (ends[-2], ends[-1])
                if len(ends) not in (2, 4):
                    raise ValueError
            except (ValueError, IndexError):
                raise WrongArgument(f"{one[:40]!r} is no token of a write: give its sequence, as 7-1-42") from None
            known = self._ends.get(origin, (first, last))
            self._ends[origin] = min(known[0], first), max(known[1], last)
        if len(self._ends) > SESSION_REGIONS:
            self.note_unsure()

    def note_unsure(self) -> None:
        """Have the next waits wait for all writes, whoever made them: a write of the session may have been made."""
        self._is_unsure = True
        self._ends.clear()

    @property
    def token(self) -> str:
        """The session's writes as a text, for ``connection.session(token)`` in another process, and reads of views.

        Empty without any write.
        """
        if self._is_unsure:
            return ALL
        return ",".join(
            [
                "-".join(map(str, (origin, *first) if first == last else (origin, *first, *last)))
                for origin, (first, last) in self._ends.items()
            ]
        )

    def wait(self, *names: str, timeout_ms: int = WAIT_MS, downstream: bool = False) -> bool:
        """Block until all writes of the session are in each of these triggers, views and feeds.

        Without names in all of them, and their messages in queues and topics.  A write reaches a trigger, view or feed
        through those that feed it, in their order.  With ``downstream`` also until it has passed through all that these
        feed.  True means that every write of the session is in.  False means not in time, and nothing else.

        The wait ends at queues: raises IllegalArgument if a write gets to one of the named only through a queue.
        Raises IOError if there is no trigger, view or feed of a name.
        """
        token = self.token
        if not token:
            return True
        call = partial(self._connection.call, "columnarWait", list(names), [token])
        return wait_within(timeout_ms, lambda left_ms: call(left_ms, downstream))


class SessionTable(Table):
    """A table whose writes are a session's."""

    def mutate_rows(self, rows: Mapping[bytes, Sequence[Operation]]) -> None:
        """Write many rows, each as a step of its own, by the call that answers tokens."""
        self.check_and_mutate_rows({row: ((), operations) for row, operations in rows.items()})


class _Recording:
    """The session's connection as its tables see it: writes report their tokens to the session."""

    def __init__(self, connection: Connection, session: Session) -> None:
        self._connection = connection
        self._session = session
        self.client = _RecordingClient(self)
        self.call = self._call_recorded

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def _call_recorded(self, method: str, *args: Any) -> Any:
        """Call a method of the extension, as ``Connection.call``; a write's tokens are the session's."""
        tokens = _TOKENS.get(method)
        if tokens is None:
            return self._connection.call(method, *args)
        try:
            answer = self._connection.call(method, *args)
        except BaseException:
            self._session.note_unsure()
            raise
        for token in tokens(answer):
            self._session.add(token.decode() if isinstance(token, bytes) else token or "")
        return answer

    @property
    def plain_client(self) -> Any:
        return self._connection.client


class _RecordingClient:
    """HBase's methods that happybase writes by, as methods of ours that answer a token; all others unchanged."""

    def __init__(self, recording: _Recording) -> None:
        self._recording = recording

    def __getattr__(self, name: str) -> Any:
        write = _WRITES.get(name)
        if write is not None:
            return partial(write, self._recording.call)
        return getattr(self._recording.plain_client, name)


Call = Callable[..., Any]


def _mutate_rows(call: Call, table: bytes, batches: Any, attributes: Any) -> None:
    call("columnarMutateRows", table, batches, attributes, None)


def _mutate_rows_at(call: Call, table: bytes, batches: Any, timestamp: int, attributes: Any) -> None:
    call("columnarMutateRows", table, batches, attributes, timestamp)


def _increment(call: Call, table: bytes, row: bytes, column: bytes, value: int) -> int:
    done = call("columnarCheckAndMutate", table, row, [], [to_wire(Increment(column, value))], {})
    return int.from_bytes(done.counters[0].value, "big", signed=True)


_WRITES: Final[dict[str, Callable[..., Any]]] = {
    "mutateRows": _mutate_rows,
    "mutateRowsTs": _mutate_rows_at,
    "atomicIncrement": _increment,
}


def _of_result(result: Any) -> Iterator[str | bytes]:
    if result is not None and result.applied:
        yield result.sequence


def _of_results(answers: Iterable[Any]) -> Iterator[str | bytes]:
    for answer in answers:
        yield from _of_result(answer.result)


_TOKENS: Final[dict[str, Callable[[Any], Iterable[str | bytes]]]] = {
    "columnarMutateRows": lambda token: (token,),
    "columnarCheckAndMutate": _of_result,
    "columnarCheckAndMutateRows": _of_results,
    "columnarMutateGroup": _of_result,
}
