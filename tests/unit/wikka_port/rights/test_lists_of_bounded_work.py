"""Lists of a wiki most of whose pages are hidden: each part reads a bounded number, and none is lost to who goes on.

The hidden pages are drawn at random (COLUMNAR_SEED repeats a run).
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from html import unescape
from typing import Any

import pytest

from tests.support.api_client import ApiClient
from tests.support.memory_wiki import MemoryWiki
from tests.support.seeds import seed
from tests.support.wiki_client import WikiClient
from wikka_port import schema
from wikka_port.accounts.tables import SITE
from wikka_port.api.list_calls import LATE_MS
from wikka_port.comments.recent_comments import ListedComment
from wikka_port.comments.stored_comments import NewComment
from wikka_port.listings import RecentChange
from wikka_port.maintenance import TriggerState
from wikka_port.rights import followed_changes, guarded_files, name_parts, readable_lists
from wikka_port.rights.guarded import GuardedWiki
from wikka_port.rights.rules import PageRights, Privilege
from wikka_port.sealed_places import PREFIX
from wikka_port.visitors import Visitor

SEED = seed(440)
NOBODY = Visitor(None, "", "", False, "")  # type: ignore[arg-type]  # as a stranger
STEP, SCANNED, QUICK = 3, 7, 5
PARTS_MAX = 60
HIDDEN_WORD = "Geheim"


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (followed_changes, name_parts, readable_lists, guarded_files):
        monkeypatch.setattr(module, "LISTED_STEP", STEP)
        monkeypatch.setattr(module, "LISTED_SCANNED", SCANNED)
        monkeypatch.setattr(module, "LISTED_QUICK", QUICK)
    monkeypatch.setattr(readable_lists, "COMMENTS_SCANNED", SCANNED)


def wiki_of(hidden: list[bool], wiki: MemoryWiki | None = None) -> tuple[MemoryWiki, list[str]]:
    """Make pages that link to "Target" and to its file; return those that everybody may read, the oldest first."""
    wiki = wiki or MemoryWiki()
    wiki.save("Target", "The target links to [[Target]].", author="Ann", base=0)
    wiki.attach("Target", "Plan.txt", media_type="text/plain")
    shown = []
    for number, is_hidden in enumerate(hidden):
        name = f"{HIDDEN_WORD} {number:03}" if is_hidden else f"Gezeigt {number:03}"
        wiki.save(name, "To [[Target]], of which [[file:Target/Plan.txt]].", author="Ann", base=0)
        new = NewComment("A comment.", "Ann", "account", f"of {name}", "wikka", time_ms=1_750_000_000_000 + number)
        wiki.comments.add(name, b"", new, allow=lambda _name, _rights: None)
        if is_hidden:
            wiki.rights.change(name, PageRights(), "", {Privilege.READ: "Ann", Privilege.COMMENT_READ: "Ann"})
        else:
            shown.append(name)
    return wiki, shown


class Counted:
    """A wiki as a stranger sees it, that counts the rights asked for since the last part."""

    def __init__(self, wiki: MemoryWiki) -> None:
        self.asked = 0
        self.expensive = 0
        self.guarded = GuardedWiki(wiki, NOBODY, self._before)  # type: ignore[arg-type]
        of_pages = wiki.rights.of_pages

        def counted(names: Collection[str]) -> dict[str, PageRights]:
            self.asked += len(names)
            return of_pages(names)

        wiki.rights.of_pages = counted  # type: ignore[method-assign]

    def _before(self) -> None:
        self.expensive += 1


Part = Callable[[GuardedWiki, str, int], tuple[list[str], str]]


def walked(counted: Counted, part: Part, limit: int) -> Iterator[str]:
    """Yield what all parts have; each has read a bounded number of entries and names no hidden page."""
    token = ""
    for _ in range(PARTS_MAX):
        counted.asked = 0
        found, token = part(counted.guarded, token, limit)
        assert len(found) <= limit
        assert counted.asked <= max(limit + 1, SCANNED) + max(STEP, limit + 1)
        assert HIDDEN_WORD not in token
        yield from found
        if not token:
            return
    raise AssertionError("the list does not end")


LISTS: dict[str, Part] = {
    "names": lambda wiki, token, limit: wiki.names_part(start=token, prefix="Ge", limit=limit),
    "orphaned": lambda wiki, token, limit: wiki.orphaned_part(after=token, limit=limit),
    "backlinks": lambda wiki, token, limit: wiki.backlinks_part("Target", after=token, limit=limit),
    "uses": lambda wiki, token, limit: _uses(wiki, token, limit),
    "changes": lambda wiki, token, limit: _named(wiki.changes(before=token, limit=limit)),
    "comments": lambda wiki, token, limit: _paged(wiki.recent_comments(before=token, limit=limit)),
}


def _uses(wiki: GuardedWiki, token: str, limit: int) -> tuple[list[str], str]:
    files = wiki.files("Target")
    own, current = files.find("Plan.txt")
    assert current is not None
    return files.used_on_part(own, current, after=token, limit=limit)


def _named(found: tuple[list[RecentChange], str]) -> tuple[list[str], str]:
    return [one.name for one in found[0]], found[1]


def _paged(found: tuple[list[ListedComment], str]) -> tuple[list[str], str]:
    return [one.page for one in found[0]], found[1]


def _draws() -> Iterator[list[bool]]:
    rng = random.Random(SEED)
    print(f"COLUMNAR_SEED={SEED}")
    yield [False] * 12
    yield [True] * 25 + [False]
    yield [False] + [True] * 25
    yield [True] * 12 + [False] + [True] * 12 + [False] * 3
    for _ in range(12):
        share = rng.choice([0.5, 0.8, 0.95])
        yield [rng.random() < share for _ in range(rng.randrange(40))]


@pytest.mark.parametrize("limit", [1, 2, 5, 50])
@pytest.mark.parametrize("kind", LISTS)
def test_each_part_reads_a_bounded_number_and_all_parts_have_all(kind: str, limit: int) -> None:
    for hidden in _draws():
        wiki, shown = wiki_of(hidden)
        found = [one for one in walked(Counted(wiki), LISTS[kind], limit) if one != "Target"]
        assert sorted(found) == shown, (kind, hidden)
        if kind == "names":
            assert found == shown
        if kind in ("changes", "comments"):
            assert found == shown[::-1]


def test_the_whole_of_a_short_list_comes_at_once_and_sorted() -> None:
    wiki, shown = wiki_of([True, False, False, True])
    guarded = Counted(wiki).guarded
    assert guarded.backlinks_part("Target", limit=9) == (["Gezeigt 001", "Gezeigt 002", "Target"], "")
    assert guarded.names(prefix="Ge", limit=9) == shown
    assert guarded.names_part(prefix="Ge", limit=1) == (["Gezeigt 001"], "Gezeigt 002"), "a name that may be read"
    assert guarded.names_part(start="Gezeigt 002", limit=1) == (["Gezeigt 002"], "Target")


def test_a_long_read_goes_into_the_slow_lane() -> None:
    for limit, times in ((1, 0), (5, 1)):
        counted = Counted(wiki_of([True] * 30)[0])
        found, onward = counted.guarded.names_part(limit=limit)
        assert (found, onward.startswith(PREFIX), counted.expensive) == ([], True, times), limit


def test_changes_are_followed_over_hidden_ones() -> None:
    for hidden in _draws():
        wiki, shown = wiki_of(hidden)
        counted = Counted(wiki)
        place, found = schema.change_place(0), list[str]()
        for _ in range(PARTS_MAX):
            counted.asked = 0
            part = counted.guarded.followed.since(place, limit=2)
            found += [one.name for one in part.changes]
            assert counted.asked <= SCANNED + STEP
            assert part.place < place or not part.more, "it goes on"
            place = part.place
            if not part.more:
                break
        assert found == ["Target", *shown]


def test_who_goes_on_by_the_pages_and_by_the_api_gets_everything() -> None:
    web = WikiClient(edit_burst=1_000, count_age_s=0.0, list_rows=2)
    _, shown = wiki_of([True] * 120 + [False] + [True] * 120, web.wiki)
    for path in ("/-/pageindex", "/Target/backlinks", "/-/orphanedpages", "/-/recentchanges", "/-/recentcomments"):
        found, place, empty = set[str](), path, 0
        for _ in range(PARTS_MAX):
            answer = web.get(place)
            assert answer.status_code == 200, place
            assert HIDDEN_WORD not in answer.text + place
            named = {one for one in shown if one in answer.text}
            empty += "Nothing in this part is for you to read" in answer.text
            found |= named
            onward = re.search(r'class="onward"><a href="([^"]+)"', answer.text)
            if onward is None:
                break
            place = unescape(onward[1])
        assert found == set(shown), path
        assert empty, path
    api = ApiClient(web.client)
    for path, key, given in (
        ("/pages", "start", {}),
        ("/page/backlinks", "after", {"name": "Target"}),
        ("/page/backlinks", "after", {"name": "Target", "file": "Plan.txt"}),
    ):
        names, token = set[str](), None
        for _ in range(PARTS_MAX):
            said = api.get(path, **given, limit=2, **({key: token} if token else {})).json
            names |= set(said["names"])
            token = said["next"]
            assert HIDDEN_WORD not in str(said)
            if token is None:
                break
        assert names >= set(shown), path


def test_changes_are_followed_over_hidden_ones_by_the_api() -> None:
    web = WikiClient(edit_burst=1_000, count_age_s=0.0)
    api = ApiClient(web.client)
    token = schema.change_place(1_000).decode()
    _, shown = wiki_of([True] * 20 + [False] + [True] * 20 + [False], web.wiki)
    web.now = 1_760_000_000.0  # long after all of them
    found, tokens = list[str](), list[str]()
    for _ in range(PARTS_MAX):
        said = api.get("/changes", since=token, limit=2).json
        found += [one["name"] for one in said["changes"]]
        token = said["next"]
        tokens.append(token)
        if not said["more"]:
            break
    assert found == ["Target", *shown]
    assert any(one.startswith(PREFIX) for one in tokens)
    hidden = {place.decode() for place, one in _every_change(web.wiki) if HIDDEN_WORD in one}
    assert hidden.isdisjoint(tokens)
    wrong = api.get("/changes", since=PREFIX + "A" * 60)
    assert wrong.status_code == 422


def test_changes_that_late_triggers_have_not_listed_are_not_passed_by() -> None:
    web = WikiClient(edit_burst=1_000, count_age_s=0.0)
    web.now = 1_750_010_000.0
    wiki, _ = wiki_of([False] * 4, web.wiki)
    now_ms, api = int(web.now * 1_000), ApiClient(web.client)
    token = schema.change_place(now_ms - 20 * 60_000).decode()
    lag = TriggerState("wiki-indexes", "running", 3, 15 * 60.0, 0, "", 0.0)
    wiki.maintenance.states = [lag, replace(lag, name="wiki-words", lag_s=7_200.0)]
    assert api.get("/changes", since=token).json["next"] == schema.change_place(now_ms - LATE_MS).decode()
    wiki.settle = lambda sequence, timeout_s=2.0: False  # type: ignore[method-assign,misc]
    late = api.get("/changes", since=token).json
    assert late["next"] == schema.change_place(now_ms - 15 * 60_000 - LATE_MS).decode()
    assert api.get("/changes", since=late["next"]).json["next"] == late["next"]
    wiki.save("Young", "A text.", author="Ann", base=0, time_ms=now_ms - 1_000)
    wiki.save("Younger", "A text.", author="Ann", base=0, time_ms=now_ms - 500)
    stays = api.get("/changes", since=late["next"], limit=1).json
    assert ([one["name"] for one in stays["changes"]], stays["more"]) == (["Young"], False), "a later call has the rest"
    assert stays["next"] == late["next"]


@pytest.mark.parametrize(("pages", "steps"), [(0, 1), (2, 1), (8, 3), (10, 3), (200, 3)])
def test_comments_are_counted_in_a_bounded_number_of_steps(
    monkeypatch: pytest.MonkeyPatch, pages: int, steps: int
) -> None:
    monkeypatch.setattr(readable_lists, "COMMENTED_PAGES_COUNTED", 3 * STEP)
    wiki, _ = wiki_of([number % 3 == 0 for number in range(12)])
    names = [f"{HIDDEN_WORD if number % 3 == 0 else 'Gezeigt'} {number % 12:03}" for number in range(pages)]
    asked = list[str]()

    def counts(*, after: str = "") -> tuple[dict[str, int], str]:
        asked.append(after)
        start = int(after or 0)
        found = dict.fromkeys(names[start : start + STEP], 2)
        return found, str(start + STEP) if start + STEP <= pages else ""

    wiki.comment_counts = counts  # type: ignore[method-assign]
    counted = Counted(wiki)
    shown = sum(not name.startswith(HIDDEN_WORD) for name in names[: 3 * STEP])
    assert counted.guarded.count_comments() == (2 * shown, pages > 3 * STEP)
    assert len(asked) == steps
    assert counted.asked <= 3 * STEP
    assert counted.expensive == (1 if steps == 3 else 0)
    page = WikiClient(wiki=wiki, edit_burst=1_000)
    wiki.save("Counting", "Here are {{countcomments}}.", author="Ann", base=0)
    assert f"Here are {'more than ' if pages > 3 * STEP else ''}{2 * shown}." in page.get("/Counting").text


@pytest.mark.parametrize(("is_hidden", "read"), [(True, 1), (False, 0)])
def test_the_key_that_seals_places_is_read_once_in_a_request_or_not_at_all(is_hidden: bool, read: int) -> None:
    wiki, _ = wiki_of([is_hidden] * 30)
    counted, reads, row = Counted(wiki), list[bytes](), wiki.rows.row

    def counting(table: bytes, *rest: Any) -> Any:
        reads.append(table)
        return row(table, *rest)

    wiki.rows.row = counting  # type: ignore[method-assign]
    for _ in range(4):
        _, token = counted.guarded.names_part(prefix="Ge", limit=1)
        assert token.startswith(PREFIX) == is_hidden
        counted.guarded.names_part(start=token, prefix="Ge", limit=1)
    assert reads.count(SITE) == read


def _every_change(wiki: MemoryWiki) -> list[tuple[bytes, str]]:
    found, _more = wiki.changes_since(schema.change_place(0), limit=1_000)
    return [(place, one.name) for place, one in found]
