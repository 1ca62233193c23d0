"""A second evaluator of rights, written from HBase's description of its access control alone.

It asks, for one user, one right and one column, whether any single grant covers them, by walking through all grants.
It has no indexes, and knows nothing of ``columnar.model.rights`` but the records.
"""

from __future__ import annotations

from columnar.model.rights import Grant, RightsRecord


def _covers(grant: Grant, table: str, family: str | None, qualifier: str | None) -> bool:
    """Return whether the grant's scope contains the whole of the place; family None is the whole table."""
    scope = grant.scope
    if not scope.table:
        namespace = table.split(":")[0] if ":" in table else "default"
        return scope.namespace in ("", namespace)
    if scope.table != table:
        return False
    if not scope.family:
        return True
    if family != scope.family:
        return False
    return scope.qualifier is None or scope.qualifier == qualifier


def may(
    record: RightsRecord,
    superusers: frozenset[str],
    user: str,
    letter: str,
    table: str,
    family: str | None = None,
    qualifier: str | None = None,
) -> bool:
    if not user:
        return False
    names = {user} | {"@" + group for group, members in record.groups.items() if user in members}
    if user == "root" or names & superusers:
        return True
    right = {"R": 1, "W": 2, "X": 4, "C": 8, "A": 16}[letter]
    mine = [grant for grant in record.grants if grant.grantee in names]
    if table.startswith("columnar:"):
        return any(grant.rights & 16 and not grant.scope.table and not grant.scope.namespace for grant in mine)
    return any(grant.rights & right and _covers(grant, table, family, qualifier) for grant in mine)
