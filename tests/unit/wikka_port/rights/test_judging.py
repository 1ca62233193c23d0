"""The one decision: its rules in their order."""

from __future__ import annotations

from dataclasses import replace

import pytest

from wikka_port.rights.judging import Guarded, group_names, may
from wikka_port.rights.rules import OWN_LISTS, PageRights, Privilege, Rules, page_rights, rule_column
from wikka_port.visitors import NOBODY, Status, Visitor

NOTHING = dict.fromkeys((Privilege.READ, Privilege.WRITE), "!*")
SHUT = Guarded("P", PageRights("Olga", NOTHING, b"1:x"))
PASSING = [one for one in Privilege if one is not Privilege.CLAIM]
PAGE_PRIVILEGES = [one for one in PASSING if one is not Privilege.ADMINISTER]


def user(name: str, status: Status = "active", admin: bool = False) -> Visitor:
    return Visitor(name, name, status, admin, "")


ANN, OLGA, ADMIN = user("Ann"), user("Olga"), user("Root", admin=True)


@pytest.mark.parametrize("privilege", PASSING)
def test_administrators_pass(privilege: Privilege) -> None:
    assert may(ADMIN, SHUT, privilege)
    for status in ("suspended", "banned", "deleted", "pending"):
        assert not may(user("Root", status, admin=True), SHUT, privilege), status


@pytest.mark.parametrize("privilege", PAGE_PRIVILEGES)
def test_the_owner_passes_and_nobody_else(privilege: Privilege) -> None:
    assert may(user("oLGA"), SHUT, privilege)
    assert not may(user("Olga", "banned"), SHUT, privilege)
    assert not may(ANN, SHUT, privilege)
    assert not may(NOBODY, SHUT, privilege)
    assert not may(OLGA, SHUT, Privilege.ADMINISTER)


def test_nobody_is_the_owner_of_a_page_without_one() -> None:
    for owner in ("", "(Public)", "(Nobody)"):
        page = Guarded("P", PageRights(owner, NOTHING, b"1:x"))
        assert not may(user(owner), page, Privilege.READ)


def test_to_write_one_must_be_able_to_read() -> None:
    page = Guarded("P", PageRights("", {Privilege.READ: "Ann", Privilege.WRITE: "*"}, b"1:x"))
    assert may(ANN, page, Privilege.WRITE)
    assert not may(user("Bob"), page, Privilege.WRITE)
    assert not may(user("Bob"), page, Privilege.COMMENT_POST)
    comments = Guarded("P", PageRights("", {Privilege.COMMENT_READ: "Ann", Privilege.COMMENT_POST: "*"}, b"1:x"))
    assert not may(user("Bob"), comments, Privilege.COMMENT_POST)


def test_a_banned_user_reads_as_a_stranger_and_writes_nothing() -> None:
    banned = user("Ann", "banned")
    assert may(banned, Guarded("P"), Privilege.READ)
    assert not may(banned, Guarded("P"), Privilege.WRITE)
    assert not may(banned, Guarded("P", PageRights("", {Privilege.READ: "+"}, b"1:x")), Privilege.READ)
    assert may(user("Ann", "pending"), Guarded("P"), Privilege.WRITE), "as if not signed in"


def test_a_page_without_owner_can_be_claimed_by_who_may_edit_it() -> None:
    assert may(ANN, Guarded("P"), Privilege.CLAIM)
    assert not may(NOBODY, Guarded("P"), Privilege.CLAIM)
    assert not may(ANN, Guarded("P", exists=False), Privilege.CLAIM)
    assert not may(ANN, Guarded("P", PageRights("(Public)")), Privilege.CLAIM)
    for visitor in (ANN, OLGA, ADMIN):
        assert not may(visitor, SHUT, Privilege.CLAIM), "it has an owner"
    assert may(ADMIN, Guarded("P", PageRights("", NOTHING, b"1:x")), Privilege.CLAIM)
    assert not may(ANN, Guarded("P", PageRights("", NOTHING, b"1:x")), Privilege.CLAIM)


def rules(**lists: str) -> Rules:
    """``read__secret="+"``: the list for reading names that begin with "secret"."""
    cells = {}
    for key, text in lists.items():
        word, _, prefix = key.partition("__")
        cells[rule_column(Privilege(word), prefix.replace("_", " "))] = text.encode()
    return Rules(cells)


def test_the_page_then_the_longest_prefix_then_the_site() -> None:
    site = rules(read__="+", read__secret="Ann", read__secret_open="*", write__secret="!*")
    assert not may(NOBODY, Guarded("Other", rules=site), Privilege.READ)
    assert may(user("Bob"), Guarded("Other", rules=site), Privilege.READ)
    assert not may(user("Bob"), Guarded("SECRET plan", rules=site), Privilege.READ)
    assert may(ANN, Guarded("Sécret plan", rules=site), Privilege.READ), "case and accents do not count"
    assert may(NOBODY, Guarded("Secret open letter", rules=site), Privilege.READ)
    assert not may(ANN, Guarded("Secret open letter", rules=site), Privilege.WRITE), "each privilege by itself"
    own = Guarded("Secret plan", PageRights("", {Privilege.READ: "Bob"}, b"1:x"), rules=site)
    assert may(user("Bob"), own, Privilege.READ)
    assert not may(ANN, own, Privilege.READ)
    assert "line 1 of the page's own list" in may(user("Bob"), own, Privilege.READ).reason


def test_groups() -> None:
    page = Guarded("P", PageRights("", {Privilege.READ: "Editors"}, b"1:x"))
    assert not may(ANN, page, Privilege.READ)
    assert may(ANN, replace(page, groups={"Editors": {"ann"}}), Privilege.READ)
    assert not may(user("Ann", "banned"), replace(page, groups={"Editors": {"ann"}}), Privilege.READ)
    assert group_names(ANN, [("P", page.rights)], page.rules) == {"Editors"}
    for nobody in (NOBODY, ADMIN, user("editors")):
        assert group_names(nobody, [("P", page.rights)], page.rules) == set()


def test_rules_of_cells() -> None:
    assert Rules().is_open
    assert not Rules({OWN_LISTS: b"1"}).is_open
    strange = Rules({b"acl:read": b"!*", b"acl:x:y": b"!*", b"acl:revision": b"3:t"})
    assert strange.is_open
    assert strange.revision == b"3:t"
    assert page_rights({}, b"").owner == ""
    assert page_rights({}, b"Ann").owner == "Ann"
    changed = page_rights({b"acl:revision": b"2:t", b"acl:owner": b"", b"acl:read": b"+"}, b"Ann")
    assert (changed.owner, changed.lists) == ("", {Privilege.READ: "+"})
