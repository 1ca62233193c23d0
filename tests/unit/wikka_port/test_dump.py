"""The dump reader: events, compressions, damage, resuming, constant memory."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wikka_port.dump import (
    DamagedDump,
    DumpError,
    DumpEvent,
    DumpReader,
    DumpSite,
    NotADump,
    PageEnd,
    PageStart,
    Revision,
)

SMALL = (Path(__file__).parents[2] / "data" / "small-dump.xml").read_bytes()


def events(data: bytes, **options: int) -> list[DumpEvent]:
    return list(DumpReader(io.BytesIO(data), **options))


def titles(data: bytes, **options: int) -> list[str]:
    return [event.title for event in events(data, **options) if isinstance(event, PageStart)]


WHOLE = events(SMALL)


def test_the_site_comes_first() -> None:
    site = WHOLE[0]
    assert isinstance(site, DumpSite)
    assert (site.name, site.base, site.language) == (
        "Harbour Wiki",
        "https://harbour.example/wiki/Main_Page",
        "en",
    )
    assert site.capitalised
    assert site.namespaces["Harbour talk"] == 5
    assert site.namespaces[""] == 0


def test_a_page_with_its_revisions_in_order() -> None:
    start = next(i for i, event in enumerate(WHOLE) if isinstance(event, PageStart) and event.title == "Lighthouse")
    page, first, second, third, end = WHOLE[start : start + 5]
    assert page == PageStart("Lighthouse", 0, 2, None, 1)
    assert isinstance(first, Revision)
    assert first.text == "A '''lighthouse''' is a tower with a light."
    assert first.contributor == "Ada"
    assert not first.minor
    assert isinstance(second, Revision)
    assert (second.contributor, second.anonymous, second.comment) == ("198.51.100.7", True, "history")
    assert isinstance(third, Revision)
    assert third.contributor == "Ģirts"
    assert third.minor
    assert end == PageEnd(2, 3)


def test_times_are_utc_milliseconds() -> None:
    data = SMALL.replace(b"<timestamp>2010-03-01", b"<timestamp>1970-01-02", 1)
    first = next(event for event in events(data) if isinstance(event, Revision))
    assert 86_400_000 <= first.timestamp_ms < 2 * 86_400_000


def test_redirects_and_namespaces_of_pages() -> None:
    pages = {event.title: event for event in WHOLE if isinstance(event, PageStart)}
    assert pages["Light house"].redirect_target == "Lighthouse"
    assert pages["Template:Crew"].namespace == 10
    assert pages['O\'Brien & "Sons" <shipwrights>'].namespace == 0


def test_what_the_site_hid_is_none() -> None:
    hidden = [event for event in WHOLE if isinstance(event, Revision) and event.text is None]
    assert len(hidden) == 1
    assert hidden[0].contributor is None
    assert hidden[0].comment == ""
    empty = [event for event in WHOLE if isinstance(event, Revision) and event.text == ""]
    assert len(empty) == 1


def test_models_are_told() -> None:
    assert {event.model for event in WHOLE if isinstance(event, Revision)} == {"wikitext", "Scribunto"}


@pytest.mark.parametrize(
    "packed",
    [
        bz2.compress(SMALL),
        gzip.compress(SMALL),
        bz2.compress(SMALL[:5000]) + bz2.compress(SMALL[5000:]),
        gzip.compress(SMALL[:5000]) + gzip.compress(SMALL[5000:]) + b"\0" * 100,
    ],
    ids=["bz2", "gz", "multistream bz2", "multistream gz, padded"],
)
def test_compression_is_found_by_magic(packed: bytes) -> None:
    reader = DumpReader(io.BytesIO(packed))
    assert list(reader) == WHOLE
    assert reader.bytes_consumed == len(packed)


class Dripping(io.RawIOBase):
    """Hands out single bytes, as a slow pipe does."""

    def __init__(self, data: bytes) -> None:
        self._inner = io.BytesIO(data)

    def read(self, _size: int = -1) -> bytes:
        return self._inner.read(1)


@pytest.mark.parametrize("data", [SMALL, bz2.compress(SMALL), gzip.compress(SMALL)], ids=["plain", "bz2", "gz"])
def test_a_pipe_that_drips(data: bytes) -> None:
    assert list(DumpReader(Dripping(data))) == WHOLE  # type: ignore[arg-type]


def test_skipping_by_count() -> None:
    every = titles(SMALL)
    assert titles(SMALL, skip_pages=4) == every[4:]
    assert titles(SMALL, skip_pages=len(every)) == []
    ordinals = [event.ordinal for event in events(SMALL, skip_pages=4) if isinstance(event, PageStart)]
    assert ordinals[0] == 4


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"hello",
        b"<html><body/></html>",
        b"<mediawiki",
        b"\x00\xff\x13",
        b'<?xml version="1.0" encoding="x-none"?>',
    ],
)
def test_not_a_dump(data: bytes) -> None:
    with pytest.raises(NotADump, match="not a MediaWiki export"):
        events(data)


def test_entity_bombs_are_refused_before_they_are_lit() -> None:
    bomb = (
        b'<!DOCTYPE mediawiki [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
        b"<mediawiki><page><title>&b;</title></page></mediawiki>"
    )
    with pytest.raises(NotADump, match="document type"):
        events(bomb)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (b"<id>2</id>", b"<id>two</id>", "id of page 'Lighthouse'"),
        (b"<id>2</id>", b"<id>" + b"9" * 5000 + b"</id>", "not a number"),
        (b"<title>Lighthouse</title>", b"<title></title>", "no title"),
        (b"<timestamp>2010", b"<timestamp>soon", "time of a revision"),
        (b"</contributor>", b"</contributer>", "mismatched tag"),
        (b"Harbour Wiki", b"Harbour \x01 Wiki", "not well-formed"),
    ],
)
def test_damage_says_what_and_where(old: bytes, new: bytes, why: str) -> None:
    with pytest.raises(DamagedDump, match=why) as caught:
        events(SMALL.replace(old, new, 1))
    assert caught.value.line is not None
    assert caught.value.line > 1
    assert "line" in str(caught.value)


def test_pages_before_the_damage_are_delivered() -> None:
    reader = DumpReader(io.BytesIO(SMALL[: SMALL.index(b"<title>Ebb")]))
    seen: list[DumpEvent] = []
    with pytest.raises(DamagedDump, match="truncated"):
        seen.extend(reader)
    assert WHOLE[: len(seen)] == seen
    assert PageEnd(5, 1) in seen


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(DamagedDump, match="nested"):
        events(b"<mediawiki>" + b"<a>" * 100_000)


def test_garbage_behind_a_compressed_dump() -> None:
    for packed in (bz2.compress(SMALL), gzip.compress(SMALL)):
        with pytest.raises(DamagedDump, match="follow the compressed data"):
            events(packed + b"garbage")


END = SMALL.rindex(b"</mediawiki>") + len(b"</mediawiki>")
PACKED = {"plain": SMALL[:END], "bz2": bz2.compress(SMALL), "gz": gzip.compress(SMALL)}


@settings(max_examples=150)
@given(kind=st.sampled_from(sorted(PACKED)), share=st.floats(0, 1, exclude_max=True))
def test_a_dump_cut_anywhere_never_ends_in_silence(kind: str, share: float) -> None:
    data = PACKED[kind]
    with pytest.raises(DumpError):
        events(data[: int(len(data) * share)])


@settings(max_examples=150)
@given(
    kind=st.sampled_from(sorted(PACKED)),
    share=st.floats(0, 1, exclude_max=True),
    new=st.binary(min_size=1, max_size=8),
)
def test_a_dump_with_bytes_changed_ends_or_is_refused(kind: str, share: float, new: bytes) -> None:
    data = PACKED[kind]
    at = int(len(data) * share)
    with contextlib.suppress(DumpError):
        events(data[:at] + new + data[at + len(new) :])


class Generated(io.RawIOBase):
    """A dump made while it is read: ``pages`` pages, the last one with ``revisions`` revisions."""

    def __init__(self, pages: int, revisions: int, text: bytes) -> None:
        self._parts = self._make(pages, revisions, text)
        self._rest = b""

    def _make(self, pages: int, revisions: int, text: bytes) -> Iterator[bytes]:
        yield b"<mediawiki><siteinfo><sitename>G</sitename></siteinfo>"
        for page in range(pages):
            yield b"<page><title>P%d</title><ns>0</ns><id>%d</id>" % (page, page + 1)
            for number in range(revisions if page == pages - 1 else 1):
                yield b"<revision><id>%d</id><timestamp>2020-01-01T00:00:00Z</timestamp>" % (number + 1)
                yield b"<contributor><username>U</username></contributor><text>" + text + b"</text></revision>"
            yield b"</page>"
        yield b"</mediawiki>"

    def read(self, size: int = -1) -> bytes:
        while len(self._rest) < size and (part := next(self._parts, b"")):
            self._rest += part
        out, self._rest = self._rest[:size], self._rest[size:]
        return out


def peak_bytes(stream: io.RawIOBase) -> tuple[int, int]:
    tracemalloc.start()
    try:
        revisions = sum(isinstance(event, Revision) for event in DumpReader(stream))  # type: ignore[arg-type]
        return tracemalloc.get_traced_memory()[1], revisions
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_pages_or_revisions() -> None:
    text = b"word " * 2000
    small, _ = peak_bytes(Generated(20, 20, text))
    large, revisions = peak_bytes(Generated(400, 1200, text))  # 16 MB
    assert revisions == 399 + 1200
    assert large < small + 1_000_000


def test_a_compression_bomb_stays_a_stream() -> None:
    xml = b"<mediawiki>" + b" " * 30_000_000 + b"</mediawiki>"
    for packed in (bz2.compress(xml), gzip.compress(xml)):
        peak, _ = peak_bytes(io.BytesIO(packed))
        assert peak < 8_000_000


@pytest.mark.parametrize(
    ("begins", "error"),
    [
        ('<mediawiki a="', NotADump),
        ('<mediawiki><page a="', DamagedDump),
        ("<mediawiki><page><!--", DamagedDump),
        ("<mediawiki><pa", DamagedDump),
        ("<mediawiki><?a ", DamagedDump),
    ],
)
def test_a_tag_without_an_end_is_refused_after_a_few_megabytes(begins: str, error: type[DumpError]) -> None:
    """600 MB of one tag in 30 KB of file once took minutes and as much memory."""
    packed = bz2.compress(begins.encode()) + 600 * bz2.compress(b"x" * 1_000_000)
    stream = io.BytesIO(packed)
    tracemalloc.start()
    with pytest.raises(error, match="a tag or a comment of over 4,194,304 bytes"):
        list(DumpReader(stream))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20_000_000


def test_a_text_of_many_megabytes_is_no_such_tag() -> None:
    page = "<page><title>A</title><id>1</id><revision><id>1</id><timestamp>2020-01-01T00:00:00Z</timestamp><text>"
    text = "line\n" * 2_500_000
    dump = f"<mediawiki>{page}{text}</text></revision></page></mediawiki>"
    (revision,) = [event for event in DumpReader(io.BytesIO(dump.encode())) if isinstance(event, Revision)]
    assert revision.text == text


def test_a_page_of_two_hundred_revisions_is_streamed() -> None:
    reader = DumpReader(Generated(1, 200, b"text"))  # type: ignore[arg-type]
    assert isinstance(next(reader), DumpSite)
    assert isinstance(next(reader), PageStart)
    assert sum(isinstance(event, Revision) for event in reader) == 200
