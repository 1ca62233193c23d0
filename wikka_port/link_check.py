"""What the tables of links should hold, compared with what they hold: ``backlinks`` and ``wanted``.

From the pages: each link of a text needs its cell ``to`` in the source's row, ``from`` in the
target's, and a cell in ``wanted`` where there is no target.  From the tables: each cell ``from``
and each cell of ``wanted`` needs a source that links there; the source is asked through its ``to``,
which was compared with its text before.  ``wrong_to`` are those that were found wrong.

Memory: a few hundred rows, ``_LINKS_HELD`` links, and the differences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Final

from columnar.client import Connection
from wikka_port import schema
from wikka_port.differences import Difference, Kind, Stamped, cell_differences, groups_of
from wikka_port.markup.links import links
from wikka_port.names import page_key
from wikka_port.page_rows import Cells, autolink_of, time_of

_STEP: Final = 300  # cells looked at together
_LINKS_HELD: Final = 200_000  # of sources asked lately: most targets of a source lie far apart


class LinkCheck:
    """One look; first ``of_pages`` for all pages, then ``of_backlinks`` and ``of_wanted``."""

    def __init__(self, connection: Connection, at: Callable[[int], int]) -> None:
        """``at``: when a repair is to be written of what follows from a source of that time."""
        self._at = at
        self._backlinks = connection.table(schema.BACKLINKS)
        self._wanted = connection.table(schema.WANTED)
        self._pages = connection.table(schema.PAGES)
        self._wrong_to: dict[tuple[bytes, bytes], bool] = {}  # source, target -> whether the text links there
        self._links_of: dict[bytes, frozenset[bytes]] = {}  # of sources asked lately
        self.links = 0

    # --- from the pages ----------------------------------------------------------------------------

    def of_pages(self, pages: Mapping[bytes, Cells]) -> Iterator[Difference]:
        held = dict(self._backlinks.rows(list(pages), columns=[b"to"], include_timestamp=True))
        for key, cells in pages.items():
            yield from self._of_page(key, cells, held.get(key, {}))

    def _of_page(self, key: bytes, page: Cells, held_to: Stamped) -> Iterator[Difference]:
        names = links(page.get(schema.BODY, b"").decode(errors="replace"), autolink=autolink_of(page))
        targets = {page_key(name): name.encode() for name in names}
        self.links += len(targets)
        at_ms = self._at(time_of(page))
        to_cells = {schema.TO + target: name for target, name in targets.items()}
        for difference in cell_differences(schema.BACKLINKS, key, to_cells, held_to, at_ms):
            target = difference.column[len(schema.TO) :]
            self._wrong_to[key, target] = target in targets
            yield difference
        if not targets:
            return
        column = schema.FROM + key
        source = page.get(schema.NAME, b"")
        held_from = dict(self._backlinks.rows(list(targets), columns=[column], include_timestamp=True))
        there = self._existing(targets)
        missing = [target for target in targets if target not in there]
        held_wanted = dict(self._wanted.rows(missing, columns=[column], include_timestamp=True)) if missing else {}
        for target in targets:
            yield from cell_differences(schema.BACKLINKS, target, {column: source}, held_from.get(target, {}), at_ms)
        for target in missing:
            yield from cell_differences(
                schema.WANTED, target, {column: targets[target]}, held_wanted.get(target, {}), at_ms
            )

    def _existing(self, keys: Iterable[bytes]) -> set[bytes]:
        return {row for row, _ in self._pages.rows(list(keys), columns=[schema.VERSIONCOUNT])}

    # --- from the tables ---------------------------------------------------------------------------

    def of_backlinks(self) -> Iterator[Difference]:
        """Cells ``from`` without a link, and rows ``to`` of pages that are not there."""
        for rows in groups_of(self._backlinks.scan(columns=[b"from"], include_timestamp=True, batch_size=200)):
            yield from self._without_link(schema.BACKLINKS, rows)
        for rows in groups_of(self._backlinks.scan(columns=[b"to"], include_timestamp=True, batch_size=200)):
            there = self._existing(rows)
            for row, cells in rows.items():
                if row not in there:
                    yield from cell_differences(schema.BACKLINKS, row, {}, cells, 0)

    def of_wanted(self) -> Iterator[Difference]:
        for rows in groups_of(self._wanted.scan(include_timestamp=True, batch_size=200)):
            there = self._existing(rows)
            for row in there:
                yield from cell_differences(schema.WANTED, row, {}, rows[row], 0)
            yield from self._without_link(schema.WANTED, {r: cells for r, cells in rows.items() if r not in there})

    def _without_link(self, table: bytes, rows: Mapping[bytes, Stamped]) -> Iterator[Difference]:
        """Cells of targets whose source does not link there."""
        cells = ((row, column, *held) for row, its in rows.items() for column, held in its.items())
        while step := list(islice(cells, _STEP)):
            self._ask({column[len(schema.FROM) :] for _, column, _, _ in step})
            for target, column, value, at_ms in step:
                source = column[len(schema.FROM) :]
                if not self._wrong_to.get((source, target), target in self._links_of.get(source, ())):
                    yield Difference(Kind.STALE, table, target, column, None, value, at_ms)

    def _ask(self, sources: set[bytes]) -> None:
        """See to it that ``_links_of`` knows them; pages that are not there link nowhere."""
        if sum(map(len, self._links_of.values())) > _LINKS_HELD:
            self._links_of.clear()
        unknown = [source for source in sources if source and source not in self._links_of]
        if not unknown:
            return
        there = self._existing(unknown)
        self._links_of.update(dict.fromkeys(unknown, frozenset()))
        for source, cells in self._backlinks.rows(unknown, columns=[b"to"]):
            if source in there:
                self._links_of[source] = frozenset(column[len(schema.TO) :] for column in cells)
