"""For tests of triggers without a store: lists a function's effects, and checks that its tables converge.

    assert effects_of(tags, row=b"p", before={b"m:tags": b"x"}, after={b"m:tags": b"y"}) == [...]

    assert_converges(tags, {"pages": {"m:tags": [b"x", b"x,y", b"y,z"]}})

``assert_converges`` runs the function over random histories of the source's rows: puts and deletes, some stamped by
clients; runs that die in the middle and repeat; writes that arrive once more, or late; a trigger that is added
while rows exist.  Afterwards the tables must be those that result if each of the source's rows is delivered once.  The
tables of a function that tallies must be those of the same history without deaths and late writes.  Otherwise
``assert_converges`` raises AssertionError with the shortest history that it finds, and the cells that differ.  It also
raises AssertionError if the function writes through the client without a timestamp, even if no tried history has
produced a wrong cell because of that.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NoReturn

from columnar.errors import printable
from columnar.model.effect import Effect
from columnar.model.trigger_registration import Registration
from columnar.triggers.api import NO_BEFORE, NO_ROW, Change
from columnar.triggers.declared import On, marks_of
from columnar.triggers.forked import ending_copies
from columnar.triggers.lookup_client import Looked
from columnar.triggers.model_history import Event, random_history, shrunk
from columnar.triggers.model_runs import START_MS, Run, yielded
from columnar.triggers.model_tables import Row, TableContents
from columnar.triggers.slices import function_of

__all__ = ["assert_converges", "effects_of"]

ROWS: Final = (b"a", b"b", b"ab")  # a function that cuts off a key's end finds a different row
FIRST_SEED: Final = 20261124
_PRINTED_CELLS: Final = 6
_STAMP_SEEDS: Final = 20  # histories by which a converging function is checked for unstamped writes

Cells = Mapping[bytes, bytes]
Tables = Mapping[str, Mapping[Any, Any]]


def effects_of(
    function: Callable[..., Any],
    *,
    row: bytes = b"row",
    before: Cells | None = None,
    after: Cells | None = None,
    now: Cells | None = None,
    looked: Mapping[str, Cells] | None = None,
    client: Any = None,
    **fields: Any,
) -> list[Effect]:
    """Call the function for one change and return its effects; an empty list if its ``on`` would make no call.

    ``looked`` has cells by the name of the lookup; ``fields`` are further fields of ``Change``, as ``attempt``.
    """
    mark = _mark_of(function)
    images = {"before": dict(before or {}), "after": dict(after or {})}
    declared = None
    if mark is not None:
        declared = _with_families(mark, [*images["before"], *images["after"]])
        scope = declared.scope()
        images = {name: {c: v for c, v in image.items() if scope.has_image_of(c)} for name, image in images.items()}
        if not scope.matches_row(images["after"]):
            return []
    rows = {name: Looked(b"", b"looked", cells) for name, cells in (looked or {}).items()}
    is_before = mark is None or mark.registration.before
    change = Change(
        table=mark.registration.table.encode() if mark is not None else b"table",
        row=row,
        timestamp=fields.pop("stamp", START_MS),
        sequence=fields.pop("sequence", "1-1-1"),
        changes=tuple(fields.pop("changes", ())),
        now=dict(now or {}) if mark is None or mark.registration.row else NO_ROW,
        before=images["before"] if is_before else NO_BEFORE,
        after=images["after"],
        looked=rows,
        **fields,
    )
    is_batch = mark is not None and mark.registration.batch > 0
    registration: Any = (change,) if is_batch else change
    with ending_copies():
        found = function(registration, client) if function_of(function).wants_client else function(registration)
        return list(yielded(found, change, declared, is_batch=is_batch))


def assert_converges(
    function: Callable[..., Any],
    tables: Tables,
    seeds: int = 200,
    *,
    rows: Sequence[bytes] = ROWS,
    first_seed: int = FIRST_SEED,
) -> None:
    """Raise AssertionError if the function's tables do not converge over ``seeds`` random histories.

    ``tables`` has for the source its columns with values to choose from, and for lookup tables rows with their cells.
    """
    mark = _mark_of(function)
    if mark is None:
        raise TypeError(f"{function.__name__} has no mark, or several: write @on(table, ...) above it once")
    source = {_bytes(column): values for column, values in tables[mark.registration.table].items()}
    registration = _with_families(mark, list(source))
    lookup_tables = {name.encode(): contents for name, contents in tables.items() if name != registration.table}

    def problem(history: tuple[Event, ...]) -> str:
        return _problem(registration, function, lookup_tables, history)

    for seed in range(first_seed, first_seed + seeds):
        history = random_history(random.Random(seed), source, rows)
        if problem(history):
            _refuse(registration.name, seed, history, problem)

    def unstamped(history: tuple[Event, ...]) -> str:
        found = Run(registration, function_of(function), lookup_tables).play(history).unstamped
        return found and (
            f"  it {found} through client without timestamp=change.stamp: a write that arrives late, or once more, "
            "would win over a newer one"
        )

    for seed in range(first_seed, first_seed + min(seeds, _STAMP_SEEDS)):
        history = random_history(random.Random(seed), source, rows)
        if unstamped(history):
            _refuse(registration.name, seed, history, unstamped)


def _refuse(name: str, seed: int, history: tuple[Event, ...], problem: Callable[[tuple[Event, ...]], str]) -> NoReturn:
    short = shrunk(history, lambda some: bool(problem(some)))
    lines = [f"  {at}. {event}" for at, event in enumerate(short, 1)]
    raise AssertionError(
        f"{name} does not converge (seed {seed}, {len(history)} events shortened to {len(short)}):\n"
        + "\n".join([*lines, "  and the rest is delivered, in order", problem(short)])
    )


def _problem(
    registration: Registration,
    function: Callable[..., Any],
    lookup_tables: Mapping[bytes, Mapping[bytes, Row]],
    history: Any,
) -> str:
    """Return why the tables are wrong after this history; an empty text if they are right."""
    try:
        run = Run(registration, function_of(function), lookup_tables).play(history)
        if run.tallies:  # the rows do not say how many changes there were
            wanted = (
                Run(registration, function_of(function), lookup_tables).play(history, is_kind=True).table_contents()
            )
        else:
            wanted = run.recomputed()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the author's code: whatever it raises is what is wrong
        return f"it raises {type(error).__name__}: {error}"
    return _difference(run.table_contents(), wanted)


def _difference(found: TableContents, wanted: TableContents) -> str:
    mine, theirs = _flat(found), _flat(wanted)
    lines = []
    for place in sorted(mine.keys() | theirs.keys()):
        if mine.get(place) != theirs.get(place):
            table, row, column = map(printable, place)
            lines.append(
                f"  {table} {row} {column} {_value(mine.get(place))}; its rows give {_value(theirs.get(place))}"
            )
    if not lines:
        return ""
    more = [f"  and {len(lines) - _PRINTED_CELLS} more"] if len(lines) > _PRINTED_CELLS else []
    return "\n".join([*lines[:_PRINTED_CELLS], *more, f"  {_hint(mine, theirs)}"])


def _hint(mine: Mapping[Any, bytes], theirs: Mapping[Any, bytes]) -> str:
    if mine.keys() - theirs.keys():
        return "A cell is left over: Delete what change.gone(...) names; stamp what is written through client."
    if theirs.keys() - mine.keys():
        return "A cell is missing: name its source in the qualifier or row, so that no other row's change removes it."
    return "A value is another: name its source in the qualifier or row, stamp it, and add to no counter."


def _flat(contents: TableContents) -> dict[tuple[bytes, bytes, bytes], bytes]:
    return {
        (table, row, column): value
        for table, rows in contents.items()
        for row, cells in rows.items()
        for column, value in cells.items()
    }


def _value(value: bytes | None) -> str:
    return "is not there" if value is None else f"is {printable(value)!r}"


def _mark_of(function: Callable[..., Any]) -> On | None:
    marks = marks_of(function)
    return marks[0] if len(marks) == 1 else None


def _with_families(mark: On, columns: Sequence[bytes]) -> Registration:
    return mark.with_families(sorted({column.partition(b":")[0] for column in columns} or {b"f"}))


def _bytes(column: str | bytes) -> bytes:
    return column.encode() if isinstance(column, str) else column
