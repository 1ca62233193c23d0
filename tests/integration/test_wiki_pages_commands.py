"""``wikka pages``, ``acl set``, ``user sessions`` and moves with ``--json`` on a store, as an operator types them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import Result

from tests.support.stored_wiki import Wikka, stored_wiki, wait_for_jobs, wikka_on
from tests.support.wiki_client import WikiClient
from wikka_port.accounts.audit import Audit
from wikka_port.consistency import check
from wikka_port.moving.jobs import MASS_RIGHTS, Jobs, new_job
from wikka_port.moving.runner import resume
from wikka_port.pages import Wiki, clock_ms
from wikka_port.rights.rules import PageRights, Privilege, RightsChange
from wikka_port.visitors import COMMAND


@pytest.fixture(scope="module")
def wiki(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wiki]:
    with stored_wiki(tmp_path_factory.mktemp("pages")) as made:
        yield made


@pytest.fixture
def wikka(wiki: Wiki) -> Wikka:
    return wikka_on(wiki)


def object_of(result: Result, status: int = 0) -> Any:
    """Return the one object that a command printed."""
    assert result.exit_code == status, result.output
    return json.loads(result.stdout)


def save(wiki: Wiki, name: str, author: str = "Ann", owner: str = "") -> None:
    page = wiki.page(name)
    wiki.save(name, f"of {author}", author=author, base=page.number if page else 0, owner=owner)


def rights_of(wiki: Wiki, name: str) -> PageRights:
    page = wiki.page(name)
    assert page is not None
    return page.rights


def last(wiki: Wiki, what: str) -> str:
    return next(Audit(wiki.rows, clock_ms).filtered(what)).note


def test_pages_are_listed_given_away_and_taken_back(wiki: Wiki, wikka: Wikka) -> None:
    WikiClient(wiki).signed_in("Mia")
    for name, author, owner in (("Own one", "Eve", "Ben"), ("Own two", "Ann", "Ben"), ("Own free", "Ann", "")):
        save(wiki, name, author, owner)
    listed = object_of(wikka("pages", "list", "--prefix", "own", "--owner", "ben", "--json"))
    assert [(one["name"], one["owner"], one["author"]) for one in listed] == [
        ("Own one", "Ben", "Eve"),
        ("Own two", "Ben", "Ann"),
    ]
    assert [one["name"] for one in object_of(wikka("pages", "list", "--owner", "(Nobody)", "--json"))] == ["Own free"]
    assert object_of(wikka("pages", "list", "--since", "2100-01-01", "--json")) == []
    part = wikka("pages", "list", "--prefix", "own", "--limit", "1")
    assert "Own free" in part.stdout
    assert "raise --limit" in part.stderr
    dry = object_of(wikka("pages", "set", "--owner", "Ben", "--new-owner", "mia", "--dry-run", "--json"))
    assert (dry["pages"], dry["done"]) == (["Own one", "Own two"], False)
    assert wikka("pages", "set", "--owner", "Ben", "--new-owner", "mia").exit_code == 1, "nobody said yes"
    assert rights_of(wiki, "Own one").owner == "Ben"
    done = object_of(
        wikka("pages", "set", "--owner", "Ben", "--new-owner", "mia", "--yes", "--json", "--reason", "left")
    )
    assert (done["done"], done["left"], done["ended"]) == (["Own one", "Own two"], {}, True)
    assert rights_of(wiki, "Own one").owner == "Mia"
    assert last(wiki, "many pages: rights") == f"2 pages, {done['job']}: left"
    undone = object_of(wikka("revert", "--undo", done["job"], "--json"))
    assert undone["done"] == ["Own one", "Own two"]
    assert rights_of(wiki, "Own two").owner == "Ben"
    assert not check(wiki).differences


def test_lists_of_many_pages_are_set_and_taken_away(wiki: Wiki, wikka: Wikka) -> None:
    for number in range(3):
        save(wiki, f"Vault/{number}")
    given = ("--prefix", "Vault/", "--read", "+", "--read", "!Eve", "--yes", "--json")
    assert object_of(wikka("pages", "set", *given))["done"] == [f"Vault/{number}" for number in range(3)]
    assert rights_of(wiki, "Vault/1").lists == {Privilege.READ: "+\n!Eve"}
    assert len(object_of(wikka("pages", "list", "--lists", "own", "--json"))) == 3
    again = object_of(wikka("pages", "set", *given))
    assert (again["done"], set(again["left"])) == ([], {f"Vault/{number}" for number in range(3)})
    object_of(wikka("pages", "set", "--prefix", "Vault/", "--inherit", "read", "--yes", "--json"))
    assert rights_of(wiki, "Vault/1").lists == {}


def test_pages_of_an_author_are_deleted(wiki: Wiki, wikka: Wikka) -> None:
    for number in range(3):
        save(wiki, f"Spam {number}", "Mallory")
    assert wikka("pages", "delete", "--yes").exit_code == 2, "select pages, or --all"
    assert wikka("pages", "delete", "--all", "--prefix", "Spam", "--yes").exit_code == 2
    done = object_of(wikka("pages", "delete", "--author", "mallory", "--yes", "--json"))
    assert done["done"] == [f"Spam {number}" for number in range(3)]
    assert wiki.page("Spam 1") is None
    assert last(wiki, "many pages: delete").startswith("3 pages, ")
    assert object_of(wikka("pages", "delete", "--author", "mallory", "--json")) == {
        "pages": [],
        "done": False,
        "onward": "",
    }
    assert object_of(wikka("revert", "--undo", done["job"], "--json"))["ended"]
    assert wiki.page("Spam 1") is not None
    assert not check(wiki).differences


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("set", "--all"), 2),
        (("set", "--new-owner", "Mia"), 2),
        (("set", "--all", "--new-owner", "Nobody Known", "--yes"), 1),
        (("set", "--all", "--read", "!", "--yes"), 1),
        (("set", "--all", "--read", "+", "--inherit", "read", "--yes"), 2),
        (("list", "--since", "some day"), 2),
    ],
)
def test_a_refusal_says_why_and_changes_nothing(wikka: Wikka, words: tuple[str, ...], status: int) -> None:
    refused = wikka("pages", *words)
    assert refused.exit_code == status
    assert refused.stderr


def test_a_job_of_rights_that_fell_is_continued(wiki: Wiki) -> None:
    """Killed after a page was changed, and before that was noted."""
    for number in range(3):
        save(wiki, f"Fallen {number}")
    change = RightsChange(None, {Privilege.WRITE: "+"})
    job = new_job(MASS_RIGHTS, COMMAND, "wiki", rights=change.pack())
    Jobs(wiki.rows, clock_ms).begin(job, [f"Fallen {number}" for number in range(3)])
    wiki.rights.change("Fallen 1", PageRights(), "", {Privilege.WRITE: "+"})
    assert resume(wiki) == 1
    wait_for_jobs()
    progress = Jobs(wiki.rows, clock_ms).progress(job.id)
    assert progress is not None
    assert not progress.is_open
    assert [rights_of(wiki, f"Fallen {number}").lists for number in range(3)] == [{Privilege.WRITE: "+"}] * 3
    assert [one.name for one in progress.left] == ["Fallen 1"], "it has these rights already"


def test_acl_set_prints_what_counts_and_is_in_the_audit(wiki: Wiki, wikka: Wikka) -> None:
    save(wiki, "Shown")
    found = object_of(wikka("acl", "set", "Shown", "--read", "+", "--json"))
    assert (found["page"], found["lists"]["read"]["list"]) == ("Shown", "+")
    assert last(wiki, "rights") == "Shown"
    assert object_of(wikka("acl", "set", "--prefix", "Shut/", "--write", "Mia", "--json")) == {
        "shut/": {"write": "Mia"}
    }
    assert last(wiki, "rights") == "Shut/"
    assert object_of(wikka("acl", "set", "--prefix", "Shut/", "--inherit", "write", "--json")) == {"shut/": {}}


def test_sessions_are_listed_and_ended(wiki: Wiki, wikka: Wikka) -> None:
    web = WikiClient(wiki)
    web.now = clock_ms() / 1_000
    web.signed_in("Kim")
    [one] = object_of(wikka("user", "sessions", "kim", "--json"))
    assert (one["network"], one["ended"]) == ("192.0.2.0", False)
    assert "1 sessions." in wikka("user", "sessions", "Kim").stdout
    assert object_of(wikka("user", "sessions", "Kim", "--end", "--json"))[0]["ended"]
    assert object_of(wikka("user", "sessions", "Kim", "--json")) == []
    assert last(wiki, "sessions ended") == "all"
    assert wikka("user", "sessions", "Nobody").exit_code == 1


def test_one_page_is_moved_with_one_object_on_stdout(wiki: Wiki, wikka: Wikka) -> None:
    save(wiki, "Old place")
    save(wiki, "Old place/Sub")
    wiki.save("Linking", "[[Old place]]", author="Ann", base=0)
    words = ("rename", "Old place", "New place", "--subpages", "--json")
    assert object_of(wikka(*words, "--dry-run")) == {
        "page": "Old place",
        "to": "New place",
        "done": False,
        "subpages": ["Old place/Sub"],
        "links": ["Linking"],
    }
    renamed = object_of(wikka(*words))
    assert (renamed["done"], renamed["subpages"]["done"], renamed["links"]["done"]) == (
        True,
        ["Old place/Sub"],
        ["Linking"],
    )
    gone = object_of(wikka("delete", "Linking", "--json"))
    assert gone == {"pages": ["Linking"], "done": True}
    back = object_of(wikka("undelete", "Linking", "--json"))
    assert (back["name"], back["to"], back["done"]) == ("Linking", "Linking", True)
    object_of(wikka("delete", "Linking", "--json"))
    assert object_of(wikka("purge", "Linking", "--dry-run", "--json"))["done"] is False
    assert object_of(wikka("purge", "Linking", "--yes", "--json"))["revisions"] == 2


def test_a_revert_prints_its_plan_and_what_it_did(wiki: Wiki, wikka: Wikka) -> None:
    save(wiki, "Garden", "Ann")
    save(wiki, "Garden", "Weed")
    plan = object_of(wikka("revert", "Weed", "--dry-run", "--json"))
    assert (plan["pages"], plan["plans"][0]["to"], plan["done"]) == (["Garden"], 1, False)
    done = object_of(wikka("revert", "Weed", "--yes", "--json"))
    assert (done["done"], done["ended"]) == (["Garden"], True)
    assert last(wiki, "many pages: revert").startswith("1 pages, ")
    object_of(wikka("revert", "--undo", done["job"], "--json"))
    assert last(wiki, "many pages: undo").startswith("1 pages, ")


def test_settings_of_antispam_that_a_command_changes_are_in_the_audit(wiki: Wiki, wikka: Wikka) -> None:
    assert wikka("antispam", "set", "page_links=20").exit_code == 0
    assert last(wiki, "antispam settings") == "page_links"
