"""Edits of users who are signed in on the wiki of this repository, through its map: saved, in conflict, failed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.support.memory_wiki import MemoryWiki
from tests.support.wiki_server import running_wiki
from wikibench.cli import main
from wikka_port.accounts.directory import Directory
from wikka_port.accounts.passwords import Passwords
from wikka_port.antispam.policy import Policy
from wikka_port.antispam.stored_policy import write_policy
from wikka_port.pages import Page
from wikka_port.rights.rules import PageRights, Privilege

PASSWORD = "correct horse"
MEMORY_KIB = 64
LONG = "\n\n".join(f"Paragraph {n} of a page that many people have written for a long time." for n in range(200))


class OvertakenWiki(MemoryWiki):
    """A wiki in which Olga saves a page just before the first other save of it is stored."""

    def __init__(self) -> None:
        super().__init__()
        self.overtaken: set[str] = set()

    def save(self, name: str, body: str, **given: Any) -> Any:
        if name in self.overtaken:
            self.overtaken.discard(name)
            super().save(name, "Olga was faster.", author="Olga", base=self.now(name).number)
        return super().save(name, body, **given)

    def now(self, name: str) -> Page:
        page = self.page(name)
        assert page is not None
        return page


@pytest.fixture
def wiki() -> OvertakenWiki:
    made = OvertakenWiki()
    hashed = Passwords(memory_kib=MEMORY_KIB).hashed(PASSWORD)
    for name in ("Ann", "Ben"):
        Directory(made.rows, lambda: 1_000).make(name, status="active", password=hashed)
    for name, body in (("Busy", "The first text."), ("Guarded", "For Olga alone."), ("Long", LONG)):
        made.save(name, body, author="Olga", base=0, owner="Olga")
    made.rights.change("Guarded", PageRights("Olga"), "Olga", {Privilege.WRITE: "Olga"})
    return made


def replayed(wiki: MemoryWiki, tmp_path: Path, *pages: str, users: str = f"Ann,{PASSWORD}\nBen,{PASSWORD}\n") -> Any:
    """Replay an edit of each page by the users in turn, through the map; return the report."""
    trace, file, out = tmp_path / "day.trace", tmp_path / "users.csv", tmp_path / "report.json"
    trace.write_text("".join(f"{n} {1 + n / 50:.3f} /{page} save\n" for n, page in enumerate(pages)))
    file.write_text(users)
    with running_wiki(wiki, password_memory_kib=MEMORY_KIB) as server:
        words = ["replay", trace, "--target", server.url, "--map", "columnar", "--users", file, "--allow-edits"]
        result = CliRunner().invoke(main, [*map(str, words), "--json", str(out), "--lateness", "60s"])
    assert result.exit_code == 0, result.output
    assert PASSWORD not in out.read_text()
    return json.loads(out.read_text())


def outcomes(report: Any) -> dict[tuple[str, str], int]:
    return {(row["kind"], row["outcome"]): row["response_time"]["count"] for row in report["by_kind_and_outcome"]}


def test_saved_overtaken_and_refused_edits_are_told_apart(wiki: OvertakenWiki, tmp_path: Path) -> None:
    write_policy(wiki.rows, "", Policy(judging=False), by="Root", now_ms=1)
    wiki.overtaken.add("Busy")
    report = replayed(wiki, tmp_path, "One", "Two", "Busy", "Guarded")
    assert outcomes(report) == {
        ("edit-form", "2xx"): 3,
        ("edit-form", "4xx"): 1,
        ("edit-save", "3xx"): 2,
        ("edit-save", "conflict"): 1,
    }
    assert (report["users"], report["requests"]["conflicts"], report["requests"]["failed"]) == (2, 1, 1)
    assert [wiki.now(name).author for name in ("One", "Two", "Busy", "Guarded")] == ["Ann", "Ben", "Olga", "Olga"]
    assert "This is edit 1 of the replay." in wiki.now("One").body
    assert wiki.now("Busy").body == "Olga was faster."


def test_an_edit_that_waits_for_a_review_is_a_failure(wiki: OvertakenWiki, tmp_path: Path) -> None:
    write_policy(wiki.rows, "", Policy(judging=True), by="Root", now_ms=1)
    report = replayed(wiki, tmp_path, "Long")
    assert outcomes(report) == {("edit-form", "2xx"): 1, ("edit-save", "broken"): 1}
    (failure,) = report["failures"]
    assert "the edit waits for a review; 'wikka antispam set judging=no' ends that" in failure["why"]
    assert wiki.now("Long").body == LONG


def test_the_page_at_the_root_has_the_name_that_its_operator_chose(tmp_path: Path) -> None:
    wiki, trace, out = MemoryWiki(), tmp_path / "day.trace", tmp_path / "report.json"
    wiki.save("Start", "Hello.", author="Olga", base=0)
    trace.write_text("".join(f"{n} {1 + n / 50:.3f} {path} -\n" for n, path in enumerate(("/", "/Start", "/?x"))))
    with running_wiki(wiki, root_page="Start") as server:

        def replay(name: str) -> Result:
            words = ["replay", trace, "--target", server.url, "--map", name, "--json", out, "--lateness", "60s"]
            return CliRunner().invoke(main, [*map(str, words)])

        refused = replay("columnar")
        assert (refused.exit_code, "no page HomePage, and another page at /" in refused.output) == (2, True)
        assert not out.exists()
        done = replay("columnar:root=Start")
    assert done.exit_code == 0, done.output
    assert outcomes(json.loads(out.read_text())) == {("page", "2xx"): 3}


def test_a_password_that_the_wiki_does_not_take_ends_before_the_load(wiki: OvertakenWiki, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="does not sign in user 'Ben'"):
        replayed(wiki, tmp_path, "One", users=f"Ann,{PASSWORD}\nBen,wrong\n")
    assert wiki.page("One") is None
