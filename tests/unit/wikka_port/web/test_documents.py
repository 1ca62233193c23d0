"""The cache of parsed pages: right, and bounded."""

from __future__ import annotations

from wikka_port.caches import DocumentCache, size_chars


def test_a_revision_is_parsed_once() -> None:
    cache = DocumentCache(1_000_000)
    first = cache.document("A", 1, "**x**", autolink=True)
    assert cache.document("A", 1, "**x**", autolink=True) is first
    assert cache.document("A", 2, "**y**", autolink=True) is not first
    assert cache.document("A", 1, "**x**", autolink=False) is not first


def test_the_longest_unused_goes_first() -> None:
    size = size_chars(DocumentCache(10).document("A", 1, "x" * 1_000, autolink=True))
    cache = DocumentCache(size * 4)
    kept = cache.document("0", 1, "x" * 1_000, autolink=True)
    for n in range(1, 8):
        cache.document(str(n), 1, "x" * 1_000, autolink=True)
        assert cache.document("0", 1, "x" * 1_000, autolink=True) is kept
    assert len(cache) == 4


def test_a_huge_page_does_not_push_out_all_others() -> None:
    cache = DocumentCache(10_000)
    cache.document("small", 1, "x", autolink=True)
    cache.document("huge", 1, "x" * 9_000, autolink=True)
    assert len(cache) == 1
