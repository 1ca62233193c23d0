"""The registrations of triggers: rows of ``columnar:triggers``, in memory and on disk.  Owned by the loop.

    row NAME        info:registration JSON   info:state running | paused   info:number decimal
    row #numbers    info:numbers JSON                              (``flows.numbers``)

Registrations of earlier versions have no number; so have their cursors, which go by the row's name instead.

Invariants:
    I1. A number is given on disk before a region bears it, and recorded as removed before its row goes: the write of
        ``#numbers`` is the removal.
    I2. A row that cannot be read, or whose table is missing, rests: its name and number stay taken until it is removed.
"""

from __future__ import annotations

import logging
from typing import Final

from columnar.errors import DamagedData, TriggerError
from columnar.flows import numbers
from columnar.flows.numbers import Numbers
from columnar.model.mutation import Delete, Put, RowMutation
from columnar.regions.tables import Tables
from columnar.triggers.registration import INFO, TRIGGERS_TABLE, Registration, State, from_json, to_json
from columnar.triggers.system_tables import SystemTables

_log = logging.getLogger(__name__)

_NUMBERS: Final = b"#numbers"  # no trigger's name
_STRAY: Final = "its row has neither a registration nor a number"


class Registry:
    def __init__(self, tables: Tables, system: SystemTables) -> None:
        self._tables = tables
        self._system = system
        self._numbers: Numbers | None = Numbers()  # None: what is on disk cannot be read
        self._known: dict[str, Registration] = {}
        self._by_table: dict[str, list[Registration]] = {}
        self._number_of: dict[str, int] = {}  # of known ones and of those that rest; 0: of an earlier version
        self._rests: dict[str, str] = {}  # why

    # --- reading -----------------------------------------------------------------------------------

    async def load(self) -> list[str]:
        """Read the table; returns the names of paused triggers."""
        rows = dict(await self._system.rows(TRIGGERS_TABLE))
        self._load_numbers(rows.pop(_NUMBERS, {}).get(b"info:numbers"))
        paused = []
        for row, cells in rows.items():
            name = row.decode(errors="replace")
            number = _number(cells.get(b"info:number"))
            if self._numbers is not None and number and self._numbers.is_removed(number):
                continue  # its row was still to be deleted
            self._number_of[name] = number
            data = cells.get(b"info:registration")
            if data is None and not number:
                self._rest(name, _STRAY)
                continue
            try:
                self._take(from_json(data or b""))
            except DamagedData as error:
                self._rest(name, error.text)
            if cells.get(b"info:state") == b"paused":
                paused.append(name)
        self._settle_beginning()
        return paused

    def _settle_beginning(self) -> None:
        """The store may have ended after it gave the number: either its registration is on disk, or it never was."""
        held = self._numbers
        if held is not None and held.beginning:
            is_made = held.beginning in self._number_of.values()
            self._numbers = held.made() if is_made else held.with_removed(held.beginning)

    def _load_numbers(self, data: bytes | None) -> None:
        try:
            self._numbers = numbers.from_json(data) if data is not None else Numbers()
        except DamagedData as error:
            _log.error("no trigger can be added or removed: %s", error.text)
            self._numbers = None

    def _take(self, registration: Registration) -> None:
        if self._tables.find(registration.table.encode()) is None:
            self._rest(registration.name, f"there is no table {registration.table}")
        else:
            self._know(registration)

    def _rest(self, name: str, why: str) -> None:
        self._rests[name] = why
        _log.warning("trigger %s rests, and its place in the logs is kept: %s", name, why)

    def _know(self, registration: Registration) -> None:
        self._forget(registration.name)
        self._known[registration.name] = registration
        self._by_table.setdefault(registration.table, []).append(registration)

    def _forget(self, name: str) -> None:
        self._rests.pop(name, None)
        registration = self._known.pop(name, None)
        if registration is not None:
            self._by_table[registration.table].remove(registration)
            if not self._by_table[registration.table]:
                del self._by_table[registration.table]

    # --- looks -------------------------------------------------------------------------------------

    def find(self, name: str) -> Registration | None:
        return self._known.get(name)

    def known(self, name: str) -> Registration:
        held = self._known.get(name)
        if held is None and name in self._rests:
            raise TriggerError(f"trigger {name} rests: {self._rests[name]}; columnar trigger remove {name}")
        if held is None:
            raise TriggerError(f"there is no trigger {name}; columnar trigger list shows those there are")
        return held

    def rests(self, name: str) -> bool:
        return name in self._rests

    def resting(self) -> dict[str, str]:
        """Names of registrations that are there and cannot be used, each with the reason."""
        return {name: why for name, why in self._rests.items() if why != _STRAY}

    def of_table(self, table: str) -> list[Registration]:
        return list(self._by_table.get(table, ()))

    def tables(self) -> list[str]:
        return list(self._by_table)

    def all(self) -> list[Registration]:
        return [self._known[name] for name in sorted(self._known)]

    def is_removed(self, name: str, number: int) -> bool:
        """Whether the trigger that began a cursor is removed (``flows.follower.Kind``).  O(spans)."""
        if number:
            return self._numbers is not None and self._numbers.is_removed(number)
        return name not in self._number_of  # earlier versions recorded nothing else

    def number_of(self, name: str) -> int:
        return self._number_of[name]

    # --- changes: one at a time, by whoever holds the keeper's lock -----------------------------------

    async def begin(self) -> int:
        """A number for a registration that is to be made: ``add`` or ``call_off`` must follow.  After the fsync."""
        return (await self._write_numbers(self._readable().begun())).beginning

    async def add(self, registration: Registration, number: int) -> None:
        """The registration is on disk when this returns."""
        name = registration.name
        puts = (
            Put(INFO, b"registration", to_json(registration)),
            Put(INFO, b"state", b"running"),
            Put(INFO, b"number", b"%d" % number),
        )
        await self._system.write(TRIGGERS_TABLE, RowMutation(name.encode(), puts))
        self._numbers = self._readable().made()  # on disk with the next write: a start finds the registration
        self._number_of[name] = number
        self._know(registration)

    def call_off(self, number: int) -> None:
        """No registration was made.  On disk with the next write; a start finds that there is none."""
        self._numbers = self._readable().with_removed(number)

    async def remove(self, name: str) -> None:
        """When this returns, or raises after the first write, the trigger is removed (I1)."""
        number = self._number_of[name]
        if number:
            await self._write_numbers(self._readable().with_removed(number))
            self._gone(name)
        await self._system.write(TRIGGERS_TABLE, RowMutation(name.encode(), (Delete(INFO, None),)))
        self._gone(name)

    def _gone(self, name: str) -> None:
        self._number_of.pop(name, None)
        self._forget(name)

    async def write_state(self, name: str, state: State) -> None:
        self.known(name)
        await self._system.write(TRIGGERS_TABLE, RowMutation(name.encode(), (Put(INFO, b"state", state.encode()),)))

    def _readable(self) -> Numbers:
        if self._numbers is None:
            raise TriggerError("the record of numbers in columnar:triggers cannot be read; restore it from a backup")
        return self._numbers

    async def _write_numbers(self, fresh: Numbers) -> Numbers:
        put = Put(INFO, b"numbers", numbers.to_json(fresh))
        await self._system.write(TRIGGERS_TABLE, RowMutation(_NUMBERS, (put,)))
        self._numbers = fresh
        return fresh


def _number(data: bytes | None) -> int:
    return int(data) if data is not None and data.isdigit() else 0
