"""The accounts of the linked list: the acknowledged nodes, the stored nodes, and the nodes that are referred to.

There are millions of keys, so keys are put into files by their first byte, and one file is counted at a time, like the
shuffle of HBase's verification job.

What a key can be (HBase's names; in a closed circle every node is referred to exactly once):
    REFERENCED    stored, and referred to once
    UNREFERENCED  stored, and no node refers to it: the node that did is lost
    UNDEFINED     referred to, and not stored: the node is lost
    EXTRANEOUS    stored without an acknowledgement, or referred to more than once
    LOST          acknowledged, and not stored
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

KEY_BYTES: Final = 16
BUCKETS: Final = 64
EXAMPLES: Final = 5  # of each wrong kind
KINDS: Final = ("acknowledged", "defined", "referred", "derived")  # derived: references, as a trigger wrote them down
WRONG: Final = ("UNREFERENCED", "UNDEFINED", "EXTRANEOUS", "LOST")


@dataclass
class ListCounts:
    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[bytes]] = field(default_factory=dict)

    def note(self, what: str, key: bytes) -> None:
        self.counts[what] += 1
        held = self.examples.setdefault(what, [])
        if what in WRONG and len(held) < EXAMPLES:
            held.append(key)


def count(acknowledged: Iterable[bytes], defined: Iterable[bytes], referred: Iterable[bytes], into: ListCounts) -> None:
    """Add the numbers of each kind among these keys to ``into``."""
    told, there, references = set(acknowledged), Counter(defined), Counter(referred)
    for key in told | there.keys() | references.keys():
        is_there, times = there[key], references[key]
        if key in told and not is_there:
            into.note("LOST", key)
        if times and not is_there:
            into.note("UNDEFINED", key)
        elif is_there and not times:
            into.note("UNREFERENCED", key)
        elif times == 1:
            into.note("REFERENCED", key)
        if times > 1 or is_there > 1 or (is_there and key not in told):
            into.note("EXTRANEOUS", key)
    into.counts["acknowledged"] += len(told)


class ListAccounts:
    """The accounts, a context manager.  Any thread may add."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._lock = threading.Lock()
        self._files = {
            (kind, bucket): (folder / f"{kind}-{bucket}").open("wb") for kind in KINDS for bucket in range(BUCKETS)
        }

    def __enter__(self) -> ListAccounts:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files.values():
            file.close()

    def add(self, kind: str, keys: Iterable[bytes]) -> None:
        with self._lock:
            for key in keys:
                if len(key) != KEY_BYTES:
                    raise ValueError(f"{key!r} is no key of a node")
                self._files[kind, key[0] % BUCKETS].write(key)

    def count(self, references: str = "referred") -> ListCounts:
        total = ListCounts()
        for file in self._files.values():
            file.flush()
        for bucket in range(BUCKETS):
            count(*(self._keys(kind, bucket) for kind in ("acknowledged", "defined", references)), total)
        return total

    def _keys(self, kind: str, bucket: int) -> Iterator[bytes]:
        data = (self._folder / f"{kind}-{bucket}").read_bytes()
        return (data[at : at + KEY_BYTES] for at in range(0, len(data), KEY_BYTES))
