"""The changes of a region that only a former timeline of the store had: a restore from a backup begins a new timeline.

A store that goes back to a backup would give the sequences behind the backup again, to other changes.  Readers keep
positions, and sessions keep tokens, from before the restore.  So the restore raises the region's epoch to the time of
the restore and the ids of new regions to its milliseconds, which no earlier timeline has reached, and notes in each
region which sequences are of a former timeline:

    lost -> count:u16 (after:20 bytes  until:20 bytes)*      ascending; sequences as keys of the log, in ``meta``
    end  -> sequence:20 bytes      the log's end when the region was copied, if it was above the last record

Sequences between ``after`` and ``until``, both excluded, were given by a former timeline alone.  A restore adds two
spans: from the end of the region's log in the backup to the new epoch, and from the next region's id in the backup to
the first id after the restore.

Invariants:
    I1. No sequence in a span is given after the restore, so whatever names one is of a former timeline.  A region is
        opened less than once a second on average, so its epochs stay behind the clock that the next restore reads.
    I2. Successors of a region take its spans over, as they take its records over (``region_replacement``).
    I3. Spans above MOST_SPANS are joined: more is called lost then, never less.

Owned by one thread.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from itertools import islice, pairwise
from typing import Final, NamedTuple

from columnar.errors import DamagedData
from columnar.regions.log.change_record import KEY_BYTES, Sequence, pack_key, unpack_key
from columnar.regions.log.log_retention import LOG_SPACE, META_SPACE, TIME, TRIMMED
from columnar.storage.api import Store

EPOCH: Final = b"epoch"  # u32, of the last opening
LOST: Final = b"lost"
END: Final = b"end"
MOST_SPANS: Final = 64  # of 32 restores, one upon the other
_COUNT: Final = struct.Struct(">H")
_HIGHEST_EPOCH: Final = (1 << 32) - 2  # an opening adds one


class LostSpan(NamedTuple):
    after: Sequence
    until: Sequence

    def has(self, sequence: Sequence) -> bool:
        return self.after < sequence < self.until


class Timeline(NamedTuple):
    """The timeline that a restore begins, or the repair of a region that is lost."""

    began_s: int  # since 1970; the epochs of regions begin here
    next_id: int  # of regions, in the backup
    first_id: int  # of regions made in this timeline

    @classmethod
    def from_restore(cls, now_ms: int, next_id: int) -> Timeline:
        return cls(now_ms // 1_000, next_id, max(next_id, now_ms))

    @classmethod
    def from_loss(cls, now_ms: int) -> Timeline:
        """Return the timeline of a region that lost its log, in a store that goes on."""
        return cls(now_ms // 1_000, 0, 0)


def pack_spans(spans: Iterable[LostSpan]) -> bytes:
    """Return the bytes of the spans, at most MOST_SPANS: above that, the nearest to the start are joined."""
    found: list[LostSpan] = []
    for one in sorted(set(spans)):
        if found and one.after < found[-1].until:
            found[-1] = LostSpan(found[-1].after, max(found[-1].until, one.until))
        else:
            found.append(one)
    surplus = len(found) - MOST_SPANS
    if surplus > 0:
        found[: surplus + 1] = [LostSpan(found[0].after, found[surplus].until)]
    return _COUNT.pack(len(found)) + b"".join(pack_key(one.after) + pack_key(one.until) for one in found)


def unpack_spans(data: bytes) -> tuple[LostSpan, ...]:
    """Return the spans.  Raises DamagedData if the bytes are none."""
    if len(data) < _COUNT.size or len(data) != _COUNT.size + 2 * KEY_BYTES * _COUNT.unpack_from(data)[0]:
        raise DamagedData("lost changes of a change log: it has another length than it says")
    keys = [unpack_key(data[at : at + KEY_BYTES]) for at in range(_COUNT.size, len(data), KEY_BYTES)]
    found = tuple(LostSpan(*pair) for pair in zip(keys[::2], keys[1::2], strict=True))
    if any(one.after > one.until for one in found) or any(one.until > other.after for one, other in pairwise(found)):
        raise DamagedData("lost changes of a change log: they do not ascend")
    return found


def spans_in(store: Store) -> tuple[LostSpan, ...]:
    """Return the spans of a region's store; none if it was never restored.  Raises DamagedData."""
    data = store.get(META_SPACE, LOST)
    return () if data is None else unpack_spans(data)


def begin_timeline(store: Store, origin: int, timeline: Timeline) -> None:
    """Begin a new timeline in the store of the region ``origin``, which nobody serves.  Synced on return."""
    epoch = int.from_bytes(store.get(META_SPACE, EPOCH) or b"", "big")
    began = min(max(epoch, timeline.began_s), _HIGHEST_EPOCH)
    spans = [
        *spans_in(store),
        LostSpan(_end_of_log(store, origin, epoch), Sequence(origin, began + 1, 0)),  # which the next opening gives
        LostSpan(Sequence(timeline.next_id, 0, 0), Sequence(timeline.first_id, 0, 0)),
    ]
    spans = [one for one in spans if one.after < one.until]
    batch = store.batch()
    batch.put(META_SPACE, EPOCH, began.to_bytes(4, "big"))
    batch.put(META_SPACE, LOST, pack_spans(spans))
    store.write_batch(batch)
    store.sync()


def _end_of_log(store: Store, origin: int, epoch: int) -> Sequence:
    """Return the last of the region's own sequences that the store knows of: readers had this position at most."""
    own = pack_key(Sequence(origin, 0, 0))
    keys = [pack_key(Sequence(origin, epoch, 0))]
    keys += [key for key, _ in islice(store.scan_reverse(LOG_SPACE, own, None), 1)]
    keys += [value for _, value in store.scan(META_SPACE, TIME, TIME[:-1] + b"0")]
    keys += [value for value in (store.get(META_SPACE, TRIMMED), store.get(META_SPACE, END)) if value is not None]
    return max(one for one in map(unpack_key, keys) if one.origin == origin)
