"""Running a Query against the store: the pages found, their order, and the passages that are shown.

The index tells which pages, comments and files have the words; name, time and rights are read from the rows of these
documents (``found_documents``).  A word's postings are read up to POSTINGS.  If a word has more, its postings in the
pages of the other words are read separately.  If all words have more, the answer is incomplete (``is_cut``).

Cost: one scan of at most 16 rows for each word, and one scan of a row for each of up to TIES pages of equal score;
then the rows of the shown pages.  The rows of all that was found (up to COUNTED) are read only if a filter, a phrase or
a rule on rights needs them, or comments or files are among it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice
from typing import Final, NamedTuple

from columnar.client import Connection
from wikka_port import schema
from wikka_port.markup.fragments import Heading
from wikka_port.names import InvalidName, page_key
from wikka_port.page_languages import ENGLISH
from wikka_port.page_rows import Cells, autolink_of, markup_of
from wikka_port.schema import folded
from wikka_port.search.beside_pages import Kind, kind_of
from wikka_port.search.found_documents import Document, Rights, read_documents
from wikka_port.search.page_text import Places
from wikka_port.search.postings import (
    BUCKETS,
    POSTINGS_FAMILY,
    Posting,
    column_of,
    key_of,
    parse_posting,
    term_row,
    term_rows_begin,
    term_rows_end,
)
from wikka_port.search.query import Phrase, Query
from wikka_port.search.snippets import Piece, marked, passage, plain_passage, spot
from wikka_port.search.words import is_character, neighbours, stem_of, stems

POSTINGS: Final = 20_000  # read of one word
PER_BUCKET: Final = POSTINGS // len(BUCKETS)
COUNTED: Final = 1_000  # documents found; if there are more, the answer says so
PER_PAGE: Final = 20
TIES: Final = 40  # of the best pages of equal score, whose links are counted: a third of a millisecond each
LINKS: Final = 100  # counted to a page
PHRASES_READ: Final = 500  # pages whose text is read to find phrases
PHRASES_CHARS: Final = 8_000_000  # of these texts together: some six seconds if many pages are large
TITLE: Final = 8.0  # a word in the title counts like this many in the text
HEADING: Final = 3.0  # and so does a word in a heading
BESIDE: Final = 0.5  # the weight of a comment or a file beside that of a page
K1: Final = 1.2
B: Final = 0.6
PLACES_CHARS: Final = 100_000  # of the texts of one answer that are read for their headings: some 30 ms
_STEP: Final = 10  # rows with their texts, read together: a text has up to 4 MB

Found = Mapping[str, Mapping[bytes, Posting]]  # stem -> document -> the posting


@dataclass(frozen=True, slots=True)
class Hit:
    name: str  # of the page, or of the page that has the comment or the file
    time_ms: int
    author: str
    title: list[Piece]
    passage: list[Piece]
    language: str = ENGLISH  # of the page
    place: Heading | None = None  # of the section in which the passage stands
    kind: Kind = "page"
    comment: int = 0  # the number of a comment
    file: str = ""  # the name of a file


@dataclass(frozen=True, slots=True)
class Results:
    hits: list[Hit]
    count: int  # of all documents found, up to COUNTED
    has_more: bool  # whether more than ``count`` documents were found
    is_cut: bool  # whether only a part of the pages with these words was read
    instead: str = ""  # the word that was searched in the place of one that no page has
    beside: bool = False  # whether some of them are comments or files


class Kept(NamedTuple):
    """A document that was found, as far as an order needs it."""

    key: bytes
    page: str
    time_ms: int


def sorted_by(sort: str, found: list[Kept]) -> list[Kept]:
    """Return what was found by name, by the last change, or with "" as it is: the best first."""
    if sort == "name":
        return sorted(found, key=lambda one: (folded(one.page), one.page, one.key))
    return sorted(found, key=lambda one: (-one.time_ms, one.key)) if sort == "changed" else found


ALL: Final = Rights()
NOTHING: Final = Results([], 0, False, False)


def search(connection: Connection, query: Query, *, page: int = 1, pages: int = 0, rights: Rights = ALL) -> Results:
    """Return the ``page``-th page of results; ``pages`` is the rough number of all pages, for the ranking."""
    if query.is_empty:
        return NOTHING
    looked = _Search(connection, query, pages, rights)
    found = looked.run(page)
    if found.count or len(query.typed) != len(query.clauses):
        return found
    better = _respelled(connection, looked, query)
    if better is None:
        return found
    word, other = better
    again = _Search(connection, other, pages, rights).run(page)
    return replace(again, instead=word)


class _Search:
    def __init__(self, connection: Connection, query: Query, pages: int, rights: Rights) -> None:
        self._connection = connection
        self._terms = connection.table(schema.TERMS)
        self._query = query
        self._rights = rights
        self._count = pages
        self._is_cut = False
        self.found: dict[str, dict[bytes, Posting]] = {}
        self._partly: set[str] = set()  # stems of which more pages have the word than were read

    def run(self, page: int) -> Results:
        for stem in self._query.stems():
            self._read(stem)
        order = self._order()
        first = (page - 1) * PER_PAGE
        if self._needs_rows(order):
            found = self._kept(order)
            has_more = len(found) > COUNTED
            kept = [one.key for one in sorted_by(self._query.sort, found[:COUNTED])]
        else:
            kept, has_more = order[:COUNTED], len(order) > COUNTED
        hits = self._hits(kept[first : first + PER_PAGE])
        return Results(hits, len(kept), has_more, self._is_cut, beside=any(kind_of(key) != "page" for key in kept))

    def _order(self) -> list[bytes]:
        scores = scores_of(self._candidates(), self.found, max(self._count, COUNTED))
        order = ordered(scores)
        tied = ties(order, scores, TIES)
        links = {page: self._links_to(page) for group in tied for page in group}
        return with_links(order, tied, links)

    def _links_to(self, page: bytes) -> int:
        """Return the number of pages that link to ``page``, up to LINKS; none links to a comment."""
        if kind_of(page) != "page":
            return 0
        return sum(map(len, self._linking(page, f"KeyOnlyFilter() AND ColumnPaginationFilter({LINKS}, 0)")))

    def _linking(self, page: bytes, filtered: str) -> Iterator[Cells]:
        """Return the row of links to ``page``, with a column for each linking page; at most one row."""
        rows = self._connection.table(schema.BACKLINKS).scan(
            row_start=page, row_stop=page + b"\x00", columns=[b"from"], filter=filtered, batch_size=2
        )
        return (cells for _, cells in rows)

    # --- which pages have the words ----------------------------------------------------------------

    def _read(self, stem: str) -> None:
        rows = self._terms.scan(
            row_start=term_rows_begin(stem),
            row_stop=term_rows_end(stem),
            columns=[POSTINGS_FAMILY],
            filter=f"ColumnPaginationFilter({PER_BUCKET + 1}, 0)",
            batch_size=len(BUCKETS) + 1,
        )
        postings = self.found[stem] = {}
        for _, cells in rows:
            if len(cells) > PER_BUCKET:
                self._partly.add(stem)
            postings.update((key_of(column), parse_posting(value)) for column, value in cells.items())

    def _complete(self, stem: str, pages: Iterable[bytes]) -> None:
        """Read the postings of ``stem`` in ``pages``, if only a part of all its postings was read."""
        if stem not in self._partly:
            return
        stored = self.found[stem]
        by_row: dict[bytes, list[bytes]] = {}
        for page in pages:
            if page not in stored:
                by_row.setdefault(term_row(stem, page), []).append(column_of(page))
        for row, columns in by_row.items():
            for column, value in self._terms.row(row, columns=columns).items():
                stored[key_of(column)] = parse_posting(value)

    def _with_all(self, phrase: Phrase, among: set[bytes] | None) -> set[bytes]:
        """Return the pages with all words of a phrase; if ``among`` is not None, only pages in it."""
        pages = among
        for stem in sorted(set(phrase), key=lambda stem: (stem in self._partly, len(self.found[stem]))):
            if pages is not None:
                self._complete(stem, pages)
                pages = {page for page in pages if page in self.found[stem]}
            else:
                self._is_cut |= stem in self._partly
                pages = set(self.found[stem])
        return pages if pages is not None else set()

    def _candidates(self) -> set[bytes]:
        query = self._query
        pages = self._given()
        clauses = sorted(query.clauses, key=self._size)
        for clause in clauses:
            pages = set().union(*(self._with_all(phrase, pages) for phrase in clause))
        pages = pages or set()
        for phrase in query.excluded:
            if len(phrase) == 1 and pages:
                if phrase[0] not in self.found:
                    self.found[phrase[0]] = {}
                    self._partly.add(phrase[0])  # only these pages are read
                self._complete(phrase[0], pages)
                pages = pages - self.found.pop(phrase[0]).keys()
        return {page for page in pages if kind_of(page) == query.kind} if query.kind else pages

    def _size(self, clause: tuple[Phrase, ...]) -> tuple[bool, int]:
        """Return a key that sorts clauses by their number of pages, those read only in part last."""
        sizes = [min((stem in self._partly, len(self.found[stem])) for stem in phrase) for phrase in clause]
        return max(is_partly for is_partly, _ in sizes), sum(size for _, size in sizes)

    def _given(self) -> set[bytes] | None:
        """Return the pages of the query's category.

        Without a category return the pages of the prefix if the query has no words, else None.
        """
        query = self._query
        if query.category:
            return self._of_category(query.category)
        if query.clauses:
            return None
        low = schema.name_prefix(query.prefix)
        rows = self._connection.table(schema.NAMES).scan(row_prefix=low, batch_size=1_000, limit=POSTINGS + 1)
        found = {key for row, _ in rows if (key := schema.page_key_of_name_row(row))}
        self._is_cut |= len(found) > POSTINGS
        return found

    def _of_category(self, name: str) -> set[bytes]:
        found: set[bytes] = set()
        for title in dict.fromkeys((name, f"Category{name}", f"Category:{name}")):
            if title == name and not folded(name).startswith("category"):
                continue
            try:
                row = page_key(title)
            except InvalidName:
                continue
            for cells in self._linking(row, f"ColumnPaginationFilter({POSTINGS + 1}, 0)"):
                found.update(column[len(schema.FROM) :] for column in cells)
        self._is_cut |= len(found) > POSTINGS
        return found

    # --- which of them are shown -------------------------------------------------------------------

    def _phrases(self) -> bool:
        query = self._query
        return any(len(phrase) > 1 for clause in (*query.clauses, query.excluded) for phrase in clause)

    def _needs_rows(self, order: Sequence[bytes]) -> bool:
        """Return whether rows of the documents decide which of them are found."""
        query = self._query
        is_filtered = self._rights.pages is not None or query.has_filters or bool(query.sort) or self._phrases()
        return is_filtered or any(kind_of(key) != "page" for key in order)

    def _kept(self, order: Sequence[bytes]) -> list[Kept]:
        """Return those of the documents that pass filters, rights and phrases, in their order; ends after COUNTED."""
        has_phrases = self._phrases()
        if has_phrases and len(order) > PHRASES_READ:
            self._is_cut = True
            order = order[:PHRASES_READ]
        kept: list[Kept] = []
        left = PHRASES_CHARS
        step = _STEP if has_phrases else 500
        for at in range(0, len(order), step):
            some = order[at : at + step]
            for one in read_documents(self._connection, some, self._rights, texts=has_phrases):
                if not self._is_wanted(one):
                    continue
                left -= len(one.body)
                if left < 0:
                    self._is_cut = True
                    return kept
                if not has_phrases or self._has_phrases(one):
                    kept.append(Kept(one.key, one.page, one.time_ms))
            if len(kept) > COUNTED:
                break
        return kept

    def _is_wanted(self, one: Document) -> bool:
        query = self._query
        return (
            (not query.prefix or folded(one.page).startswith(folded(query.prefix)))
            and (not query.author or folded(one.author) == folded(query.author))
            and (query.from_ms is None or one.time_ms >= query.from_ms)
            and (query.before_ms is None or one.time_ms < query.before_ms)
        )

    def _has_phrases(self, one: Document) -> bool:
        parts = [stems(part, one.language) for part in one.parts()]
        query = self._query
        return all(any(_stands(phrase, parts) for phrase in clause) for clause in query.clauses) and not any(
            _stands(phrase, parts) for phrase in query.excluded
        )

    def _hits(self, keys: Sequence[bytes]) -> list[Hit]:
        wanted = self._query.stems()
        hits = []
        places = Places(PLACES_CHARS)
        for one in read_documents(self._connection, keys, ALL, texts=True):  # chosen by rights before
            if one.kind != "page":
                hits.append(_hit_beside(one, wanted))
                continue
            body, language, markup = one.body, one.language, markup_of(one.cells)
            title, at = marked(one.page, wanted, language), spot(body, wanted, language)
            shown = passage(body, wanted, language, markup=markup, at=at)
            place = at and places.heading_at(body, at.start, autolink=autolink_of(one.cells), markup=markup)
            hits.append(Hit(one.page, one.time_ms, one.author, title, shown, language, place))
        return hits


def _hit_beside(one: Document, wanted: Collection[str]) -> Hit:
    """Return the hit of a comment or a file."""
    shown = plain_passage(one.text, wanted)
    if one.comment is not None:
        title = [(one.page, False)]
        return Hit(one.page, one.time_ms, one.author, title, shown, kind="comment", comment=one.comment.number)
    assert one.file is not None, "it is no page"
    name, current = one.file
    if not shown and current.alt:
        shown = marked(current.alt, wanted)
    return Hit(one.page, one.time_ms, one.author, marked(name, wanted), shown, kind="file", file=name)


def _stands(phrase: Phrase, parts: list[list[str]]) -> bool:
    """Return whether the words of the phrase are consecutive in one of the parts.

    A single character at an edge of the phrase may belong to a pair there.
    """
    first, length = phrase[0], len(phrase)
    if length == 1:
        return any(first in part or (is_character(first) and any(first in stem for stem in part)) for part in parts)
    if is_character(first) or is_character(phrase[-1]):
        return any(_fits(phrase, part, at) for part in parts for at in range(len(part) - length + 1))
    for part in parts:
        for at, stem in enumerate(part):
            if stem == first and tuple(part[at : at + length]) == phrase:
                return True
    return False


def _fits(phrase: Phrase, part: list[str], at: int) -> bool:
    """Return whether the words of the phrase stand at ``at``, the first and the last perhaps within pairs."""
    first, last, end = phrase[0], phrase[-1], at + len(phrase) - 1
    return (
        (part[at] == first or (is_character(first) and part[at].endswith(first)))
        and (part[end] == last or (is_character(last) and part[end].startswith(last)))
        and tuple(part[at + 1 : end]) == phrase[1:-1]
    )


# --- words that stand nowhere --------------------------------------------------------------------


def _respelled(connection: Connection, looked: _Search, query: Query) -> tuple[str, Query] | None:
    """Replace the first word that no page has by its most frequent neighbour; return that word and the new query.

    Returns None if no word can be replaced.
    """
    for at, clause in enumerate(query.clauses):
        if any(len(phrase) != 1 or looked.found.get(phrase[0]) for phrase in clause):
            continue
        best = _best_neighbour(connection, query.typed[at], query.languages)
        if best is None:
            continue
        stems_of_best = dict.fromkeys(stem_of(best, language) for language in query.languages)
        clauses = (*query.clauses[:at], tuple((stem,) for stem in stems_of_best if stem), *query.clauses[at + 1 :])
        return best, replace(query, clauses=clauses)
    return None


def _best_neighbour(connection: Connection, typed: str, languages: Sequence[str]) -> str | None:
    terms = connection.table(schema.TERMS)
    best: tuple[int, str] | None = None
    for stem, word in neighbours(typed, languages).items():
        rows = terms.scan(
            row_start=term_rows_begin(stem),
            row_stop=term_rows_end(stem),
            filter="FirstKeyOnlyFilter() AND KeyOnlyFilter()",
            batch_size=len(BUCKETS) + 1,
        )
        count = sum(1 for _ in rows)  # the number of buckets suffices to distinguish a word from a slip
        if count and (best is None or (count, word) > best):
            best = (count, word)
    return best[1] if best is not None else None


# --- the order of what was found (pure) ----------------------------------------------------------
#
# BM25 over title, headings and text (BM25F: the weighted counts are added up before they are dampened).  Pages of equal
# score are ordered by the number of links to them, if it was counted, then by their keys, so a list has one order.
# Robertson and Zaragoza, The Probabilistic Relevance Framework, section 3.


def scores_of(pages: Iterable[bytes], found: Found, count: int) -> dict[bytes, float]:
    """Return the score of each document; ``count`` is the number of all pages.  O(documents times stems).

    Comments and files are many and short; so they count BESIDE of what a page of the same words does.
    """
    chosen = list(pages)
    lengths = [1 << posting.length for postings in found.values() for posting in postings.values()]
    mean = sum(lengths) / len(lengths) if lengths else 1.0
    scores = dict.fromkeys(chosen, 0.0)
    for postings in found.values():
        rarity = math.log(1 + max(0.0, count - len(postings) + 0.5) / (len(postings) + 0.5))
        for page in chosen:
            posting = postings.get(page)
            if posting is not None:
                scores[page] += rarity * _dampened(posting, mean)
    return {page: score if kind_of(page) == "page" else BESIDE * score for page, score in scores.items()}


def ordered(scores: Mapping[bytes, float]) -> list[bytes]:
    """Return the pages by score, the best first."""
    return sorted(scores, key=lambda page: (-scores[page], page))


def ties(order: Sequence[bytes], scores: Mapping[bytes, float], most: int) -> list[list[bytes]]:
    """Return groups of pages of equal score, the best first: whole groups only, at most ``most`` pages together."""
    found: list[list[bytes]] = []
    left = most
    for _, alike in groupby(order, key=lambda page: scores[page]):
        group = list(islice(alike, left + 1))
        if len(group) > left:
            break
        if len(group) > 1:
            found.append(group)
            left -= len(group)
    return found


def with_links(order: Sequence[bytes], tied: Iterable[Sequence[bytes]], links: Mapping[bytes, int]) -> list[bytes]:
    """Return ``order`` with the pages of each tie sorted by the number of links to them."""
    places = {page: at for at, page in enumerate(order)}
    made = list(order)
    for group in tied:
        first = places[group[0]]
        made[first : first + len(group)] = sorted(group, key=lambda page: (-links.get(page, 0), page))
    return made


def _dampened(posting: Posting, mean: float) -> float:
    times = TITLE * posting.title + HEADING * posting.headings + posting.text
    return times / (times + K1 * (1 - B + B * (1 << posting.length) / mean))
