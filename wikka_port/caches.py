"""Caches of a process: parsed pages, and answers that are expensive to find and may be a little old."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from wikka_port.counters import Counters
from wikka_port.markup.document import Document, parse
from wikka_port.markup.formats import WIKKA
from wikka_port.texts import spoken

T = TypeVar("T")

QUICK_S: Final = 0.1  # an answer found in less is kept for ``age_s`` only
_SLOT_CHARS: Final = 200  # memory of a piece beside its text: the object, the tuple, the name
_Key = tuple[str, int, bool, str, str]


class TtlCache(Generic[T]):
    """Cache of a single answer.  Thread-safe: while one thread finds the answer, other threads wait for it.

    An answer is kept for ``age_s``.  If finding it took QUICK_S or more, it is kept for at least ``times`` that
    duration: finding answers then takes at most one part in ``times`` of a process, and a list of a small wiki is
    always new.
    """

    def __init__(
        self,
        find: Callable[[], T],
        age_s: float,
        clock: Callable[[], float],
        *,
        times: float = 0.0,
        of: Callable[[], object] = lambda: None,
        counters: Counters | None = None,
    ) -> None:
        """Drop a kept answer as soon as ``of()`` returns a different object."""
        self._counters = counters or Counters.of_process()
        self._find = find
        self._of = of
        self._age_s = age_s
        self._times = times
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: tuple[float, float, object, T] | None = None  # guarded by _lock: when, for how long, of what

    def get(self) -> T:
        """Return the answer, kept or found now.  Exceptions of ``find`` pass through and are not kept."""
        with self._lock:
            now, of = self._clock(), self._of()
            kept = self._kept
            is_found = kept is not None and kept[2] is of and 0 <= now - kept[0] < kept[1]
            self._counters.lookup_done("answers", is_found=is_found)
            if kept is None or not is_found:
                found = self._find()
                took_s = self._clock() - now
                age_s = max(self._age_s, self._times * took_s if took_s >= QUICK_S else 0.0)
                kept = self._kept = (now, age_s, of, found)
            return kept[3]


def size_chars(document: Document) -> int:
    return sum(_SLOT_CHARS + (len(piece) if isinstance(piece, str) else 0) for piece in document.pieces)


class DocumentCache:
    """Parsed pages by name, revision and language: a view then costs one read, one lookup of links, one join.

    A parsed document contains labels (of footnotes, of the contents) in the visitor's language; so each language has
    documents of its own.

    Invariant: the sizes of the kept documents add up to at most ``max_chars``; the longest unused is dropped first.
    Thread-safe; two threads may parse the same page at once, which is waste and no error.
    """

    def __init__(self, max_chars: int, counters: Counters | None = None) -> None:
        self._counters = counters or Counters.of_process()
        self._max_chars = max_chars
        self._lock = threading.Lock()
        self._kept: OrderedDict[_Key, tuple[Document, int]] = OrderedDict()  # guarded by _lock
        self._chars = 0  # guarded by _lock

    def __len__(self) -> int:
        return len(self._kept)

    def kept(self, name: str, number: int, *, autolink: bool, markup: str = WIKKA) -> Document | None:
        with self._lock:
            found = self._kept.get((name, number, autolink, markup, spoken().code))
            return found[0] if found is not None else None

    def document(self, name: str, number: int, body: str, *, autolink: bool, markup: str = WIKKA) -> Document:
        """Return ``body`` parsed, from the cache if possible; ``body`` must be the text of that revision."""
        key = (name, number, autolink, markup, spoken().code)
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
        self._counters.lookup_done("documents", is_found=found is not None)
        if found is not None:
            return found[0]
        document = parse(body, autolink=autolink, markup=markup)
        size = size_chars(document)
        with self._lock:
            if size <= self._max_chars // 4 and key not in self._kept:
                self._kept[key] = (document, size)
                self._chars += size
            while self._chars > self._max_chars:
                self._chars -= self._kept.popitem(last=False)[1][1]
        return document
