"""The expected contents of the wiki's derived tables for given pages, computed anew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.support.fake_tables import Tables
from wikka_port import schema
from wikka_port.file_uses import is_of_file
from wikka_port.link_index import targets_of
from wikka_port.page_changes import alone
from wikka_port.search.indexing import postings_of
from wikka_port.search.postings import STEMS, column_of, pack_stems, term_row
from wikka_port.wanted import wanted_pages

Rows = dict[bytes, dict[bytes, bytes]]


def of_one_change(call: Any) -> Any:
    """Return a function that takes one change, for a function that takes batches."""
    return lambda change, client: alone(call([change], client))


@dataclass
class Derived:
    backlinks: Rows = field(default_factory=dict)
    wanted: Rows = field(default_factory=dict)  # of pages that are not there: the cells of all that link to them
    names: Rows = field(default_factory=dict)
    terms: Rows = field(default_factory=dict)
    docs: Rows = field(default_factory=dict)

    @classmethod
    def of(cls, pages: Mapping[bytes, Mapping[bytes, bytes]]) -> Derived:
        found = cls()
        for key, cells in pages.items():
            name = cells[schema.NAME]
            found.names[schema.name_row(name.decode())] = {schema.NAME: name}
            postings = postings_of(cells)
            if postings:
                found.docs[key] = {STEMS: pack_stems(postings)}
            for stem, posting in postings.items():
                found.terms.setdefault(term_row(stem, key), {})[column_of(key)] = posting
            for target, linked in targets_of(cells).items():
                found.backlinks.setdefault(target, {})[schema.FROM + key] = name
                found.backlinks.setdefault(key, {})[schema.TO + target] = linked.encode()
                if target not in pages and not is_of_file(target):
                    found.wanted.setdefault(target, {})[schema.FROM + key] = linked.encode()
        return found

    def check_wanted(self, tables: Tables, connection: Any = None) -> None:
        """Check W1 to W3 of ``triggers``, and the list of wanted pages as ``connection`` reads it."""
        held = tables.visible(schema.WANTED)
        for row, cells in self.wanted.items():
            assert held.get(row), f"W1: {row!r} is wanted and no candidate"
            assert schema.GONE in held[row] or held[row] == cells, f"W3: {row!r}"
        for row, cells in held.items():
            linking = {column for column in self.backlinks.get(row, {}) if column.startswith(schema.FROM)}
            sources = {column for column in cells if column != schema.GONE}
            assert sources <= linking, f"W2: {row!r}"
        listed = wanted_pages(connection or tables, b"", 1_000)
        expected = [
            (next(iter(self.wanted[row].values())).decode(), len(self.wanted[row])) for row in sorted(self.wanted)
        ]
        assert listed == expected
