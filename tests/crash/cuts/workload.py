"""Clients that write rows of their own, and note for every call the states of its rows after the acknowledgement.

A client waits for each answer before its next call, so at most one change of a row is under way after the last
acknowledged one.  Calls go out in frames, one reply to a frame: the nth frame that the server sends to a client's port
is the answer to its nth call.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from thriftpy2.protocol import TBinaryProtocol
from thriftpy2.thrift import TClient
from thriftpy2.transport import TFramedTransport, TSocket

from columnar.model.trigger_registration import Registration, to_json
from columnar.wire.idl import SERVICE, hbase

WRITERS: Final = 4
ROWS: Final = 24  # of each writer and table
TABLE, LOGGED, AUDIT = b"t", b"l", b"audit"
TIMEOUT_MS: Final = 60_000

State = tuple[tuple[bytes, bytes], ...]  # (column, value), ascending; () where there is no row
GONE: Final[State] = ()
THERE: Final[State] = ((b"", b"there"),)  # of a table: its row has no name


@dataclass(frozen=True, slots=True)
class Call:
    """A call; ``changes`` has (table, row) -> the state after the answer, ``mark`` is part of the written values."""

    port: int
    nth: int
    method: str
    changes: tuple[tuple[tuple[bytes, bytes], State], ...]
    mark: bytes = b""


class Client:
    """A connection whose every call goes through ``call``, which notes it."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        transport = TSocket()
        transport.set_handle(self._socket)
        transport.set_timeout(TIMEOUT_MS)
        self._client = TClient(SERVICE, TBinaryProtocol(TFramedTransport(transport), decode_response=False))
        self.port: int = self._socket.getsockname()[1]
        self.calls: list[Call] = []

    def call(
        self,
        method: str,
        *args: Any,
        changes: tuple[tuple[tuple[bytes, bytes], State], ...] = (),
        mark: bytes = b"",
        busy_is_fine: bool = False,
    ) -> Any:
        """Make a call; with ``busy_is_fine`` the server may refuse it as too busy, and then nothing was done."""
        try:
            answer = getattr(self._client, method)(*args)
        except hbase.IOError as error:
            if not (busy_is_fine and error.message.startswith(b"RegionTooBusyException")):
                raise
            answer = None
        self.calls.append(Call(self.port, len(self.calls), method, changes, mark))
        return answer

    def close(self) -> None:
        self._socket.close()


@dataclass(slots=True)
class Writer:
    """A writer, whose ``states`` outlive the connection: the next connection continues with the same rows."""

    number: int
    rng: Random
    states: dict[tuple[bytes, bytes], dict[bytes, bytes]] = field(default_factory=dict)
    marks: int = 0

    def run(self, client: Client, calls: int) -> None:
        steps: list[Callable[[Client], None]] = [self._put, self._put, self._put, self._batch, self._delete]
        steps += [self._load, self._increment, self._check, self._append, self._logged]
        for _ in range(calls):
            self.rng.choice(steps)(client)

    def _row(self, table: bytes = TABLE) -> tuple[bytes, bytes]:
        return table, b"w%d-%02d" % (self.number, self.rng.randrange(ROWS))

    def _value(self) -> tuple[bytes, bytes]:
        """Return a unique mark, and a value that begins with it."""
        self.marks += 1
        mark = b"<%d.%06d>" % (self.number, self.marks)
        return mark, mark + b"." * self.rng.choice((0, 0, 10, 100, 700, 3_000, 40_000 if self.marks % 16 == 0 else 5))

    def _after(self, key: tuple[bytes, bytes], put: dict[bytes, bytes], gone: tuple[bytes, ...] = ()) -> State:
        state = self.states.setdefault(key, {})
        for column in gone:
            state.pop(column, None)
        state.update(put)
        return tuple(sorted(state.items()))

    def _columns(self, value: bytes) -> dict[bytes, bytes]:
        return dict.fromkeys(self.rng.sample((b"a:x", b"a:y", b"b:x", b"c:x"), self.rng.randint(1, 4)), value)

    def _put(self, client: Client) -> None:
        key, (mark, value) = self._row(), self._value()
        columns = self._columns(value)
        changes = ((key, self._after(key, columns)),)
        client.call("mutateRow", *key, _puts(columns), {}, changes=changes, mark=mark)

    def _batch(self, client: Client) -> None:
        mark, value = self._value()
        self._write_all(client, {self._row(): self._columns(value) for _ in range(3)}, mark)

    def _load(self, client: Client) -> None:
        """Load rows with the same columns, which from the third on are decoded by their shape and put without reads."""
        mark, value = self._value()
        columns = dict.fromkeys((b"b:x", b"b:y", b"c:x", b"c:y"), value)
        rows = self.rng.sample(range(ROWS), 4)
        self._write_all(client, {(TABLE, b"w%d-%02d" % (self.number, row)): columns for row in rows}, mark)

    def _write_all(self, client: Client, rows: dict[tuple[bytes, bytes], dict[bytes, bytes]], mark: bytes) -> None:
        batches, changes = [], []
        for key, columns in sorted(rows.items()):
            batches.append(hbase.BatchMutation(row=key[1], mutations=_puts(columns)))
            changes.append((key, self._after(key, columns)))
        client.call("mutateRows", TABLE, batches, {}, changes=tuple(changes), mark=mark)

    def _delete(self, client: Client) -> None:
        key = self._row()
        if self.rng.random() < 0.3:
            self.states[key] = {}
            client.call("deleteAllRow", *key, {}, changes=((key, GONE),))
            return
        gone = tuple(self.rng.sample((b"a:x", b"a:y", b"b:x", b"c:x"), 2))
        mutations = [hbase.Mutation(column=column, isDelete=True) for column in gone]
        client.call("mutateRow", *key, mutations, {}, changes=((key, self._after(key, {}, gone)),))

    def _increment(self, client: Client) -> None:
        key = TABLE, b"w%d-counter" % self.number
        held = int.from_bytes(self.states.get(key, {}).get(b"c:n", b""), "big") + 7
        changes = ((key, self._after(key, {b"c:n": held.to_bytes(8, "big")})),)
        answer = client.call("atomicIncrement", *key, b"c:n", 7, changes=changes)
        assert answer == held, f"the counter came to {answer} instead of {held}"

    def _append(self, client: Client) -> None:
        key, (mark, _) = self._row(), self._value()
        held = self.states.get(key, {}).get(b"a:x", b"")[-200:]
        changes = ((key, self._after(key, {b"a:x": self.states.get(key, {}).get(b"a:x", b"") + mark})),)
        order = hbase.TAppend(table=TABLE, row=key[1], columns=[b"a:x"], values=[mark])
        answer = client.call("append", order, changes=changes, mark=mark)
        assert answer[0].value.endswith(held + mark), f"append to {key} answered otherwise"

    def _check(self, client: Client) -> None:
        key, (mark, value) = self._row(), self._value()
        held = self.states.get(key, {}).get(b"b:x")
        expected = held if self.rng.random() < 0.7 else b"not this"
        if expected is None:
            expected = b""
        put = expected != b"not this"
        changes = ((key, self._after(key, {b"b:x": value} if put else {})),)
        order = hbase.Mutation(column=b"b:x", value=value)
        answer = client.call(
            "checkAndPut", *key, b"b:x", expected, order, {}, changes=changes, mark=mark if put else b""
        )
        assert answer is put, f"checkAndPut of {key} answered {answer}"

    def _logged(self, client: Client) -> None:
        """Write a row whose changes are delivered to a trigger."""
        key, (mark, value) = self._row(LOGGED), self._value()
        columns = {b"f:x": value[:3_000]}
        client.call("mutateRow", *key, _puts(columns), {}, changes=((key, self._after(key, columns)),), mark=mark)


