"""The function of the triggers that keeps ``backlinks``, and the sources' cells in ``wanted`` (``triggers``).

A text has two kinds of targets: the pages that it links to or includes, and the files that it names (``file_uses``).
Both have the same cells, by the same rules; only a page can be wanted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from columnar.client import Connection
from columnar.triggers.api import Barrier, Change, Delete, Put
from wikka_port import schema
from wikka_port.file_uses import is_of_file, targets_of_files
from wikka_port.markup.formats import tokens
from wikka_port.markup.links import files_named, names_linked
from wikka_port.names import page_key
from wikka_port.page_changes import PageChange, Steps
from wikka_port.page_rows import Cells, autolink_of, markup_of, text_in
from wikka_port.store import rows_in_steps
from wikka_port.wanted import existing

Targets = Mapping[bytes, str]  # key of a page -> its name; key of a file (``file_uses``) -> its folded name


@dataclass(frozen=True, slots=True)
class _Links:
    """The targets of a page before and after a change."""

    name: bytes  # of the page
    column: bytes  # the page's column in the rows of its targets
    added: Targets  # the new targets; all targets if the change is ``careful``
    removed: Targets


def index_links(seen: Sequence[tuple[Change, PageChange]], client: Connection) -> Steps:
    found = _links_of_changes(seen, client)
    pages = {target: None for _, one in found for target in one.added if not is_of_file(target)}
    there = existing(client, pages)
    for change, one in found:
        if one.added:
            cells = {schema.TO + target: name.encode() for target, name in one.added.items()}
            yield change, Put(schema.BACKLINKS, change.row, cells)
    if any(one.added for _, one in found):
        yield Barrier()
    for table in (schema.BACKLINKS, schema.WANTED):
        for change, one in found:
            for target, name in one.added.items():
                if table == schema.BACKLINKS:
                    yield change, Put(table, target, {one.column: one.name})
                elif target in pages and target not in there:
                    yield change, Put(table, target, {one.column: name.encode()})
            for target in one.removed:
                if table == schema.BACKLINKS or not is_of_file(target):
                    yield change, Delete(table, target, [one.column])
    if any(one.removed for _, one in found):
        yield Barrier()
    for change, one in found:
        if one.removed:
            yield change, Delete(schema.BACKLINKS, change.row, [schema.TO + target for target in one.removed])


def _links_of_changes(seen: Sequence[tuple[Change, PageChange]], client: Connection) -> list[tuple[Change, _Links]]:
    careful = [change.row for change, one in seen if one.careful]
    known = dict(rows_in_steps(client.table(schema.BACKLINKS), dict.fromkeys(careful), schema.TO_FAMILY))
    found = []
    for change, one in seen:
        after, before = targets_of(one.now), targets_of(one.before)
        added, removed = _without(after, before), _without(before, after)
        if one.careful:
            stored = known.get(change.row, {})
            ever = {column[len(schema.TO) :]: name.decode() for column, name in stored.items()}
            added, removed = after, _without({**before, **ever}, after)
        found.append((change, _Links(one.name, schema.FROM + change.row, added, removed)))
    return found


def targets_of(cells: Cells) -> Targets:
    """Return the targets of a page's text, from its row."""
    body = cells.get(schema.BODY)
    if not body:
        return {}
    read = tokens(body.decode(errors="replace"), autolink=autolink_of(cells), markup=markup_of(cells))
    pages = {page_key(name): name for name in names_linked(read)}
    return {**pages, **targets_of_files(text_in(cells, schema.NAME), files_named(read))}


def _without(some: Targets, others: Targets) -> Targets:
    return {key: name for key, name in some.items() if key not in others}
