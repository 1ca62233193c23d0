"""Search in a wiki: its results compared with a search of every page, its speed, and the size of its index.

    python -m tests.measure.wiki_search DUMP ...              the wiki of these dumps
    python -m tests.measure.wiki_search --pages 100000        synthetic pages of 8 KB, words by Zipf's law

Starts a store with an empty folder, brings the pages in, waits for the triggers, and compacts the tables.  Then:

    speed     searches for two words that stand on at most --frequent of the pages each, --rate of them a second
    typing    suggestions behind each letter of names, headings and words; 95 % under 60 ms is the goal
    exact     random searches, each held against a look at every page (with --pages against SAMPLED pages of them)
    edits     each saved edit is searched for by its author's next request

Fails if a search finds the wrong pages, or an edit is not found.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from bisect import bisect
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Final

from rich.progress import track

sys.path.insert(0, str(Path(__file__).parents[2]))

from columnar.client import ClusterAdmin, Connection
from tests.measure.wiki_import import HERE, Checkout, _run, _wait_for_triggers
from tests.support import brute_search
from tests.support.brute_search import SearchedPage
from wikka_port import schema
from wikka_port.bulk_save import BulkSaver
from wikka_port.commands.synth import GROUP_PAGES
from wikka_port.handlers.lists import HEADINGS, MAX_SUGGESTIONS
from wikka_port.import_plan import ImportedRevision, PagePart
from wikka_port.markup.links import links
from wikka_port.page_rows import Cells, autolink_of, head_of, page_of
from wikka_port.pages import Wiki
from wikka_port.search.page_text import page_text
from wikka_port.search.query import parse
from wikka_port.search.searching import NOTHING
from wikka_port.search.words import stems

PAGE_BYTES: Final = 8_192
VOCABULARY: Final = 200_000
SAMPLED: Final = 500
FREQUENT: Final = 0.02  # of the pages
TYPED_MAX: Final = 16  # letters of a name or heading
_SYLLABLES: Final = [a + b for a in "bcdfghjklmnprstvwz" for b in "aeiou"]


def synthetic(pages: int, seed: int) -> Iterator[PagePart]:
    """Yield pages of words by Zipf's law over VOCABULARY words of two to five syllables."""
    rng = random.Random(seed)
    words = ["".join(rng.choices(_SYLLABLES, k=rng.randint(2, 5))) for _ in range(VOCABULARY)]
    weights = list(accumulate(1 / (rank + 3) for rank in range(VOCABULARY)))
    for number in range(pages):
        text: list[str] = []
        size = 0
        while size < PAGE_BYTES:
            word = words[bisect(weights, rng.random() * weights[-1])]
            size += len(word) + 1
            text.append(word)
        name = f"{words[rng.randrange(VOCABULARY)]} {number}"
        revision = ImportedRevision(1_600_000_000_000 + number, "Maker", "made", " ".join(text), 0, is_redirect=False)
        yield PagePart(name, number, 1, (revision,), "", is_last=True)


def _save(wiki: Wiki, pages: int, seed: int) -> None:
    with BulkSaver(wiki, lambda _mark: None) as saver:
        group: list[PagePart] = []
        for part in track(synthetic(pages, seed), "saving", total=pages, disable=not sys.stderr.isatty()):
            group.append(part)
            if len(group) >= GROUP_PAGES or part.ordinal == pages - 1:
                saver.put(group, part.ordinal + 1)
                group = []
        saver.drain()


def searched_pages(wiki: Wiki, most: int | None) -> list[SearchedPage]:
    def read(connection: Connection) -> list[Cells]:
        return [cells for _, cells in connection.table(schema.PAGES).scan(batch_size=50, limit=most)]

    found = []
    for cells in wiki.store.run(read):
        one = page_of(head_of(cells), cells)
        autolink = autolink_of(cells)
        linked = links(one.body, autolink=autolink)
        found.append(SearchedPage(one.name, one.body, one.author, one.time_ms, linked, autolink, one.language or "en"))
    return found


def random_query(rng: random.Random, pages: Sequence[SearchedPage]) -> str:
    """Return a query of words of one page, so that it finds something, sometimes with further words."""
    page = rng.choice(pages)
    words = [word for word in page.body.split() if word.isalnum() and word.lower() != "or"] or ["nothing"]
    at = rng.randrange(len(words))
    kind = rng.random()
    if kind < 0.15:
        return f'"{" ".join(words[at : at + 2])}" {rng.choice(words)}'
    if kind < 0.3:
        return f"{words[at]} -{rng.choice(words)}"
    if kind < 0.4:
        return f"{words[at]} or {rng.choice(words)} {rng.choice(words)}"
    if kind < 0.5:
        return f"{words[at]} in:{page.name[:1]} by:{page.author.split()[0] if page.author.split() else 'x'}"
    return " ".join(rng.choices(words, k=rng.choice((1, 2, 2, 3))))


def found_by(wiki: Wiki, asked: str, count: int) -> tuple[set[str], bool]:
    query, names, page = parse(asked, wiki.languages()), set[str](), 1
    result = NOTHING
    while (result := wiki.search(query, page=page, pages=count)).hits and not result.instead:
        names |= {hit.name for hit in result.hits}
        page += 1
    return names, result.is_cut or result.has_more


def exact(wiki: Wiki, pages: Sequence[SearchedPage], searches: int, seed: int, *, is_sample: bool) -> int:
    """Return the number of searches that found wrong pages; for a sample, that missed one of its pages."""
    rng = random.Random(seed)
    wrong = cut = hits = 0
    for _ in track(range(searches), "searching", disable=not sys.stderr.isatty()):
        asked = random_query(rng, pages)
        expected = brute_search.found(parse(asked), pages)
        names, is_cut = found_by(wiki, asked, len(pages))
        cut += is_cut
        hits += len(names)
        if is_cut or (expected <= names if is_sample else expected == names):
            continue
        wrong += 1
        print(f"WRONG  {asked!r}: misses {sorted(expected - names)[:3]}, has beside {sorted(names - expected)[:3]}")
    print(f"{searches} searches, {hits:,} pages found, {cut} with more than is read or counted, {wrong} wrong")
    return wrong


