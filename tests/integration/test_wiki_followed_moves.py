"""Who follows the changes of a wiki by its API learns of renames, deletions and undeletions, in their order, through
falls at each step, and nothing of pages that he may not read.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.integration.test_wiki_moves import STEPS, Fallen
from tests.support.api_client import ApiClient, ApiScene
from tests.support.seeds import seed
from tests.support.stored_wiki import KINDS, save, settle, stored_wiki
from wikka_port.consistency import check
from wikka_port.differences import Kind as Fault
from wikka_port.moving.journal import MOVES, OWNER_THEN, deleted
from wikka_port.moving.mover import By
from wikka_port.pages import Wiki
from wikka_port.rights.rules import PageRights, Privilege

ANN = By("Ann", "account", "because")
HOUR_S = 3_600.0
SEED = seed(3968)


class Mirror:
    """A program that keeps the texts of a wiki, by the changes alone, as the documentation says."""

    def __init__(self, program: ApiClient, limit: int = 3) -> None:
        self.program = program
        self.limit = limit
        self.texts: dict[str, str] = {}
        self.numbers: dict[str, int] = {}
        self.seen: list[dict[str, Any]] = []
        self.since = program.get("/changes").json["next"]

    def follow(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        more = True
        while more:
            answer = self.program.get("/changes", since=self.since, limit=self.limit).json
            for one in answer["changes"]:
                found.append(one)
                self._apply(one)
            self.since, more = answer["next"], answer["more"]
        self.seen += found
        return found

    def _apply(self, one: dict[str, Any]) -> None:
        gone = one["name"] if one["kind"] == "deleted" else one["former"]
        if gone is not None and self.numbers.get(gone, 0) <= one["number"]:
            self.texts.pop(gone, None)
            self.numbers.pop(gone, None)
        if one["kind"] != "deleted":
            self._fetch(one["name"])

    def _fetch(self, name: str) -> None:
        page = self.program.get("/page", name=name)
        if page.status_code == 200:
            self.texts[name], self.numbers[name] = page.json["text"], page.json["number"]


def told(found: list[dict[str, Any]]) -> list[tuple[str, str | None, str, int]]:
    return [(one["kind"], one["former"], one["name"], one["number"]) for one in found]


def later(scene: ApiScene, seconds: float = HOUR_S) -> None:
    """Let the last minute pass, whose changes come again."""
    scene.web.now += seconds


@pytest.fixture(params=KINDS)
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ApiScene]:
    with stored_wiki(tmp_path, request.param) as wiki:
        yield following(wiki)


def following(wiki: Wiki) -> ApiScene:
    """A scene whose pages have times of the scene's clock."""
    made = ApiScene(wiki=wiki)
    wiki._clock = wiki.mover._clock = lambda: int(made.web.now * 1000)
    return made


def test_a_mirror_has_what_the_wiki_has_after_each_move(scene: ApiScene) -> None:
    wiki, mirror = scene.wiki, Mirror(scene.anonymous)

    def after(kind: str, former: str | None, name: str, number: int) -> dict[str, Any]:
        settle(wiki)
        later(scene)
        found = mirror.follow()
        assert told(found)[:1] == [(kind, former, name, number)], found
        assert mirror.texts == {name: wiki.page(name).body for name in wiki.names()}  # type: ignore[union-attr]
        assert mirror.follow() == [], "once"
        return found[0]

    save(wiki, "Old", "one")
    save(wiki, "Stays", "a page")
    later(scene)
    mirror.follow()
    save(wiki, "Old", "two")
    wiki.mover.rename("Old", "New", ANN)
    settle(wiki)
    later(scene)
    found = mirror.follow()
    assert [one for one in told(found) if one[0] != "edit"] == [("renamed", "Old", "New", 2)]
    assert mirror.texts == {"New": "two", "Old": "#REDIRECT [[New|]]", "Stays": "a page"}
    gone = wiki.mover.delete("Old", ANN)
    one = after("deleted", None, "Old", 3)
    assert (one["author"], one["signed"], one["note"], one["time"]) == ("Ann", "account", "because", gone.at_ms)
    wiki.mover.rename("New", "Old", ANN, redirect=False)
    after("renamed", "New", "Old", 2)
    gone = wiki.mover.delete("Old", ANN)
    after("deleted", None, "Old", 2)
    wiki.mover.undelete("Old", gone.row, ANN, new="Back")
    after("restored", None, "Back", 2)
    gone = wiki.mover.delete("Back", ANN)
    wiki.mover.purge("Back", gone.row, ANN)
    after("deleted", None, "Back", 2)
    assert check(wiki, settle=lambda: settle(wiki)).differences == ()


