"""Edits and comments of our own making for the judge of antispam, half of them good: from a seed, always the same.

The good half is meant to be hard: sources with many links, articles on gambling and medicine, invitations of clubs,
quotes of spam in code, thanks with a correction.  The bad half has kinds that evade single rules: few links, words in
disguise, slow forms, plain prose with one link that somebody paid for.  Both have names: of new pages, of renames
and of files.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from tests.support import made_texts as texts
from wikka_port.antispam.judging import Author, FormTrace, Submission

VISITOR: Final = Author()
MEMBER: Final = Author(has_account=True, age_s=90 * 86_400, edits=40)
Making = Callable[[random.Random], Submission]


@dataclass(frozen=True)
class Made:
    kind: str
    is_good: bool
    submission: Submission


def newcomer(rng: random.Random) -> Author:
    return Author(has_account=True, age_s=rng.uniform(60, 86_400), edits=rng.randrange(0, 6))


def somebody(rng: random.Random) -> Author:
    return VISITOR if rng.random() < 0.6 else newcomer(rng)


def edit(
    rng: random.Random, old: str, new: str, *, author: Author | None = None, seconds: float = 0.0, trap: str = ""
) -> Submission:
    trace = FormTrace(seconds=seconds or rng.uniform(8, 1_800), trap=trap)
    note = rng.choice(("", "", "more", "corrected", "see the source", "ergänzt"))
    return Submission("page", old, new, author or somebody(rng), note, trace)


def naming(rng: random.Random, name: str, former: str = "") -> Submission:
    """A rename, or a new file without ``former``, as ``words_refusal`` judges it."""
    note = rng.choice(("", "", "clearer", "as in the source"))
    return Submission("comment", "", "", somebody(rng), note, name=name, former_name=former)


def comment(rng: random.Random, text: str, *, seconds: float = 0.0, trap: str = "") -> Submission:
    trace = FormTrace(seconds=seconds or rng.uniform(6, 600), trap=trap)
    return Submission("comment", "", text, somebody(rng), form=trace)


# --- the good half -------------------------------------------------------------------------------------


def typo(rng: random.Random) -> Submission:
    old = texts.article(rng, sources=rng.randrange(0, 20))
    words = old.split(" ")
    place = rng.randrange(len(words))
    words[place] = words[place].replace("e", "ee", 1)
    return edit(rng, " ".join(words), old, seconds=rng.uniform(0.6, 90))


def sourced_article(rng: random.Random) -> Submission:
    return edit(rng, "", texts.article(rng, sources=rng.randrange(3, 14)))


def more_sources(rng: random.Random) -> Submission:
    old = texts.article(rng, sources=rng.randrange(2, 30))
    added = "\n".join(texts.source(rng) for _ in range(rng.randrange(1, 9)))
    return edit(rng, old, f"{old}\n==Further reading==\n{added}\n")


def table(rng: random.Random) -> Submission:
    old = texts.article(rng, sources=1)
    return edit(rng, old, f"{old}\n{texts.table(rng)}\n" if rng.random() < 0.5 else f"{texts.table(rng)}\n{old}")


def quote(rng: random.Random) -> Submission:
    old = texts.article(rng, sources=2)
    quoted = " ".join(texts.sentence(rng) for _ in range(rng.randrange(6, 20)))
    cited = " ".join(texts.source(rng) for _ in range(rng.randrange(2, 6)))
    return edit(rng, old, f'{old}\n~"{quoted}"\n{cited}\n')


def code(rng: random.Random) -> Submission:
    return edit(rng, "", f"{texts.paragraph(rng)}\n{rng.choice(texts.CODE)}\n{texts.paragraph(rng)}")


def other_language(rng: random.Random) -> Submission:
    lines = rng.sample(rng.choice(texts.LANGUAGES), 4)
    return edit(rng, "" if rng.random() < 0.5 else lines[0], "\n\n".join([*lines, texts.source(rng)]))


def large_import(rng: random.Random) -> Submission:
    text = "\n\n".join(texts.article(rng, sources=rng.randrange(10, 40)) for _ in range(4))
    return edit(rng, "", text, author=MEMBER, seconds=1.0)


def delicate_topic(rng: random.Random) -> Submission:
    body = "\n\n".join(rng.sample(texts.DELICATE, rng.randrange(2, 5)))
    cited = "\n".join(texts.source(rng) for _ in range(rng.randrange(1, 6)))
    old = "" if rng.random() < 0.6 else texts.article(rng, sources=1)
    return edit(rng, old, f"{old}\n{body}\n==Sources==\n{cited}\n")


def rewritten(rng: random.Random) -> Submission:
    """A visitor writes the whole article anew, with other sources."""
    return edit(rng, texts.article(rng, sources=6), texts.article(rng, sources=rng.randrange(4, 14)))


def good_comment(rng: random.Random) -> Submission:
    said = rng.choice(texts.GOOD_COMMENTS).format(source=texts.source(rng), address=texts.address(rng))
    return comment(rng, f"{said} {texts.sentence(rng)}" if rng.random() < 0.5 else said)


def rearranged(rng: random.Random) -> Submission:
    parts = texts.article(rng, sources=rng.randrange(4, 25)).split("\n\n")
    kept = parts[: max(1, len(parts) * 2 // 3)]
    rng.shuffle(kept)
    return edit(rng, "\n\n".join(parts), "\n\n".join([*kept, texts.paragraph(rng)]))


def redirect(rng: random.Random) -> Submission:
    return edit(rng, texts.article(rng, sources=3), '{{redirect target="Tides of the sea"}}')


def restored(rng: random.Random) -> Submission:
    """A visitor brings back what somebody else had emptied."""
    return edit(rng, rng.choice(("", "x", "asdf")), texts.article(rng, sources=rng.randrange(1, 13)))


def translated(rng: random.Random) -> Submission:
    sources = [texts.source(rng) for _ in range(6)]
    old = "\n\n".join([*(texts.paragraph(rng) for _ in range(6)), *sources])
    return edit(rng, old, "\n\n".join([*rng.sample(texts.LANGUAGES[0], 5), *sources]))


def invitation(rng: random.Random) -> Submission:
    """Clubs, courses and sales of neighbours: they invite, and have a site of their own."""
    own = rng.choice(texts.INVITATIONS).format(site=f"https://{rng.choice(texts.CLUBS)}")
    return edit(rng, "" if rng.random() < 0.5 else texts.paragraph(rng), f"{own}\n\n{texts.paragraph(rng)}")


def named_page(rng: random.Random) -> Submission:
    """A new page whose name is one of the hard ones, with a source or without."""
    text = texts.article(rng, sources=1) if rng.random() < 0.5 else texts.paragraph(rng)
    return replace(edit(rng, "", text), name=rng.choice(texts.NAMES))


def good_rename(rng: random.Random) -> Submission:
    return naming(rng, *rng.sample(texts.NAMES, 2))


def good_file(rng: random.Random) -> Submission:
    return naming(rng, rng.choice(texts.FILE_NAMES).rpartition(".")[0])


GOOD: Final[tuple[tuple[Making, int], ...]] = (
    *((typo, 35), (sourced_article, 30), (more_sources, 25), (table, 15), (quote, 15), (code, 15)),
    *(
        (other_language, 20),
        (large_import, 8),
        (delicate_topic, 25),
        (good_comment, 30),
        (rearranged, 10),
        (rewritten, 6),
    ),
    *((redirect, 4), (restored, 6), (translated, 4), (invitation, 8), (named_page, 14), (good_rename, 8)),
    (good_file, 8),
)


# --- the bad half ---------------------------------------------------------------------------------------


def spam_site(rng: random.Random) -> str:
    return f"https://{rng.choice(texts.SPAM_HOSTS)}/{rng.choice(('', 'go', 'en/', '?ref=77', 'offer.html'))}"


def anchor(rng: random.Random) -> str:
    keyword, site = rng.choice(texts.KEYWORDS), spam_site(rng)
    return rng.choice((f"[[{site} {keyword}]]", f"[{keyword}]({site})", f"{keyword} {site}", site))


def link_farm(rng: random.Random) -> Submission:
    return edit(rng, "", "\n".join(anchor(rng) for _ in range(rng.randrange(16, 60))))


def small_link_farm(rng: random.Random) -> Submission:
    """As many links as are allowed, or fewer, on a page of its own or below an article."""
    links = "\n".join(anchor(rng) for _ in range(rng.randrange(5, 15)))
    old = "" if rng.random() < 0.7 else texts.article(rng, sources=1)
    return edit(rng, old, f"{old}\n{links}")


def sales_page(rng: random.Random) -> Submission:
    return edit(rng, "", f"{texts.pitch(rng, 4)} {anchor(rng)} {texts.pitch(rng, 2)}")


def slow_pitch(rng: random.Random) -> Submission:
    """One paragraph and one link below an article, by a form that was open for long."""
    old = texts.article(rng, sources=rng.randrange(0, 8))
    return edit(rng, old, f"{old}\n{texts.pitch(rng, 2)} {anchor(rng)}\n", seconds=rng.uniform(60, 3_000))


def drug_comment(rng: random.Random) -> Submission:
    return comment(rng, f"{texts.pitch(rng, 2)} {anchor(rng)}")


def flattering_comment(rng: random.Random) -> Submission:
    praise, offer = rng.choice(texts.PRAISES), rng.choice(texts.OFFERS)
    return comment(rng, f"{praise} {offer} {spam_site(rng)}")


def hidden_links(rng: random.Random) -> Submission:
    old = texts.article(rng, sources=2)
    links = " ".join(anchor(rng) for _ in range(rng.randrange(1, 5)))
    style = rng.choice(texts.HIDING)
    return edit(rng, old, f'{old}\n""<div {style}>{links}</div>""\n')


def replaced_page(rng: random.Random) -> Submission:
    old = texts.article(rng, sources=rng.randrange(2, 10)) + "\n\n" + texts.article(rng, sources=2)
    return edit(rng, old, rng.choice((f"{texts.pitch(rng, 2)} {anchor(rng)}", "hacked by " + spam_site(rng), "lol")))


def disguised(rng: random.Random) -> Submission:
    """Words in letters of other alphabets, set apart, with digits for letters, or with invisible characters."""
    text = texts.disguise(rng, texts.pitch(rng, 3))
    text = f"{text} {anchor(rng)}"
    return comment(rng, text) if rng.random() < 0.4 else edit(rng, "", text)


def fast_program(rng: random.Random) -> Submission:
    text = f"{texts.plain_advertisement(rng)} {spam_site(rng)}"
    return edit(rng, "", text, seconds=rng.uniform(0.05, 1.9))


def fills_all_fields(rng: random.Random) -> Submission:
    text = f"{texts.plain_advertisement(rng)} {spam_site(rng)}"
    return (
        comment(rng, text, trap=rng.choice(("http://x.example", "John", "1")))
        if rng.random() < 0.5
        else edit(rng, "", text, trap="https://site.example")
    )


def board_links(rng: random.Random) -> Submission:
    keyword = rng.choice(texts.KEYWORDS)
    marks = (f"[url={spam_site(rng)}]{keyword}[/url]", f'<a href="{spam_site(rng)}">{keyword}</a>')
    return comment(rng, f"{texts.sentence(rng)} {' '.join(marks)} {texts.sentence(rng)}")


def foreign_pitch(rng: random.Random) -> Submission:
    return edit(rng, "", f"{rng.choice(texts.FOREIGN_PITCHES)} {spam_site(rng)}")


def without_links(rng: random.Random) -> Submission:
    return edit(rng, "", rng.choice(texts.WITHOUT_LINKS).format(number=rng.randrange(10**6, 10**7)))


def keyword_in_article(rng: random.Random) -> Submission:
    old = texts.article(rng, sources=3)
    words = old.split(" ")
    place = rng.randrange(len(words) // 2)
    words[place] = f"{words[place]} [[{spam_site(rng)} {rng.choice(texts.KEYWORDS)}]]"
    return edit(rng, old, " ".join(words))


def repeated(rng: random.Random) -> Submission:
    """The fourth page or later that gets the same text; the wiki counts them in the table of its limits."""
    text = f"{texts.plain_advertisement(rng)} {spam_site(rng)}"
    one = edit(rng, "", text)
    return Submission("page", "", text, one.author, form=one.form, is_repeated=True)


def paid_prose(rng: random.Random) -> Submission:
    """Plain prose with one link that somebody paid for: only a person sees it."""
    return edit(rng, "", f"{texts.paragraph(rng)} {texts.plain_advertisement(rng)} {spam_site(rng)}")


def spam_name(rng: random.Random) -> str:
    return rng.choice(texts.SPAM_NAMES).format(site=rng.choice(("www.", "")) + rng.choice(texts.SPAM_HOSTS))


def advertising_name(rng: random.Random) -> Submission:
    """A new page whose text says nothing: its name alone stands in all lists."""
    text = rng.choice(("x", "test", ".", texts.sentence(rng)))
    return replace(edit(rng, "", text), name=spam_name(rng))


def advertising_rename(rng: random.Random) -> Submission:
    return naming(rng, spam_name(rng), rng.choice(texts.NAMES))


def advertising_file(rng: random.Random) -> Submission:
    return naming(rng, spam_name(rng).replace(" ", rng.choice("-_ ")).replace("/", "-"))


BAD: Final[tuple[tuple[Making, int], ...]] = (
    *((link_farm, 20), (small_link_farm, 25), (sales_page, 25), (slow_pitch, 25), (drug_comment, 20)),
    *((flattering_comment, 25), (hidden_links, 12), (replaced_page, 14), (disguised, 25), (fast_program, 14)),
    *((fills_all_fields, 10), (board_links, 8), (foreign_pitch, 12), (without_links, 10)),
    *((keyword_in_article, 12), (repeated, 8), (paid_prose, 4), (advertising_name, 14), (advertising_rename, 8)),
    (advertising_file, 8),
)


def made_edits(seed: int, count: int = 500) -> list[Made]:
    """Return ``count`` submissions, half of them good; each kind as often as its weight says."""
    rng = random.Random(seed)
    found = []
    for kinds, is_good in ((GOOD, True), (BAD, False)):
        whole = sum(weight for _, weight in kinds)
        numbers = [count // 2 * weight // whole for _, weight in kinds]
        for place in range(count // 2 - sum(numbers)):
            numbers[place % len(numbers)] += 1
        for (make, _weight), number in zip(kinds, numbers, strict=True):
            found += [Made(make.__name__, is_good, make(rng)) for _ in range(number)]
    return found
