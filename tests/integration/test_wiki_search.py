"""Search on a store: exactly the pages of a look at every page, found after each edit, checked and repaired."""

from __future__ import annotations

import os
import random
from collections.abc import Collection, Iterator
from typing import Any

import pytest

from columnar.client import Connection
from tests.support import brute_search
from tests.support.brute_search import SearchedPage
from tests.support.deep import seeds
from tests.support.stored_wiki import stored_wiki
from wikka_port import schema
from wikka_port.accounts.tables import SITE
from wikka_port.consistency import check
from wikka_port.markup.formats import MARKDOWN
from wikka_port.markup.links import links
from wikka_port.names import page_key
from wikka_port.page_languages import LANGUAGES_ROW, column
from wikka_port.pages import Wiki
from wikka_port.search import searching, suggesting
from wikka_port.search.found_documents import Readable, Rights
from wikka_port.search.postings import STEMS, pack_stems, parse_stems, stem_of_row
from wikka_port.search.query import parse
from wikka_port.search.searching import COUNTED, PER_PAGE
from wikka_port.search.words import is_character

SEED = int(os.environ.get("COLUMNAR_SEED", "20261124"))
VOCABULARY = (
    *("moon", "landing", "lunar", "apollo", "rocket", "sea", "stone", "river"),
    *("moons", "Häuser", "Haus", "новый", "нового"),
    *("history", "Ünïted", "nations", "東京都", "don't", "well-known"),
    *("潮汐", "赤潮", "潮", "5月に", "本第3章"),
)
ASKED = (*VOCABULARY, "都", "汐", "月", "5月", "第3章", "京都")
AUTHORS = ("Ann", "JonasW", "Zoë")


@pytest.fixture(scope="module", params=["application", "triggers"])
def prepared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wiki]:
    """One store for all tests of a kind: each needs no more than empty tables, and a worker takes a second to start."""
    with stored_wiki(tmp_path_factory.mktemp("search"), request.param) as made:
        yield made


@pytest.fixture
def wiki(prepared: Wiki) -> Iterator[Wiki]:
    made = Wiki(prepared.store.host, prepared.store.port, indexes=prepared.indexes)
    yield made
    made.store.run(lambda c: _empty(c, [schema.PAGES]))
    assert made.settle("", 30)  # the triggers read other tables of pages that end
    made.store.run(lambda c: _empty(c, [name for name in c.tables() if name != SITE]))
    made.store.close()


def _empty(connection: Connection, tables: Collection[bytes]) -> None:
    for name in tables:
        table = connection.table(name)
        for row, cells in list(table.scan(filter="KeyOnlyFilter()")):
            table.delete(row, list(cells))


def save(
    wiki: Wiki, name: str, body: str, author: str = "Ann", language: str | None = None, markup: str | None = None
) -> None:
    held = wiki.page(name)
    saved = wiki.save(name, body, author=author, base=held.number if held else 0, language=language, markup=markup)
    assert wiki.settle(saved.sequence, 30)


def found(wiki: Wiki, asked: str, readable: Readable | None = None) -> set[str]:
    query, names, page = parse(asked, wiki.languages()), set[str](), 1
    while hits := wiki.search(query, page=page, pages=100, rights=Rights(readable)).hits:
        names |= {hit.name for hit in hits}
        page += 1
    return names


def test_the_index_is_kept_dense(wiki: Wiki) -> None:
    for table in (schema.TERMS, schema.DOCS):
        (family,) = wiki.store.run(lambda c, name=table: c.admin.describe(name)).families  # type: ignore[misc]
        assert (family.attributes["COMPRESSION"], family.attributes["VERSIONS"]) == ("ZSTD", "1")


def random_body(rng: random.Random) -> str:
    words = rng.choices(VOCABULARY, k=rng.randrange(1, 30))
    if rng.random() < 0.3:
        words.append(f"[[Category{rng.choice(('Sky', 'Sea'))}]]")
    if rng.random() < 0.3:
        words.insert(0, f"==== {' '.join(rng.choices(VOCABULARY, k=2))} ====\n")
    return " ".join(words)


def random_query(rng: random.Random) -> str:
    parts = []
    for _ in range(rng.randrange(1, 4)):
        word = rng.choice(ASKED)
        two = f"{word} {rng.choice(ASKED)}"
        plain = (word, word, word.upper(), f"-{word}", f"{word} or {rng.choice(ASKED)}")
        parts.append(rng.choice((*plain, f'"{two}"', f'-"{two}"', "category:Sky", "in:P1", "by:jonasw")))
    return " ".join(parts)