def test_who_has_followed_nothing_of_it_learns_all_moves_in_their_order(scene: ApiScene) -> None:
    """A page that goes and another one of its name that comes within the last minute, read again and again."""
    wiki, mirror = scene.wiki, Mirror(scene.anonymous, limit=2)
    save(wiki, "A", "first")
    mirror.follow()
    wiki.mover.rename("A", "B", ANN, redirect=False)
    scene.web.now += 1
    save(wiki, "A", "second")
    scene.web.now += 1
    wiki.mover.delete("B", ANN)
    scene.web.now += 1
    save(wiki, "B", "third")
    settle(wiki)
    for _ in range(3):
        mirror.limit = 50
        found = mirror.follow()
        assert [one for one in told(found) if one[2] in ("A", "B")] == [
            ("renamed", "A", "B", 1),
            ("edit", None, "A", 2),
            ("deleted", None, "B", 1),
            ("edit", None, "B", 2),
        ]
        assert mirror.texts == {"A": "second", "B": "third"}
        scene.web.now += 10


def test_a_page_that_may_not_be_read_is_moved_without_a_word(scene: ApiScene) -> None:
    wiki = scene.wiki
    anonymous, rita = Mirror(scene.anonymous), Mirror(scene.program("Rita"))
    rows = {}
    for name in ("Kept", "Thrown", "Purged", "Opened"):
        save(wiki, f"Secret {name}", "a secret")
        wiki.rights.change(f"Secret {name}", PageRights(), "Rita", {Privilege.READ: "Rita"})
    wiki.mover.rename("Secret Kept", "Hidden Kept", ANN, redirect=False)
    scene.web.now += 1
    for name in ("Thrown", "Purged", "Opened"):
        rows[name] = wiki.mover.delete(f"Secret {name}", ANN).row
        scene.web.now += 1
    wiki.mover.undelete("Secret Opened", rows["Opened"], ANN)
    wiki.mover.purge("Secret Purged", rows["Purged"], ANN)
    settle(wiki)
    later(scene)
    assert anonymous.follow() == []
    assert [one for one in told(rita.follow()) if one[0] != "edit"] == [
        ("renamed", "Secret Kept", "Hidden Kept", 1),
        ("deleted", None, "Secret Thrown", 1),
        ("deleted", None, "Secret Purged", 1),
        ("deleted", None, "Secret Opened", 1),
        ("restored", None, "Secret Opened", 1),
    ]


def test_the_rights_that_a_page_has_now_count_for_its_former_moves(scene: ApiScene) -> None:
    """It was open when it was renamed, and closed before it was renamed again, deleted, and erased."""
    wiki, start = scene.wiki, Mirror(scene.anonymous).since
    save(wiki, "Open", "a text")
    wiki.mover.rename("Open", "Opened", ANN, redirect=False)
    settle(wiki)
    later(scene)

    def seen(program: ApiClient, limit: int = 1) -> str:
        """All answers; each of one change knows of no other move than its own."""
        settle(wiki)
        later(scene)
        found, since, more = "", start, True
        while more:
            answer = program.get("/changes", since=since, limit=limit)
            found, since, more = found + answer.text, answer.json["next"], answer.json["more"]
        return found

    assert '"former":"Open"' in seen(scene.anonymous)
    wiki.rights.change("Opened", PageRights(), "Rita", {Privilege.READ: "Rita"})
    rita = scene.program("Rita")
    for act in (
        lambda: None,
        lambda: wiki.mover.rename("Opened", "Closed", ANN, redirect=False),
        lambda: save(wiki, "Opened", "#REDIRECT another page"),
        lambda: wiki.mover.delete("Closed", ANN),
        lambda: wiki.mover.purge("Closed", deleted(wiki.rows, "Closed")[0].row, ANN),
    ):
        act()
        for limit in (1, 100):
            found = seen(scene.anonymous, limit)
            assert "former" not in found.replace('"former":null', "")
            assert "Closed" not in found
            assert "deleted" not in found
            assert '"former":"Open"' in seen(rita, limit)


