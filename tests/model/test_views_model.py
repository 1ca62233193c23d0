"""Random views over random histories: the shares of all changes, one after the other, give the recomputed view.

Rows are put, deleted and wiped, at timestamps of the clients' own that go back; some cells have values that a view
cannot read.  The expected view is computed by plain functions that stand beside each text of a definition and share no
code with the store.  Some runs have a join, a spread view, or a view of the view.

``python -m tests.model.test_views_model --seeds 100000 --jobs 2`` runs more of them, and makes the history of a seed
that fails shorter.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from zlib import crc32

from columnar.model.view_definition import Source, View, bound, checked, from_json, to_json
from columnar.views.contributions import difference, rules_of
from tests.support.deep import seeds
from tests.support.many_seeds import Left, Tell, main, runs, step_seed, untold
from tests.support.recompute import Group, applied, images_of, recomputed
from tests.support.seeds import seed

SEED = seed(20261124)
SEEDS = seeds("seeds of views", deep=2_000, short=200)
STEPS = 24
ROWS = (b"a/1", b"a/2", b"b/1", b"c")
Image = dict[bytes, bytes]
Member = tuple[tuple[int, ...], Any, tuple[tuple[bytes, bytes], ...]]  # amounts, by what it is ordered, carried


class Bad(Exception):
    """A row that cannot be read."""


# --- definitions: a text, and what it means in plain words --------------------------------------------


def cell(column: bytes) -> Callable[[bytes, Image], list[bytes]]:
    def read(row: bytes, image: Image) -> list[bytes]:
        if image.get(column) == b"":
            raise Bad
        return [image[column]] if column in image else []

    return read


def piece(row: bytes, image: Image) -> list[bytes]:
    if b"/" not in row:
        raise Bad
    return [row[row.index(b"/") + 1 :]]


def each_column(row: bytes, image: Image) -> list[bytes]:
    return [column[2:] for column in image if column[:2] == b"g:"]


def each_tag(row: bytes, image: Image) -> list[bytes]:
    return [tag for tag in set(image.get(b"f:t", b"").split(b",")) if tag != b""]


def number(column: bytes, factor: int = 1) -> Callable[[Image], int | None]:
    def read(image: Image) -> int | None:
        held = image.get(column)
        if held is None:
            return None
        if held in NUMBERS:
            scaled = NUMBERS[held] * factor
            if scaled != int(scaled):
                raise Bad
            return int(scaled)
        raise Bad

    return read


def day(row: bytes, image: Image) -> list[bytes]:
    time_ms = number(b"f:d")(image)
    return [] if time_ms is None else [datetime.fromtimestamp(time_ms / 1000, UTC).date().isoformat().encode()]


COUNTER = (2).to_bytes(8, "big")
NUMBERS = {b"1": 1, b"2": 2, b"-3": -3, b"2.5": 2.5, b"1764000000000": 1_764_000_000_000, COUNTER: 2}
KEYS: tuple[tuple[str, Callable[[bytes, Image], list[bytes]]], ...] = (
    ("f:a", cell(b"f:a")),
    ("f:a", cell(b"f:a")),
    ("row", lambda row, image: [row]),
    ("row[0:1]", lambda row, image: [row[:1]]),
    ("row.split('/', 1)", piece),
    ("each g:", each_column),
    ("each f:t split ','", each_tag),
    ("day(f:d)", day),
)


def above_one(image: Image) -> bool:
    try:
        held = number(b"f:n")(image)
    except Bad:
        return False
    return held is not None and held > 1


CONDITIONS: tuple[tuple[str, Callable[[Image], bool]], ...] = (
    ("f:w=1", lambda image: image.get(b"f:w") == b"1"),
    ("f:w absent", lambda image: b"f:w" not in image),
    ("f:a!=x", lambda image: image.get(b"f:a") != b"x"),
    ("f:a>='y'", lambda image: b"f:a" in image and image[b"f:a"] >= b"y"),
    ("number(f:n)>1", above_one),
)
AMOUNTS = {"f:n": number(b"f:n"), "decimal(f:p, 1)": number(b"f:p", 10)}
ORDERS: tuple[tuple[str, bytes, bool], ...] = (
    ("f:n", b"f:n", False),
    ("f:n desc", b"f:n", True),
    ("text(f:a) desc", b"f:a", True),
    ("text(f:a)", b"f:a", False),
)
VALUES: dict[bytes, tuple[bytes, ...]] = {
    b"f:a": (b"x", b"x\0", b"y", b"z\0\1", b""),
    b"f:t": (b"x,y", b"y", b",z,,x", b""),
    b"f:d": (b"1764000000000", b"1", b"soon"),
    b"f:n": (b"1", b"2", b"-3", b"2.5", b"many", COUNTER),
    b"f:p": (b"1", b"2.5", b"-3"),
    b"f:w": (b"1", b"0", b""),
    b"g:x": (b"1", b"2"),
    b"g:y": (b"1", b"2"),
    b"h:other": (b"1", b"2"),
}


@dataclass
class Side:
    """A source, and the same source in plain functions."""

    rng: random.Random
    table: str
    letter: bytes
    parts: int
    spread: int
    cells: dict[bytes, dict[bytes, dict[int, bytes]]] = field(default_factory=dict)  # row, column, timestamp

    def __post_init__(self) -> None:
        rng = self.rng
        self.keys = [rng.choice(KEYS) for _ in range(self.parts)]
        self.conditions = rng.sample(CONDITIONS, rng.choice((0, 0, 1, 2)))
        self.sums = rng.sample(sorted(AMOUNTS), rng.randrange(3))
        self.averages = rng.sample(sorted(AMOUNTS), rng.randrange(2))
        self.order = rng.choice((None, *ORDERS))
        self.include = rng.sample([b"f:a", b"g:x", b"h:other"], rng.randrange(3))
        self.families = ("f", "g")  # by which a row is there
        self.source = Source(
            self.table,
            tuple(text for text, _ in self.keys),
            tuple(text for text, _ in self.conditions),
            {f"s{at}": text for at, text in enumerate(self.sums)},
            {f"a{at}": text for at, text in enumerate(self.averages)},
            self.order[0] if self.order else "",
            tuple(column.decode() for column in self.include),
            self.families,
        )

    # --- the table ---------------------------------------------------------------------------------

    def image(self, row: bytes) -> Image:
        return {column: held[max(held)] for column, held in self.cells.get(row, {}).items() if held}

    def change(self) -> bytes:
        """Make one row's mutation, of one or more operations; return the row."""
        rng, row = self.rng, self.rng.choice(ROWS)
        columns = self.cells.setdefault(row, {})
        for _ in range(rng.choice((1, 1, 2, 4))):
            column = rng.choice(tuple(VALUES))
            at, kind = rng.randrange(20), rng.random()
            if kind < 0.7:
                held = columns.setdefault(column, {})
                if column[:1] != b"f" or not held or at >= max(held):  # f keeps one version
                    if column[:1] == b"f":
                        held.clear()
                    held[at] = rng.choice(VALUES[column])
            elif kind < 0.95:
                named = rng.choice((column, column[:2]))
                for one in [one for one in columns if one.startswith(named)]:
                    columns[one] = {time: value for time, value in columns[one].items() if time > at}
            else:
                columns.clear()
        return row

    # --- what must come of it ----------------------------------------------------------------------

    def plain(self, row: bytes) -> dict[bytes, Member]:
        """Return the row's members by group.  Raises Bad if the row cannot be read."""
        image = self.image(row)
        wanted = {column for column in image if column[:2] in (b"f:", b"g:")}
        if b"h:other" in self.include and b"h:other" in image:
            wanted.add(b"h:other")
        if not wanted or not all(test(image) for _, test in self.conditions):
            return {}
        groups = [b""]
        for at, parts in enumerate([read(row, image) for _, read in self.keys]):  # one that cannot be read is told
            groups = [group + self._part(part, at) for group in groups for part in parts]
        if not groups:
            return {}
        if self.spread > 1:
            groups = [group + b"\0\1" + escape(bytes([crc32(row) % self.spread])) for group in groups]
        amounts = [1, *(AMOUNTS[text](image) or 0 for text in self.sums)]
        for text in self.averages:
            value = AMOUNTS[text](image)
            amounts += [value or 0, int(value is not None)]
        by = None
        if self.order:
            by = image.get(self.order[1]) if self.order[0].startswith("text") else number(self.order[1])(image)
        carried = tuple((column, image[column]) for column in self.include if column in image)
        return {group: (tuple(amounts), by, carried) for group in groups}

    def _part(self, part: bytes, at: int) -> bytes:
        if len(self.keys) == 1 and self.spread == 1:
            return part
        return (b"\0\1" if at else b"") + escape(part)

    def all_plain(self) -> tuple[dict[bytes, dict[bytes, Member]], int]:
        """Return the members of each group, and the number of unreadable rows."""
        found: dict[bytes, dict[bytes, Member]] = {}
        rejected = 0
        for row in ROWS:
            try:
                for group, member in self.plain(row).items():
                    found.setdefault(group, {})[self.letter + row] = member
            except Bad:
                rejected += 1
        return found, rejected

    def in_order(self, members: dict[bytes, Member]) -> list[bytes]:
        """Return the members with an order, sorted by it; equal members are sorted by row."""
        mine = sorted(name for name, member in members.items() if name[:1] == self.letter or not self.letter)
        placed = [name for name in mine if members[name][1] is not None]
        is_descending = self.order is not None and self.order[2]
        return sorted(placed, key=lambda name: members[name][1], reverse=is_descending)


