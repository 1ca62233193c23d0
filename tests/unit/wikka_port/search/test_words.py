"""Words and stems, the text of a page, and what the index says of it."""

from __future__ import annotations

from collections import Counter
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wikka_port.markup.mediawiki import Dialect, convert
from wikka_port.page_languages import NAMES
from wikka_port.search.page_text import page_text
from wikka_port.search.postings import Posting, column_of, key_of, of_page, pack_stems, parse_posting, parse_stems
from wikka_port.search.words import WORD_CHARS, Terms, is_character, occurrences, stem_of, stems, terms, words

KEY = b"0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The landings of Apollo", ["the", "land", "of", "apollo"]),
        ("Ünïted NATIONS’ nation's", ["unit", "nation", "nation"]),
        ("snake_case well-known v2.0", ["snake", "case", "well", "known", "v2", "0"]),
        ("東京都 x東y 東", ["東京", "京都", "x", "東", "y", "東"]),
        ("हिन्दी Ελλάδα Москва", ["हिन्दी", "ελλαδα", "москва"]),
        ("... -- {{ }} __", []),
        ("", []),
    ],
)
def test_stems(text: str, expected: list[str]) -> None:
    assert stems(text) == expected


@pytest.mark.parametrize(
    ("language", "forms", "other"),
    [
        ("de", "Häuser Hauses haus HÄUSERN", "Mauer"),
        ("fr", "continuité continuités CONTINUITE", "continu"),
        ("es", "canción canciones cancion", "cantar"),
        ("ru", "новый нового новую", "новость"),
        ("el", "άνθρωπος ανθρώπους ΑΝΘΡΩΠΟΣ", "ανθρωπότητα"),
        ("sv", "husen huset hus", "husky"),
        ("ar", "كتاب الكتاب", "مدينة"),
        ("en", "moon moons", "mono"),
    ],
)
def test_forms_of_a_word_have_one_stem_by_the_rules_of_their_language(language: str, forms: str, other: str) -> None:
    found = set(stems(forms, language))
    assert len(found) == 1
    assert found.isdisjoint(stems(other, language))


def test_every_language_with_a_stemmer_has_one_and_the_others_leave_words_as_they_are() -> None:
    assert {stem_of("running", code) for code in NAMES} >= {"run", "running"}
    for code in NAMES:
        assert stem_of("x1", code) == "x1", code
    assert stems("Häuser", "la") == ["hauser"]
    assert stems("Häuser", "xx") == ["hauser"]


@pytest.mark.parametrize("text", ["대한민국", "x 한y", "がぎぐげご", "か\u3099", "Tiếng Việt", "Å ǖ"])
def test_a_word_is_the_same_however_its_letters_are_composed(text: str) -> None:
    """Names of files on a Mac, and what is copied from them, have their letters in parts."""
    apart = normalize("NFD", text)
    assert stems(apart) == stems(normalize("NFC", text))
    assert [word.stem for word in words(apart)] == stems(apart)
    assert all(0 <= word.start < word.end <= len(apart) for word in words(apart))


@given(st.text(max_size=200))
def test_words_stand_where_they_say_and_agree_with_stems(text: str) -> None:
    found = list(words(text))
    assert [word.stem for word in found] == stems(text)
    assert all(0 <= word.start < word.end <= len(text) for word in found)
    assert [word.start for word in found] == sorted(word.start for word in found)


def test_the_index_has_the_characters_of_pairs_besides() -> None:
    found = terms("東京都 x東y 東々 moon")
    assert found == Terms(["東京", "京都", "x", "東", "y", "東", "々", "moon"], ["東", "京", "都"])
    assert terms("潮、汐・波 赤潮").characters == ["赤", "潮"], "a character without neighbours is a word already"
    assert terms("대한").characters == terms(normalize("NFD", "대한")).characters == ["대", "한"]
    assert terms("ไทย moon").characters == []
    assert [one for one in "東かカ한x5ท々" if is_character(one)] == ["東", "か", "カ", "한"]


@given(st.text(alphabet="東京かｶ한가\u1112x5々・_' 。\u3099", max_size=40))
def test_each_character_is_indexed_as_often_as_it_stands_in_the_text(text: str) -> None:
    found = terms(text)
    assert found.stems == stems(text)
    counted = Counter(one for one in (*found.stems, *found.characters) if is_character(one))
    assert counted == Counter(one for one in normalize("NFC", text) if is_character(one) and one not in "・゛゜")


