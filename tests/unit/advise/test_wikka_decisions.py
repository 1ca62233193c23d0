"""The adviser comes to what the thesis decided for Wikka by hand (its section 5 and figure 3)."""

from __future__ import annotations

from functools import cache

from columnar.advise.access import Answer, row_key
from columnar.advise.functions import store_tables
from columnar.advise.reading import NO_LOG
from columnar.advise.rules import Design, design_of
from columnar.advise.text import page
from columnar.advise.writes import answers
from tests.support.advised import design_for, schema_of


@cache
def wikka() -> Design:
    return design_for("wikka")


@cache
def answer(beginning: str) -> Answer:
    (found,) = (one for one in answers(wikka()) if one.shape.text.startswith(beginning))
    return found


def test_pages_have_the_hash_of_their_tag_as_key_and_no_id() -> None:
    pages = wikka().placement("wikka_pages")
    assert (pages.table, row_key(wikka(), pages), pages.rule) == ("pages", "md5(tag)", "R1")
    assert pages.cell_of("id") == pages.cell_of("latest") == ""
    assert {column for column, _ in pages.gone} == {"id", "latest"}


def test_each_version_has_a_body_a_user_and_a_note_and_the_page_an_owner_and_a_handler() -> None:
    pages = wikka().placement("wikka_pages")
    cells = dict(pages.cells)
    assert {cells[one] for one in ("body", "user", "note")} == {"body:latest", "user:latest", "note:latest"}
    assert (cells["owner"], cells["handler"]) == ("meta:owner", "meta:handler")
    text = page(wikka())
    assert "| `body:latest`, `body:<n>` for older versions |" in text
    assert "| `meta:versioncount` |" in text


def test_acls_are_a_family_of_the_page() -> None:
    acls = wikka().placement("wikka_acls")
    assert (acls.table, acls.form, acls.rule) == ("pages", "family", "R2")
    assert dict(acls.cells) == {"read_acl": "acl:read", "write_acl": "acl:write", "comment_acl": "acl:comment"}


def test_links_go_both_ways() -> None:
    links = wikka().placement("wikka_links")
    assert (links.form, links.rule) == ("link", "R5")
    assert {"link_from", "link_to"} <= set(next(one for one in store_tables(wikka()) if one.name == "pages").families)
    assert "family link_from" in answer("SELECT from_tag").call
    assert "family link_to" in answer("SELECT to_tag").call


def test_comments_are_columns_named_by_time_and_user() -> None:
    comments = wikka().placement("wikka_comments")
    assert (comments.table, comments.form, comments.rule) == ("pages", "columns", "R3")
    assert dict(comments.cells) == {"comment": "comment:<time>-<user>"}


def test_users_are_rows_by_name_with_account_and_settings() -> None:
    users = wikka().placement("wikka_users")
    assert (users.table, users.key, users.is_hashed) == ("users", ("name",), False)
    account = {column for column, cell in users.cells if cell.startswith("account:")}
    assert account == {"password", "email"}
    assert set(users.families) == {"account", "settings"}


def test_referrers_are_left_out_and_a_person_is_asked() -> None:
    assert wikka().placement("wikka_referrers").form == wikka().placement("wikka_referrer_blacklist").form == "unused"
    assert "Does the program need `wikka_referrers`?" in page(wikka())


def test_versions_are_sorted_by_the_program_and_texts_are_not_searched() -> None:
    assert answer("SELECT * FROM wikka_pages WHERE tag = ? ORDER BY time").call.endswith("sort by time in the program")
    assert answer("SELECT tag FROM wikka_pages WHERE latest = ? AND MATCH").served == "no"
    assert answer("SELECT tag FROM wikka_pages WHERE latest = ? AND body LIKE").served == "no"


def test_each_index_of_sql_is_accounted_for() -> None:
    text = page(wikka())
    assert "| wikka_pages: tag | the row of `pages` |" in text
    assert "| wikka_pages: latest | the columns `latest` |" in text
    assert "| wikka_pages: time | `pages_in_order_of_time` |" in text
    assert "| wikka_pages: id | nothing: the key takes the place of the id |" in text


def test_without_a_log_the_indexes_decide_the_same_keys() -> None:
    design = design_of(schema_of("wikka"), NO_LOG)
    for name, key, form in [
        ("wikka_pages", ("tag",), "versions"), ("wikka_acls", ("page_tag",), "family"),
        ("wikka_links", ("from_tag",), "link"), ("wikka_users", ("name",), "rows"),
        ("wikka_comments", ("page_tag",), "columns"), ("wikka_referrer_blacklist", ("spammer",), "rows"),
    ]:  # fmt: skip
        placement = design.placement(name)
        assert (placement.key, placement.form) == (key, form), name
    assert "guessed from the indexes" in page(design)
