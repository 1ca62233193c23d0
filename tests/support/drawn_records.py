"""Records drawn from a seed, with the names and texts of ``exported_wiki``, for forms that need no store."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from random import Random

from tests.support.exported_wiki import NAMES, NOTES, PEOPLE, START_MS, TEXTS
from tests.support.recorded_pages import MemoryPage, MemorySource
from wikka_port.exchange.records import LISTS, FileRecord, PageRecord, RevisionRecord, SiteRecord
from wikka_port.names import normalise


def drawn_source(seed: int) -> MemorySource:
    draw = Random(seed)
    pages = tuple(_page(normalise(name), draw) for name in NAMES)
    deleted = tuple(_deleted(normalise(name), number, draw) for number in (1, 2) for name in NAMES[number::3])
    return MemorySource(pages + deleted, SiteRecord({"": {"write": "+"}, "private/": {"read": "Ada\n!*"}}))


def _page(name: str, draw: Random) -> MemoryPage:
    lists = {one: draw.choice(("*", "+", "Ada\n!Bob", "")) for one in LISTS if draw.random() < 0.2}
    times = sorted(draw.sample(range(START_MS, START_MS + 10**6), draw.choice((1, 2, 5))))
    revisions = tuple(_revision(place, at, place == len(times), draw) for place, at in enumerate(times, 1))
    files = [one for file in ("notes.txt", "Ä ship (1).png") if draw.random() < 0.4 for one in _versions(file, draw)]
    return MemoryPage(PageRecord(name, draw.choice(("", "Ada", "(Public)")), lists), revisions, _each_once(files))


def _deleted(name: str, number: int, draw: Random) -> MemoryPage:
    page = _page(name, draw)
    at_ms = START_MS + number * 10**6 // 2  # of some before their last revision, as after a merge
    return replace(
        page, record=replace(page.record, deleted_ms=at_ms, deleted_by=draw.choice(PEOPLE), reason=draw.choice(NOTES))
    )


def _revision(place: int, at_ms: int, is_newest: bool, draw: Random) -> RevisionRecord:
    imported = draw.random() < 0.3
    return RevisionRecord(
        *(place, at_ms, draw.choice(PEOPLE), draw.choice(TEXTS)),
        note=draw.choice(NOTES),
        signed=draw.choice(("", "account", "visitor")),
        minor=draw.random() < 0.3,
        markup=draw.choice(("wikka", "markdown")),
        language=draw.choice(("", "de")),
        autolink=draw.random() < 0.5,
        attribution=draw.choice(("", "From elsewhere")),
        was=draw.choice(("", "", "An older name")),
        source=draw.choice(TEXTS) if imported else None,
        origin=f"{at_ms} 4711 {'ab' * 20}" if imported else "",
        hidden=not is_newest and draw.random() < 0.3,
    )


def _versions(name: str, draw: Random) -> list[tuple[FileRecord, bytes | None]]:
    found: list[tuple[FileRecord, bytes | None]] = []
    for number in range(1, draw.choice((2, 3, 5))):
        at_ms = START_MS + draw.randrange(10**6)
        if number % 3 == 0:
            found.append((FileRecord(name, number, at_ms, "Ada"), None))
            continue
        content = draw.choice((b"", b"some bytes \x00\xff\n", b"other\n"))
        record = FileRecord(
            *(name, number, at_ms, draw.choice(PEOPLE), "account", draw.choice(NOTES), draw.choice(("", "a: b"))),
            media_type="text/plain",
            size_bytes=len(content),
            sha256=sha256(content).hexdigest(),
        )
        found.append((record, content))
    return found


def _each_once(files: list[tuple[FileRecord, bytes | None]]) -> tuple[tuple[FileRecord, bytes | None], ...]:
    """Drop contents that came before, as sources do."""
    seen: set[str] = set()
    kept = []
    for record, content in files:
        kept.append((record, None if record.sha256 in seen else content))
        seen.add(record.sha256)
    return tuple(kept)
