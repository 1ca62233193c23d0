"""What an import makes of one page (pure): which revisions are new, and when nothing may be touched.

Revision k of a page in a dump, counted in the order of their times, is revision k of the page here.
The times rise strictly: one that does not come after its predecessor is moved to 1 ms behind it, so
that the same dump always gives the same times.

    stored: none                        all revisions are new
    stored: the first n, at their times the others are new (an import goes on, or a later dump)
    stored: all, and maybe more         nothing to do
    stored: something else              the page was written here: it is kept as it is

Knows nothing of the store and of dumps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class ImportedRevision:
    time_ms: int
    author: str
    note: str
    body: str
    links: int
    is_redirect: bool


@dataclass(frozen=True, slots=True)
class PagePart:
    """Some revisions of a page, one after another; most pages are one part."""

    name: str
    ordinal: int  # of the page in the dump
    first: int  # number of the first revision here
    revisions: tuple[ImportedRevision, ...]
    attribution: str
    is_last: bool  # no more of this page follows
    language: str = ""  # of the page (``page_languages``)

    @property
    def last(self) -> int:
        return self.first + len(self.revisions) - 1


@dataclass(frozen=True, slots=True)
class PagePlan:
    new: tuple[tuple[int, ImportedRevision], ...]  # number and revision, in order
    kept: bool  # the page was written here


def rising(revisions: Sequence[ImportedRevision], after_ms: int) -> list[int]:
    """The times under which ``revisions`` are stored; ``after_ms``: that of the one before them."""
    times: list[int] = []
    last = after_ms
    for revision in revisions:
        last = max(revision.time_ms, last + 1)
        times.append(last)
    return times


def plan(part: PagePart, newest: int, stored: Mapping[int, int]) -> PagePlan:
    """``newest`` is the number of the newest revision stored (0: no page), ``stored`` their times by number.

    ``stored`` must reach from one before the part's first revision up to its last, as far as there are any.
    """
    times = rising(part.revisions, stored.get(part.first - 1, -1))
    numbered = list(zip(range(part.first, part.last + 1), part.revisions, times, strict=True))
    if newest < part.first - 1:
        return PagePlan((), kept=True)  # what the part goes on from is not there
    if any(stored.get(number) != at for number, _, at in numbered if number <= newest):
        return PagePlan((), kept=True)
    return PagePlan(tuple((number, revision) for number, revision, _ in numbered if number > newest), kept=False)


_WIKIMEDIA = (".wikipedia.org", ".wiktionary.org", ".wikisource.org", ".wikibooks.org", ".wikivoyage.org")
_CC_4_SINCE_MS = 1_686_096_000_000  # 7 June 2023: Wikimedia's texts went from CC BY-SA 3.0 to 4.0


def attribution(site: str, base: str, title: str, time_ms: int, licence: str | None) -> str:
    """The line that an imported page shows: whence it is, by whom, under what licence."""
    address = base.rpartition("/")[0] + "/" + quote(title.replace(" ", "_"), safe="/:@!$*(),;~-._")
    text = f"From {site or 'another wiki'}, {address}, by its contributors there"
    licence = licence or _known_licence(base, time_ms)
    return f"{text}; {licence}." if licence else f"{text}; under the licence of that site."


def _known_licence(base: str, time_ms: int) -> str:
    host = base.partition("//")[2].partition("/")[0]
    if not host.endswith(_WIKIMEDIA):
        return ""
    return "CC BY-SA 3.0 and GFDL" if time_ms < _CC_4_SINCE_MS else "CC BY-SA 4.0"
