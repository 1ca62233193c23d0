"""(pure) The addition of an edit: its new links to other sites, its new words, and what is left of the former text.

Texts are compared line by line, as sets that count: a moved line is no addition, and of a changed line only the links
and words count that its former version lacks.  Blocks of code are left out, since code is shown and never followed.

Words are folded, so that a list of words finds every spelling of them:

    invisible characters, accents and case   removed                      "cas\\u200bino", "Cäsino" -> "casino"
    full-width and mathematical letters      in their usual form (NFKC)
    letters of other alphabets               as Latin ones, if all letters of the word look Latin
    digits and signs inside a word           as the letters that they imitate     "c4s1n0", "ca$ino" -> "casino"
    letters set apart                        joined, from five on                 "c-a-s-i-n-o", "v i a g r a"

Cost: linear in both texts.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final
from urllib.parse import urlsplit

from wikka_port.confusable_names import has_mixed_scripts, latin_reading, without_hidden

# Possessive, and titles have a bound: the pattern is linear in any text.
_ADDRESS: Final = r"(?:https?|ftp)://[^\s<>\"'|\[\]{}()^`]++"
_LINK: Final = re.compile(
    rf"\[\[(?P<wikka>{_ADDRESS})[ ]?\|?(?P<wikka_title>[^\]\n]{{0,300}})\]\]"
    rf"|\[(?P<markdown_title>[^\[\]\n]{{0,300}}+)\]\((?P<markdown>{_ADDRESS})"
    rf"|\[url=[\"']?(?P<board>{_ADDRESS})[\"']?\](?P<board_title>[^\[\n]{{0,300}}+)"
    rf"|<a\b[^<>\n]{{0,300}}?href\s?=\s?[\"']?(?P<html>{_ADDRESS})[^<>\n]{{0,300}}+>(?P<html_title>[^<\n]{{0,300}}+)"
    rf"|(?P<bare>{_ADDRESS})",
    re.IGNORECASE,
)
_ONLY_ADDRESS: Final = re.compile(_ADDRESS, re.IGNORECASE)
_KINDS: Final = ("wikka", "markdown", "board", "html", "bare")
# A name of a site without a scheme: "cheap-pills.example", "www.pills.example".
_SITE_ENDINGS: Final = "com|net|org|info|biz|shop|store|online|site|club|top|xyz|live|bet|casino|win|vip|ru|cn|example"
_SITE: Final = re.compile(
    rf"(?<![\w@./-])(?:[a-z0-9-]{{2,63}}\.){{1,4}}(?:{_SITE_ENDINGS})(?![\w.-]*\w)", re.IGNORECASE
)
_BOARD_MARK: Final = re.compile(r"\[url\s*=", re.IGNORECASE)
_CODE: Final = re.compile(r"%%.*?(?:%%|\Z)|^```.*?(?:^```|\Z)|##[^#\n]+##|`[^`\n]+`", re.DOTALL | re.MULTILINE)
# Styles that hide a text from readers and show it to search engines, in a tag of HTML.
_HIDING: Final = re.compile(
    r"<[a-z][^<>]{0,300}(?:display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0|opacity\s*:\s*0(?![.\d])"
    r"|(?:left|top|text-indent)\s*:\s*-\d{3,}|(?:height|width)\s*:\s*[01]px[^<>]{0,200}overflow\s*:\s*hidden"
    r"|\shidden(?=[\s>/=]))",
    re.IGNORECASE,
)
_CODE_MARKS: Final = re.compile("%%|##|`")
_NAME_PARTS: Final = str.maketrans("_/", "  ")  # beside which the name of a site begins
_WORD: Final = re.compile(r"[^\W_]+(?:[@$|!][^\W_]+)*")
_SPACED: Final = re.compile(r"(?<![^\W_])(?:[^\W\d_][ .*_|-]{1,2}){4,40}[^\W\d_](?![^\W_])")
_NO_LETTERS: Final = re.compile(r"[\W_]+")
_IMITATED: Final = str.maketrans("013457@$|!", "oieastasii")
_ZERO_WIDTH: Final = re.compile("[A-Za-z][\u200b-\u200d\u2060\ufeff]+[A-Za-z]")
_LETTERS_MIN: Final = 5  # of a word set apart
_RUN_CHARS_MIN: Final = 6  # of a word that is read as several
_RUN_PART_CHARS: Final = 26  # of one of them at most
_FILLING: Final = frozenset({"the", "and", "for", "to", "in", "of", "my", "your", "you", "now", "us", "uk", "hot"})


@dataclass(frozen=True, slots=True)
class Link:
    address: str
    host: str
    title: str  # "": the address itself is shown


def links_in(text: str) -> list[Link]:
    """Return the links to other sites, in order."""
    found = []
    for match in _LINK.finditer(text):
        kind = next(one for one in _KINDS if match[one])
        title = "" if kind == "bare" else match[f"{kind}_title"]
        found.append(Link(match[kind], host_of(match[kind]), title.strip()))
    return found


def host_of(address: str) -> str:
    """Return the host of an address in lower case without "www.", or "" if it has none."""
    try:
        host = urlsplit(address).hostname or ""
    except ValueError:  # an address of IPv6 that is none
        return ""
    return host.removeprefix("www.").rstrip(".")


def is_of_domain(host: str, domains: Collection[str]) -> bool:
    """Return whether the host is one of the domains, or a part of one."""
    parts = host.split(".")
    return any(".".join(parts[start:]) in domains for start in range(len(parts)))


def folded_words(text: str, *, is_imitated: bool = True) -> list[str]:
    """Return the words of a text, folded as the module describes; digits stay if none is said to imitate a letter."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", without_hidden(text))
        text = "".join(one for one in unicodedata.normalize("NFKD", text) if not unicodedata.combining(one))
    text = _SPACED.sub(lambda match: _joined(match.group()), text.casefold())
    return [_letters(word, is_imitated=is_imitated) for word in _WORD.findall(text)]


