"""Every verb of HBase's shell is carried out or answered, and no command of ours hides an answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from columnar.cli import main
from columnar.shell.hbase_words import ANSWERS, VERBS, Answer, in_our_words
from columnar.shell.lines import Statement

HBASE = Path(__file__).with_name("hbase_verbs.txt").read_text().split()  # of HBase 2.6.1, by its own groups
COMMANDS = main.list_commands(None)  # type: ignore[attr-defined]


def test_no_verb_of_hbases_is_unknown() -> None:
    assert [verb for verb in HBASE if verb not in VERBS and verb not in ANSWERS and verb not in COMMANDS] == []


def test_no_verb_has_two_answers() -> None:
    assert set(VERBS) & set(ANSWERS) == set()


@pytest.mark.parametrize("verb", sorted(ANSWERS))
def test_a_hint_names_a_command_of_ours_where_it_names_one(verb: str) -> None:
    answer = in_our_words(Statement(f"{verb} 't'", 1, is_hbase=True), COMMANDS)
    assert isinstance(answer, Answer), "nothing is carried out"
    assert verb not in COMMANDS, "typed alone, our command would be run instead"
    assert answer.text.startswith("in Columnar: ")
