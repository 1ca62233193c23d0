"""(pure) From a typed search to a Query.

    moon landing           pages with all the words, in any of their forms, by the rules of each page's language
    "moon landing"         the words one after the other
    moon or lunar          at least one of the words
    -apollo  -"sea of"     pages without these words
    in:Help                the page's name begins with this text
    by:JonasW              the last edit is by this person
    category:Wiki          the page is in this category
    kind:comment           comments alone; also kind:page, kind:file
    changed:>2026-01-01    the last edit is of that day or later; < before that day
    sort:changed           what was found, the last changed first; sort:name by name

Any text is a query: parts that cannot be understood are reported in ``problems``, and the rest is searched.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from wikka_port.page_languages import ENGLISH
from wikka_port.search.beside_pages import KINDS
from wikka_port.search.words import stems
from wikka_port.texts import N_, _

QUERY_CHARS: Final = 300
WORDS_MAX: Final = 16  # of a query
_PART: Final = re.compile(r'(-?)(?:(in|by|category|changed|kind|sort):)?(?:"([^"]*)"?|(\S+))', re.IGNORECASE)
_SORT: Final = re.compile(r"(?<!\S)-?sort:(?:\"[^\"]*\"?|\S*)", re.IGNORECASE)
SORTS: Final = ("changed", "name")
_DAY: Final = re.compile(r"([<>]?)=?(\d{4}-\d{2}-\d{2})")

Phrase = tuple[str, ...]  # consecutive stems; mostly one


@dataclass(frozen=True, slots=True)
class Query:
    """A search for pages with one of the phrases of each clause, and none of ``excluded``.

    If the stems of a word differ between languages, its clause has each of these stems.
    """

    clauses: tuple[tuple[Phrase, ...], ...] = ()
    excluded: tuple[Phrase, ...] = ()
    prefix: str = ""
    author: str = ""
    category: str = ""
    kind: str = ""  # of KINDS; "": all
    sort: str = ""  # of SORTS; "": the best first
    from_ms: int | None = None
    before_ms: int | None = None
    problems: tuple[str, ...] = ()
    typed: tuple[str, ...] = field(default=(), compare=False)  # the words of the clauses as they were typed
    languages: tuple[str, ...] = (ENGLISH,)  # the languages by whose rules the stems were made

    @property
    def is_empty(self) -> bool:
        """Whether the query selects no pages: excluded words and filters only reduce a selection."""
        return not self.clauses and not self.category and not self.prefix

    @property
    def has_filters(self) -> bool:
        return bool(self.prefix or self.author or self.kind or self.from_ms is not None or self.before_ms is not None)

    def stems(self) -> frozenset[str]:
        """Return all stems of the clauses."""
        return frozenset(stem for clause in self.clauses for phrase in clause for stem in phrase)


def parse(typed: str, languages: Sequence[str] = (ENGLISH,)) -> Query:
    """Parse a typed search; never raises.  Words and phrases are stemmed by the rules of each of ``languages``."""
    reader = _Reader(languages)
    text = " ".join(typed[:QUERY_CHARS].split())
    if len(typed) > QUERY_CHARS:
        reader.problems.append(_("Only the first {most} characters were searched.", most=QUERY_CHARS))
    for is_excluded, name, value, is_quoted in _parts(text):
        reader.take(is_excluded, name, value, is_quoted)
    return reader.query()


def unsorted(typed: str) -> str:
    """Return a typed search without its order."""
    return " ".join(_SORT.sub(" ", typed).split())


def _parts(text: str) -> Iterator[tuple[bool, str, str, bool]]:
    for found in _PART.finditer(text):
        minus, name, quoted, bare = found.groups()
        yield bool(minus), (name or "").lower(), quoted if bare is None else bare, bare is None


class _Reader:
    def __init__(self, languages: Sequence[str]) -> None:
        self._languages = languages
        self.problems: list[str] = []
        self._clauses: list[list[Phrase]] = []
        self._excluded: list[Phrase] = []
        self._typed: list[str] = []
        self._filters: dict[str, str] = {}
        self._days: dict[str, int] = {}
        self._left = WORDS_MAX
        self._has_or = False  # after the word "or": the next phrase joins the same clause

    def take(self, is_excluded: bool, name: str, value: str, is_quoted: bool) -> None:
        if name == "changed":
            self._changed(value)
        elif name == "kind" and value.lower().rstrip("s") not in KINDS:
            said = N_("“{typed}” is nothing that is searched; write kind:page, kind:comment or kind:file.")
            self.problems.append(_(said, typed=f"kind:{value}"))
        elif name == "sort" and value.lower() not in SORTS:
            said = N_("“{typed}” is no order; write sort:changed or sort:name.")
            self.problems.append(_(said, typed=f"sort:{value}"))
        elif name:
            self._filters[name] = value.replace("_", " ").strip()
        elif value.lower() == "or" and not is_quoted and not is_excluded:
            self._has_or = bool(self._clauses)
            return
        else:
            self._words(is_excluded, value)
        self._has_or = False

    def _words(self, is_excluded: bool, value: str) -> None:
        phrases = dict.fromkeys(tuple(stems(value, language)) for language in self._languages)
        count = max(map(len, phrases))
        if count > self._left:
            self.problems.append(_("A search takes {most} words; the rest was left out.", most=WORDS_MAX))
            phrases = dict.fromkeys(phrase[: self._left] for phrase in phrases)
        self._left -= min(count, self._left)
        found = [phrase for phrase in phrases if phrase]
        if not found:
            return
        if is_excluded:
            self._excluded += found
            return
        self._typed.append(value)
        if self._has_or:
            self._clauses[-1] += found
        else:
            self._clauses.append(found)

    def _changed(self, value: str) -> None:
        found = _DAY.fullmatch(value)
        try:
            day = datetime.strptime(found.group(2), "%Y-%m-%d").replace(tzinfo=UTC) if found else None
        except ValueError:
            day = None
        if day is None or found is None:
            said = N_("“{typed}” is no day; write changed:>2026-01-31 or changed:<2026-01-31.")
            self.problems.append(_(said, typed=f"changed:{value}"))
            return
        at_ms = int(day.timestamp() * 1000)
        if found.group(1) != "<":
            self._days["from"] = at_ms
        if found.group(1) == "<":
            self._days["before"] = at_ms
        elif not found.group(1):
            self._days["before"] = at_ms + 24 * 3600 * 1000

    def query(self) -> Query:
        query = Query(
            clauses=tuple(tuple(dict.fromkeys(clause)) for clause in self._clauses),
            excluded=tuple(self._excluded),
            prefix=self._filters.get("in", ""),
            author=self._filters.get("by", ""),
            kind=self._filters.get("kind", "").lower().rstrip("s"),
            sort=self._filters.get("sort", "").lower(),
            category=self._filters.get("category", ""),
            from_ms=self._days.get("from"),
            before_ms=self._days.get("before"),
            problems=tuple(dict.fromkeys(self.problems)),
            typed=tuple(self._typed),
            languages=tuple(self._languages),
        )
        if query.is_empty and (query.excluded or query.has_filters):
            more = _("Say also what the pages are to have: a word, a category, or how their names begin (in:).")
            return Query(problems=(*query.problems, more))
        return query