def _joined(spaced: str) -> str:
    joined = _NO_LETTERS.sub("", spaced)
    return joined if len(joined) >= _LETTERS_MIN else spaced


def _letters(word: str, *, is_imitated: bool) -> str:
    if not word.isascii():
        word = latin_reading(word)
    return word if word.isalpha() or word.isdigit() or not is_imitated else word.translate(_IMITATED)


def stream(words: Iterable[str]) -> str:
    """Return words as one text in which ``Terms`` are found."""
    return f" {'  '.join(words)} "


def plain_words(text: str) -> str:
    """Return words that are no markup, such as a note or a name, so that no part of them counts as code."""
    return _CODE_MARKS.sub(" ", text)


def words_of_name(name: str) -> str:
    """Return the name of a page or a file as a text of three lines: itself, its parts, and its words.

    The words are set apart where CamelCase joins them.  That line names no site, since "MySite.example" is none of
    site.example.
    """
    plain = plain_words(" ".join(name.split()))
    parts = plain.translate(_NAME_PARTS)
    apart = (f" {one}" if _begins_word(parts, place) else one for place, one in enumerate(parts))
    return "\n".join((plain, parts, "".join(apart).replace(".", " ")))


def _begins_word(text: str, place: int) -> bool:
    before, after = text[place - 1 : place], text[place + 1 : place + 2]
    joins = before.islower() or before.isdigit() or (before.isupper() and after.islower())
    return text[place].isupper() and joins


def run_together(word: str, goods: Collection[str], praise: Collection[str]) -> int:
    """Return how many words of praise, two at most, stand beside goods in a word made of these without a gap.

    "cheapviagra24" has one.  0 if the word is made of anything else, but for digits and words of _FILLING.
    O(length of the word).
    """
    if len(word) < _RUN_CHARS_MIN:
        return 0
    reached = [set[tuple[bool, int]]() for _ in range(len(word) + 1)]  # whether goods were there, and how much praise
    reached[0].add((False, 0))
    for start, states in enumerate(reached[:-1]):
        for end in range(start + 1, min(start + _RUN_PART_CHARS, len(word)) + 1) if states else ():
            part = word[start:end]
            if part in goods:
                reached[end] |= {(True, count) for _, count in states}
            if part in praise:
                reached[end] |= {(has_goods, min(2, count + 1)) for has_goods, count in states}
            if part in _FILLING or part.isdigit():
                reached[end] |= states
    return max((count for has_goods, count in reached[-1] if has_goods), default=0)


