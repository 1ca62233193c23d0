"""A statement is called served only if an object of the design answers it (A4): totals, orders, ids, OR, checks."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import Phase, given, settings

from columnar.advise.access import Answer
from columnar.advise.reads import unmet
from columnar.advise.rules import Design, design_of
from columnar.advise.text import page
from columnar.advise.writes import answers
from tests.support.advised import SMALL, SYSTEMS, commands_of, design_for, small_design, workload
from tests.unit.advise.test_every_query import STATEMENTS


def answer(statement: str) -> Answer:
    (found,) = [one for one in answers(small_design(statement)) if one.shape.text not in SHAPES]
    return found


SHAPES = {one.shape.text for one in answers(small_design())}


def view_of(statement: str) -> str:
    """The one view that a statement makes."""
    (command,) = [one for one in commands_of(small_design(statement)) if one.startswith("columnar view add")]
    return command.partition(" --from ")[2]


@pytest.mark.parametrize(
    ("statement", "view"),
    [
        ("SELECT MAX(score) FROM messages WHERE user_name = 'a'",
         """messages --by "row.split('/', 0)" --where 'meta:score exists' --order "meta:score\""""),
        ("SELECT MIN(age) FROM users", """users --by "'all'" --where 'meta:age exists' --order "meta:age\""""),
        ("SELECT MAX(sent) FROM users JOIN messages ON name = user_name GROUP BY user_name", ""),
        ("SELECT AVG(score), SUM(price) FROM messages GROUP BY user_name",
         'messages --by "row.split(\'/\', 0)" --sum "price=decimal(meta:price, 2)" --avg "score=meta:score"'
         " --families meta --families text"),
        ("SELECT city, MIN(email) FROM users GROUP BY city",
         """users --by "meta:city" --where 'meta:email exists' --order "text(meta:email)\""""),
        ("SELECT COUNT(DISTINCT city) FROM users", 'users --by "meta:city"'),
        ("SELECT COUNT(email) FROM users", """users --by "'all'" --where 'meta:email exists'"""),
        ("SELECT COUNT(*) FROM users WHERE email IS NULL",
         """users --by "'all'" --where 'meta:email absent' --families meta"""),
        ("SELECT COUNT(*) FROM users WHERE email IS NOT NULL AND city = 'x'",
         """users --by "meta:city" --where 'meta:email exists'"""),
    ],
)  # fmt: skip
def test_a_total_is_served_by_a_view_that_has_it(statement: str, view: str) -> None:
    if view:
        assert view_of(statement) == view
        assert answer(statement).served == ("program" if "DISTINCT" in statement else "yes")
    else:
        assert answer(statement).served == "no"
        assert not answer(statement).views


def test_a_view_that_several_statements_share_has_the_totals_of_each() -> None:
    of = small_design("SELECT SUM(age) FROM users GROUP BY city", "SELECT AVG(age), city FROM users GROUP BY city")
    (command,) = [one for one in commands_of(of) if "view add" in one]
    assert '--sum "age=meta:age" --avg "age=meta:age"' in command


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("SELECT STDDEV(age) FROM users", "no view has stddevpop of age"),
        ("SELECT SUM(rate) FROM users", "fixed places, and rate has neither; instead"),
        ("SELECT SUM(age * 2) FROM users", "no view has a total of what is computed"),
        ("SELECT MAX(text) FROM messages", "no view orders a text as large as text"),
        ("SELECT COUNT(*) FROM users JOIN messages ON messages.user_name = users.name", "which may have several"),
        ("SELECT name FROM users WHERE city IN (SELECT tag FROM tags)", "instead: two statements, the inner one first"),
    ],
)
def test_what_no_view_has_is_not_served_and_says_what_to_do_instead(statement: str, why: str) -> None:
    found = answer(statement)
    assert found.served == "no"
    assert why in found.call
    assert "instead" in found.call


