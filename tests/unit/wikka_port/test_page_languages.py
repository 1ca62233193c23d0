"""Languages of pages: their codes, and which ones a wiki has."""

from __future__ import annotations

import pytest

from wikka_port.page_languages import NAMES, column, known, listed


@pytest.mark.parametrize(
    ("code", "meant"),
    [
        ("de", "de"),
        ("DE", "de"),
        ("pt-BR", "pt"),
        ("zh_Hant", "zh"),
        ("nb", "no"),
        ("simple", "en"),
        (" fr ", "fr"),
        ("xx", ""),
        ("", ""),
        ("-", ""),
        ("de\x00", ""),
    ],
)
def test_what_a_code_means(code: str, meant: str) -> None:
    assert known(code) == meant


def test_every_language_means_itself_and_is_listed() -> None:
    assert {known(code) for code in NAMES} == set(NAMES)
    assert listed(map(column, NAMES)) == ["en", *sorted(NAMES.keys() - {"en"})]


def test_english_is_always_there_and_what_is_no_language_never() -> None:
    assert listed([]) == ["en"]
    assert listed([b"meta:de", b"meta:xx", b"meta:\xff", b"meta:en"]) == ["en", "de"]