@given(st.text(alphabet="東京潮x moon。_", max_size=40), st.sets(st.sampled_from(["東", "潮", "東京", "moon", "x"])))
def test_occurrences_are_of_what_is_wanted_and_of_all_of_it(text: str, wanted: set[str]) -> None:
    found = list(occurrences(text, wanted))
    assert [one.start for one in found] == sorted(one.start for one in found)
    assert {one.stem for one in found} <= wanted
    assert all(text[one.start : one.end] == one.stem for one in found)
    for alone in wanted & {"東", "潮"}:
        places = {at for at, one in enumerate(text) if one == alone}
        covered = {at for one in found for at in range(one.start, one.end)}
        assert places <= covered


@given(st.text(max_size=60))
def test_a_stem_is_no_row_of_another_one(text: str) -> None:
    for stem in stems(text):
        assert stem
        assert "\x00" not in stem
        assert "\n" not in stem


def test_a_long_word_counts_by_its_beginning() -> None:
    assert stem_of("z" * 1_000) == "z" * WORD_CHARS


def test_the_text_of_a_page_is_what_a_reader_sees() -> None:
    body = (
        "===== Moon landing =====\n"
        "It was un**believ**able, see [[HomePage the home page]] and [[https://example.org/a/b the archive]].\n"
        '{{image url="https://example.org/secret.png"}}\n'
        '%%(python)print(42)%% ""<b class=\'x\'>bold</b>""\n'
        "|=|Name||Armstrong||\n"
    )
    found = page_text(body)
    assert stems(found.headings) == ["moon", "land"]
    said = stems(found.text)
    for word in ("unbelievable", "home", "archive", "print", "42", "bold", "Armstrong"):
        assert stem_of(word) in said, word
    for word in ("example", "secret", "class"):
        assert stem_of(word) not in said, word


def test_postings_count_the_places_of_a_word() -> None:
    found = of_page("Moon", "==== The moon ====\nmoon moons sun\n", autolink=True)
    assert parse_posting(found["moon"]) == Posting(title=1, headings=1, text=2, length=3)
    assert parse_posting(found["sun"]) == Posting(0, 0, 1, 3)
    many = of_page("X", "word " * 1_000, autolink=True)
    assert parse_posting(many["word"]).text == 255


def test_postings_count_characters_and_the_length_does_not() -> None:
    found = of_page("潮汐", "==== 赤潮 ====\n潮 潮流 満潮\n", autolink=True)
    assert parse_posting(found["潮"]) == Posting(title=1, headings=1, text=3, length=3)
    assert parse_posting(found["赤"]) == Posting(0, 1, 0, 3)
    assert set(found) == {*("潮汐", "赤潮", "潮流", "満潮"), *"潮汐赤流満"}


def test_a_name_in_camel_case_is_found_by_its_words() -> None:
    found = of_page("TidalRivers", "", autolink=True)
    assert {stem_of("TidalRivers"), "tidal", "river"} == set(found)
    assert set(of_page("Tidal rivers", "", autolink=True)) == {"tidal", "river"}


def test_an_edit_changes_the_postings_of_its_words() -> None:
    before = of_page("P", "one two three four five six seven", autolink=True)
    after = of_page("P", "one two three four five six eight", autolink=True)
    assert {stem for stem in before if before[stem] != after.get(stem)} == {"seven"}
    assert {stem for stem in after if after[stem] != before.get(stem)} == {stem_of("eight")}


def test_columns_and_stems_of_docs_there_and_back() -> None:
    assert key_of(column_of(KEY)) == KEY
    assert len(column_of(KEY)) == 18
    assert parse_stems(pack_stems({"b", "a", "ü"})) == {"a", "b", "ü"}
    assert parse_stems(b"") == frozenset()
    with pytest.raises(ValueError, match="no posting"):
        parse_posting(b"12345")


def test_the_way_back_of_an_imported_note_is_no_word() -> None:
    note = convert("== H<ref>one</ref> ==", namespaces=Dialect.of({"": 0}), title="Page").text
    assert "↩" in note
    assert "one" in page_text(note).text
    assert page_text("a{{table cells='one;###;two'}}b{{toc}}c").text.split() == ["a", "one", "two", "b", "c"]
    assert "↩" not in page_text(note).text


def test_values_that_a_page_gives_to_one_that_it_includes_are_its_words() -> None:
    found = page_text("a {{include page='Template:Quote' 1='tidal rivers' who=\"Ada\"}} b").text
    assert found.split() == ["a", "tidal", "rivers", "Ada", "b"]
