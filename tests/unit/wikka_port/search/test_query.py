"""What a visitor types, read; the order of what is found; words one letter away; passages."""

from __future__ import annotations

from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wikka_port.search.postings import Posting
from wikka_port.search.query import QUERY_CHARS, WORDS_MAX, parse, unsorted
from wikka_port.search.searching import ordered, scores_of
from wikka_port.search.snippets import PASSAGE_CHARS, marked, passage, plain_passage
from wikka_port.search.words import ALPHABETS, LETTERS_MAX, NEIGHBOURS_MAX, SPELLED_MAX, _letters, neighbours, stem_of

DAY_MS = 24 * 3600 * 1000


def test_words_phrases_alternatives_and_exclusions() -> None:
    found = parse('Moons or lunar "first landings" -apollo -"sea of" rocks')
    assert found.clauses == ((("moon",), ("lunar",)), (("first", "land"),), (("rock",),))
    assert found.excluded == (("apollo",), ("sea", "of"))
    assert found.problems == ()


def test_filters() -> None:
    found = parse('in:Help_Me by:"Jonas W" category:Wiki changed:>2026-01-01 moon')
    assert (found.prefix, found.author, found.category) == ("Help Me", "Jonas W", "Wiki")
    assert (found.from_ms, found.before_ms) == (1_767_225_600_000, None)
    day = parse("moon changed:2026-01-01")
    assert (day.from_ms, day.before_ms) == (1_767_225_600_000, 1_767_225_600_000 + DAY_MS)
    assert parse("moon changed:<2026-01-01").before_ms == 1_767_225_600_000


def test_an_order_is_no_word_and_can_be_taken_away() -> None:
    asked = parse("moon SORT:Changed landing")
    assert (asked.sort, asked.typed, asked.has_filters) == ("changed", ("moon", "landing"), False)
    assert parse("moon").sort == ""
    assert parse("moon sort:size").problems == ("“sort:size” is no order; write sort:changed or sort:name.",)
    assert parse("sort:name").is_empty
    assert unsorted("moon sort:changed  landing SORT:name x-sort:y") == "moon landing x-sort:y"
    assert unsorted('sort:"name" "moon sort"') == '"moon sort"'


def test_a_word_of_several_parts_is_a_phrase() -> None:
    assert parse("well-known").clauses == ((("well", "known"),),)


def test_one_character_is_a_word_with_every_sign_of_a_search() -> None:
    found = parse('潮 or 波 -汐 "海" 5月 in:水')
    assert found.clauses == ((("潮",), ("波",)), (("海",),), (("5", "月"),))
    assert (found.excluded, found.prefix) == ((("汐",),), "水")


def test_or_at_the_edges_is_no_word() -> None:
    assert parse("or moon or").clauses == ((("moon",),),)
    assert parse('"or" moon').clauses == ((("or",),), (("moon",),))


@pytest.mark.parametrize("asked", ["-moon", "by:Ann", "changed:>2026-01-01", "by:Ann -moon"])
def test_what_only_takes_away_says_so(asked: str) -> None:
    found = parse(asked)
    assert found.is_empty
    assert "Say also" in found.problems[-1]


def test_what_is_no_day_is_told_and_the_rest_is_searched() -> None:
    found = parse("moon changed:yesterday changed:>2026-13-41")
    assert found.clauses == ((("moon",),),)
    assert len(found.problems) == 2


def test_bounds_are_told() -> None:
    many = parse(" ".join(f"word{n}" for n in range(WORDS_MAX + 4)))
    assert len(many.clauses) == WORDS_MAX
    assert any(str(WORDS_MAX) in problem for problem in many.problems)
    assert any(str(QUERY_CHARS) in problem for problem in parse("x" * (QUERY_CHARS + 1)).problems)


@given(st.text(alphabet='ab "-:<>orinby\x00\ud800é東', max_size=60))
def test_anything_can_be_asked(asked: str) -> None:
    found = parse(asked)
    assert all(phrase and all(phrase) for clause in found.clauses for phrase in clause)