def escape(part: bytes) -> bytes:
    return b"".join(b"\0\xff" if byte == 0 else bytes([byte]) for byte in part)


class Run:
    def __init__(self, number_of_run: int, left_out: Left, tell: Tell) -> None:
        rng = self.rng = random.Random(number_of_run)
        self._number, self._left_out, self._tell = number_of_run, left_out, tell
        parts = rng.choice((1, 1, 2, 3))
        is_join = rng.random() < 0.2
        spread = 4 if not is_join and rng.random() < 0.2 else 1
        letters = (b"l", b"r") if is_join else (b"",)
        self.sides = [Side(rng, f"t{at}", letter, parts, spread) for at, letter in enumerate(letters)]
        sources = [side.source for side in self.sides]
        view = checked(View("v", sources[0], sources[1] if is_join else None, spread))
        view = from_json(to_json(view))
        self.rules = rules_of(view)
        self.groups: dict[bytes, Group] = {}
        self.rejected = [0] * len(self.sides)
        above = Source("v", ("key[0]",), sums={"n": "v:count"}, where=("v:count exists",))
        self.above_rules = None if is_join else rules_of(bound(View("w", above), {"v": view}))[0]
        self.above: dict[bytes, Group] = {}
        self.seen: Counter[str] = Counter()

    def play(self) -> None:
        for step in range(STEPS):
            if step not in self._left_out:
                self.rng.seed(step_seed(self._number, step))
                self.step()
            if step % 8 == 7:
                self.check()
        self.check()

    def step(self) -> None:
        at = self.rng.randrange(len(self.sides))
        side, rules = self.sides[at], self.rules[at]
        before = {row: side.image(row) for row in ROWS}
        row = side.change()
        after = {row: side.image(row)}
        self._tell(f"{side.source}: {row!r} from {before[row]} to {after[row]}")
        if self.rng.random() < 0.5:  # records hold what is asked for; a check reads whole rows
            before, after = images_of(before, rules), images_of(after, rules)
        found = difference(rules, row, before[row], after[row])
        self.rejected[at] += found.rejected_more
        self.seen["shares"] += len(found.shares)
        self.seen["nothing"] += not found.shares
        for share in found.shares:
            old = self.totals(share.group)
            applied(self.groups, [share])
            self.follow(share.group, old)

    def totals(self, group: bytes) -> Image:
        held = self.groups.get(group, Group()).totals(self.rules)
        return {column: total.to_bytes(8, "big", signed=True) for column, total in held.items()}

    def follow(self, group: bytes, before: Image) -> None:
        """Notify the view of the view of a changed row."""
        if self.above_rules is not None:
            applied(self.above, difference(self.above_rules, group, before, self.totals(group)).shares)

    def check(self) -> None:
        expected: dict[bytes, dict[bytes, Member]] = {}
        for at, side in enumerate(self.sides):
            members, rejected = side.all_plain()
            assert self.rejected[at] == rejected
            self.seen["rejected"] += rejected
            for group, held in members.items():
                expected.setdefault(group, {}).update(held)
        assert self.groups.keys() == expected.keys()
        for group, members in expected.items():
            kept = self.groups[group]
            assert {name: (share.amounts, share.carry) for name, share in kept.members.items()} == {
                name: (amounts, carried) for name, (amounts, _, carried) in members.items()
            }
            ordered = [share.member for _, share in kept.ordered()]
            assert ordered == [name for side in self.sides for name in side.in_order(members)]
        whole = [
            (rules, [(row, side.image(row)) for row in ROWS])
            for rules, side in zip(self.rules, self.sides, strict=True)
        ]
        assert recomputed(whole).groups == self.groups
        self.seen["groups"] += len(expected)
        self.check_above(expected)

    def check_above(self, below: dict[bytes, dict[bytes, Member]]) -> None:
        if self.above_rules is None:
            return
        expected: dict[bytes, dict[bytes, tuple[int, int]]] = {}
        is_composite = self.sides[0].parts > 1 or self.sides[0].spread > 1
        for group, members in below.items():
            first = group.partition(b"\0\1")[0].replace(b"\0\xff", b"\0") if is_composite else group
            expected.setdefault(first, {})[group] = (1, len(members))
        kept = {
            group: {name: share.amounts for name, share in held.members.items()} for group, held in self.above.items()
        }
        assert kept == expected


def play(number_of_run: int, left_out: Left = frozenset(), tell: Tell = untold) -> Counter[str]:
    run = Run(number_of_run, left_out, tell)
    run.play()
    return run.seen


def test_random_views_over_random_histories() -> None:
    print(f"seeds from {SEED} on")
    seen = runs(play, SEED, SEEDS)
    print(dict(seen))
    assert min(seen.values()) > SEEDS, "there is something in the histories"


if __name__ == "__main__":
    main("tests.model.test_views_model", play, STEPS, SEED)