def test_a_move_between_lists_tells_only_the_name_that_may_be_read(scene: ApiScene) -> None:
    wiki = scene.wiki
    wiki.rights.change_rules("Private", {Privilege.READ: "Rita"}, wiki.rights.rules())
    anonymous, rita = Mirror(scene.anonymous), Mirror(scene.program("Rita"))
    why = By("Ann", "account", "to Private/Plan")
    save(wiki, "Plan", "a plan")
    settle(wiki)
    later(scene)
    anonymous.follow()
    wiki.mover.rename("Plan", "Private/Plan", why, redirect=False)
    settle(wiki)
    later(scene)
    found = anonymous.follow()
    assert told(found) == [("deleted", None, "Plan", 1)]
    assert "Private" not in str(found)
    assert anonymous.texts == {}
    wiki.mover.rename("Private/Plan", "Public plan", why, redirect=False)
    settle(wiki)
    later(scene)
    found = anonymous.follow()
    assert told(found) == [("renamed", None, "Public plan", 1)]
    assert "Private" not in str(found) + anonymous.since
    assert anonymous.texts == {"Public plan": "a plan"}
    wiki.mover.rename("Public plan", "Private/again", why, redirect=False)
    wiki.mover.rename("Private/again", "Private/and again", why, redirect=False)
    settle(wiki)
    later(scene)
    assert told(anonymous.follow()) == [("deleted", None, "Public plan", 1)]
    assert anonymous.texts == {}
    assert told(rita.follow())[-1] == ("renamed", "Private/again", "Private/and again", 1)


def test_a_move_that_fell_is_told_whoever_finishes_it_and_whenever(scene: ApiScene) -> None:
    wiki = scene.wiki
    for step in (*STEPS, "noted"):
        for act, kind in (("rename", "renamed"), ("delete", "deleted"), ("undelete", "restored")):
            if step == "index" and wiki.indexes == "triggers":
                continue  # the triggers write the indexes
            name = f"{act} {step}"
            new = f"{name} new" if act == "rename" else name
            save(wiki, name, "a text")
            row = wiki.mover.delete(name, ANN).row if act == "undelete" else b""
            settle(wiki)
            later(scene)
            mirror = Mirror(scene.anonymous)
            acts: dict[str, Callable[[], object]] = {
                "rename": partial(wiki.mover.rename, name, new, ANN, redirect=False),
                "delete": partial(wiki.mover.delete, name, ANN),
                "undelete": partial(wiki.mover.undelete, name, row, ANN),
            }
            fall_after(wiki, step, acts[act])
            settle(wiki)
            found = mirror.follow()
            later(scene)  # nobody has finished it for an hour
            found += mirror.follow()
            wiki.mover.finish_all()
            settle(wiki)
            later(scene)
            found += mirror.follow()
            former = name if act == "rename" else None
            assert set(told(found)) == {(kind, former, new, 1)}, (act, step)
            assert mirror.follow() == []
    assert check(wiki, settle=lambda: settle(wiki)).differences == ()


def fall_after(wiki: Wiki, step: str, act: Callable[[], object]) -> None:
    def fall(reached: str) -> None:
        if reached == step:
            raise Fallen

    wiki.mover.on_step_done = fall
    with pytest.raises(Fallen):
        act()
    wiki.mover.on_step_done = lambda reached: None


def test_a_move_that_is_not_decided_or_was_given_up_is_not_told(scene: ApiScene) -> None:
    wiki, mirror = scene.wiki, Mirror(scene.anonymous)
    save(wiki, "Page", "one")
    fall_after(wiki, "intent", lambda: wiki.mover.delete("Page", ANN))
    assert [one for one in told(mirror.follow()) if one[0] != "edit"] == [], "it may be given up"
    scene.web.now += 1
    save(wiki, "Page", "two")
    later(scene)
    assert told(mirror.follow()) == [("edit", None, "Page", 1), ("edit", None, "Page", 2)]
    assert wiki.mover.journal.opened() == {}, "the follower has finished it"
    assert mirror.texts == {"Page": "two"}
    wiki.mover.delete("Page", ANN)
    settle(wiki)
    later(scene)
    assert told(mirror.follow()) == [("deleted", None, "Page", 2)]