class Terms:
    """A list of words and phrases, which are found in every spelling.  Immutable."""

    def __init__(self, terms: Iterable[str]) -> None:
        folded = {"  ".join(folded_words(term)) for term in terms} - {""}
        self._folded: Final = frozenset(folded)
        joined = {term.replace(" ", "") for term in folded}
        self.joined: Final = frozenset(f"{term}{plural}" for term in joined for plural in ("", "s", "es"))
        longest_first = sorted(folded, key=lambda one: (-len(one), one))
        pattern = "|".join(map(re.escape, longest_first))
        self._pattern: Final = re.compile(rf" (?:({pattern})(?:s|es)?) ") if folded else None

    def __or__(self, other: Terms) -> Terms:
        return Terms(self._folded | other._folded)

    def count_in(self, words: str) -> Counter[str]:
        """Return how often each term is in a ``stream``."""
        return Counter(self._pattern.findall(words)) if self._pattern is not None else Counter()


class Addition:
    """The difference that ``new`` makes to ``old``, as far as it is an addition.  Immutable."""

    def __init__(self, old: str, new: str, own_hosts: Collection[str] = ()) -> None:
        old_lines, new_lines = Counter(_CODE.sub(" ", old).splitlines()), Counter(_CODE.sub(" ", new).splitlines())
        self._old, self._new, self._own_hosts = old, new, frozenset(own_hosts)
        self._added: Final = "\n".join((new_lines - old_lines).elements())
        self._removed: Final = "\n".join((old_lines - new_lines).elements())
        self._kept_chars: Final = sum(len(line) * count for line, count in (old_lines & new_lines).items())

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """The links to other sites that the former text lacks."""
        former = Counter(link.address for link in links_in(self._removed))
        found = []
        for link in links_in(self._added):
            if former[link.address]:
                former[link.address] -= 1
            elif not is_of_domain(link.host, self._own_hosts):
                found.append(link)
        return tuple(found)

    @cached_property
    def sites(self) -> frozenset[str]:
        """The sites that are linked to or named anew, in lower case."""
        former = {site.lower() for site in _SITE.findall(self._removed)}
        named = {site.group().lower().removeprefix("www.") for site in _SITE.finditer(self._added)} - former
        return frozenset({link.host for link in self.links} | named) - self._own_hosts

    @cached_property
    def words(self) -> list[str]:
        return folded_words(self._added)

    @cached_property
    def _stream(self) -> str:
        return stream(self.words)

    def count(self, terms: Terms) -> Counter[str]:
        """Return the terms that the former text has less often, and how much less."""
        found = terms.count_in(self._stream)
        return found - terms.count_in(stream(folded_words(self._removed))) if found else found

    @property
    def has_hidden_text(self) -> bool:
        return len(_HIDING.findall(self._added)) > len(_HIDING.findall(self._removed))

    @property
    def has_board_marks(self) -> bool:
        """Whether links are added in the markup of bulletin boards, which no wiki reads."""
        return len(_BOARD_MARK.findall(self._added)) > len(_BOARD_MARK.findall(self._removed))

    @property
    def disguised(self) -> int:
        """The number of words with letters of several alphabets, or with invisible characters, that are added."""
        return 0 if self._added.isascii() else max(0, _disguised(self._added) - _disguised(self._removed))

    @property
    def words_beside_addresses(self) -> int:
        """The number of words of the whole new text, with those in titles of links and without addresses."""
        return len(_WORD.findall(_ONLY_ADDRESS.sub(" ", _CODE.sub(" ", self._new))))

    @property
    def kept_share(self) -> float:
        """The share of the former text's characters that the new text has, by lines; 1 if there was none."""
        whole = sum(len(line) for line in _CODE.sub(" ", self._old).splitlines())
        return self._kept_chars / whole if whole else 1.0

    @property
    def size_share(self) -> float:
        """The size of the new text divided by that of the former one; 1 if there was none."""
        return len(self._new) / len(self._old) if self._old else 1.0


def _disguised(text: str) -> int:
    """Count words that read as Latin ones and are not; soft hyphens and the marks of writing directions are usual."""
    words = (word for word in text.split() if not word.isascii())
    return sum(
        _ZERO_WIDTH.search(word) is not None or any(map(has_mixed_scripts, _WORD.findall(without_hidden(word))))
        for word in words
    )
