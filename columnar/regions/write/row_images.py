"""The images in a row's change record: read before the row is changed, taken from its draft afterwards.

Named columns cost one ``multi_get`` for each family, together with the columns that the mutation touches.  A family
that is wanted as a whole costs O(its columns in the row) for each write of the row, so it is bounded: a write is
refused that finds or leaves more than IMAGE_CELLS or IMAGE_BYTES there.

A family that the table does not have, or no longer, has no cells.

Knows nothing of followers: ``hooks.LogPolicy`` names the wanted columns; ``images`` reads the images.
"""

from __future__ import annotations

from typing import Final

from columnar.errors import ImageTooBig, NotAllowed, abbreviate
from columnar.limits import IMAGE_BYTES, IMAGE_CELLS
from columnar.model.mutation import Contribute, Put, RowMutation
from columnar.regions.hooks import LogPolicy
from columnar.regions.log.change_record import Entry, Kind
from columnar.regions.write.row_draft import RowDraft

_NOTHING: Final[frozenset[bytes]] = frozenset()
TRIGGER: Final = "trigger "  # begins the name of such a reader


def read(draft: RowDraft, mutation: RowMutation, policy: LogPolicy) -> None:
    """Before the first operation: the columns whose images are wanted are in the draft.  ImageTooBig."""
    if not any(one.family in policy.families or isinstance(one, Contribute) for one in mutation.operations):
        draft.prefetch(mutation.operations)
        return
    draft.prefetch(mutation.operations, policy.images)
    for family, qualifiers in policy.images.items():
        if qualifiers is None and not draft.read_family_within(family, IMAGE_CELLS, IMAGE_BYTES):
            raise _too_big(draft, family, policy)


def check_lasting(draft: RowDraft, mutation: RowMutation, policy: LogPolicy) -> None:
    """Raise NotAllowed if a put would expire in a column with a follower: an expiry is not notified."""
    for operation in mutation.operations:
        if isinstance(operation, Put) and operation.ttl_ms is not None and operation.family in policy.lasting:
            readers = policy.lasting[operation.family]
            reader = readers.get(operation.qualifier) or readers.get(None)
            if reader is not None:
                column = abbreviate(operation.family + b":" + operation.qualifier)
                either = ", or let the trigger allow it (--allow-expiry)" if reader.startswith(TRIGGER) else ""
                raise NotAllowed(
                    f"a put into {column} of {draft.table} has a time to live: {reader} reads the family, and would "
                    f"not hear of its end; put it without one{either}"
                )


def taken(
    draft: RowDraft, policy: LogPolicy, touched: tuple[Entry, ...]
) -> tuple[tuple[Entry, ...], tuple[Entry, ...]]:
    """After ``emit``: the cells of the images before, but for those in ``touched``, and what is another after."""
    images, known = policy.images, {(entry.family, entry.qualifier) for entry in touched}
    before, after = list(touched), []
    for (family, qualifier), column in draft.columns.items():
        qualifiers = images.get(family, _NOTHING)
        if qualifiers is not None and qualifier not in qualifiers:
            continue
        old, new = draft.seen_before(column), draft.seen(column)
        if old is not None and (family, qualifier) not in known:
            before.append(Entry(Kind.PUT, family, qualifier, old[1], old[0]))
        if new is not None and (old is None or new[0] != old[0]):
            after.append(Entry(Kind.PUT, family, qualifier, new[1], new[0]))
        elif new is None and old is not None:
            after.append(Entry(Kind.DELETE_COLUMN, family, qualifier, draft.timestamp, b""))
    for family, qualifiers in images.items():
        if qualifiers is None and not _is_within(draft, family):
            raise _too_big(draft, family, policy)
    return tuple(before), tuple(after)


def _is_within(draft: RowDraft, family: bytes) -> bool:
    """The cells of the family are within the bounds of an image after the mutation."""
    cells = size_bytes = 0
    for (name, qualifier), column in draft.columns.items():
        if name == family and column.newest is not None:
            cells += 1
            size_bytes += len(qualifier) + len(column.newest)
    return cells <= IMAGE_CELLS and size_bytes <= IMAGE_BYTES


def _too_big(draft: RowDraft, family: bytes, policy: LogPolicy) -> ImageTooBig:
    return ImageTooBig(draft.table, draft.row, family, policy.askers.get(family, "a follower of the table"))