def test_edits_and_moves_are_in_one_order_in_parts_of_any_size(tmp_path: Path) -> None:
    with stored_wiki(tmp_path, "application") as wiki:
        scene, rng, expected = following(wiki), random.Random(SEED), list[tuple[str, str]]()
        names = [f"Page {number}" for number in range(12)]
        edited = [f"Edited {number}" for number in range(12)]
        for name in (*names, *edited):
            save(wiki, name, "a text")
        later(scene)
        mirrors = [Mirror(scene.anonymous, limit) for limit in (1, 2, 3, 7, 100)]
        for mirror in mirrors:
            mirror.texts = dict.fromkeys((*names, *edited), "a text")
            mirror.numbers = dict.fromkeys(mirror.texts, 1)
        acts = [*(("renamed", name) for name in names), *(("edit", name) for name in edited)]
        for is_drawn in (False, True):  # many edits behind many moves, and all of them mixed
            if is_drawn:
                rng.shuffle(acts)
            for kind, name in acts:
                scene.web.now += 1
                if kind == "edit":
                    save(wiki, name, f"edited {is_drawn}")
                else:
                    old, new = (f"{name} new", name) if is_drawn else (name, f"{name} new")
                    wiki.mover.rename(old, new, ANN, redirect=False)
                expected.append((kind, name))
        later(scene)
        there = {name: wiki.page(name).body for name in wiki.names()}  # type: ignore[union-attr]
        for mirror in mirrors:
            found = [(one["kind"], str(one["name"]).removesuffix(" new")) for one in mirror.follow()]
            assert found == expected, f"COLUMNAR_SEED={SEED} {mirror.limit}"
            assert mirror.texts == there


def test_the_check_finds_and_repairs_each_fault_of_the_lists(scene: ApiScene) -> None:
    wiki = scene.wiki
    save(wiki, "Page", "one")
    move = wiki.mover.rename("Page", "Moved", ANN, redirect=False)
    wiki.mover.rename("Moved", "Again", ANN, redirect=False)
    settle(wiki)
    listed = wiki.rows.row_keys(MOVES, b"~at", b"~au", limit=9)
    noted = wiki.rows.row_keys(MOVES, b"~of", b"~og", limit=9)
    assert (len(listed), len(noted)) == (2, 1)
    wiki.rows.delete_rows(MOVES, [listed[0], *noted])
    stray = b"~at" + b"%013d" % 1_000 + b"0123456789abcdef"
    wiki.rows.put(MOVES, stray, {b"e:move": b"fedcba9876543210"})
    report = check(wiki, settle=lambda: settle(wiki))
    assert {(one.kind, one.row) for one in report.differences} == {
        (Fault.MISSING, listed[0]),
        (Fault.MISSING, noted[0]),
    }
    assert [(one.kind, one.row) for one in report.spare] == [(Fault.SPARE, stray)]
    assert check(wiki, repair=True, settle=lambda: settle(wiki)).left == ()
    assert wiki.rows.row_keys(MOVES, b"~at", b"~au", limit=9) == listed
    last = wiki.rows.row(MOVES, noted[0])[b"e:last"]
    found = wiki.mover.journal.read(last)
    assert found is not None
    assert (found[0].target, found[0].history) == ("Again", move.history)


def test_moves_of_an_earlier_version_are_in_no_list_and_no_fault(scene: ApiScene) -> None:
    wiki, mirror = scene.wiki, Mirror(scene.anonymous)
    save(wiki, "Page", "one")
    move = wiki.mover.delete("Page", ANN)
    wiki.rows.delete(MOVES, move.id, [OWNER_THEN])
    wiki.rows.delete_rows(MOVES, wiki.rows.row_keys(MOVES, b"~at", b"~p", limit=9))
    settle(wiki)
    later(scene)
    assert told(mirror.follow()) == []
    assert check(wiki, settle=lambda: settle(wiki)).differences == ()
