"""The comparison at the end of a move: counts and a digest of each kind, from the source and from what was stored.

The digest of a kind is over all its records in the source's order.  Both sides are read anew: the source from its
tables, the other side from the store.  A revision counts with its page's name, its time, id, author, note and text.
Revisions that were written in this wiki are left out, and pages that were deleted here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

from columnar.client import Connection
from wikka_port import history, schema
from wikka_port.import_plan import ImportedRevision, Origin
from wikka_port.names import page_key
from wikka_port.page_rows import head_of, text_in
from wikka_port.pages import Wiki
from wikka_port.wikkawiki.source_pages import SourcePages

NAMED_MAX: Final = 100  # records that differ, by name; all are counted


@dataclass(slots=True)
class Compared:
    """Counts and digests of one kind of records, on both sides."""

    kind: str
    in_source: int = 0
    in_store: int = 0
    differing: int = 0
    named: list[str] = field(default_factory=list)
    left_out: int = 0
    _source: Any = field(default_factory=sha256)
    _store: Any = field(default_factory=sha256)

    def add(self, name: str, source: Iterable[bytes], store: Iterable[bytes]) -> None:
        """Compare the digests of the records that belong to ``name``."""
        ours, theirs = list(store), list(source)
        self.in_source += len(theirs)
        self.in_store += len(ours)
        for digest in theirs:
            self._source.update(digest)
        for digest in ours:
            self._store.update(digest)
        if ours != theirs:
            self.differing += 1
            if len(self.named) < NAMED_MAX:
                here = "is not here" if not ours else f"{len(theirs):,} there, {len(ours):,} here, or another content"
                self.named.append(f"{name}: {here}")

    def leave_out(self, records: int) -> None:
        self.left_out += records

    @property
    def is_equal(self) -> bool:
        return self.source_digest == self.store_digest and self.in_source == self.in_store

    @property
    def source_digest(self) -> str:
        return str(self._source.hexdigest())

    @property
    def store_digest(self) -> str:
        return str(self._store.hexdigest())


def record_digest(*parts: str | int) -> bytes:
    """Return the digest of one record."""
    digest = sha256()
    for part in parts:
        data = str(part).encode("utf-8", "replace")
        digest.update(b"%d:" % len(data))
        digest.update(data)
    return digest.digest()


def compare_pages(wiki: Wiki, pages: SourcePages, deleted: Collection[str]) -> Compared:
    """Compare all revisions of all pages but the ``deleted``.  O(both sides)."""
    compared = Compared("revisions")
    for name, revisions in pages.histories():
        there = [_of_source(name, revision) for revision in revisions]
        if name in deleted:
            compared.leave_out(len(there))
            continue
        compared.add(name, there, wiki.store.run(lambda c, n=name: _stored(c, n)))  # type: ignore[misc]
    return compared


def _of_source(name: str, revision: ImportedRevision) -> bytes:
    assert revision.origin is not None
    return record_digest(
        name,
        revision.origin.time_ms,
        revision.origin.revision_id,
        revision.author,
        revision.note,
        revision.body if revision.source is None else revision.source,
    )


def _stored(connection: Connection, name: str) -> list[bytes]:
    """Return the digests of the stored revisions that an import has brought, the newest first."""
    key = page_key(name)
    row = connection.table(schema.PAGES).row(key, columns=[b"meta"])
    newest = head_of(row)
    if not newest.number:
        return []
    found: list[bytes] = []
    chain = history.chain(connection, key, newest, newest.number, bodies=True, further=(schema.ORIGIN, schema.SOURCE))
    for _, cells in chain:
        origin = Origin.parse(cells.get(schema.ORIGIN))
        if origin is not None:
            author, note = text_in(cells, schema.REVISION_AUTHOR), text_in(cells, schema.REVISION_NOTE)
            body = text_in(cells, schema.SOURCE if schema.SOURCE in cells else schema.REVISION_BODY)
            found.append(
                record_digest(text_in(row, schema.NAME), origin.time_ms, origin.revision_id, author, note, body)
            )
    return found
