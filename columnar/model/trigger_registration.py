"""(pure) A trigger's registration: what runs on which families of which table.

The catalogue has one row for each (``master.derivation_rows``), with the JSON of this dataclass.  Columns,
conditions, lookups and images get their meaning from ``trigger_scope``.  Bytes are written as latin-1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from columnar.errors import DamagedData, IllegalArgument, TriggerError
from columnar.model.schema import table_name_text

if TYPE_CHECKING:
    from columnar.model.trigger_scope import Scope

DEFAULT_TIMEOUT_MS: Final = 30_000
DEFAULT_ATTEMPTS: Final = 8  # with growing pauses: some 25 s until a change is given up
DEFAULT_SIDE_BY_SIDE: Final = 8
MOST_SIDE_BY_SIDE: Final = 64
DEFAULT_SHARE: Final = 10
MOST_SHARE: Final = 1_000
BATCH_CHANGES: Final = 1_000
LONGEST_WITHIN_MS: Final = 60_000
MOST_PROCESSES: Final = 16  # labels of the triggers of a store
_STARTS: Final = ("now", "beginning")
_PERIODS_S: Final = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_RATE: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)/(s|min|h|d)", re.ASCII)
_NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,99}", re.ASCII)
_FUNCTION: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Registration:
    name: str
    table: str
    function: str  # ``module:function``
    families: tuple[str, ...]  # latin-1 of the bytes
    before: bool = False  # changes carry the touched cells as they were
    from_where: str = "now"  # or beginning, or a time (``start_ms_of``) from which the log is shown
    timeout_ms: int = DEFAULT_TIMEOUT_MS
    attempts: int = DEFAULT_ATTEMPTS
    row: bool = True  # changes carry the row as it is when they are delivered
    side_by_side: int = DEFAULT_SIDE_BY_SIDE  # runs at a time, on each server
    share: int = DEFAULT_SHARE  # of the worker's time, relative to other triggers' shares
    rate: str = ""  # calls that begin (``rate_per_s``); empty: unbounded
    batch: int = 0  # changes of one call, at most; 0: the function gets one change, not a sequence
    within_ms: int = 0  # a batch is delivered when it is full or its first change is so old
    process: str = ""  # label: triggers of one label share a worker process; empty: the server's common one
    columns: tuple[str, ...] = ()  # family or family:qualifier: a change counts if it touches one; none: any
    where: tuple[str, ...] = ()  # conditions on the row after the change (``condition_text``), all of which hold
    look: tuple[tuple[str, str, str], ...] = ()  # name, table and extractor of a row that comes along
    images: bool = False  # changes carry ``after``, and ``before`` whole: of columns, where and look
    writes: tuple[str, ...] = ()  # tables, or table/family, that the function says it writes (``model.flow_graph``)
    of_module: str = ""  # whose sync made it (``columnar trigger sync``); empty: made by hand
    allow_expiry: bool = False  # cells that it follows may expire, of which it is not notified
    allow_cycle: bool = False  # it may follow its own changes, through other flows, up to ``model.flow_graph.HOPS``

    @property
    def module(self) -> str:
        return self.function.partition(":")[0]

    @property
    def start_ms(self) -> int | None:
        """The time at which it starts; None: now, or at the beginning.  IllegalArgument."""
        return start_ms_of(self.from_where)

    @property
    def family_bytes(self) -> frozenset[bytes]:
        return frozenset(family.encode("latin-1") for family in self.families)

    @property
    def families_read(self) -> frozenset[str]:
        """Families whose changes count, and those of its conditions, its lookups and its images."""
        return frozenset([*self.families, *(family.decode("latin-1") for family in self.scope().images)])

    def scope(self) -> Scope:
        """The changes that count, and their images.  IllegalArgument: a text of it cannot be read."""
        from columnar.model.trigger_scope import scope_of  # a server without triggers needs none of it

        return scope_of(self.families, self.columns, self.where, self.look, images=self.images)


def start_ms_of(text: str) -> int | None:
    """Milliseconds since 1970 of a time as 2026-01-31T12:00, in UTC without a zone; None: ``now``, ``beginning``.

    IllegalArgument: it is none of the three.
    """
    if text in _STARTS:
        return None
    try:
        at = datetime.fromisoformat(text)
        found = round((at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp() * 1_000)
    except (ValueError, OverflowError):
        found = 0
    if found <= 0:
        raise IllegalArgument(
            f"a trigger starts from now, from the beginning or from a time, as 2026-01-31T12:00Z, not from '{text}'"
        )
    return found


def settings_of(registration: Registration) -> str:
    """Settings of pace that somebody has chosen, as options of ``columnar trigger add``."""
    chosen = {
        "side-by-side": registration.side_by_side if registration.side_by_side != DEFAULT_SIDE_BY_SIDE else 0,
        "share": registration.share if registration.share != DEFAULT_SHARE else 0,
        "rate": registration.rate,
        "batch": registration.batch,
        "within": f"{registration.within_ms / 1_000:g}" if registration.within_ms else "",
        "process": registration.process,
    }
    return " ".join(f"{name}={value}" for name, value in chosen.items() if value)


def start_at(ms: int) -> str:
    """The time as registrations say it."""
    return datetime.fromtimestamp(ms / 1_000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def rate_per_s(text: str) -> float:
    """``10/s``, ``600/min``, ``5/h`` or ``1/d`` as calls a second.  IllegalArgument for anything else."""
    match = _RATE.fullmatch(text)
    if match is None or not float(match[1]):
        raise IllegalArgument(f"rate '{text}': write it as 10/s, 600/min, 5/h or 1/d, more than 0")
    return float(match[1]) / _PERIODS_S[match[2]]


def checked(registration: Registration, allowed_modules: tuple[str, ...]) -> Registration:
    """IllegalArgument, TriggerError: what is wrong and what would be right."""
    if not _NAME.fullmatch(registration.name):
        raise IllegalArgument(f"trigger name '{registration.name}': use up to 100 letters, digits, '_', '-' and '.'")
    if not _FUNCTION.fullmatch(registration.function):
        raise IllegalArgument(f"trigger function '{registration.function}': write it as module:function")
    start_ms_of(registration.from_where)
    if not registration.families:
        raise IllegalArgument("name at least one column family that the trigger is for")
    for what, number in (("timeout (ms)", registration.timeout_ms), ("attempts", registration.attempts)):
        if number <= 0:
            raise IllegalArgument(f"{what} of a trigger is positive, not {number}")
    if not 1 <= registration.side_by_side <= MOST_SIDE_BY_SIDE:
        times = registration.side_by_side
        raise IllegalArgument(f"a trigger runs 1 to {MOST_SIDE_BY_SIDE} times side by side, not {times}")
    _check_pace(registration)
    from columnar.model.trigger_scope import checked_scope  # as in ``scope``

    checked_scope(registration.families, registration.columns, registration.where, registration.look)
    module = registration.module
    if module not in allowed_modules:
        allowed = ", ".join(allowed_modules) or "none"
        raise TriggerError(
            f"module {module} is not allowed for triggers (allowed: {allowed}); "
            f"start the store with --trigger-modules {module}"
        )
    return registration


def _check_pace(registration: Registration) -> None:
    """Share, rate, batch and process."""
    if not 1 <= registration.share <= MOST_SHARE:
        raise IllegalArgument(f"the share of a trigger is 1 to {MOST_SHARE}, not {registration.share}")
    if registration.rate:
        rate_per_s(registration.rate)
    if not 0 <= registration.batch <= BATCH_CHANGES:
        raise IllegalArgument(f"a batch has up to {BATCH_CHANGES} changes, not {registration.batch}; 0 for no batches")
    if not 0 <= registration.within_ms <= LONGEST_WITHIN_MS:
        raise IllegalArgument(f"a batch waits 0 to {LONGEST_WITHIN_MS} ms for changes, not {registration.within_ms}")
    if registration.within_ms and not registration.batch:
        raise IllegalArgument("only a batch waits for more changes: say how many changes it has at most")
    if registration.process and not _NAME.fullmatch(registration.process):
        label = registration.process
        raise IllegalArgument(f"process label '{label}': use up to 100 letters, digits, '_', '-' and '.'")


# --- JSON --------------------------------------------------------------------------------------------

_FIRST: Final = {"name", "table", "function", "families", "before", "from_where", "timeout_ms", "attempts"}
_LATER: Final = {one.name: one.default for one in fields(Registration) if one.name not in _FIRST}  # than version 1
_UNSAID: Final = object()


def to_json(registration: Registration) -> bytes:
    """Fields that came after the first version are written where they say something: earlier programs read the rest."""
    held = {key: value for key, value in asdict(registration).items() if value != _LATER.get(key, _UNSAID)}
    return json.dumps(held, sort_keys=True).encode()


def from_json(data: bytes) -> Registration:
    """DamagedData when the bytes are none of ours."""
    found = _decoded(data)
    try:
        if found.columns or found.where or found.look:
            found.scope()  # what cannot be read is found now, not where a region's changes are followed
    except IllegalArgument as error:
        raise DamagedData(f"registration of a trigger: {error}") from error
    return found


def requested(data: bytes) -> Registration:
    """Return the registration that a client's JSON requests, as it is kept; a number of 0 means the default.

    IllegalArgument: what is wrong.
    """
    from columnar.model.trigger_scope import bytes_of_latin  # as in ``scope``

    try:
        found = _decoded(data)
    except DamagedData as error:  # here the caller's fault
        raise IllegalArgument(error.text) from error
    for text in (*found.families, *found.columns):
        bytes_of_latin(text)
    return replace(
        found,
        table=table_name_text(found.table.encode()),
        families=_ordered(found.families),
        from_where=found.from_where or "now",
        timeout_ms=found.timeout_ms or DEFAULT_TIMEOUT_MS,
        attempts=found.attempts or DEFAULT_ATTEMPTS,
        side_by_side=found.side_by_side or DEFAULT_SIDE_BY_SIDE,
        share=found.share or DEFAULT_SHARE,
        columns=_ordered(found.columns),
        look=tuple((name, table_name_text(table.encode()), row) for name, table, row in found.look),
        writes=tuple(sorted(set(found.writes))),
    )


def _ordered(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({name.removesuffix(":") for name in names}))


def _decoded(data: bytes) -> Registration:
    """DamagedData."""
    import msgspec  # 2 MB that a store without triggers does not need

    try:
        found = msgspec.json.decode(data, type=Registration)
        unknown = msgspec.json.decode(data, type=dict[str, object]).keys() - {one.name for one in fields(Registration)}
        if unknown:
            raise ValueError(f"field {min(unknown)[:60]!r} is of a newer version: upgrade")
    except (ValueError, RecursionError) as error:
        raise DamagedData(f"registration of a trigger: {error}") from error
    return found
