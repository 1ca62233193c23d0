"""Import the pages of a dump or of another wiki, in constant memory; a stopped import can be continued.

The calling thread parses and converts; the threads of ``bulk_save`` store.  A row of ``imports`` names the page of the
dump up to which everything is stored; the row is written after the pages and deleted at the end.
An import that was stopped continues after that page.  It finds and leaves alone all that was stored beyond it, so that
nothing is stored twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Final, Protocol

from wikka_port import schema
from wikka_port.bulk_save import BulkSaver, Stored
from wikka_port.dump import DumpReader
from wikka_port.dump_templates import read_templates
from wikka_port.import_pages import Counts, PartReader
from wikka_port.import_plan import PagePart
from wikka_port.pages import Wiki

GROUP_PAGES: Final = 16
GROUP_CHARS: Final = 1_000_000
_DONE: Final = b"meta:pages"


@dataclass(frozen=True, slots=True)
class ImportSummary:
    counts: Counts
    stored: Stored
    resumed_after: int  # pages that an earlier, stopped import had done
    waited_s: float  # for triggers


class PartSource(Protocol):
    """A source of parts of pages, which have their ordinals in the order in which they are yielded."""

    counts: Counts

    @property
    def consumed(self) -> int:
        """How much of the source was read, for a progress bar: its unit is the source's."""
        ...

    def __iter__(self) -> Iterator[PagePart]: ...


class Importer:
    def __init__(
        self,
        wiki: Wiki,
        row: bytes,
        parts: PartSource,
        resumed_after: int,
        progress: Callable[[int, int], None],
    ) -> None:
        """Take the ``row`` of ``imports`` and its number of stored pages, ``resumed_after``; ``parts`` skips these."""
        self._wiki = wiki
        self._row = row
        self.parts = parts
        self.resumed_after = resumed_after
        self._progress = progress

    @classmethod
    def begun(
        cls,
        wiki: Wiki,
        stream: BinaryIO,
        *,
        origin: str,
        namespaces: Sequence[str] = (),
        limit: int | None = None,
        licence: str | None = None,
        pictures: str = "",
        includes: bool = True,
        restart: bool = False,
        progress: Callable[[int, int], None] = lambda read_bytes, pages: None,
    ) -> Importer:
        """Start an import, or continue a stopped one unless ``restart``.  Raises StoreUnavailable.

        ``origin`` names the dump: the stored progress of a stopped import is found by this name.  A stream that can be
        read twice is: first for its templates.  With ``includes`` calls of simple ones become includes where these show
        the same; not with a ``limit``, for their pages might not come.
        """
        includes = includes and limit is None
        templates = read_templates(stream, progress, includes=includes)

        def parts(done: int) -> PartReader:
            reader = DumpReader(stream, skip_pages=done)
            return PartReader(
                reader,
                namespaces=namespaces,
                limit=limit,
                licence=licence,
                pictures=pictures,
                templates=templates,
                includes=includes,
            )

        return cls.from_parts(wiki, parts, origin=origin, restart=restart, progress=progress)

    @classmethod
    def from_parts(
        cls,
        wiki: Wiki,
        parts: Callable[[int], PartSource],
        *,
        origin: str,
        restart: bool = False,
        progress: Callable[[int, int], None] = lambda consumed, pages: None,
    ) -> Importer:
        """Start or continue an import from the source that ``parts`` makes, which skips so many pages."""
        row = schema.import_row(origin)
        done = 0 if restart else _done_before(wiki, row)
        return cls(wiki, row, parts(done), done, progress)

    def run(self) -> ImportSummary:
        """Import all pages.  Raises DumpError or StoreUnavailable; the next import then continues this one."""
        with BulkSaver(self._wiki, self._note, merges=True) as saver:
            for group in self._groups():
                saver.put(group, group[-1].ordinal + (1 if group[-1].is_last else 0))
                if not group[-1].is_last or group[0].first > 1:
                    saver.drain()  # the next part of the page builds on this one
            saver.drain()
            saver.clear()
        self._wiki.store.run(lambda c: c.table(schema.IMPORTS).delete(self._row))
        return ImportSummary(self.parts.counts, saver.stored, self.resumed_after, saver.waited_s)

    def _groups(self) -> Iterator[list[PagePart]]:
        """Yield groups of parts of different pages to be saved together; a part of a longer page is its own group."""
        group: list[PagePart] = []
        chars = 0
        for part in self.parts:
            if part.first > 1 or not part.is_last or any(part.name == other.name for other in group):
                if group:
                    yield group
                    group, chars = [], 0
                yield [part]  # a page that the dump has twice is in two groups
                continue
            group.append(part)
            chars += sum(len(revision.body) for revision in part.revisions)
            if len(group) >= GROUP_PAGES or chars >= GROUP_CHARS:
                yield group
                group, chars = [], 0
        if group:
            yield group

    def _note(self, pages: int) -> None:
        self._wiki.store.run(lambda c: c.table(schema.IMPORTS).put(self._row, {_DONE: b"%d" % pages}))
        self._progress(self.parts.consumed, self.parts.counts.pages)


def _done_before(wiki: Wiki, row: bytes) -> int:
    found = wiki.store.run(lambda c: c.table(schema.IMPORTS).row(row))
    value = found.get(_DONE, b"0")
    return int(value) if value.isdigit() else 0