def _puts(columns: dict[bytes, bytes]) -> list[Any]:
    return [hbase.Mutation(column=column, value=value) for column, value in columns.items()]


def prepare(client: Client, trigger: str) -> None:
    """Make the tables, and the trigger if ``trigger`` names a function."""
    families = [hbase.ColumnDescriptor(name=b"a:", maxVersions=3)]
    families += [hbase.ColumnDescriptor(name=name, maxVersions=1) for name in (b"b:", b"c:")]
    client.call("createTable", TABLE, families, changes=(((TABLE, b""), THERE),))
    for table, family in ((LOGGED, b"f:"), (AUDIT, b"a:")):
        descriptor = hbase.ColumnDescriptor(name=family, maxVersions=1)
        client.call("createTable", table, [descriptor], changes=(((table, b""), THERE),))
    if trigger:
        client.call("columnarTriggerAdd", to_json(Registration("audit", LOGGED.decode(), trigger, ("f",))))


def administer(client: Client, rounds: range, enough: threading.Event) -> None:
    """Do what else changes files: flushes, splits, compactions, new and dropped tables."""
    for n in rounds:
        name = b"u%d" % n
        client.call("createTable", name, [hbase.ColumnDescriptor(name=b"f:")], changes=(((name, b""), THERE),))
        row = (name, b"r")
        client.call("mutateRow", *row, _puts({b"f:x": name}), {}, changes=((row, ((b"f:x", name),)),))
        client.call("columnarFlush", TABLE)
        client.call("columnarSplit", TABLE, b"w%d-%02d" % ((2, 1, 3, 0)[n % 4], 4 * (n // 4)), busy_is_fine=True)
        client.call("columnarCompact", TABLE, bool(n % 2), busy_is_fine=True)
        if n % 2 == 0:
            client.call("disableTable", name)
            client.call("deleteTable", name, changes=(((name, b""), GONE), (row, GONE)))
        if enough.is_set():
            return


def work(
    port: int,
    writers: list[Writer],
    calls: int,
    rounds: range,
    beside: Callable[[Client, threading.Event], None] | None = None,
) -> list[Call]:
    """Run all writers, and ``beside`` until they have ended; return the calls of every client."""
    clients = [Client(port) for _ in (*writers, None, None)]
    failures: list[BaseException] = []
    enough = threading.Event()

    def run(step: Callable[[], None]) -> None:
        try:
            step()
        except BaseException as failure:  # noqa: BLE001 - raised again by whoever joins
            failures.append(failure)

    steps: list[Callable[[], None]] = [
        lambda writer=writer, client=client: writer.run(client, calls)  # type: ignore[misc]
        for writer, client in zip(writers, clients, strict=False)
    ]
    threads = [threading.Thread(target=run, args=(step,)) for step in steps]
    others = [threading.Thread(target=run, args=(lambda: administer(clients[-2], rounds, enough),))]
    if beside is not None:
        others.append(threading.Thread(target=run, args=(lambda: beside(clients[-1], enough),)))
    for thread in (*threads, *others):
        thread.start()
    for thread in threads:
        thread.join()
    enough.set()
    for thread in others:
        thread.join()
    for client in clients:
        client.close()
    if failures:
        raise failures[0]
    return [call for client in clients for call in client.calls]
