"""(pure) Conversion of trigger registrations to structs of our IDL, and from them."""

from __future__ import annotations

from typing import Any

from columnar.model.schema import table_name_text
from columnar.model.trigger_registration import (
    DEFAULT_ATTEMPTS,
    DEFAULT_SHARE,
    DEFAULT_SIDE_BY_SIDE,
    DEFAULT_TIMEOUT_MS,
    Registration,
)
from columnar.wire.idl import columnar


def registration_of(spec: Any) -> Registration:
    """A field that the client left out, or said as 0, has the server's default."""
    return Registration(
        name=_text(spec.name),
        table=table_name_text(spec.table or b""),
        function=_text(spec.functionName),
        families=tuple(sorted({(f or b"").removesuffix(b":").decode("latin-1") for f in spec.families or ()})),
        before=bool(spec.withBefore),
        from_where=_text(spec.fromWhere) or "now",
        timeout_ms=spec.timeoutMs or DEFAULT_TIMEOUT_MS,
        attempts=spec.attempts or DEFAULT_ATTEMPTS,
        row=not spec.withoutRow,
        side_by_side=spec.sideBySide or DEFAULT_SIDE_BY_SIDE,
        share=spec.share or DEFAULT_SHARE,
        rate=_text(spec.rate),
        batch=spec.batch or 0,
        within_ms=spec.withinMs or 0,
        process=_text(spec.process),
        columns=tuple(sorted({(c or b"").removesuffix(b":").decode("latin-1") for c in spec.columns or ()})),
        where=tuple(map(_text, spec.conditions or ())),
        look=tuple((_text(one.name), table_name_text(one.table or b""), _text(one.row)) for one in spec.looks or ()),
        images=bool(spec.images),
        writes=tuple(sorted(set(map(_text, spec.writes or ())))),
        of_module=_text(spec.ofModule),
        allow_cycle=bool(spec.allowCycle),
        allow_expiry=bool(spec.allowExpiry),
    )


def spec_of(registration: Registration) -> Any:
    """Every field is said: ``registration_of`` makes the same of it."""
    return columnar.TriggerSpec(
        name=registration.name,
        table=registration.table.encode(),
        functionName=registration.function,
        families=sorted(registration.family_bytes),
        fromWhere=registration.from_where,
        timeoutMs=registration.timeout_ms,
        attempts=registration.attempts,
        withBefore=registration.before,
        withoutRow=not registration.row,
        sideBySide=registration.side_by_side,
        share=registration.share,
        rate=registration.rate,
        batch=registration.batch,
        withinMs=registration.within_ms,
        process=registration.process,
        columns=[column.encode("latin-1") for column in registration.columns],
        conditions=list(registration.where),
        looks=[columnar.TriggerLook(name=n, table=table.encode(), row=row) for n, table, row in registration.look],
        images=registration.images,
        writes=list(registration.writes),
        ofModule=registration.of_module,
        allowCycle=registration.allow_cycle,
        allowExpiry=registration.allow_expiry,
    )


def _text(value: Any) -> str:
    """A client's connection does not decode strings, a server's does."""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value or "")
