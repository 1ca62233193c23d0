"""Lists of a wiki's prefixes into one with lists of its own: no page is more open there than it was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.integration.test_wiki_export import command, store_of, wiki_in
from wikka_port.cli import main
from wikka_port.pages import Wiki
from wikka_port.rights.rules import Privilege, Rules
from wikka_port.rights.stored import StoredRights


@pytest.fixture
def new(tmp_path: Path) -> Iterator[Wiki]:
    with wiki_in(tmp_path / "new") as wiki:
        yield wiki


def test_pages_of_a_closed_wiki_come_closed_into_one_with_lists_of_its_own(new: Wiki, tmp_path: Path) -> None:
    out = tmp_path / "wiki.jsonl"
    with wiki_in(tmp_path / "first") as first:
        for name in ("Ship", "Gone", "Team Plan", "Own", "Open"):
            first.save(name, "a text", author="Ada", base=0)
        rights = first.rights.of(["Own", "Open"])
        first.rights.change("Own", rights["Own"], "Ada", {Privilege.READ: "Ada"})
        first.rights.change("Open", rights["Open"], "Ada", {Privilege.READ: "*"})
        first.rights.change_rules("", {Privilege.READ: "+", Privilege.WRITE: "*"}, first.rights.rules())
        first.rights.change_rules("Team ", {Privilege.READ: "Ada\nEve"}, first.rights.present_rules())
        assert CliRunner().invoke(main, ["delete", "Gone", *store_of(first)]).exit_code == 0
        assert command(first, "export", "--to", "json-lines", out).exit_code == 0
    new.rights.change_rules("", {Privilege.READ: "*", Privilege.WRITE: "+"}, new.rights.rules())
    for _passed in range(2):
        done = command(new, "import", out)
        assert done.exit_code == 0, done.output
        own = {name: one.lists for name, one in new.rights.of(["Ship", "Team Plan", "Own", "Open"]).items()}
        assert own == {
            "Ship": {Privilege.READ: "+"},
            "Team Plan": {},  # the list for its prefix was set
            "Own": {Privilege.READ: "Ada"},
            "Open": {Privilege.READ: "*"},
        }
    assert CliRunner().invoke(main, ["undelete", "Gone", *store_of(new)]).exit_code == 0
    assert new.rights.of(["Gone"])["Gone"].lists == {Privilege.READ: "+"}


def test_lists_that_somebody_changes_meanwhile_bring_no_page(
    new: Wiki, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, change = tmp_path / "wiki.jsonl", StoredRights.change_rules
    with wiki_in(tmp_path / "first") as first:
        first.save("Ship", "a text", author="Ada", base=0)
        first.rights.change_rules("", {Privilege.READ: "Ada"}, first.rights.rules())
        assert command(first, "export", "--to", "json-lines", out).exit_code == 0

    def overtaken(self: StoredRights, prefix: str, lists: Any, before: Rules, **given: Any) -> Rules:
        change(self, "Other ", {Privilege.READ: "Eve"}, self.present_rules())
        return change(self, prefix, lists, before, **given)

    with monkeypatch.context() as busy:
        busy.setattr(StoredRights, "change_rules", overtaken)
        done = command(new, "import", out)
    assert (done.exit_code, new.page("Ship")) == (1, None), done.output
    assert "somebody has just changed the lists of this wiki: import again" in done.output
    assert command(new, "import", out).exit_code == 0
    assert new.rights.present_rules().lists_of("") == {Privilege.READ: "Ada"}
