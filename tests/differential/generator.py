"""(pure) A random session from one seed: calls of every kind, on tables that live long enough to be full of things.

The calls do not depend on any answer, so the same seed gives the same session to every server.  What is left
out, and why, stands with the part that leaves it out; COMPATIBILITY.md has the whole list:

    written.py          what HBase answers before a compaction and not after it
    random_filters.py   filters that we answer otherwise on purpose
    mistakes.py         calls that take HBase minutes
    here                puts and deletes that meet in one call (order within a batch); writes to a table
                        while a scanner of it is open (HBase's snapshot of a region)
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, Final

from tests.differential import words
from tests.differential.calls import Call, Scanner
from tests.differential.mistakes import mistake
from tests.differential.random_filters import FilterWords, random_filter
from tests.differential.written import NOW, Column, WrittenTable

TABLES: Final = 4  # that live at one time
TABLE_LIFE: Final = 1500  # calls
_FRESH_ROWS: Final = 0.02  # how often a row of a table's pool is replaced by one nobody wrote to


class Generator:
    def __init__(self, seed: int, prefix: bytes) -> None:
        self._rng = random.Random(seed)
        self._prefix = prefix
        self._tables: list[WrittenTable] = []
        self._made = 0
        self._writes = 0  # tells the clock's timestamps apart
        self._opened = 0
        self._fresh = 0
        self._next_table_at = 0

    def calls(self, count: int) -> Iterator[Call]:
        """At least ``count`` calls, and then the tables are dropped."""
        given = 0
        while given < count:
            for call in self._some(given):
                given += 1
                yield call
        for table in list(self._tables):
            yield from self._drop(table)

    def _some(self, given: int) -> Iterator[Call]:
        if given >= self._next_table_at:
            self._next_table_at = given + TABLE_LIFE // TABLES
            yield from self._create()
            if len(self._tables) > TABLES:
                yield from self._drop(self._tables[0])
            return
        kinds = (
            (30, self._read), (26, self._put), (9, self._delete), (8, self._count), (4, self._append),
            (6, self._check), (8, self._scans), (6, self._mistake),
            (0.4, self._fill), (0.25, self._look), (0.1, self._toggle),
        )  # fmt: skip
        (make,) = self._rng.choices([make for _, make in kinds], [weight for weight, _ in kinds])
        yield from make()

    # --- tables ------------------------------------------------------------------------------------

    def _create(self) -> Iterator[Call]:
        rng = self._rng
        name = self._prefix + b"t%d" % self._made
        self._made += 1
        families = rng.sample(words.FAMILIES, rng.choice((1, 2, 2, 3, 4)))
        descriptors, keep = [], {}
        for family in families:
            described: dict[str, Any] = {"name": family + rng.choice((b"", b":"))}
            described["maxVersions"] = keep[family] = rng.choice((1, 1, 2, 3, 3, 5, 100))
            described["bloomFilterType"] = rng.choice(("NONE", "ROW", "ROWCOL"))
            described["inMemory"] = rng.random() < 0.3
            described["blockCacheEnabled"] = rng.random() < 0.7
            described["timeToLive"] = rng.choice((-1, 0, 2**31 - 1, 2**31 - 1, 1_000_000_000))
            descriptors.append(described)
        self._tables.append(WrittenTable(name, keep, rng.sample(words.ROWS, 14)))
        yield Call("tables", "createTable", (name, descriptors))
        yield Call("tables", "getColumnDescriptors", (name,))

    def _drop(self, table: WrittenTable) -> Iterator[Call]:
        self._tables.remove(table)
        yield Call("tables", "disableTable", (table.name,))
        yield Call("tables", "deleteTable", (table.name,))
        yield Call("tables", "getTableRegions", (table.name,))

    def _look(self) -> Iterator[Call]:
        name = self._table().name
        method, args = self._rng.choice(
            (
                ("getColumnDescriptors", (name,)), ("getTableRegions", (name,)), ("isTableEnabled", (name,)),
                ("getRegionInfo", (name + b",r,99",)), ("compact", (name,)), ("majorCompact", (name,)),
                ("getThriftServerType", ()), ("getClusterId", ()), ("getTableNames", ()),
                ("getTableNamesWithIsTableEnabled", ()),
            )
        )  # fmt: skip
        yield Call("tables", method, args)

    def _toggle(self) -> Iterator[Call]:
        """What a disabled table answers, one row at a time: more take HBase minutes."""
        rng, table = self._rng, self._table()
        name, row, (column,) = table.name, self._row(table), self._names(table, 1)
        yield Call("tables", "disableTable", (name,))
        asked: list[tuple[str, tuple[Any, ...]]] = [
            ("get", (name, row, column, {})), ("getRow", (name, row, {})), ("getRows", (name, [row], {})),
            ("mutateRow", (name, row, [{"column": column, "value": b"1"}], {})), ("deleteAllRow", (name, row, {})),
            ("atomicIncrement", (name, row, column, 1)), ("isTableEnabled", (name,)), ("disableTable", (name,)),
            ("append", ({"table": name, "row": row, "columns": [column], "values": [b"1"]},)),
            ("checkAndPut", (name, row, column, None, {"column": column, "value": b"1"}, {})),
            ("getTableRegions", (name,)), ("getTableNamesWithIsTableEnabled", ()),
            ("createTable", (name, [{"name": b"f"}])),
        ]  # fmt: skip
        for method, args in rng.sample(asked, 4):
            yield Call("disabled", method, args)
        yield Call("tables", "enableTable", (name,))

    # --- what calls are made of ----------------------------------------------------------------------

    def _table(self) -> WrittenTable:
        return self._rng.choice(self._tables)

    def _row(self, table: WrittenTable) -> bytes:
        if self._rng.random() < _FRESH_ROWS:
            self._fresh += 1
            table.rows[self._rng.randrange(len(table.rows))] = b"%s~%d" % (
                self._rng.choice(words.ROWS)[:9],
                self._fresh,
            )
        return self._rng.choice(table.rows)

    def _column(self, table: WrittenTable) -> Column:
        return self._rng.choice(list(table.families)), self._rng.choice(words.QUALIFIERS)

    def _names(self, table: WrittenTable, count: int) -> list[bytes]:
        columns = words.columns_of(self._rng, list(table.families), count)
        return [family + b":" + qualifier for family, qualifier in columns]

    def _wanted(self, table: WrittenTable) -> list[bytes] | None:
        """Columns and whole families, in any order; none for all."""
        rng = self._rng
        if rng.random() < 0.3:
            return rng.choice((None, []))
        wanted = self._names(table, rng.randint(1, 4))
        if rng.random() < 0.05:
            wanted.append(wanted[0])
        if rng.random() < 0.4:
            wanted.insert(rng.randint(0, len(wanted)), rng.choice(list(table.families)))
        return wanted

    def _written_at(self, stamp: int | None) -> int:
        self._writes += 1
        return NOW + self._writes if stamp in (None, words.LATEST) else stamp

    def _past(self, table: WrittenTable, rows: list[bytes] | None) -> int | None:
        """A timestamp to read at; None where the past would depend on a compaction."""
        stamp = words.read_stamp(self._rng)
        return stamp if table.reads_alike_at(stamp, rows) else None

    # --- reads ---------------------------------------------------------------------------------------

    def _read(self) -> Iterator[Call]:
        rng, table = self._rng, self._table()
        name, row = table.name, self._row(table)
        kind, column = rng.random(), rng.choice((*self._names(table, 3), rng.choice(list(table.families))))
        if kind < 0.15:
            yield Call("get", "get", (name, row, column, {}))
        elif kind < 0.4:
            many = rng.choice((1, 2, 3, 10, 2**31 - 1))
            stamp = self._past(table, [row])
            if stamp is None or kind < 0.3:
                yield Call("get", "getVer", (name, row, column, many, {}))
            else:
                yield Call("get", "getVerTs", (name, row, column, stamp, many, {}))
        elif kind < 0.75:
            yield self._read_rows(table, "getRow", row, [row])
        else:
            rows = [self._row(table) for _ in range(rng.randint(0, 5))]
            yield self._read_rows(table, "getRows", rows, rows)

    def _read_rows(self, table: WrittenTable, method: str, what: Any, rows: list[bytes]) -> Call:
        rng = self._rng
        stamp = self._past(table, rows) if rng.random() < 0.4 else None
        columns = self._wanted(table)
        args = (table.name, what)
        if rng.random() < 0.6:
            method, args = method + "WithColumns", (*args, columns)
        if stamp is not None:
            method, args = method + "Ts", (*args, stamp)
        return Call("rows", method, (*args, {}))

    # --- writes --------------------------------------------------------------------------------------

    def _put(self) -> Iterator[Call]:
        rng, table = self._rng, self._table()
        if rng.random() < 0.5:
            row = self._row(table)
            stamp, mutations, attributes = self._mutations(table, [row])
            if stamp is None:
                yield Call("put", "mutateRow", (table.name, row, mutations[0], attributes))
            else:
                yield Call("put", "mutateRowTs", (table.name, row, mutations[0], stamp, attributes))
            return
        rows = list(dict.fromkeys(self._row(table) for _ in range(rng.randint(1, 4))))
        stamp, mutations, attributes = self._mutations(table, rows)
        batches = [{"row": row, "mutations": each} for row, each in zip(rows, mutations, strict=True)]
        if rng.random() < 0.15 and len(mutations[0]) > 1 and stamp not in (None, words.LATEST):  # a row in two parts
            batches.append({"row": rows[0], "mutations": [mutations[0].pop()]})
        if stamp is None:
            yield Call("put", "mutateRows", (table.name, batches, attributes))
        else:
            yield Call("put", "mutateRowsTs", (table.name, batches, stamp, attributes))

    def _mutations(
        self, table: WrittenTable, rows: list[bytes]
    ) -> tuple[int | None, list[list[dict[str, Any]]], dict[bytes, bytes]]:
        """A timestamp for all, and mutations for each row: puts, and deletes of columns that nobody here puts."""
        rng = self._rng
        chosen = [words.columns_of(rng, list(table.families), rng.choice((1, 1, 2, 3, 5))) for _ in rows]
        if rng.random() < 0.05:
            chosen[0].append(chosen[0][0])  # a cell twice
        mark = max(table.row(row).mark(column) for row, columns in zip(rows, chosen, strict=True) for column in columns)
        stamp = words.stamp_above(rng, mark)
        attributes, lives = self._ttl(stamp)
        found = []
        for row, columns in zip(rows, chosen, strict=True):
            mutations = []
            for column in columns:
                name = column[0] + b":" + column[1]
                if len(columns) > 1 and columns.count(column) == 1 and lives and rng.random() < 0.12:
                    mutations.append({"isDelete": True, "column": name})
                    table.row(row).delete_column(column, self._written_at(stamp))
                    continue
                value = rng.choice(words.VALUES) if rng.random() < 0.97 else None
                mutations.append({"column": name, "value": value, "writeToWAL": rng.random() < 0.95})
                table.put(row, column, self._written_at(stamp))
                if not lives:
                    table.row(row).unsure.add(column)
            found.append(mutations)
        return stamp, found, attributes

    def _fill(self) -> Iterator[Call]:
        """A hundred rows at once, so that scans have something to go through."""
        rng, table = self._rng, self._table()
        stamp, letter = rng.randint(1, 30), rng.choice((b"b", b"k", b"r", b"s"))
        batches = []
        for number in rng.sample(range(1000), 100):
            row, mutations = letter + b"%03d" % number, []
            for family, qualifier in words.columns_of(rng, list(table.families), rng.randint(1, 8)):
                mark = table.row(row).mark((family, qualifier))
                if mark >= stamp:
                    continue
                mutations.append({"column": family + b":" + qualifier, "value": rng.choice(words.VALUES[:13])})
                table.put(row, (family, qualifier), stamp)
            batches.append({"row": row, "mutations": mutations})
        yield Call("put", "mutateRowsTs", (table.name, batches, stamp, {}))

    def _ttl(self, stamp: int | None) -> tuple[dict[bytes, bytes], bool]:
        """Now and then a cell's time to live, long past or far ahead; and whether the cells live."""
        if self._rng.random() > 0.03:
            return {}, True
        ends = stamp is not None and stamp < NOW and self._rng.random() < 0.5
        ttl_ms = 60_000 if ends else 10**15
        return {b"_ttl": ttl_ms.to_bytes(8, "big")}, not ends

    def _delete(self) -> Iterator[Call]:
        rng, table = self._rng, self._table()
        row, stamp = self._row(table), words.delete_stamp(rng)
        name, held, at = table.name, table.row(row), self._written_at(stamp)
        kind = rng.random()
        if kind < 0.25:
            for family in table.families:
                held.delete_family(family, at)
            args: tuple[Any, ...] = (name, row)
            method = "deleteAllRow"
        elif kind < 0.6:
            column = self._column(table)
            held.delete_column(column, at)
            args = (name, row, column[0] + b":" + column[1])
            method = "deleteAll"
        elif kind < 0.7:
            family = rng.choice(list(table.families))
            held.delete_family(family, at)
            args = (name, row, family)
            method = "deleteAll"
        else:
            family, column = rng.choice(list(table.families)), self._column(table)
            held.delete_family(family, at)
            held.delete_column(column, at)
            gone = [family, column[0] + b":" + column[1]]
            mutations = [{"isDelete": True, "column": one} for one in rng.sample(gone, 2)]
            if rng.random() < 0.5:
                args, method = (name, row, mutations), "mutateRow"
            else:
                args, method = (name, [{"row": row, "mutations": mutations}]), "mutateRows"
        if stamp is not None:
            args, method = (*args, stamp), method + "Ts"
        yield Call("delete", method, (*args, {}))

    def _living(self, table: WrittenTable) -> tuple[bytes, Column] | None:
        """A cell that a write by the clock reaches: no delete ahead of the clock hides it."""
        row, column = self._row(table), self._column(table)
        if table.row(row).mark(column) >= NOW + 10**9:
            return None
        table.row(row).unsure.add(column)
        table.put(row, column, self._written_at(None))
        return row, column

    def _count(self) -> Iterator[Call]:
        rng, table = self._rng, self._table()
        cells = [cell for cell in (self._living(table) for _ in range(rng.choice((1, 1, 1, 3)))) if cell]
        if not cells:
            return
        cells = list({row: (row, column) for row, column in cells}.values())  # the clock may tick between them
        kind = rng.random()
        amounts = [rng.choice(words.AMOUNTS) for _ in cells]
        if kind < 0.6:
            row, (family, qualifier) = cells[0]
            yield Call("count", "atomicIncrement", (table.name, row, family + b":" + qualifier, amounts[0]))
            return
        increments = [
            {"table": table.name, "row": row, "column": family + b":" + qualifier, "ammount": amount}
            for (row, (family, qualifier)), amount in zip(cells, amounts, strict=True)
        ]
        if kind < 0.8:
            yield Call("count", "increment", (increments[0],))
        else:
            yield Call("count", "incrementRows", (increments,))

    def _append(self) -> Iterator[Call]:
        rng, table = self._rng, self._table()
        row = self._row(table)
        columns = words.columns_of(rng, list(table.families), rng.choice((1, 1, 2, 3)))
        held = table.row(row)
        columns = [column for column in columns if held.mark(column) < NOW + 10**9]
        if not columns:
            return
        for column in columns:
            held.unsure.add(column)
            table.put(row, column, self._written_at(None))
        names = [family + b":" + qualifier for family, qualifier in columns]
        values = [rng.choice(words.VALUES[:13]) for _ in columns]
        yield Call("append", "append", ({"table": table.name, "row": row, "columns": names, "values": values},))

    def _check(self) -> Iterator[Call]:
        rng, table = self._rng, self._table()
        cell = self._living(table)
        if cell is None:
            return
        row, (family, qualifier) = cell
        checked = family + b":" + qualifier
        put = self._column(table) if rng.random() < 0.5 else (family, qualifier)
        if table.row(row).mark(put) >= NOW + 10**9:
            return
        table.row(row).unsure.add(put)
        table.put(row, put, self._written_at(None))
        expected = rng.choice((None, None, b"", rng.choice(words.VALUES), rng.choice(words.VALUES)))
        mutation = {"column": put[0] + b":" + put[1], "value": rng.choice(words.VALUES)}
        yield Call("check", "checkAndPut", (table.name, row, checked, expected, mutation, {}))

    # --- scanners and mistakes -------------------------------------------------------------------------

    def _scans(self) -> Iterator[Call]:
        """Up to three scanners at a time, moved in turns; nobody writes meanwhile."""
        rng, table = self._rng, self._table()
        openings = [self._opening(table) for _ in range(rng.choice((1, 1, 1, 2, 3)))]
        yield from openings
        open_ones = [call.opens for call in openings]
        for _ in range(rng.randint(1, 4) * len(openings)):
            scanner = rng.choice(open_ones)
            if rng.random() < 0.25:
                yield Call("scan", "scannerGet", (scanner,))
            else:
                yield Call("scan", "scannerGetList", (scanner, rng.choice((0, 1, 2, 3, 5, 50, 1000))))
        for scanner in open_ones:
            yield Call("scan", "scannerClose", (scanner,))
        if rng.random() < 0.1:
            yield Call("scan", "scannerGet", (open_ones[0],))

    def _bounds(self, table: WrittenTable) -> tuple[bytes, bytes]:
        rng = self._rng
        first, last = (rng.choice((b"", rng.choice(table.rows), rng.choice(table.rows)[:2])) for _ in range(2))
        return (first, last) if rng.random() < 0.1 or not first or not last else (min(first, last), max(first, last))

    def _opening(self, table: WrittenTable) -> Call:
        rng, name = self._rng, table.name
        self._opened += 1
        opens = Scanner(self._opened)
        (start, stop), columns, stamp = self._bounds(table), self._wanted(table), self._past(table, None)
        kind = rng.random()
        if kind < 0.65:
            return Call(
                "scan", "scannerOpenWithScan", (name, self._scan(table, start, stop, columns, stamp), {}), opens
            )
        if kind < 0.72:
            prefix = rng.choice(table.rows)[:2]
            return Call("scan", "scannerOpenWithPrefix", (name, prefix, columns, {}), opens)
        if stamp is None or rng.random() < 0.5:
            if rng.random() < 0.5:
                return Call("scan", "scannerOpen", (name, start, columns, {}), opens)
            return Call("scan", "scannerOpenWithStop", (name, start, stop, columns, {}), opens)
        if rng.random() < 0.5:
            return Call("scan", "scannerOpenTs", (name, start, columns, stamp, {}), opens)
        return Call("scan", "scannerOpenWithStopTs", (name, start, stop, columns, stamp, {}), opens)

    def _scan(
        self, table: WrittenTable, start: bytes, stop: bytes, columns: list[bytes] | None, stamp: int | None
    ) -> dict[str, Any]:
        rng = self._rng
        scan: dict[str, Any] = {}
        backwards = rng.random() < 0.35
        if backwards:
            scan["reversed"], start, stop = True, stop, start
        scan |= {key: bound for key, bound in (("startRow", start), ("stopRow", stop)) if rng.random() < 0.7}
        if columns is not None:
            scan["columns"] = columns
        if stamp is not None and rng.random() < 0.4:
            scan["timestamp"] = stamp
        if rng.random() < 0.5:
            scan["sortColumns"] = rng.random() < 0.8
        if rng.random() < 0.3:
            scan["caching"] = rng.choice((1, 2, 100))
        whole_rows = False
        if rng.random() < 0.6:
            given = FilterWords(table.rows, list(table.families), words.QUALIFIERS, words.VALUES)
            hints, counts = table.seeks_alike(), table.counts_alike()
            made = random_filter(rng, given, backwards=backwards, hints=hints, counts=counts)
            scan["filterString"], whole_rows = made.text, made.whole_rows
        if rng.random() < 0.3 and not whole_rows:
            scan["batchSize"] = rng.choice((0, 1, 2, 3, 100))
        return scan

    def _mistake(self) -> Iterator[Call]:
        self._opened += 1
        table = self._table()
        yield from mistake(self._rng, table.name, list(table.families), self._prefix, Scanner(self._opened))
