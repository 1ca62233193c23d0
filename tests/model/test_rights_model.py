"""Rights decide as a second evaluator does, over random grants, groups, superusers and revocations.

COLUMNAR_DEEP=1 draws 100,000 grants.
"""

from __future__ import annotations

from random import Random

from columnar.model.rights import (
    ADMIN,
    ALL,
    LETTERS,
    Grant,
    Rights,
    RightsRecord,
    Scope,
    grants_from_json,
    grants_to_json,
    with_grant,
    without_families,
    without_grant,
    without_table,
)
from tests.support.deep import seeds
from tests.support.rights_evaluator import may
from tests.support.seeds import seed

USERS = ("alice", "bob", "carol", "dave", "root", "")
GROUPS = ("ops", "team", "empty")
TABLES = ("t", "u", "team:t", "team:x", "columnar:meta")
FAMILIES = ("a", "b")
QUALIFIERS = ("1", "2")
GRANTS_OF_RECORD = 25


def _scope(draw: Random) -> Scope:
    kind = draw.randrange(6)
    if kind == 0:
        return Scope()
    if kind == 1:
        return Scope(namespace=draw.choice(("default", "team", "columnar")))
    table, family = draw.choice(TABLES), draw.choice(FAMILIES)
    if kind in (2, 3):
        return Scope(table=table)
    return Scope(table=table, family=family, qualifier=draw.choice(QUALIFIERS) if kind == 5 else None)


def _grant(draw: Random) -> Grant:
    grantee = draw.choice((*USERS[:4], *("@" + group for group in GROUPS)))
    return Grant(grantee, _scope(draw), draw.randrange(1, ALL + 1))


def _record(draw: Random) -> RightsRecord:
    groups = {name: tuple(user for user in USERS[:4] if draw.random() < 0.3) for name in GROUPS[:2]}
    record = RightsRecord((), groups)
    for _ in range(GRANTS_OF_RECORD):
        record = without_grant(record, _grant(draw)) if draw.random() < 0.2 else with_grant(record, _grant(draw))
    if draw.random() < 0.1:
        record = without_table(record, draw.choice(TABLES))
    if draw.random() < 0.1:
        record = without_families(record, draw.choice(TABLES), FAMILIES[:1])
    return record


def _check(record: RightsRecord, superusers: frozenset[str]) -> None:
    rights = Rights(record, superusers)
    for user in USERS:
        for table in TABLES:
            whole, below = rights.table_rights(user, table), rights.column_rights(user, table)
            for at, letter in enumerate(LETTERS):
                said = [may(record, superusers, user, letter, table)]
                found = [bool(whole & 1 << at)]
                for family in FAMILIES:
                    said.append(may(record, superusers, user, letter, table, family))
                    found.append(bool((whole | below.of_family(family.encode())) & 1 << at))
                    for qualifier in QUALIFIERS:
                        said.append(may(record, superusers, user, letter, table, family, qualifier))
                        column = family.encode(), qualifier.encode()
                        found.append(bool((whole | below.of_column(*column)) & 1 << at))
                assert found == said, (user, table, letter, record)


def test_rights_are_those_of_the_second_evaluator() -> None:
    draw = Random(seed(36))
    for _ in range(seeds("grants of users", deep=100_000, short=2_500) // GRANTS_OF_RECORD):
        superusers = frozenset(name for name in ("alice", "@ops") if draw.random() < 0.05)
        _check(_record(draw), superusers)


def test_nobody_has_rights_whatever_is_granted() -> None:
    record = with_grant(RightsRecord(), Grant("alice", Scope(), ALL))
    assert Rights(record, ["alice"]).global_rights("") == 0


def test_a_grant_for_a_system_table_opens_nothing() -> None:
    record = RightsRecord((Grant("bob", Scope(table="columnar:meta"), ALL), Grant("bob", Scope("columnar"), ALL)))
    assert Rights(record).table_rights("bob", "columnar:meta") == 0
    everything = with_grant(record, Grant("bob", Scope(), ADMIN))
    assert Rights(everything).table_rights("bob", "columnar:meta") == ALL


def test_grants_come_back_from_their_json() -> None:
    draw = Random(seed(37))
    grants = [Grant("bob", _scope(draw), draw.randrange(1, ALL + 1)) for _ in range(50)]
    assert grants_from_json("bob", grants_to_json(grants)) == grants


def test_revoking_everything_at_a_scope_leaves_other_scopes() -> None:
    record = with_grant(RightsRecord(), Grant("bob", Scope(table="t"), ALL))
    record = with_grant(record, Grant("bob", Scope(table="t", family="a"), ALL))
    left = without_grant(record, Grant("bob", Scope(table="t"), ALL))
    assert [one.scope.family for one in left.grants] == ["a"]