def test_totals_that_the_program_adds_up_are_by_the_program() -> None:
    for statement in (
        "SELECT COUNT(*) FROM users WHERE age > 5",
        "SELECT COUNT(*) FROM users WHERE city <> 'x'",
        "SELECT COUNT(*) FROM users WHERE city = 'x' OR email = 'y'",
        "SELECT COUNT(*) FROM users WHERE LOWER(city) = 'x'",
    ):
        found = answer(statement)
        assert found.served == "program", found.call
        assert "the program adds up the groups for which the condition on" in found.call


def test_numbers_are_in_the_order_of_an_index_as_numbers() -> None:
    of = small_design("SELECT * FROM users WHERE age > 9 ORDER BY age", "SELECT * FROM users ORDER BY rate LIMIT 3")
    text = page(of)
    assert "Row: `ordered(age)/<key of users>`" in text
    assert "from and to a value of ordered(age)" in text
    assert "As plain text 10 would stand before 9." in text
    code: dict[str, object] = {}
    exec(re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)[0], code)
    numbers = {
        "age": [-(2**63), -10, -9, -1, 0, 1, 9, 10, 2**63 - 1],
        "rate": [-1e300, -2.5, -0.5, 0, 1e-9, 9, 10.5],
    }
    for name, values in numbers.items():
        key = code[f"_users_in_order_of_{name}"]
        rows = [key(b"r", {f"meta:{name}".encode(): b"%r" % one}) for one in values]  # type: ignore[operator]
        assert rows == sorted(rows)
        assert len({len(one) for one in rows}) == 1
        assert key(b"r", {f"meta:{name}".encode(): b"many"}) is None  # type: ignore[operator]


def test_decimals_and_parts_of_keys_are_in_order_too() -> None:
    of = small_design(
        "SELECT * FROM messages WHERE price BETWEEN 1 AND 2", "SELECT * FROM messages ORDER BY id LIMIT 5"
    )
    text = page(of)
    assert "Row: `user_name/sent/ordered(id)`" in text
    code: dict[str, object] = {}
    exec(re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)[0], code)
    values = [b"-12.50", b"-2.05", b"-2", b"0.00", b"0.05", b"1.5", b"10", b"99999999.99"]
    rows = [code["_messages_in_order_of_price"](b"r", {b"meta:price": one}) for one in values]  # type: ignore[operator]
    assert rows == sorted(rows)


def test_an_id_at_the_end_of_a_key_needs_an_index() -> None:
    found = answer("SELECT * FROM messages WHERE id = 5")
    assert found.served == "yes"
    assert found.call == "messages_by_id: get id; messages: rows for the keys found"
    assert [one.name for one in found.indexes] == ["messages_by_id"]
    partly = answer("SELECT * FROM messages WHERE user_name = 'ann' AND id = 5")
    assert partly.call == "messages: scan of the keys that begin with user_name/; a filter on id"
    whole = answer("SELECT * FROM messages WHERE user_name = 'ann' AND sent = 3 AND id = 5")
    assert whole.call == "messages: get user_name/sent/id"


def test_what_a_statement_adds_to_is_a_counter_everywhere() -> None:
    of = small_design(
        "UPDATE users SET age = age + 1 WHERE name = 'a'",
        "SELECT name FROM users ORDER BY age DESC LIMIT 9",
        "SELECT SUM(age) FROM users",
    )
    text = page(of)
    assert 'values = [ordered_counter(cells.get(b"meta:age"))]' in text
    assert '--sum "age=counter(meta:age)"' in text
    assert (
        "* Statements add to `meta:age` of users: counters of 8 bytes, and a put writes them so, not as text." in text
    )


def test_an_index_of_sql_becomes_the_index_table_that_is_made() -> None:
    text = page(small_design("SELECT * FROM messages WHERE id = 5"))
    assert "| messages: id | `messages_by_id` |" in text
    assert "| messages: id | nothing: no query asks by it alone |" in page(small_design())