def test_a_word_in_the_title_counts_more_than_in_a_heading_and_that_more_than_in_the_text() -> None:
    pages = {b"text": Posting(0, 0, 2, 8), b"title": Posting(1, 0, 0, 8), b"heading": Posting(0, 1, 0, 8)}
    assert ordered(scores_of(pages, {"moon": pages}, 1_000)) == [b"title", b"heading", b"text"]


def test_a_rare_word_counts_more_than_a_frequent_one() -> None:
    frequent = {b"%d" % n: Posting(0, 0, 1, 6) for n in range(500)}
    found = {"the": frequent, "moon": {b"7": Posting(0, 0, 1, 6)}}
    assert ordered(scores_of(frequent, found, 1_000))[0] == b"7"
    assert ordered(scores_of(frequent, {"the": frequent}, 1_000)) == sorted(frequent)


def test_neighbours_are_one_letter_away() -> None:
    found = neighbours("Anarchsm")
    assert found[stem_of("anarchism")] == "anarchism"
    for slip in ("landnig", "landin", "lannding", "lanfing"):
        assert stem_of("landing") in neighbours(slip), slip
    assert neighbours("moo") == {}
    assert neighbours("a1b2c3") == {}
    assert neighbours("x" * (SPELLED_MAX + 1)) == {}


@pytest.mark.parametrize(
    ("language", "word", "slips"),
    [
        ("ru", "новости", "новсти нвоости ноовости мовости"),
        ("ru", "новый", "ноый новыц"),
        ("uk", "Україна", "Украна Укрвїна"),
        ("sr", "новине", "новне новинџ"),
        ("el", "άνθρωπος", "άνθρωπς άνθρπος άγθρωπος"),
        ("he", "ירושלים", "ירושלם ירושליםם ירושלוים"),
        ("ar", "المدينة", "المدنة المديفة"),
        ("fa", "پیروزی", "پروزی پیرزی"),
        ("hy", "հայաստան", "հայստան հպյաստան"),
        ("la", "საქართველო", "საქართვლო"),
        ("hi", "विज्ञान", "विज्ान विज्ञन"),
        ("ta", "தமிழ்நாடு", "தமிழ்நடு"),
        ("da", "København", "Kobenhavn Københavm"),
        ("de", "Häuser", "Häusr Hauserr"),
    ],
)
def test_a_slip_is_found_in_every_alphabet(language: str, word: str, slips: str) -> None:
    for slip in slips.split():
        assert stem_of(word, language) in neighbours(slip, ("en", language)), slip


