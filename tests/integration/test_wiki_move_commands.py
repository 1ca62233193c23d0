"""``wikka rename``, ``delete``, ``undelete``, ``purge``, ``revert`` against a real store, as an operator types them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Never

import pytest
from click.testing import Result

from tests.support.stored_wiki import Wikka, stored_wiki, wikka_on
from wikka_port.consistency import check
from wikka_port.pages import Wiki


@pytest.fixture(scope="module")
def wiki(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wiki]:
    with stored_wiki(tmp_path_factory.mktemp("moved")) as made:
        yield made


@pytest.fixture
def wikka(wiki: Wiki) -> Wikka:
    return wikka_on(wiki)


def text_of(wiki: Wiki, name: str) -> str | None:
    page = wiki.page(name)
    return None if page is None else page.body


def test_a_page_is_renamed_with_its_subpages_and_links(wiki: Wiki, wikka: Wikka) -> None:
    wiki.save("Manual", "first", author="Ann", base=0)
    wiki.save("Manual", "second", author="Ann", base=1)
    wiki.save("Manual/Keys", "keys", author="Ann", base=0)
    wiki.save("Elsewhere", "see [[Manual]]", author="Ben", base=0)

    dry = wikka("rename", "Manual", "Handbook", "--subpages", "--dry-run")
    assert dry.exit_code == 0, dry.output
    assert "Manual/Keys" in dry.output
    assert "Elsewhere" in dry.output
    assert text_of(wiki, "Handbook") is None, "a dry run changes nothing"

    done = wikka("rename", "Manual", "Handbook", "--subpages")
    assert done.exit_code == 0, done.output
    assert (text_of(wiki, "Handbook"), text_of(wiki, "Handbook/Keys")) == ("second", "keys")
    assert [one.number for one in wiki.revisions("Handbook")] == [2, 1]
    assert text_of(wiki, "Elsewhere") == "see [[Handbook|]]"
    assert "Handbook" in (text_of(wiki, "Manual") or ""), "the old name leads there"
    assert not check(wiki).differences

    links = re.findall(r"\(([0-9a-f]+)\)", done.stdout)[-1]
    undone = wikka("revert", "--undo", links)
    assert undone.exit_code == 0, undone.output
    assert text_of(wiki, "Elsewhere") == "see [[Manual]]"


def test_a_rename_that_was_stopped_goes_on_with_the_same_command(
    wiki: Wiki, wikka: Wikka, monkeypatch: pytest.MonkeyPatch
) -> None:
    wiki.save("Stopped", "text", author="Ann", base=0)
    wiki.save("Links to it", "see [[Stopped]]", author="Ben", base=0)

    def interrupted(*_: object) -> Never:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("wikka_port.commands.moves.work", interrupted)
        assert wikka("rename", "Stopped", "Gone on").exit_code == 1
    assert text_of(wiki, "Links to it") == "see [[Stopped]]"
    done = wikka("rename", "Stopped", "Gone on")
    assert done.exit_code == 0, done.output
    assert text_of(wiki, "Links to it") == "see [[Gone on|]]"
    assert text_of(wiki, "Gone on") == "text"


def test_a_refusal_is_one_line_and_changes_nothing(wiki: Wiki, wikka: Wikka) -> None:
    wiki.save("One", "1", author="Ann", base=0)
    wiki.save("Two", "2", author="Ann", base=0)
    taken = wikka("rename", "One", "Two")
    assert taken.exit_code == 1
    assert taken.stderr.startswith("Error: ")
    assert taken.stderr.count("\n") == 1
    assert (text_of(wiki, "One"), text_of(wiki, "Two")) == ("1", "2")
    nothing = wikka("delete", "No such page")
    assert nothing.exit_code == 1
    assert nothing.stderr.startswith("Error: ")
    assert wikka("delete").exit_code == 2, "name pages, or give --prefix"
    assert wikka("undelete", "No such page").exit_code == 1
    assert wikka("purge", "No such page", "--yes").exit_code == 1
    assert wikka("revert", "--undo", "0123").exit_code == 1
    assert wikka("revert", "Ann", "--since", "some day").exit_code == 2


def test_a_page_is_deleted_brought_back_and_removed_for_good(wiki: Wiki, wikka: Wikka) -> None:
    wiki.save("Passing", "a", author="Ann", base=0)
    wiki.save("Passing", "b", author="Ann", base=1)
    assert wikka("delete", "Passing", "--dry-run").exit_code == 0
    assert text_of(wiki, "Passing") == "b"
    gone = wikka("delete", "Passing", "--reason", "asked for")
    assert gone.exit_code == 0, gone.output
    assert text_of(wiki, "Passing") is None
    listed = json.loads(wikka("undelete", "--json").stdout)
    assert [(one["name"], one["reason"]) for one in listed] == [("Passing", "asked for")]

    assert wikka("undelete", "Passing", "--dry-run").exit_code == 0
    assert text_of(wiki, "Passing") is None
    back = wikka("undelete", "Passing", "--to", "Back")
    assert back.exit_code == 0, back.output
    assert (text_of(wiki, "Back"), len(wiki.revisions("Back"))) == ("b", 2)

    assert wikka("delete", "Back").exit_code == 0
    assert wikka("purge", "Back", "--dry-run").exit_code == 0
    assert len(json.loads(wikka("undelete", "--json").stdout)) == 1
    purged = wikka("purge", "Back", "--yes")
    assert purged.exit_code == 0, purged.output
    assert "2 revisions" in purged.stdout
    assert json.loads(wikka("undelete", "--json").stdout) == []
    assert wikka("undelete", "Back").exit_code == 1
    assert not check(wiki).differences


def test_many_pages_are_deleted_only_when_asked(wiki: Wiki, wikka: Wikka) -> None:
    for number in range(3):
        wiki.save(f"Spam{number}", "buy", author="Mallory", base=0)
    assert wikka("delete", "--prefix", "Spam").exit_code == 1, "nobody said yes"
    assert text_of(wiki, "Spam0") == "buy"
    assert wikka("delete", "--prefix", "Spam", "--yes").exit_code == 0
    assert [text_of(wiki, f"Spam{number}") for number in range(3)] == [None] * 3
    assert not check(wiki).differences


def test_all_of_an_author_is_taken_back(wiki: Wiki, wikka: Wikka) -> None:
    wiki.save("Garden", "roses", author="Ann", base=0)
    wiki.save("Garden", "weeds", author="Eve", base=1)
    wiki.save("Begun", "by Eve", author="Eve", base=0)
    wiki.save("Later", "good", author="Ann", base=0)
    wiki.save("Later", "bad", author="Eve", base=1)
    wiki.save("Later", "good again", author="Ann", base=2)
    dry = wikka("revert", "Eve", "--dry-run")
    assert dry.exit_code == 0, dry.output
    assert all(name in dry.stdout for name in ("Garden", "Begun", "Later"))
    assert text_of(wiki, "Garden") == "weeds"
    done = wikka("revert", "Eve", "--yes")
    assert done.exit_code == 0, done.output
    assert (text_of(wiki, "Garden"), text_of(wiki, "Begun")) == ("roses", None)
    assert text_of(wiki, "Later") == "good again", "somebody edited it since"
    assert not check(wiki).differences


def job_in(result: Result) -> str:
    return re.findall(r"\(([0-9a-f]{16})\)", result.stdout)[-1]


def test_a_revert_that_is_taken_back_brings_back_the_pages_that_it_deleted(wiki: Wiki, wikka: Wikka) -> None:
    wiki.save("Hill", "trees", author="Ann", base=0)
    wiki.save("Hill", "stones", author="Mal", base=1)
    for name in ("Begun by Mal", "Begun again", "Purged"):
        wiki.save(name, "one", author="Mal", base=0)
        wiki.save(name, "two", author="Mal", base=1)
    wiki.save("Edited", "before", author="Ann", base=0)
    wiki.save("Edited", "by Mal", author="Mal", base=1)
    done = wikka("revert", "Mal", "--yes")
    assert done.exit_code == 0, done.output
    assert [text_of(wiki, name) for name in ("Hill", "Begun by Mal", "Begun again")] == ["trees", None, None]
    wiki.save("Begun again", "another page", author="Ann", base=0)
    wiki.save("Edited", "on from there", author="Ann", base=3)
    assert wikka("purge", "Purged", "--yes").exit_code == 0
    back = wikka("revert", "--undo", job_in(done))
    assert back.exit_code == 0, back.output
    assert "2 pages done, 3 left as they are" in back.stdout
    assert text_of(wiki, "Hill") == "stones"
    assert [one.body for one in wiki.revisions("Begun by Mal", bodies=True)] == ["two", "one"]
    assert (text_of(wiki, "Begun again"), text_of(wiki, "Edited")) == ("another page", "on from there")
    for said in ("Begun again: There is a page Begun again already", "Edited: somebody else has edited it since"):
        assert said in back.output
    assert "Purged: Among the deleted pages there is none" in back.output
    assert not check(wiki).differences


def test_a_delete_of_many_pages_is_taken_back(wiki: Wiki, wikka: Wikka) -> None:
    for number in range(3):
        wiki.save(f"Kept{number}", f"text {number}", author="Ann", base=0)
    gone = wikka("delete", "--prefix", "Kept", "--yes")
    assert text_of(wiki, "Kept1") is None
    back = wikka("revert", "--undo", job_in(gone))
    assert back.exit_code == 0, back.output
    assert [text_of(wiki, f"Kept{number}") for number in range(3)] == ["text 0", "text 1", "text 2"]
    assert not check(wiki).differences


def test_an_undo_leaves_another_page_of_the_name_as_it_is(wiki: Wiki, wikka: Wikka) -> None:
    """It has as many revisions as the page that the revert edited."""
    for name, author in (("Lake", "Moe"), ("Pond", "Ann")):
        for base, one in enumerate(("Ann", author, "Ann") if name == "Pond" else ("Ann", author)):
            wiki.save(name, f"{name} {base}", author=one, base=base)
    done = wikka("revert", "Moe", "--yes")
    assert done.exit_code == 0, done.output
    assert text_of(wiki, "Lake") == "Lake 0"
    assert wikka("delete", "Lake").exit_code == 0
    assert wikka("rename", "Pond", "Lake", "--no-redirect").exit_code == 0
    back = wikka("revert", "--undo", job_in(done))
    assert "Lake: somebody else has edited it since" in back.output
    assert text_of(wiki, "Lake") == "Pond 2"
