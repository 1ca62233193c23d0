"""The pages of the thesis's synthetic wiki."""

from __future__ import annotations

import hashlib

import pytest

from wikka_port.commands.synth import page_name, page_text
from wikka_port.markup.links import links
from wikka_port.names import is_camel_case


@pytest.mark.parametrize(("number", "name"), [(0, "Aa"), (1, "Bb"), (523, "FfCcDd"), (99_999, "JjJjJjJjJj")])
def test_names_are_the_digits_as_letters(number: int, name: str) -> None:
    assert page_name(number) == name


def test_names_of_two_digits_and_more_are_camel_case_and_differ() -> None:
    names = [page_name(number) for number in range(2_000)]
    assert len(set(names)) == 2_000
    assert all(is_camel_case(name) for name in names[10:])


def test_a_page_has_its_size_and_its_links_and_is_always_the_same() -> None:
    text = page_text(7, pages=1_000, seed=1, size_bytes=8_192, links=10)
    assert text == page_text(7, pages=1_000, seed=1, size_bytes=8_192, links=10)
    assert text != page_text(7, pages=1_000, seed=2, size_bytes=8_192, links=10)
    assert 8_192 - 100 <= len(text) <= 8_192 + 200
    assert text.count("[[") == 10
    assert set(links(text, autolink=False)) <= {page_name(number) for number in range(1_000)}
    assert page_text(0, pages=1, seed=1, size_bytes=0, links=2) == "[[Aa]] [[Aa]]\n"


def test_a_wiki_that_an_earlier_version_began_goes_on_with_the_same_pages() -> None:
    text = page_text(7, pages=1_000, seed=1, size_bytes=8_192, links=10)
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "3ab346a03370fb83"
    text = page_text(523, pages=30_000, seed=2, size_bytes=300, links=3)
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "960694983aeab45c"