def test_each_side_of_or_has_its_own_path() -> None:
    found = answer("SELECT * FROM users WHERE city = 'x' OR email = 'y'")
    assert found.served == "program"
    assert [one.name for one in found.indexes] == ["users_by_city", "users_by_email"]
    assert "users_by_email: get email" in found.call
    mixed = answer("SELECT * FROM users WHERE city = 'x' OR LOWER(email) = 'y'")
    assert mixed.call.startswith("users: scan of all rows")
    union = answer("SELECT city FROM users WHERE email = 'y' UNION SELECT user_name FROM messages WHERE id = 7")
    assert [one.name for one in union.indexes] == ["users_by_email", "messages_by_id"]


def test_groups_in_the_order_of_a_count_need_a_view_of_a_view() -> None:
    statement = "SELECT city, COUNT(*) AS c FROM users GROUP BY city ORDER BY c DESC LIMIT 5"
    assert answer(statement).call == "view user_counts_by_city_by_count: the top of the group all, with a limit"
    assert [one.partition("view add ")[2] for one in commands_of(small_design(statement)) if "view add" in one] == [
        'user_counts_by_city --from users --by "meta:city"',
        """user_counts_by_city_by_count --from user_counts_by_city --by "'all'" --order v:count:desc""",
    ]
    for statement in (
        "SELECT city, AVG(age) a FROM users GROUP BY city ORDER BY a DESC LIMIT 5",
        "SELECT city, COUNT(*) c FROM users GROUP BY city HAVING c > 3 ORDER BY c DESC LIMIT 5",
    ):
        assert "the program sorts the groups" in answer(statement).call
        assert answer(statement).served == "program"


def test_a_change_with_a_condition_is_a_check_and_a_mutation() -> None:
    def call(statement: str) -> str:
        return answer(statement).call

    assert call("UPDATE users SET city = 'x' WHERE name = 'ann' AND city = 'y'") == (
        "users: name: check_and_mutate, if meta:city is as the statement says: put meta:city"
    )
    assert call("DELETE FROM users WHERE name = 'ann' AND email > 'x'").startswith(
        "users: name: check_and_mutate, if meta:email"
    )
    assert "read meta:age and decide" in call("DELETE FROM users WHERE name = 'ann' AND age > 5")  # not as bytes
    assert call("UPDATE users SET age = 3 WHERE name = 'ann' OR city = 'x'") == (
        "for each side of OR: users: name: put meta:age, and users_by_city: get city; users: rows for the keys found;"
        " for each: check_and_mutate, if meta:city is as the statement says: put meta:age"
    )
    assert "users: each of name: delete the row" in call("DELETE FROM users WHERE name IN (SELECT tag FROM tags)")
    assert "read meta:city and decide" in call("UPDATE users SET age = 1 WHERE name = 'ann' AND LOWER(city) = 'y'")
    assert call("UPDATE users SET city = 'x' WHERE name = 'ann'") == "users: name: put meta:city"
    assert call("INSERT INTO users (name, city) VALUES ('a', 'b')") == (
        "users: check_and_mutate, if the row is absent: put name"
    )
    assert call("REPLACE INTO users (name, city) VALUES ('a', 'b')") == "users: put name"


def test_conditions_that_no_call_serves_are_named() -> None:
    assert answer("SELECT * FROM users WHERE name = 'ann' AND city = 'x'").call == "users: get name; a filter on city"
    found = answer(
        "SELECT sent, city FROM messages JOIN users ON name = user_name WHERE user_name = 'a' AND city = 'x'"
    )
    assert found.call.endswith("a filter on users.city")
    number = answer("SELECT * FROM messages WHERE user_name = 'a' AND score > 5 ORDER BY sent LIMIT 3")
    assert number.call.endswith(
        "; as a filter compares bytes, the program checks score; the program reads on until it has as many rows as"
        " LIMIT says"
    )


def test_rows_in_two_directions_or_of_several_values_are_sorted_by_the_program() -> None:
    mixed = answer("SELECT * FROM messages WHERE user_name = 'a' ORDER BY sent DESC, id ASC LIMIT 5")
    assert mixed.call.endswith("sort by sent, id in the program, which reads all of them, whatever LIMIT says")
    assert mixed.served == "program"
    several = answer("SELECT * FROM messages WHERE user_name IN ('a', 'b') ORDER BY sent LIMIT 5")
    assert several.call == (
        "messages: for each, a scan of the keys that begin with user_name/; sort by sent in the program"
        ", which reads all of them, whatever LIMIT says"
    )