def speed(wiki: Wiki, pages: Sequence[SearchedPage], searches: int, rate: float, frequent: float, seed: int) -> None:
    rng = random.Random(seed)
    on: dict[str, int] = {}
    for page in pages:
        for stem in set(stems(page.body)):
            on[stem] = on.get(stem, 0) + 1
    fit = [stem for stem, many in on.items() if frequent / 20 <= many / len(pages) <= frequent]
    took = []
    begun = time.perf_counter()
    for n in range(searches):
        time.sleep(max(0.0, begun + n / rate - time.perf_counter()))
        started = time.perf_counter()
        wiki.search(parse(" ".join(rng.sample(fit, 2))), pages=wiki.count_pages_roughly())
        took.append((time.perf_counter() - started) * 1e3)
    p50, p95 = statistics.median(took), statistics.quantiles(took, n=20)[-1]
    print(f"two words on at most {frequent:.1%} of the pages, {rate:g} a second:", end=" ")
    print(f"p50 {p50:.0f} ms, p95 {p95:.0f} ms, longest {max(took):.0f} ms")


def typing(wiki: Wiki, pages: Sequence[SearchedPage], many: int, seed: int) -> None:
    """Request suggestions as the wiki's page does, after each letter from the second on.

    Synthetic pages have no headings.
    """
    rng = random.Random(seed)
    took: list[float] = []
    found = 0
    while len(took) < many:
        page = rng.choice(pages)
        words = page_text(page.body).headings.split("\n") if rng.random() < 0.5 else page.body.split()
        text = rng.choice([page.name, rng.choice(words or [page.name])])[:TYPED_MAX]
        for end in range(2, len(text) + 1):
            started = time.perf_counter()
            headings = wiki.suggested_headings(text[:end], most=HEADINGS)
            found += len(wiki.suggested(text[:end], most=MAX_SUGGESTIONS - len(headings))) + len(headings)
            took.append((time.perf_counter() - started) * 1e3)
    p50, p95 = statistics.median(took), statistics.quantiles(took, n=20)[-1]
    print(f"suggestions behind each of {len(took)} letters, {found / len(took):.1f} found:", end=" ")
    print(f"p50 {p50:.0f} ms, p95 {p95:.0f} ms, longest {max(took):.0f} ms")


def edits(wiki: Wiki, many: int) -> int:
    wrong = 0
    for n in range(many):
        held = wiki.page("Diary of searches")
        saved = wiki.save("Diary of searches", f"entry uniquely{n}z", author="Ann", base=held.number if held else 0)
        wiki.settle(saved.sequence)
        wrong += [hit.name for hit in wiki.search(parse(f"uniquely{n}z")).hits] != ["Diary of searches"]
    print(f"{many - wrong} of {many} edits were found by the next request")
    return wrong


def size_of(connection: Connection, *tables: bytes) -> int:
    """Return the bytes on disk after a compaction."""
    for table in tables:
        connection.compact_table(table, major=True)
    return sum(one.size_bytes for table in tables for one in ClusterAdmin(connection).locations(table))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dumps", nargs="*", metavar="DUMP")
    parser.add_argument("--pages", type=int, default=0, help="synthetic pages, without dumps")
    parser.add_argument("--searches", type=int, default=1_000)
    parser.add_argument("--rate", type=float, default=5.0)
    parser.add_argument("--frequent", type=float, default=FREQUENT, help="share of the pages that the words are on")
    parser.add_argument("--edits", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    if not asked.dumps and not asked.pages:
        parser.error("name dumps, or --pages N")
    checkout = Checkout("new", HERE)
    with (
        tempfile.TemporaryDirectory(prefix="columnar-search-") as folder,
        checkout.store(Path(folder) / "data") as (
            port,
            _pid,
        ),
    ):
        wiki = Wiki("127.0.0.1", port)
        wiki.prepare()
        begun = time.monotonic()
        if asked.dumps:
            for dump in asked.dumps:
                _run(checkout, ["wikka_port", "import", str(Path(dump).resolve()), "--store", f"127.0.0.1:{port}"])
        else:
            _save(wiki, asked.pages, asked.seed)
        saved_s = time.monotonic() - begun
        _wait_for_triggers(port)
        built_s = time.monotonic() - begun
        count = wiki.count_pages()
        pages = searched_pages(wiki, SAMPLED if asked.pages else None)
        text = sum(len(page.body.encode()) for page in pages) * count // len(pages)
        print(
            f"{count:,} pages, {text / 1e6:.1f} MB of text; saved after {saved_s:.0f} s, indexed after {built_s:.0f} s"
        )
        patient = Connection("127.0.0.1", port)  # gigabytes are compacted for minutes
        index, held = size_of(patient, schema.TERMS, schema.DOCS), size_of(patient, schema.PAGES)
        patient.close()
        print(f"index {index / 1e6:.1f} MB on disk, {index / text:.2f} times the text; the pages {held / 1e6:.1f} MB")
        speed(wiki, pages, 100, asked.rate, asked.frequent, asked.seed)
        typing(wiki, pages, 1_000, asked.seed)
        wrong = exact(wiki, pages, asked.searches, asked.seed, is_sample=bool(asked.pages))
        wrong += edits(wiki, asked.edits)  # behind it: they make a page that was not looked at
        wiki.store.close()
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
