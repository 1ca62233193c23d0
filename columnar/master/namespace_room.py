"""(pure) How many tables and regions a namespace takes, by its configuration (reference: NamespaceAuditor)."""

from __future__ import annotations

from columnar.errors import NotAllowed
from columnar.master.catalogue import Catalogue
from columnar.model.namespace_configuration import MOST_REGIONS, MOST_TABLES, bound
from columnar.model.schema import namespace_of


def check_table(catalogue: Catalogue, namespace: str) -> None:
    """NotAllowed: the namespace has all the tables that it takes."""
    _check(catalogue, namespace, 1, MOST_TABLES)


def check_regions(catalogue: Catalogue, table: str, more: int) -> None:
    """Raise NotAllowed if the table's namespace does not take ``more`` regions."""
    if more > 0:
        _check(catalogue, namespace_of(table), more, MOST_REGIONS)


def _check(catalogue: Catalogue, namespace: str, more: int, key: str) -> None:
    most = bound(catalogue.configurations.get(namespace, {}), key)
    if most is None:
        return
    entries = [one for name, one in catalogue.tables.items() if namespace_of(name) == namespace]
    count = len(entries) if key == MOST_TABLES else sum(len(one.regions) for one in entries)
    if count + more > most:
        what = "tables" if key == MOST_TABLES else "regions"
        raise NotAllowed(
            f"namespace {namespace} has {count} {what}, and takes {most} ({key}): drop some, or raise it with "
            f"columnar namespace alter {namespace} {key}={count + more}"
        )
