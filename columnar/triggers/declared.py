"""(pure) Triggers as their module declares them: ``@on(table, ...)`` above a function.

``on`` leaves a mark on the function and calls nothing.  ``columnar trigger sync`` reads the marks of a module and
registers what they say; ``testing`` runs the functions as they say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from types import ModuleType
from typing import Any, Final, TypeVar

from columnar.errors import IllegalArgument
from columnar.model.trigger_registration import (
    DEFAULT_ATTEMPTS,
    DEFAULT_SHARE,
    DEFAULT_SIDE_BY_SIDE,
    DEFAULT_TIMEOUT_MS,
    Registration,
    start_at,
    start_ms_of,
)
from columnar.model.trigger_scope import checked_scope, column_of_latin, families_of

F = TypeVar("F", bound=Callable[..., Any])
Lookups = Mapping[str, tuple[str, str]]  # name -> table and key (``model.extract``)

_MARK: Final = "__columnar_on__"


@dataclass(frozen=True, slots=True)
class On:
    """A mark: a registration, still without families if it follows all families of its table."""

    registration: Registration

    def with_families(self, families: Sequence[bytes]) -> Registration:
        """Return the registration; if it names no family, it gets ``families``, all that the table has."""
        registration = self.registration
        if registration.families:
            return registration
        return replace(
            registration, families=tuple(sorted(family.removesuffix(b":").decode("latin-1") for family in families))
        )


def on(
    table: str,
    *,
    columns: Sequence[str | bytes] = (),
    where: Sequence[str] = (),
    before: bool = False,
    row: bool = False,
    look: Lookups | None = None,
    batch: int = 0,
    within_ms: int = 0,
    side_by_side: int = DEFAULT_SIDE_BY_SIDE,
    share: int = DEFAULT_SHARE,
    timeout_s: float = DEFAULT_TIMEOUT_MS / 1000,
    attempts: int = DEFAULT_ATTEMPTS,
    rate: str = "",
    process: str = "",
    writes: Sequence[str] = (),
    allow_cycle: bool = False,
    allow_expiry: bool = False,
    start: str | datetime = "now",
    name: str = "",
) -> Callable[[F], F]:
    """Mark the function below as a trigger of ``table``; ``columnar trigger sync MODULE`` registers it.

    ``docs/triggers.md`` explains each setting.  ``start`` is "now", "beginning" (every row counts as changed), or a
    time: then changes since that time are delivered, if the log has them.  ``name`` is TABLE-FUNCTION by default.

    Raises IllegalArgument, whose text says what is wrong and what would be right.
    """
    named = tuple(sorted({_column(column) for column in columns}))
    lookups = tuple((label, *of) for label, of in (look or {}).items())
    checked_scope(families_of(named), named, tuple(where), lookups)

    registration = Registration(
        name=name,
        table=table,
        function="",
        families=families_of(named),
        before=before,
        from_where=_start(start),
        timeout_ms=max(1, round(timeout_s * 1000)),
        attempts=attempts,
        row=row,
        side_by_side=side_by_side,
        share=share,
        rate=rate,
        batch=batch,
        within_ms=within_ms,
        process=process,
        columns=named,
        where=tuple(where),
        look=lookups,
        images=True,
        writes=tuple(sorted(writes)),
        allow_cycle=allow_cycle,
        allow_expiry=allow_expiry,
    )
    return partial(_marked, registration)


def _marked(registration: Registration, function: F) -> F:
    module, label = function.__module__, getattr(function, "__name__", "")
    marked = replace(
        registration,
        name=registration.name or f"{registration.table}-{label}",
        function=f"{module}:{label}",
        of_module=module,
    )
    setattr(function, _MARK, (On(marked), *marks_of(function)))
    return function


def marks_of(function: Callable[..., Any]) -> tuple[On, ...]:
    """Return every ``on`` above the function, the uppermost first."""
    marks: tuple[On, ...] = getattr(function, _MARK, ())
    return marks


def declared_in(module: ModuleType) -> list[On]:
    """Return the marks of a module's own functions, sorted by name.

    Raises IllegalArgument if two triggers have the same name, or a function is bound to a name that is not its own.
    """
    found: dict[str, On] = {}
    for label, function in vars(module).items():
        if not callable(function) or getattr(function, "__module__", "") != module.__name__:
            continue
        for mark in marks_of(function):
            registration = mark.registration
            if registration.function != f"{module.__name__}:{label}":
                raise IllegalArgument(
                    f"{module.__name__}:{label} is {registration.function} by another name; mark one of them"
                )
            if registration.name in found:
                raise IllegalArgument(f"two triggers are called {registration.name}: give one of them a name=")
            found[registration.name] = mark
    return [mark for _, mark in sorted(found.items())]


def _column(column: str | bytes) -> str:
    text = column_of_latin(column) if isinstance(column, str) else column.decode("latin-1")
    return text.removesuffix(":")


def _start(start: str | datetime) -> str:
    """Return the start as registrations have it; a time without a zone is UTC.  Raises IllegalArgument if invalid."""
    if isinstance(start, datetime):
        start = (start if start.tzinfo is not None else start.replace(tzinfo=UTC)).isoformat()
    ms = start_ms_of(start)
    return start if ms is None else start_at(ms)