def test_a_search_finds_exactly_the_pages_of_a_look_at_every_page(wiki: Wiki, monkeypatch: pytest.MonkeyPatch) -> None:
    print(f"seed {SEED}")
    rng = random.Random(SEED)
    monkeypatch.setattr(searching, "neighbours", lambda *_: {})
    pages = {}
    for n in range(60):
        name, author = f"P{n} {rng.choice(VOCABULARY)}", rng.choice(AUTHORS)
        for _ in range(rng.choice((1, 1, 2))):
            body, language = random_body(rng), rng.choice(("", "", "de", "ru"))
            save(wiki, name, body, author, language)
        held = wiki.page(name)
        assert held is not None
        pages[name] = SearchedPage(name, body, author, 0, links(body), language=held.language or "en")
    assert wiki.languages() == ["en", "de", "ru"]
    for per_bucket in (searching.PER_BUCKET, 1):  # with 1 nearly every word is one of which only a part is read
        monkeypatch.setattr(searching, "PER_BUCKET", per_bucket)
        for _ in range(seeds("random searches", deep=60, short=15)):
            asked = random_query(rng)
            query = parse(asked, wiki.languages())
            expected = brute_search.found(query, pages.values())
            result = wiki.search(query, pages=60)
            names = found(wiki, asked)
            assert names <= expected, asked
            assert names == expected or result.is_cut, asked
            assert result.count == len(names), asked
            assert per_bucket == 1 or not result.is_cut, asked


def test_so_many_texts_are_looked_at_for_a_phrase_and_no_more(wiki: Wiki, monkeypatch: pytest.MonkeyPatch) -> None:
    """By their size: five hundred texts of 2 MB would take minutes."""
    for n in range(30):
        save(wiki, f"Large {n}", f"moon landing {'and so on ' * 100}")
    assert len(found(wiki, '"moon landing"')) == 30
    monkeypatch.setattr(searching, "PHRASES_CHARS", 10_500)
    result = wiki.search(parse('"moon landing"'), pages=30)
    assert (result.count, result.is_cut) == (10, True)
    assert (len(found(wiki, "moon landing")), len(found(wiki, "moon in:Large"))) == (30, 30), "without a phrase all"


def test_an_edit_is_found_by_the_next_request_and_what_went_is_not(wiki: Wiki) -> None:
    for n in range(20):
        save(wiki, "Diary", f"today was day number{n}")
        assert found(wiki, f"number{n}") == {"Diary"}
        assert found(wiki, f"number{n - 1}") == set()


def test_one_character_is_found_wherever_it_stands(wiki: Wiki) -> None:
    save(wiki, "潮汐", "海の動き")
    save(wiki, "Tides", f"{'何もない日。' * 100}The tide, 昔の赤潮が出る, in 5月に")
    save(wiki, "Alone", "潮")
    save(wiki, "Others", "한국어 ไทย カタカナ 本第3章節 4")
    all_of_them = {"潮汐", "Tides", "Alone"}
    assert found(wiki, "潮") == found(wiki, '"潮"') == found(wiki, "潮 kind:page") == all_of_them
    assert found(wiki, "潮 in:Ti") == {"Tides"}
    assert found(wiki, "潮 by:Ben") == found(wiki, "潮 kind:file") == set()
    assert (found(wiki, "tide 潮"), found(wiki, "tide -潮")) == ({"Tides"}, set())
    assert found(wiki, "潮 -tide") == {"潮汐", "Alone"}
    assert (found(wiki, "潮 -汐"), found(wiki, "汐 or 国 or 赤")) == ({"Tides", "Alone"}, {"潮汐", "Tides"})
    assert found(wiki, "5月") == found(wiki, '"tide 昔"') == found(wiki, '"tide 昔" 潮') == {"Tides"}
    assert found(wiki, "第3章") == found(wiki, '"第3"') == found(wiki, "本第3章節") == {"Others"}
    assert found(wiki, "3節") == found(wiki, "本3") == found(wiki, "第4章") == set(), "what stands between counts"
    assert found(wiki, '"潮 昔"') == found(wiki, "5日") == found(wiki, '"潮 -昔"') == set()
    assert found(wiki, "국") == found(wiki, "タ") == found(wiki, "ไทย") == {"Others"}
    assert found(wiki, "ท") == set(), "Thai is searched by words, as Latin is"
    first, *_ = hits = wiki.search(parse("潮"), pages=4).hits
    assert {hit.name for hit in hits[1:]} == {"Tides", "Alone"}
    assert first.title == [("潮", True), ("汐", False)], "a character in the name counts most"
    (passage,) = (hit.passage for hit in hits if hit.name == "Tides")
    assert [text for text, is_marked in passage if is_marked] == ["潮"]
    assert "昔の赤" in passage[0][0] + passage[1][0]
    save(wiki, "Tides", "The tide")
    assert found(wiki, "潮") == {"潮汐", "Alone"}
    assert found(wiki, "月") == set()
    assert check(wiki).differences == ()


