"""(pure) A trigger's registration: the function, the table and its families, and the settings.

The catalogue has one row for each trigger (``master.derivation_rows``), with the JSON of this dataclass.
``trigger_scope`` says what columns, conditions, lookups and images mean.  Bytes are written as latin-1.
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
DEFAULT_ATTEMPTS: Final = 8  # with growing pauses: some 25 s until a change becomes a dead letter
DEFAULT_SIDE_BY_SIDE: Final = 8
MOST_SIDE_BY_SIDE: Final = 64
DEFAULT_SHARE: Final = 10
MOST_SHARE: Final = 1_000
BATCH_CHANGES: Final = 1_000
LONGEST_WITHIN_MS: Final = 60_000
MOST_PROCESSES: Final = 16  # different labels of the triggers in a store
QUEUE_PREFIX: Final = "queue:"  # of the name of a registration that serves a queue
_STARTS: Final = ("now", "beginning")
_PERIODS_S: Final = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_RATE: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)/(s|min|h|d)", re.ASCII)
_NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,99}", re.ASCII)
_FUNCTION: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Registration:
    name: str
    table: str
    function: str  # ``module:function``; of a served queue perhaps the URL to which its messages are posted
    families: tuple[str, ...]  # latin-1 of the bytes
    before: bool = False  # changes carry the previous values of the touched cells
    from_where: str = "now"  # or beginning, or a time (``start_ms_of``) from which changes are shown
    timeout_ms: int = DEFAULT_TIMEOUT_MS
    attempts: int = DEFAULT_ATTEMPTS
    row: bool = True  # changes carry the row, as it is at delivery
    side_by_side: int = DEFAULT_SIDE_BY_SIDE  # concurrent runs on each server
    share: int = DEFAULT_SHARE  # of the worker's time, relative to other triggers' shares
    rate: str = ""  # most calls per time (``rate_per_s``); empty: unbounded
    batch: int = 0  # most changes of one call; 0: the function gets one change, not a sequence
    within_ms: int = 0  # a batch is delivered when it is full or its first change has this age
    process: str = ""  # triggers with the same label share a worker process; empty: the server's common process
    columns: tuple[str, ...] = ()  # family or family:qualifier; a change must touch one of them; empty: any
    where: tuple[str, ...] = ()  # conditions that the row after the change must meet (``condition_text``)
    look: tuple[tuple[str, str, str], ...] = ()  # name, table and extractor of a row that is sent with the change
    images: bool = False  # changes carry ``after`` and a whole ``before``: the columns of columns, where and look
    writes: tuple[str, ...] = ()  # tables, or table/family, that the function declares to write (``model.flow_graph``)
    of_module: str = ""  # the module whose sync made it (``columnar trigger sync``); empty: made by hand
    allow_expiry: bool = False  # cells that it follows may expire, though the trigger is not notified of expiry
    allow_cycle: bool = False  # it may run for its own changes, through at most ``model.flow_graph.HOPS`` flows
    owner: str = ""  # the user who added it, with whose rights it acts; empty: rights were off, it acts as the store

    @property
    def queue(self) -> str:
        """The queue that is served (``queue_service``); empty for a trigger, whose name has no colon."""
        return self.name.removeprefix(QUEUE_PREFIX) if self.name.startswith(QUEUE_PREFIX) else ""

    @property
    def url(self) -> str:
        """The URL to which messages are posted; empty if a function gets them."""
        return self.function if "://" in self.function else ""

    @property
    def module(self) -> str:
        return self.function.partition(":")[0]

    @property
    def start_ms(self) -> int | None:
        """The time from which the trigger sees changes; None for now or the beginning.  Raises IllegalArgument."""
        return start_ms_of(self.from_where)

    @property
    def family_bytes(self) -> frozenset[bytes]:
        return frozenset(family.encode("latin-1") for family in self.families)

    @property
    def families_read(self) -> frozenset[str]:
        """The families whose changes count, and the families that conditions, lookups and images read."""
        return frozenset([*self.families, *(family.decode("latin-1") for family in self.scope().images)])

    def scope(self) -> Scope:
        """Return the changes that count and their images.  Raises IllegalArgument if a text cannot be parsed."""
        from columnar.model.trigger_scope import scope_of  # a server without triggers needs none of it

        return scope_of(self.families, self.columns, self.where, self.look, images=self.images)


def start_ms_of(text: str) -> int | None:
    """Return a time such as 2026-01-31T12:00 in milliseconds since 1970, or None for ``now`` and ``beginning``.

    A time without a zone is in UTC.  Raises IllegalArgument for any other text.
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
    """Return the settings of pace that differ from their default, as options of ``columnar trigger add``."""
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
    """Return the time as registrations write it."""
    return datetime.fromtimestamp(ms / 1_000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def rate_per_s(text: str) -> float:
    """Return ``10/s``, ``600/min``, ``5/h`` or ``1/d`` in calls per second.  Raises IllegalArgument for other forms."""
    match = _RATE.fullmatch(text)
    if match is None or not float(match[1]):
        raise IllegalArgument(f"rate '{text}': write it as 10/s, 600/min, 5/h or 1/d, more than 0")
    return float(match[1]) / _PERIODS_S[match[2]]


def checked(registration: Registration, allowed_modules: tuple[str, ...]) -> Registration:
    """Return the registration unchanged.  Raises IllegalArgument or TriggerError, with the fault and its remedy."""
    if not _NAME.fullmatch(registration.name):
        raise IllegalArgument(f"trigger name '{registration.name}': use up to 100 letters, digits, '_', '-' and '.'")
    check_function(registration, allowed_modules)
    start_ms_of(registration.from_where)
    if not registration.families:
        raise IllegalArgument("name at least one column family that the trigger is for")
    check_pace(registration)
    from columnar.model.trigger_scope import checked_scope  # as in ``scope``

    checked_scope(registration.families, registration.columns, registration.where, registration.look)
    return registration


def check_function(registration: Registration, allowed_modules: tuple[str, ...]) -> None:
    """Raise IllegalArgument or TriggerError unless the function is one of an allowed module."""
    if not _FUNCTION.fullmatch(registration.function):
        raise IllegalArgument(f"trigger function '{registration.function}': write it as module:function")
    module = registration.module
    if module not in allowed_modules:
        allowed = ", ".join(allowed_modules) or "none"
        raise TriggerError(
            f"module {module} is not allowed for triggers (allowed: {allowed}); "
            f"start the store with --trigger-modules {module}"
        )


def check_pace(registration: Registration) -> None:
    """Check time-out, attempts, calls side by side, share, rate, batch and process."""
    for what, number in (("timeout (ms)", registration.timeout_ms), ("attempts", registration.attempts)):
        if number <= 0:
            raise IllegalArgument(f"{what} of a trigger is positive, not {number}")
    if not 1 <= registration.side_by_side <= MOST_SIDE_BY_SIDE:
        times = registration.side_by_side
        raise IllegalArgument(f"a trigger runs 1 to {MOST_SIDE_BY_SIDE} times side by side, not {times}")
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
    """Encode the registration.

    Fields that were added after the first version are written only if they differ from their default, so that
    earlier programs can read the others.
    """
    held = {key: value for key, value in asdict(registration).items() if value != _LATER.get(key, _UNSAID)}
    return json.dumps(held, sort_keys=True).encode()


def from_json(data: bytes) -> Registration:
    """Decode a registration.  Raises DamagedData if the bytes are no registration, or one of a newer version."""
    found = _decoded(data)
    try:
        if found.columns or found.where or found.look:
            found.scope()  # find an unreadable text now, not when changes are followed
    except IllegalArgument as error:
        raise DamagedData(f"registration of a trigger: {error}") from error
    return found


def requested(data: bytes, owner: str = "") -> Registration:
    """Return the registration that a client's JSON requests, in its stored form; a number of 0 means the default.

    ``owner`` is the user who requests it, whatever the JSON says.  Raises IllegalArgument with the fault.
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
        owner=owner,
    )


def _ordered(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({name.removesuffix(":") for name in names}))


def _decoded(data: bytes) -> Registration:
    """Decode a registration without checking its texts.  Raises DamagedData."""
    import msgspec  # 2 MB that a store without triggers does not need

    try:
        found = msgspec.json.decode(data, type=Registration)
        unknown = msgspec.json.decode(data, type=dict[str, object]).keys() - {one.name for one in fields(Registration)}
        if unknown:
            raise ValueError(f"field {min(unknown)[:60]!r} is of a newer version: upgrade")
    except (ValueError, RecursionError) as error:
        raise DamagedData(f"registration of a trigger: {error}") from error
    return found
