"""A1: no query is left out silently.  A2: the same input gives the same text.  A person is asked, nothing is "done"."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from columnar.advise.rules import design_of
from columnar.advise.text import page
from columnar.advise.writes import answers
from tests.support.advised import DATA, SYSTEMS, design_for, schema_of, workload

ROWS = re.compile(r"^\| (\d+) \| (.+?) \| (served|by the program|NOT SERVED|nothing to serve|NOT READ) \|", re.M)
PHASES = (Phase.explicit, Phase.generate, Phase.shrink)  # "explain" traces every line, which takes minutes
_SCHEMAS = {system: schema_of(system) for system in SYSTEMS}


def counted(text: str) -> int:
    return sum(int(row[0]) for row in ROWS.findall(text[text.index("## Queries") :]))


COLUMNS = ("tag", "time", "latest", "page_tag", "user", "name", "email", "nothing", "wikka_pages.tag", "l.to_tag", "id")
TABLES = ("wikka_pages", "wikka_acls", "wikka_links l", "wikka_comments", "wikka_users", "wikka_referrers", "gone")
_one_of = st.sampled_from
TESTS = ("{} = 1", "{} IN (1, 2)", "{} > 'a'", "{} LIKE 'a%'", "{} LIKE '%a'", "{} IS NULL", "LOWER({}) = 'a'",
         "{} = (SELECT MAX(time) FROM wikka_pages)", "{} = from_tag", "MATCH({}) AGAINST('a')", "1 = 1")  # fmt: skip
_test = st.builds(str.format, _one_of(TESTS), _one_of(COLUMNS))
_where = st.lists(_test, max_size=3).flatmap(lambda t: _one_of([" AND ", " OR "]).map(lambda j: j.join(t) or "1"))
_order = st.builds("{} {} LIMIT {}".format, _one_of(COLUMNS), _one_of(["", "DESC"]), st.integers(0, 9))
SELECTS = st.builds(
    "SELECT {} FROM {} WHERE {} {} {}".format,
    _one_of(["*", "tag, user", "COUNT(*)", "DISTINCT user", "SUM(id), user", "MAX(time)"]),
    st.lists(_one_of(TABLES), min_size=1, max_size=3).map(", ".join),
    _where,
    _one_of(["", "GROUP BY user", "GROUP BY YEAR(time)", "GROUP BY user HAVING COUNT(*) > 1"]),
    st.one_of(st.just(""), _order.map("ORDER BY {}".format)),
)
WRITES = st.one_of(
    st.builds("UPDATE {} SET {} = 1 WHERE {}".format, _one_of(TABLES), _one_of(COLUMNS), _where),
    st.builds("DELETE FROM {} WHERE {}".format, _one_of(TABLES), _where),
    st.builds("INSERT INTO {} ({}) VALUES (1)".format, _one_of(TABLES), _one_of(COLUMNS)),
    st.builds("INSERT INTO {} SELECT * FROM wikka_users".format, _one_of(TABLES)),
)
ODD = st.text(st.characters(codec="utf-8", exclude_characters="\n\r"), min_size=1, max_size=40).filter(str.strip)
STATEMENTS = st.lists(
    st.one_of(SELECTS, WRITES, ODD, _one_of(["BEGIN", "COMMIT", "SET x = 1"])), min_size=1, max_size=12
)


@settings(max_examples=30, phases=PHASES)
@given(STATEMENTS)
def test_each_statement_is_in_a_line_of_the_page(statements: list[str]) -> None:
    found = workload(statements, _SCHEMAS["wikka"])
    text = page(design_of(_SCHEMAS["wikka"], found))
    assert counted(text) + found.other_lines == len(statements)
    assert len(answers(design_of(_SCHEMAS["wikka"], found))) == len(found.shapes)
    assert text == page(design_of(_SCHEMAS["wikka"], workload(statements, _SCHEMAS["wikka"])))


@settings(max_examples=25, phases=PHASES)
@given(STATEMENTS, st.randoms(use_true_random=False))
def test_the_order_of_a_log_changes_nothing_but_transactions(statements: list[str], rng: object) -> None:
    kept = [one for one in statements if one not in ("BEGIN", "COMMIT")] or ["SELECT 1"]
    other = list({one.lower(): one for one in kept}.values())
    shuffled: Sequence[str] = sorted(other, key=lambda _: rng.random())  # type: ignore[attr-defined]
    schema = _SCHEMAS["wikka"]
    assert page(design_of(schema, workload(other, schema))) == page(design_of(schema, workload(list(shuffled), schema)))


def test_statements_beyond_the_bound_have_a_line() -> None:
    schema = _SCHEMAS["wikka"]
    statements = [f"SELECT tag FROM wikka_pages WHERE tag = {'x' * n}" for n in range(1, 9)]
    found = workload(statements, schema, most=3)
    text = page(design_of(schema, found))
    assert counted(text) == 8
    assert "| 5 | further shapes | NOT READ |" in text
    assert "NOT READ: 5 statements" in text


@pytest.mark.parametrize("system", SYSTEMS)
def test_each_statement_of_three_real_programs_is_accounted_for(system: str) -> None:
    log = (DATA / f"{system}.log").read_text()
    text = page(design_for(system))
    assert counted(text) == len(re.findall(r"\d Query\t", log))
    assert len(ROWS.findall(text)) == len(design_for(system).workload.shapes)
    for part in ("## Assumed", "## Questions", "Only a person can answer these"):
        assert part in text
    assert not re.search(r"\b(is done|is finished|is complete)\b", text)


def test_the_text_does_not_depend_on_the_order_of_sets() -> None:
    code = (
        "import sys; from tests.support.advised import design_for; from columnar.advise.text import page;"
        "sys.stdout.write(page(design_for('mediawiki')))"
    )
    env = {**os.environ, "PYTHONHASHSEED": "4711", "COLUMNAR_COMPILED": "no"}
    root = DATA.parents[2]
    found = subprocess.run([sys.executable, "-c", code], cwd=root, env=env, capture_output=True, text=True, check=True)
    assert found.stdout == page(design_for("mediawiki"))