@pytest.mark.parametrize(
    ("statement", "call"),
    [
        ("SELECT MAX(sent) FROM messages WHERE user_name = 'ann'",
         "messages: reversed scan of the keys that begin with user_name/, the first row"),
        ("SELECT MIN(age) FROM users WHERE age > 10",
         "users_in_order_of_age: scan in the order of age, the first row, from and to a value of ordered(age); users:"
         " rows for the keys found"),
        ("SELECT MIN(name) FROM users", "users: scan in the order of name, the first row"),
        ("SELECT * FROM users LIMIT 10", "users: scan of all rows, with a limit"),
        ("SELECT * FROM users ORDER BY name DESC LIMIT 1", "users: reversed scan in the order of name, the first row"),
    ],
)  # fmt: skip
def test_rows_from_one_end(statement: str, call: str) -> None:
    assert (answer(statement).served, answer(statement).call) == ("yes", call)


def test_the_newest_row_alone_is_no_page_of_rows() -> None:
    """LIMIT 1 does not make rows of their own out of what may be columns of the parent's row; LIMIT 20 does."""
    schema = replace(SMALL, tables=SMALL.tables[:2])
    forms = []
    for limit in (1, 20):
        statements = ["SELECT * FROM users WHERE name = 'ann'"] * 2 + [
            f"SELECT text FROM messages WHERE user_name = 'ann' ORDER BY sent DESC LIMIT {limit}"
        ]
        forms.append(design_of(schema, workload(statements, schema)).placement("messages").form)
    assert forms == ["columns", "under"]


def names_in(call: str) -> set[str]:
    """The tables, index tables and views that the line of an answer names."""
    tables = re.findall(r"(?:^|; |, and |program: )(\w+): (?:get|scan|reversed scan|rows|for each|check_and)", call)
    return {*tables, *re.findall(r"\bview (\w+):", call)}


def lacking(of: Design) -> list[str]:
    existing = {re.match(r"columnar (?:create|view add) (\w+)", one)[1] for one in commands_of(of)}  # type: ignore[index]
    found = []
    for one in answers(of):
        if one.served in ("yes", "program") and one.shape.query.verb == "select":
            found += [f"{one.call}: {name}" for name in names_in(one.call) - existing]
        if one.served == "no" and not one.call.startswith(("not read", "no table")) and "instead" not in one.call:
            found.append(f"{one.call}: what instead?")
        if one.served == "yes" and one.shape.query.verb == "select":
            found += [f"{one.call}: {why}" for why in [unmet(of, one.shape.query, one)] if why]
            found += [one.call] if set(one.shape.query.obstacles) - {"DISTINCT", "OFFSET"} else []
    return found


@pytest.mark.parametrize("system", SYSTEMS)
def test_each_object_that_an_answer_names_is_made(system: str) -> None:
    assert lacking(design_for(system)) == []


@settings(max_examples=30, phases=(Phase.explicit, Phase.generate, Phase.shrink))
@given(STATEMENTS)
def test_each_object_that_an_answer_to_any_query_names_is_made(statements: list[str]) -> None:
    schema = design_for("wikka").schema
    assert lacking(design_of(schema, workload(statements, schema))) == []


def test_the_check_notices_what_is_missing() -> None:
    """Whatever is taken away from an answer, the check says that it is missing."""
    for statement in (
        "SELECT * FROM users WHERE city = 'x'",
        "SELECT AVG(age) FROM users",
        "SELECT MAX(age) FROM users",
    ):
        of, found = small_design(statement), answer(statement)
        assert unmet(of, found.shape.query, found) == ""
        if found.indexes:
            assert "index table" in unmet(of, found.shape.query, replace(found, indexes=()))
        else:
            less = tuple(replace(one, averages=(), ends="") for one in found.views)
            assert "no view has" in unmet(of, found.shape.query, replace(found, views=less))
