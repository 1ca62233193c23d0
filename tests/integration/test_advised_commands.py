"""The commands of the adviser's pages, run on a store: each of them is one that the store takes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from columnar.advise.text import page
from tests.support.advised import SYSTEMS, commands_of, design_for, small_design
from tests.support.shell import Shell, store_at


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_commands_of_a_page(system: str, tmp_path: Path) -> None:
    (block,) = re.findall(r"^## Commands\n\n```\n(.*?)^```$", page(design_for(system)), re.M | re.S)
    commands = [shlex.split(line)[1:] for line in block.splitlines()]
    assert commands.pop() == ["trigger", "sync", "my_triggers"]  # its functions run in test_advised_triggers
    with store_at(tmp_path / "store") as address:
        shell = Shell(address)
        for words in commands:
            shell.out(*words)
        made = {line.split("\t")[0] for line in shell.out("tables").splitlines()}
    assert {words[1] for words in commands if words[0] == "create"} <= made


def test_the_views_of_a_design_have_the_totals_that_it_promises(tmp_path: Path) -> None:
    design = small_design(
        "SELECT MAX(score), AVG(score), COUNT(*) FROM messages WHERE user_name = 'a'",
        "SELECT MIN(age) FROM users",
        "SELECT COUNT(*) FROM users WHERE email IS NULL",
        "SELECT city, SUM(age) AS s FROM users GROUP BY city ORDER BY s DESC LIMIT 2",
    )
    with store_at(tmp_path / "store") as address:
        shell = Shell(address)
        for line in commands_of(design):
            words = shlex.split(line)[1:]
            shell.out(*words, *(["--wait"] if words[0] == "view" else []))
        for row, cells in {
            "ann/1/1": "meta:score=-7", "ann/2/2": "meta:score=10", "ann/3/3": "text:text=hello",
            "bob/1/4": "meta:score=9",
        }.items():  # fmt: skip
            shell.out("put", "messages", row, cells)
        for name, age, city in (("ann", -3, "x"), ("bob", 10, "y"), ("cid", 9, "y"), ("dan", 20, "z")):
            shell.out("put", "users", name, f"meta:age={age}", f"meta:city={city}")
        names = [line.split("\t")[0] for line in shell.out("view", "list").splitlines()]
        for name in names:
            shell.out("view", "check", name)  # waits until the view has all
        shown = {name: shell.out("view", "groups", name).splitlines() for name in names}
        assert "ann\t3\t1.5" in shown["message_counts_by_user_name"]
        assert "highest\t10" in shell.out("view", "show", "message_ends_by_user_name_of_score", "ann")
        assert "lowest\t-3" in shell.out("view", "show", "users_ends_of_age", "all")
        assert shown["users_count_without_email"] == ["all\t4"]
        top = shell.out("view", "top", "user_counts_by_city_by_age", "all", "-n", "2").splitlines()
        assert [line.split("\t")[:2] for line in top] == [["z", "20"], ["y", "19"]]