def test_a_word_has_so_many_neighbours_and_no_more() -> None:
    assert all(len(set(alphabet)) == len(alphabet) <= LETTERS_MAX for alphabet in ALPHABETS)
    word = "abcdéжωש" * (SPELLED_MAX // 8)  # of four alphabets
    assert len(neighbours(word, ("en", "ru", "el", "de", "fr", "es"))) <= NEIGHBOURS_MAX + 6
    assert len(set(_letters(word))) == LETTERS_MAX
    assert len(neighbours("международный"[:SPELLED_MAX], ("en", "ru"))) <= NEIGHBOURS_MAX


def test_a_passage_shows_the_words_that_were_asked_for() -> None:
    body = "Nothing here.\n" * 50 + "The first **landing** on the Moon was in 1969.\n" + "More of it.\n" * 50
    pieces = passage(body, {"moon", "land"})
    assert [text for text, is_marked in pieces if is_marked] == ["landing", "Moon"]
    assert pieces[0] == ("… ", False)
    assert pieces[-1] == (" …", False)
    assert "**" not in "".join(text for text, _ in pieces)


def test_a_passage_does_not_mix_headings_with_the_text() -> None:
    body = "=====The Moon=====\nThe moon landing was in July.\n=====Later landings=====\nMore came later.\n"
    assert "".join(text for text, _ in passage(body, {"moon", "land"})) == (
        "The moon landing was in July. More came later."
    )
    only = "=====Later landings=====\nMore of them came.\n=====Notes=====\nNone.\n"
    pieces = passage(only, {"land"})
    assert "".join(text for text, _ in pieces) == "Later landings · More of them came. None."
    assert [text for text, is_marked in pieces if is_marked] == ["landings"]
    assert "".join(text for text, _ in passage("=====A=====\n====B====\n", {"land"})) == "A · B"


@given(st.text(max_size=600), st.sets(st.sampled_from(["moon", "land", "é", "a"])))
def test_a_passage_is_short_and_marks_nothing_else(body: str, wanted: set[str]) -> None:
    pieces = passage(body, wanted)
    assert len("".join(text for text, _ in pieces)) <= PASSAGE_CHARS + 4
    assert all(stem_of(text) in wanted or text for text, is_marked in pieces if is_marked)


def marks(pieces: list[tuple[str, bool]]) -> list[str]:
    return [text for text, is_marked in pieces if is_marked]


def test_a_passage_shows_a_character_and_a_pair_within_a_run() -> None:
    body = "何もない日。\n" * 60 + "昔から赤潮が東京都に出る。\n" + "また何もない日。\n" * 60
    for wanted, expected in (({"潮"}, ["潮"]), ({"東京", "京都"}, ["東京都"]), ({"赤潮", "都"}, ["赤潮", "都"])):
        pieces = passage(body, wanted)
        assert marks(pieces) == expected, wanted
        assert "".join(text for text, _ in pieces).startswith("… 昔から赤潮が東京都に出る。")
    apart = f"東京にいる。{'何もない。' * 80}東京都の本。"
    assert marks(passage(apart, {"東京", "京都"})) == ["東京都"], "two of the words stand in one place"
    assert marks(plain_passage("x" * 900 + " 赤潮", {"潮"})) == ["潮"]


def test_a_passage_of_a_line_without_blanks_begins_at_a_sentence_or_a_comma() -> None:
    none = "何もない日が続く。" * 40
    assert "".join(text for text, _ in passage(f"{none}昔は赤潮が出た。{none}", {"潮"})).startswith("… 昔は赤潮が")
    far = "あ" * 130
    assert "".join(text for text, _ in passage(f"{far}、昔は赤潮が出た。{none}", {"潮"})).startswith("… 昔は赤潮が")
    assert "".join(text for text, _ in passage(f"{far}赤潮が出た。{none}", {"潮"})).startswith("… 潮が出た。")


def test_words_and_characters_beside_each_other_are_found_and_have_one_mark() -> None:
    assert marked("2026年5月に", {"5", "月"}) == [("2026年", False), ("5月", True), ("に", False)]
    assert marked("赤潮潮流", {"潮"}) == [("赤", False), ("潮潮", True), ("流", False)]
    assert marked("潮汐表", {"潮", "汐表"}) == [("潮汐表", True)]
    assert marked("赤い潮、", {"潮"}) == [("赤い", False), ("潮", True), ("、", False)]
    assert marks(passage("x\n" * 400 + "これはapollo計画の本", {"apollo"})) == ["apollo"]
    apart = normalize("NFD", "대한민국")
    assert marks(marked(apart, {"한"})) == [apart], "of letters in parts the place is unknown"


@given(st.text(alphabet="東京潮汐x月5 。、\n", max_size=600), st.sets(st.sampled_from(["潮", "東京", "x", "5", "月"])))
def test_a_passage_of_characters_is_short_and_marks_what_is_wanted(body: str, wanted: set[str]) -> None:
    pieces = passage(body, wanted)
    assert len("".join(text for text, _ in pieces)) <= PASSAGE_CHARS + 4
    assert all(any(one in text for one in wanted) for text in marks(pieces))


def test_all_of_a_title_is_shown() -> None:
    assert marked("The Moon, landed", {"moon", "land"}) == [
        ("The ", False),
        ("Moon", True),
        (", ", False),
        ("landed", True),
    ]
