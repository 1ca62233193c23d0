"""Rounds of snapshots, clones, restores, exports, imports and backups, with the expected copies at each cut.

A copy counts as a table with a name of its own (``snapshot:NAME``, ``export:NAME``, ``backup:NAME``,
``restored:NAME``), so that ``promises`` checks it like tables: once acknowledged it exists, with the rows that its
source had, until its removal is requested.  Only one client writes the source, so these rows are known.
"""

from __future__ import annotations

import json
import socket
from dataclasses import replace
from threading import Event
from typing import Any, Final

from columnar.wire.idl import hbase
from tests.crash.cuts.workload import GONE, THERE, Call, Client, State

SOURCE: Final = b"s"
ROWS: Final = tuple(b"r%d" % n for n in range(6))
EXPORTS, BACKUPS, RESTORED = "exports", "backups", "restored"  # folders beside the data folder
SNAPSHOT, EXPORT, BACKUP, BACK = b"snapshot:", b"export:", b"backup:", b"restored:"
BESIDE: Final = (EXPORT, BACKUP, BACK)  # no server knows of these
KEPT: Final = 2  # backups
TIMEOUT_S: Final = 120

Changes = tuple[tuple[tuple[bytes, bytes], State], ...]


class Site:
    """The recorder's side of ``tests.crash.cuts.site``."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self.calls: list[Call] = []

    def meet(self) -> None:
        self._held, _ = self._listening.accept()
        self._held.settimeout(TIMEOUT_S)

    def command(self, store_port: int, *words: str, changes: Changes = ()) -> Any:
        """Run a command; return its output as JSON."""
        order = json.dumps([[*words, "--json"], f"127.0.0.1:{store_port}"]).encode()
        self._held.sendall(len(order).to_bytes(4, "big") + order)
        with self._held.makefile("rb") as reading:
            answer = json.loads(reading.read(int.from_bytes(reading.read(4), "big")))
        assert not answer["failure"], f"columnar {' '.join(words)}: {answer['failure']}"
        self.calls.append(Call(self.port, len(self.calls), f"columnar {words[0]}", changes))
        return json.loads(answer["printed"])

    def close(self) -> None:
        self._held.close()
        self._listening.close()


class Copier:
    """The client of copies, which outlives the servers: the next server continues with the existing copies."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._rounds = 0
        self._generation = 0
        self._backups: list[str] = []

    def prepare(self, client: Client) -> None:
        family = hbase.ColumnDescriptor(name=b"f:", maxVersions=3)
        client.call("createTable", SOURCE, [family], changes=_there(SOURCE))
        client.call("columnarSplit", SOURCE, ROWS[3])

    def run(self, site: Site, store_port: int, client: Client, enough: Event) -> None:
        """Run rounds until ``enough``."""
        self._round(client, site, store_port)
        while not enough.is_set():
            self._round(client, site, store_port)

    def _round(self, client: Client, site: Site, store_port: int) -> None:
        n = self._rounds
        self._rounds += 1
        snapshot, exported, clone, imported = f"s{n}", f"{self._root}/{EXPORTS}/x{n}", b"c%d" % n, b"i%d" % n
        first = self._fill(client)
        copy = SNAPSHOT + snapshot.encode()
        client.call("columnarSnapshotTake", snapshot, SOURCE, changes=_there(copy, first))
        second = self._fill(client)
        client.call("columnarSnapshotClone", snapshot, clone, changes=_there(clone, first))
        changes = _there(EXPORT + b"x%d" % n, second)
        site.command(store_port, "export", SOURCE.decode(), exported, changes=changes)
        client.call("columnarSnapshotRestore", snapshot, changes=_rows(SOURCE, first))
        changes = _there(imported, second)
        site.command(store_port, "import", exported, imported.decode(), changes=changes)
        self._back_up(site, store_port, first)
        words = ("restore-backup", f"{self._root}/{BACKUPS}", "--data", f"{self._root}/{RESTORED}/{n}")
        site.command(store_port, *words, changes=_there(BACK + b"%d" % n, first))
        for table in (clone, imported):
            client.call("disableTable", table)
            client.call("deleteTable", table, changes=(((table, b""), GONE),))
        if n % 2 == 0:
            client.call("columnarSnapshotDelete", snapshot, changes=(((copy, b""), GONE),))

    def _fill(self, client: Client) -> State:
        self._generation += 1
        state = ((b"f:g", b"g%d" % self._generation),)
        mutations = [hbase.Mutation(column=column, value=value) for column, value in state]
        batches = [hbase.BatchMutation(row=row, mutations=mutations) for row in ROWS]
        client.call("mutateRows", SOURCE, batches, {}, changes=_rows(SOURCE, state))
        return state

    def _back_up(self, site: Site, store_port: int, state: State) -> None:
        """Make a backup, whose name is known at its end; the backups that it removes are never missed."""
        held = self._backups[:]
        answer = site.command(store_port, "backup", f"{self._root}/{BACKUPS}", "--keep", str(KEPT))
        self._backups.append(answer["backup"])
        changes = _there(BACKUP + answer["backup"].encode(), state)
        for name in held[: len(self._backups) - KEPT]:
            changes += (((BACKUP + name.encode(), b""), GONE),)
            self._backups.remove(name)
        site.calls[-1] = replace(site.calls[-1], changes=changes)


def _rows(table: bytes, state: State) -> Changes:
    return tuple(((table, row), state) for row in ROWS)


def _there(table: bytes, state: State | None = None) -> Changes:
    """Return the states of the table, and of its rows if they are known."""
    return (((table, b""), THERE), *(_rows(table, state) if state is not None else ()))