def test_a_common_character_is_read_in_part_as_a_common_word_is(wiki: Wiki, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(40):
        save(wiki, f"P{n}", f"潮流 word{n % 4}")
    monkeypatch.setattr(searching, "PER_BUCKET", 1)
    result = wiki.search(parse("潮"), pages=40)
    assert result.is_cut
    assert 10 <= result.count <= 32, "two of each of 16 rows at most"
    monkeypatch.setattr(searching, "PER_BUCKET", 3)
    assert wiki.search(parse("潮"), pages=40).is_cut
    assert found(wiki, "word1 潮") == {f"P{n}" for n in range(1, 40, 4)}
    assert not wiki.search(parse("word1 潮"), pages=40).is_cut
    assert found(wiki, "word1 -流") == set()


def test_check_brings_the_characters_to_an_index_without_them(wiki: Wiki) -> None:
    save(wiki, "潮汐", "潮流が変わる moon")
    save(wiki, "Moon", "moon")
    terms, docs = (dict(wiki.rows.scan(name)) for name in (schema.TERMS, schema.DOCS))
    key = page_key("潮汐")
    for row, cells in terms.items():
        if is_character(stem_of_row(row)):
            wiki.rows.delete(schema.TERMS, row, list(cells))
    pairs = [stem for stem in parse_stems(docs[key][STEMS]) if not is_character(stem)]
    wiki.rows.put(schema.DOCS, key, {STEMS: pack_stems(pairs)})
    assert (found(wiki, "潮"), found(wiki, "潮流")) == (set(), {"潮汐"})
    seen = check(wiki, repair=True)
    assert {(one.table, one.row) for one in seen.differences} == {(schema.TERMS, key), (schema.DOCS, key)}
    assert (seen.left, found(wiki, "潮"), found(wiki, "る")) == ((), {"潮汐"}, {"潮汐"})
    assert dict(wiki.rows.scan(schema.TERMS)) == terms
    assert dict(wiki.rows.scan(schema.DOCS)) == docs


def test_words_are_found_by_the_rules_of_the_language_of_their_page(wiki: Wiki) -> None:
    save(wiki, "Stadt", "Die Häuser der Stadt", language="de")
    save(wiki, "Town", "The houses of the town")
    assert wiki.languages() == ["en", "de"]
    assert found(wiki, "haus") == {"Stadt"}
    assert found(wiki, "Hauses Städte") == {"Stadt"}
    assert found(wiki, "house") == {"Town"}
    assert found(wiki, '"haus der"') == {"Stadt"}
    assert found(wiki, "town -haus or stadt -houses") == {"Stadt"} - found(wiki, "haus")
    hit = wiki.search(parse("haus", wiki.languages()), pages=2).hits[0]
    assert (hit.language, ("Häuser", True) in hit.passage) == ("de", True)


def test_a_page_whose_language_changes_is_found_by_its_new_rules_alone(wiki: Wiki) -> None:
    save(wiki, "Page", "Häuser")
    assert found(wiki, "Haus") == set()
    save(wiki, "Page", "Häuser", language="de")
    assert found(wiki, "Haus") == {"Page"}
    save(wiki, "Page", "Häuser", language="en")
    assert found(wiki, "Haus") == set()
    assert found(wiki, "Häuser") == {"Page"}
    assert check(wiki).differences == ()


def test_check_lists_a_language_that_was_forgotten(wiki: Wiki) -> None:
    save(wiki, "Page", "Häuser", language="de")
    wiki.rows.put(schema.PAGES, LANGUAGES_ROW, {column("fr"): b""})
    assert check(wiki).differences == (), "a language may be listed that no page has"
    wiki.rows.delete(schema.PAGES, LANGUAGES_ROW, [column("fr"), column("de")])
    assert wiki.languages() == ["en"]
    seen = check(wiki, repair=True)
    assert [(one.table, one.row, one.column) for one in seen.differences] == [(b"pages", b"~languages", b"meta:de")]
    assert (seen.left, wiki.languages(), found(wiki, "Haus")) == ((), ["en", "de"], {"Page"})


def test_of_pages_that_are_equally_good_the_one_that_more_link_to_comes_first(wiki: Wiki) -> None:
    names = [f"Same{n}" for n in range(6)]
    for name in names:
        save(wiki, name, "a stone")
    before = [hit.name for hit in wiki.search(parse("stone"), pages=9).hits]
    assert before == sorted(names, key=page_key)
    for n, links_in in enumerate((0, 3, 0, 1, 2, 0)):
        for m in range(links_in):
            save(wiki, f"From {n} {m}", f"[[Same{n}]]")
    after = [hit.name for hit in wiki.search(parse("stone"), pages=9).hits]
    assert after == ["Same1", "Same4", "Same3", *sorted(("Same0", "Same2", "Same5"), key=page_key)]


def test_a_word_with_a_slip_is_found_and_said_so(wiki: Wiki) -> None:
    save(wiki, "Anarchism", "On anarchism and anarchists")
    result = wiki.search(parse("anarchsm"), pages=1)
    assert [hit.name for hit in result.hits] == ["Anarchism"]
    assert result.instead == "anarchism"
    assert not wiki.search(parse("anarchsm -anarchism"), pages=1).hits
    save(wiki, "Anarchismus", "Über Anarchisten", language="de")
    result = wiki.search(parse("anarchistn", wiki.languages()), pages=2)
    assert (result.instead, "Anarchismus" in {hit.name for hit in result.hits}) == ("anarchisten", True)


def test_a_slip_in_another_alphabet_is_found(wiki: Wiki) -> None:
    save(wiki, "Москва", "Последние новости", language="ru")
    save(wiki, "ירושלים", "עיר", language="he")
    save(wiki, "København", "En by", language="da")
    for slip, word, name in (("новсти", "новости", "Москва"), ("ירושלם", "ירושלים", "ירושלים")):
        result = wiki.search(parse(slip, wiki.languages()), pages=3)
        assert ([hit.name for hit in result.hits], result.instead) == ([name], word)
    assert wiki.search(parse("kobenhavn", wiki.languages()), pages=3).instead == "københavn"


def test_what_may_not_be_read_is_neither_shown_nor_counted(wiki: Wiki) -> None:
    for n in range(6):
        save(wiki, f"Page{n}", "the secret word")
    asked: list[str] = []

    def readable(names: Collection[str]) -> set[str]:
        asked.extend(names)
        return set(names) - {"Page1", "Page4"}

    result = wiki.search(parse("secret"), pages=6, rights=Rights(readable))
    assert {hit.name for hit in result.hits} == {"Page0", "Page2", "Page3", "Page5"}
    assert result.count == 4
    assert len(asked) == 6


def test_a_result_says_the_section_of_its_passage(wiki: Wiki, monkeypatch: pytest.MonkeyPatch) -> None:
    save(wiki, "Wikka", "======Wikka======\nintro\n==== Crew ====\nthree men\n==== Crew ====\nthe stowaway\n")
    save(wiki, "Mark", "intro\n\n## The *crew*\n\nA [stowaway](Wikka), too.\n", markup=MARKDOWN)

    def places(asked: str) -> dict[str, str]:
        return {hit.name: hit.place.id if hit.place else "" for hit in wiki.search(parse(asked), pages=2).hits}

    assert places("stowaway") == {"Wikka": "s-crew-2", "Mark": "s-the-crew"}
    assert places("intro") == {"Wikka": "", "Mark": ""}
    assert places("three crew") == {"Wikka": "s-crew"}
    monkeypatch.setattr(searching, "PLACES_CHARS", 5)
    assert places("stowaway") == {"Wikka": "", "Mark": ""}


def test_pages_in_markdown_are_searched_and_shown_by_their_own_markup(wiki: Wiki) -> None:
    save(wiki, "Mark", "See [the words](OtherPage) here, and *all* of it", markup=MARKDOWN)
    assert found(wiki, '"words here"') == {"Mark"}
    (hit,) = wiki.search(parse("words"), pages=1).hits
    assert "".join(text for text, _ in hit.passage) == "See the words here, and all of it"


def test_results_come_in_pages(wiki: Wiki) -> None:
    names = {f"Page{n:02}" for n in range(PER_PAGE + 5)}
    for name in names:
        save(wiki, name, "common")
    first, second = (wiki.search(parse("common"), page=page, pages=25) for page in (1, 2))
    assert len(first.hits) == PER_PAGE
    assert {hit.name for hit in [*first.hits, *second.hits]} == names
    assert (first.count, first.has_more) == (len(names), False)
    assert len(names) < COUNTED


def test_names_are_suggested_by_their_beginning_then_by_their_words(wiki: Wiki) -> None:
    for name in ("Apollo 11", "Apollo", "The Apollo landings", "TidalRivers", "Zebra"):
        save(wiki, name, "apollo everywhere")
    assert wiki.suggested("apol", most=8) == ["Apollo", "Apollo 11", "The Apollo landings"]
    assert wiki.suggested("APOLLO land", most=8) == ["The Apollo landings"]
    assert wiki.suggested("landing", most=8) == ["The Apollo landings"]
    assert wiki.suggested("riv", most=8) == ["TidalRivers"]
    assert wiki.suggested("apol", most=2) == ["Apollo", "Apollo 11"]
    assert wiki.suggested("  ", most=8) == []
    assert wiki.suggested("\u0301", most=8) == [], "an accent without a letter"
    assert wiki.suggested("everywhere", most=8) == []


def test_headings_are_suggested_by_their_words_with_their_pages(wiki: Wiki, monkeypatch: pytest.MonkeyPatch) -> None:
    save(wiki, "Moon", "====Moon====\nlanding\n====Landing sites====\n====Crew of the landing====\n%%\n==landing==\n%%")
    save(wiki, "Mars", "# Landings\n\nlanding\n\n## Later landings\n", markup=MARKDOWN)
    save(wiki, "Sea", "landing ==== Häfen ====")
    assert wiki.suggested_headings("landing", most=8) == [
        *(("Mars", "Landings", "s-landings"), ("Moon", "Landing sites", "s-landing-sites")),
        *(("Mars", "Later landings", "s-later-landings"), ("Moon", "Crew of the landing", "s-crew-of-the-landing")),
    ]
    assert [one.text for one in wiki.suggested_headings("SITES land", most=8)] == ["Landing sites"]
    assert [one.page for one in wiki.suggested_headings("hafe", most=8)] == ["Sea"]
    assert len(wiki.suggested_headings("landing", most=2)) == 2
    assert {one.page for one in wiki.suggested_headings("landing", most=8, readable=lambda _: {"Mars"})} == {"Mars"}
    assert [wiki.suggested_headings(typed, most=8) for typed in ("moon", "la", "", "nothing")] == [[], [], [], []]
    monkeypatch.setattr(suggesting, "HEADING_CHARS", 60)
    assert {one.page for one in wiki.suggested_headings("landing", most=8)} == {"Mars"}
    monkeypatch.setattr(suggesting, "HEADING_WORDS", 2)
    assert wiki.suggested_headings("landing", most=8) == []


def test_characters_within_names_and_headings_are_suggested(wiki: Wiki) -> None:
    for name in ("潮汐", "赤潮", "新東京都庁", "Moon"):
        save(wiki, name, "====大潮の日====\n潮")
    assert wiki.suggested("潮", most=8) == ["潮汐", "赤潮"]
    assert wiki.suggested("汐", most=8) == ["潮汐"]
    assert wiki.suggested("東京都", most=8) == wiki.suggested("庁", most=8) == ["新東京都庁"]
    assert wiki.suggested("日", most=8) == [], "it stands in a heading"
    assert {(one.page, one.text) for one in wiki.suggested_headings("潮", most=8)} == {
        (name, "大潮の日") for name in ("潮汐", "赤潮", "新東京都庁", "Moon")
    }
    assert len(wiki.suggested_headings("大潮", most=8)) == len(wiki.suggested_headings("潮の日", most=8)) == 4
    assert wiki.suggested_headings("月", most=8) == wiki.suggested_headings("mo", most=8) == []


def test_near_names_are_found_in_a_small_wiki_and_by_their_beginnings_in_a_large_one(wiki: Wiki) -> None:
    for name in ("HomePage", "TidalRivers", "Top Level", "Ärger", "Zebra", "100%"):
        save(wiki, name, "homepage")
    meant = {
        "homepage": "HomePage",
        "home page": "HomePage",
        "HomePgae": "HomePage",
        "HomePage/edti": "HomePage",
        "tidal rivers": "TidalRivers",
        "Tidal river": "TidalRivers",
        "tidalriver": "TidalRivers",
        "TopLevel": "Top Level",
        "toplevel": "Top Level",
        "arger": "Ärger",
        "100": "100%",
    }
    for pages in (6, 1_000_000):
        for asked, name in meant.items():
            assert wiki.nearest(asked, pages=pages) == [name], (asked, pages)
        assert wiki.nearest("Nothing like it", pages=pages) == []
    assert wiki.nearest("jomepage", pages=6) == ["HomePage"]


def test_check_finds_every_damage_to_the_index_and_repairs_it(wiki: Wiki) -> None:
    save(wiki, "Moon", "landing on the moon")
    save(wiki, "Sea", "a sea of stone")
    assert check(wiki).differences == ()
    index = wiki.search(parse("moon"), pages=2).hits[0].name
    assert index == "Moon"
    moon, sea = (b"p:" + bytes.fromhex(page_key(name).decode()) for name in ("Moon", "Sea"))

    def damage(connection: object) -> None:
        terms, docs = connection.table(schema.TERMS), connection.table(schema.DOCS)  # type: ignore[attr-defined]
        row = b"land\x00" + page_key("Moon")[:1]
        assert moon in terms.row(row)
        terms.delete(row, [moon])
        terms.put(b"river\x00" + page_key("Sea")[:1], {sea: b"\x00\x00\x01\x03"})
        terms.put(b"gone\x000", {b"p:" + bytes(16): b"\x00\x00\x01\x03"})
        docs.put(page_key("Sea"), {b"d:stems": b"other"})
        docs.put(b"0" * 32, {b"d:stems": b"nobody"})

    wiki.store.run(damage)
    seen = check(wiki, repair=True)
    assert {(one.table, one.row) for one in seen.differences} == {
        (schema.TERMS, page_key("Moon")),
        (schema.TERMS, page_key("Sea")),
        (schema.TERMS, b"0" * 32),
        (schema.DOCS, page_key("Sea")),
        (schema.DOCS, b"0" * 32),
    }
    assert seen.left == ()
    assert check(wiki).differences == ()
    assert found(wiki, "landing") == {"Moon"}
    assert found(wiki, "river") == set()


def test_a_posting_in_the_row_of_another_bucket_is_a_difference(wiki: Wiki) -> None:
    save(wiki, "Moon", "landing")
    key = page_key("Moon")
    other = b"0" if key[:1] != b"0" else b"1"
    column = b"p:" + bytes.fromhex(key.decode())

    def misplace(connection: Any) -> None:
        """The posting is the same, and in the row of another bucket, where no search finds it."""
        terms = connection.table(schema.TERMS)
        held = terms.row(b"land\x00" + key[:1])[column]
        terms.delete(b"land\x00" + key[:1], [column])
        terms.put(b"land\x00" + other, {column: held})

    wiki.store.run(misplace)
    assert len(check(wiki).differences) == 1
    assert check(wiki, repair=True).left == ()


def names_in_order(wiki: Wiki, asked: str) -> list[str]:
    query = parse(asked, wiki.languages())
    return [hit.name for page in (1, 2, 3) for hit in wiki.search(query, page=page, pages=100).hits]


def test_what_was_found_is_ordered_over_all_pages_of_results(wiki: Wiki) -> None:
    names = [f"Sky {number:02}" for number in range(25)]
    for name in names:
        save(wiki, name, "quasar " * (1 + int(name[-2:]) % 5), author="Ann" if int(name[-2:]) % 2 else "Ben")
    save(wiki, "sky 07b", "quasar")
    save(wiki, "Sky 03", "quasar again")
    assert sorted(names_in_order(wiki, "quasar")) == sorted([*names, "sky 07b"])
    by_name = sorted([*names, "sky 07b"], key=str.lower)
    assert names_in_order(wiki, "quasar sort:name") == by_name
    changed = names_in_order(wiki, "sort:changed quasar")
    assert changed[:3] == ["Sky 03", "sky 07b", "Sky 24"]
    assert changed[3:] == [name for name in reversed(names[:-1]) if name != "Sky 03"]
    assert names_in_order(wiki, "quasar by:ann sort:name") == sorted([*names[1::2], "sky 07b"], key=str.lower)
