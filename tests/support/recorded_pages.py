"""A few fixed records for the golden files of exports, and a source of records in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import sha256

from wikka_port.exchange.records import (
    CommentRecord,
    DigestingSource,
    Digests,
    FileRecord,
    PageRecord,
    RecordedFile,
    RecordSource,
    RevisionRecord,
    SiteRecord,
)


@dataclass(frozen=True)
class MemoryPage:
    record: PageRecord
    of_page: tuple[RevisionRecord, ...]
    of_files: tuple[tuple[FileRecord, bytes | None], ...] = ()
    of_comments: tuple[CommentRecord, ...] = ()

    def revisions(self) -> Iterator[RevisionRecord]:
        return iter(self.of_page)

    def files(self) -> Iterator[RecordedFile]:
        for record, content in self.of_files:
            yield RecordedFile(record, None if content is None else iter([content]))

    def comments(self) -> Iterator[CommentRecord]:
        return iter(self.of_comments)


@dataclass(frozen=True)
class MemorySource:
    of_wiki: tuple[MemoryPage, ...]
    rights: SiteRecord | None = None
    consumed: int = 0
    remarks: tuple[str, ...] = ()

    def site(self) -> SiteRecord | None:
        return self.rights

    def pages(self) -> Iterator[MemoryPage]:
        return iter(self.of_wiki)


PIER = b"a pier\n"
FIXED = MemorySource(
    (
        MemoryPage(
            PageRecord("Harbour/Pier", "Ada", {"read": "+", "write": "Ada"}),
            (
                RevisionRecord(3, 1_700_000_000_123, "Ada", "**One**\r\n", signed="account", was="Pier"),
                RevisionRecord(4, 1_700_000_001_000, "Eve", "spam", note="two\nlines", signed="visitor", hidden=True),
                RevisionRecord(
                    *(5, 1_700_000_002_000, "Ada", "# Zwei\n"),
                    markup="markdown",
                    language="de",
                    minor=True,
                    autolink=False,
                    note="“quoted”",
                ),
            ),
            (
                (
                    FileRecord(
                        *("pier.txt", 1, 1_700_000_003_000, "Ada", "account", "added", "a pier", "text/plain"),
                        size_bytes=len(PIER),
                        sha256=sha256(PIER).hexdigest(),
                    ),
                    PIER,
                ),
                (FileRecord("pier.txt", 2, 1_700_000_004_000, "Ada"), None),
            ),
            (
                CommentRecord(1, 1_700_000_005_000, "Visitor 7f3a", "“One”\n<b>", signed="visitor"),
                CommentRecord(
                    2, 1_700_000_006_000, "Ada", "Two", "key", "markdown", parent=1, edited_ms=1_700_000_007_000
                ),
                CommentRecord(3, 1_700_000_008_000, "Eve", "spam", state="deleted", removed_by="owner", origin="x 1"),
            ),
        ),
        MemoryPage(
            PageRecord("日本"),
            (
                RevisionRecord(
                    *(1, 1_700_000_000_500, "(hidden)", "===日本===\n"),
                    attribution="From elsewhere",
                    source="== 日本 ==\n",
                    origin="1700000000500 17 " + "ab" * 20,
                ),
            ),
        ),
    ),
    SiteRecord({"": {"write": "+"}, "private/": {"read": "Ada"}}),
)


SPAM = MemoryPage(
    PageRecord("Harbour/Pier", "Eve", {"read": "Eve"}, 1_700_000_002_500, "Ada", "it was\nspam"),
    (
        RevisionRecord(1, 1_700_000_000_200, "Eve", "buy", signed="visitor", hidden=True),
        RevisionRecord(
            2, 1_700_000_000_700, "Eve", "**One**\r\n", source="buy", origin=f"1700000000700 17 {'cd' * 20}"
        ),
    ),
    (
        (
            FileRecord("pier.txt", 1, 1_700_000_000_800, "Eve", size_bytes=3, sha256=sha256(b"buy").hexdigest()),
            b"buy",
        ),
    ),
    (CommentRecord(1, 1_700_000_000_900, "Eve", "buy"),),
)
AGAIN = MemoryPage(
    PageRecord("Harbour/Pier", deleted_ms=1_700_000_000_100, deleted_by="Ada"),
    (RevisionRecord(1, 1_700_000_000_050, "Eve", "buy"),),
)
WITH_DELETED = replace(FIXED, of_wiki=(*FIXED.of_wiki, SPAM, AGAIN))  # two deleted pages, of a name that is a page


def digests_of(source: RecordSource) -> Digests:
    """Read everything, and compare each content with its digest."""
    digesting = DigestingSource(source)
    for page in digesting.pages():
        assert list(page.revisions())
        seen = set()
        for file in page.files():
            if file.content is not None:
                assert sha256(b"".join(file.content)).hexdigest() == file.record.sha256
                seen.add(file.record.sha256)
            assert not file.record.sha256 or file.record.sha256 in seen, file.record
        assert all(comment.number for comment in page.comments())
    return digesting.digests
