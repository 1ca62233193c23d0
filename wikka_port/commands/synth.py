"""``wikka synth``: make the synthetic wiki of the thesis."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from random import Random
from typing import Final

import click
from rich.progress import MofNCompleteColumn, Progress

from wikka_port.bulk_save import BulkSaver, Stored
from wikka_port.commands.store_options import StoreOptions, progress_bar, store_options
from wikka_port.import_plan import ImportedRevision, PagePart
from wikka_port.pages import Wiki

GROUP_PAGES: Final = 16
FIRST_MS: Final = 1_104_537_600_000  # 1 January 2005; page n is n minutes younger
_MINUTE_MS: Final = 60_000
_VOCABULARY: Final = """
abluo adverto aestas agger alveus amnis antrum arbor arduus arista ater aura avena bacca brevis caelum calamus callis
campus candeo canna carpo caseus cedrus cerno cinis clivus collis colonus corylus crepido cursus dorsum dulcis ebur
faenum fagus ferula flumen folium fons frondeo fruges galea gelidus gramen grex harena hedera herba hiems hortus imber
insula iugum labor lacus lapis latus lenis lignum limen litus lucus luna mare mel messis mons nauta nemus nidus nimbus
nix nubes olea ora ovis palus pascua pecus pelagus pinus pluvia pontus portus pratum quercus radix ramus ripa rivus ros
rupes rus saltus saxum scopulus seges semita silva sol stagnum stella tellus terra tilia torrens turris ulmus umbra
unda ursus uva vadum vallis ventus ver vertex via vicus vinum viridis
"""
_WORDS: Final = tuple(_VOCABULARY.split())
_WORDS_LEAST: Final = 6  # of a sentence
_WORDS_MORE: Final = 10  # at most; of 4 bits


def page_name(number: int) -> str:
    """Return a name in CamelCase for a number: 0 -> Aa, 1 -> Bb, 523 -> FfCcDd."""
    return "".join(chr(ord("A") + int(digit)) + chr(ord("a") + int(digit)) for digit in str(number))


def page_text(number: int, *, pages: int, seed: int, size_bytes: int, links: int) -> str:
    """Return sentences in paragraphs, with links among them, of ``size_bytes`` to within a sentence."""
    rng = Random(f"{seed}:{number}")
    linked = [f"[[{page_name(rng.randrange(pages))}]]" for _ in range(links)]
    random, bits, vocabulary = rng.random, rng.getrandbits, float(len(_WORDS))
    words: list[str] = []
    size = sum(len(link) + 1 for link in linked)
    while size < size_bytes:
        more = bits(4)  # as ``randint`` and ``choices`` draw, without their calls
        while more > _WORDS_MORE:
            more = bits(4)
        sentence = [_WORDS[int(random() * vocabulary)] for _ in range(_WORDS_LEAST + more)]
        sentence[0] = sentence[0].capitalize()
        sentence[-1] += ".\n\n" if random() < 0.12 else "."
        size += len(" ".join(sentence)) + 1
        words += sentence
    for link in linked:
        words.insert(rng.randint(0, len(words)), link)
    return " ".join(words).replace("\n\n ", "\n\n").strip() + "\n"


def _parts(pages: int, seed: int, size_bytes: int, links: int) -> Iterator[PagePart]:
    for number in range(pages):
        text = page_text(number, pages=pages, seed=seed, size_bytes=size_bytes, links=links)
        revision = ImportedRevision(
            FIRST_MS + number * _MINUTE_MS, "WikiMaker", "made for measuring", text, links, is_redirect=False
        )
        yield PagePart(page_name(number), number, 1, (revision,), "", is_last=True)


def make_wiki(
    wiki: Wiki,
    *,
    pages: int,
    seed: int = 1,
    size_bytes: int = 8_192,
    links: int = 10,
    progress: Callable[[int], None] = lambda pages: None,
) -> Stored:
    """Make the pages of a synthetic wiki.  Raises StoreUnavailable; the next call then continues."""
    with BulkSaver(wiki, progress) as saver:
        group: list[PagePart] = []
        for part in _parts(pages, seed, size_bytes, links):
            group.append(part)
            if len(group) >= GROUP_PAGES or part.ordinal == pages - 1:
                saver.put(group, part.ordinal + 1)
                group = []
        saver.drain()
    return saver.stored


@click.command()
@store_options
@click.option("--pages", required=True, type=click.IntRange(1), help="How many; the first is Aa, number 523 FfCcDd.")
@click.option("--seed", default=1, show_default=True, help="The same seed makes the same wiki.")
@click.option("--bytes", "size_bytes", default=8_192, show_default=True, type=click.IntRange(0, 1_000_000))
@click.option("--links", default=10, show_default=True, type=click.IntRange(0, 1_000), help="In each page.")
def synth(store: StoreOptions, pages: int, seed: int, size_bytes: int, links: int) -> None:
    """Make pages of one size with links to each other at random places."""
    with store.open_wiki(pool=16) as wiki:
        wiki.prepare()
        begun = time.monotonic()
        with progress_bar("pages", *Progress.get_default_columns(), MofNCompleteColumn(), total=pages) as bar:
            stored = make_wiki(
                wiki,
                pages=pages,
                seed=seed,
                size_bytes=size_bytes,
                links=links,
                progress=lambda done: bar(completed=done),
            )
    kept = f", {len(stored.kept):,} kept as they were edited here" if stored.kept else ""
    seconds = time.monotonic() - begun
    click.echo(f"{stored.revisions:,} pages made, {stored.already:,} were there{kept}; {seconds:.1f} s")
