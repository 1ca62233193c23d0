"""Feeds: well-formed whatever the texts are."""

from __future__ import annotations

from xml.etree import ElementTree

from hypothesis import given, settings
from hypothesis import strategies as st

from wikka_port.feeds import Entry, atom, iso_time

ATOM = "{http://www.w3.org/2005/Atom}"
ANY = st.text(st.characters(blacklist_categories=["Cs"]), max_size=30)


@given(ANY, ANY, ANY, st.integers(-(10**18), 10**18))
@settings(max_examples=100)
def test_any_text_makes_a_well_formed_feed(title: str, author: str, summary: str, time_ms: int) -> None:
    feed = ElementTree.fromstring(
        atom("w", "http://x/f", "http://x/", [Entry(title, "http://x/a", time_ms, author, summary)])
    )
    assert feed.tag == ATOM + "feed"
    assert len(feed.findall(ATOM + "entry")) == 1


def test_the_feed_has_the_time_of_its_newest_entry() -> None:
    entries = [Entry("a", "http://x/a", 1_000, "n", ""), Entry("b", "http://x/b", 61_000, "n", "")]
    feed = ElementTree.fromstring(atom("w", "http://x/f", "http://x/", entries))
    assert feed.findtext(ATOM + "updated") == "1970-01-01T00:01:01Z"


def test_iso_time() -> None:
    assert iso_time(1_750_000_061_999) == "2025-06-15T15:07:41Z"
