"""(pure) The rights that triggers, views and feeds need: to read their tables, and what effects of triggers name.

A trigger reads the columns that come with its changes, and whole rows of the tables where it looks rows up.  A view
reads its sources.  Texts that cannot be read name no table: the method itself refuses them, with the fault.

Knows nothing of users and grants.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from columnar.errors import ColumnarError
from columnar.model.mutation import Append, Contribute, Delete, Increment, Operation, Put
from columnar.model.rights import ADMIN, READ, WRITE
from columnar.model.trigger_registration import Registration, requested
from columnar.model.trigger_scope import bytes_of_latin, family_and_qualifier
from columnar.rights.named_columns import WHOLE_TABLE, Part

PartsByTable = Mapping[bytes, Sequence[Part]]
_NAMED: Final = (Put, Delete, Increment, Append)  # operations on the column that they name


def registration_reads(registration: Registration) -> dict[bytes, list[Part]]:
    """Return the parts that the trigger's owner must be able to read.  Raises IllegalArgument for unreadable texts."""
    if registration.queue:
        return {}  # ``rights_to_serve``
    scope = registration.scope()
    takes_rows = registration.row or not registration.columns
    named = registration.families if takes_rows else registration.columns
    parts = dict.fromkeys((READ, *family_and_qualifier(bytes_of_latin(one))) for one in named)
    for family, qualifiers in scope.images.items():
        columns: Iterable[bytes | None] = [None] if qualifiers is None else sorted(qualifiers)
        parts.update(dict.fromkeys((READ, family, qualifier) for qualifier in columns))
    found: dict[bytes, list[Part]] = {registration.table.encode(): list(parts)}
    for one in scope.lookups:
        found.setdefault(one.table, []).append((READ, *WHOLE_TABLE))
    return found


def trigger_reads(args: Sequence[Any]) -> dict[bytes, list[Part]]:
    """``columnarTriggerAdd``: the parts that the trigger reads."""
    return _of_registrations(args[:1])


def triggers_reads(args: Sequence[Any]) -> dict[bytes, list[Part]]:
    """``columnarTriggerSync``: the parts that all declared triggers read."""
    return _of_registrations(args[1] or ())


def rights_to_serve(registration: Registration) -> tuple[int, ...]:
    """Return the rights on everything that the owner of a served queue must have; none for a trigger.

    The queue is popped for the owner.  If messages are posted to a URL, the owner must be an administrator: the store
    sends requests, from within its network, to whatever the URL names.
    """
    if not registration.queue:
        return ()
    return (READ, WRITE, ADMIN) if registration.url else (READ, WRITE)


def serving_rights(args: Sequence[Any]) -> list[int]:
    """``columnarTriggerAdd``: what ``rights_to_serve`` returns."""
    return _rights_of_registrations(args[:1])


def all_serving_rights(args: Sequence[Any]) -> list[int]:
    """``columnarTriggerSync``: as ``serving_rights``."""
    return _rights_of_registrations(args[1] or ())


def _rights_of_registrations(registrations: Iterable[Any]) -> list[int]:
    found: list[int] = []
    for one in registrations:
        try:
            found += rights_to_serve(requested(one or b""))
        except ColumnarError:
            continue
    return found


def _of_registrations(registrations: Iterable[Any]) -> dict[bytes, list[Part]]:
    found: dict[bytes, list[Part]] = {}
    for one in registrations:
        try:
            reads = registration_reads(requested(one or b""))
        except ColumnarError:
            continue
        for table, parts in reads.items():
            found.setdefault(table, []).extend(parts)
    return found


def feed_reads(args: Sequence[Any]) -> dict[bytes, list[Part]]:
    """``columnarFeedAdd``: the columns that the feed sends."""
    from columnar.model.feeds import from_json  # a store without feeds need not load it

    try:
        feed = from_json(args[0] or b"")
        columns = [bytes_of_latin(one).partition(b":") for one in feed.columns]
    except ColumnarError:
        return {}
    parts: list[Part] = [(READ, family, qualifier or None) for family, _, qualifier in columns]
    return {feed.table.encode(): parts or [(READ, *WHOLE_TABLE)]}


def view_reads(args: Sequence[Any]) -> dict[bytes, list[Part]]:
    """``columnarViewAdd``: its sources, as whole tables."""
    return _of_definition(args[0])


def rebuilt_view_reads(args: Sequence[Any]) -> dict[bytes, list[Part]]:
    """``columnarViewRebuild``: the sources of a new definition; without one the view reads what it reads already."""
    return _of_definition(args[1])


def _of_definition(definition: bytes | None) -> dict[bytes, list[Part]]:
    from columnar.model.view_definition import from_json  # a store without views need not load it

    try:
        view = from_json(definition or b"")
    except ColumnarError:
        return {}
    return {one.table.encode(): [(READ, *WHOLE_TABLE)] for one in view.sources}


def written_parts(operations: Iterable[Operation]) -> Iterator[Part]:
    """Yield the parts that a mutation writes."""
    for one in operations:
        if isinstance(one, _NAMED):
            yield WRITE, one.family, one.qualifier or None
        elif isinstance(one, Contribute):  # the member decides which totals and ordered cells change
            yield WRITE, None, None
        else:
            raise AssertionError(f"an operation of unknown kind: {type(one).__name__}")
