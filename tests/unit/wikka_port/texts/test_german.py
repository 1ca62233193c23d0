"""The German texts: one word for one thing, and “du” in each of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pytest

from wikka_port.texts import files

# What is said instead; the other word would be taken for another thing.
OTHERS = {
    r"\w Sie\b": "du",
    r"Verwalter\b": "Administrator",
    r"Eigentümer": "Besitzer",
    r"Fassung": "Version",
    r"[Aa]bgelegte Änderung": "unzustellbare Änderung",
    r"\bHinweise\b": "Nachrichten",
}
# In a wiki "Seite" is a page.
SITES = r"\b(sites|other site|another site|name of a site)\b"
# A block stops an account or a network for a time; the other two are statuses of an account.
STATUSES = {r"\bsuspend": "still", r"\bban(ned)?\b": "ausschließen|ausgeschlossen"}


def said() -> Iterator[tuple[str, str]]:
    with resources.as_file(resources.files("wikka_port") / "languages" / "de.po") as path:
        made = files.read(Path(path))
    assert made is not None
    for entry in made:
        yield entry.msgid, " ".join([entry.msgstr, *entry.msgstr_plural.values()])


@pytest.mark.parametrize("word", OTHERS)
def test_one_thing_has_one_word(word: str) -> None:
    assert [text for _, text in said() if re.search(word, text)] == [], OTHERS[word]


def test_blocked_suspended_and_banned_are_three_things() -> None:
    for english, german in said():
        for sought, word in STATUSES.items():
            if re.search(sought, english):
                assert re.search(word, german), (english, german)
    accounts = [german for english, german in said() if re.search("suspended|banned", english)]
    assert len(accounts) >= 6
    assert [one for one in accounts if "sperr" in one.lower()] == []


def test_sites_elsewhere_are_no_pages() -> None:
    """An author who is told to leave out links to other sites must not take out those to other pages."""
    sites = [(english, german) for english, german in said() if re.search(SITES, english, re.IGNORECASE)]
    assert len(sites) >= 6
    assert [pair for pair in sites if "Website" not in pair[1]] == []
