"""(pure) Feeds: each writes the changes of a table into a topic, as messages of one form.

    none --adding--> adding --started--> running

A feed is a derivation (``derivations``): its states, its number and its removal are theirs.

    definition := JSON {"version": 1, "name", "table", "topic", "format", "columns": [...], "values": [...], "from"}

``columns`` are families, or ``family:qualifier``; none means all.  ``values`` declare the forms of values, as
``debezium.forms_of`` reads them.  Both are latin-1 of the bytes.

Knows nothing of regions, followers and records.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Literal

from columnar.errors import ColumnarError, DamagedData, FeedError, IllegalArgument
from columnar.model.change_stream import BEGINNING, NOW
from columnar.model.debezium import forms_of
from columnar.model.derivations import DerivationSet, RowCells
from columnar.model.flow_graph import Flow, Place
from columnar.model.flow_status import FEED
from columnar.model.schema import Table
from columnar.model.topic import checked_name

DEBEZIUM_JSON: Final = "debezium-json"
FORMATS: Final = (DEBEZIUM_JSON,)
FEEDS: Final = 1_000  # of a store
FEED_COLUMNS: Final = 1_000  # of a feed
_FeedState = Literal["adding", "running"]
FEED_STATES: Final[dict[str, _FeedState]] = {"adding": "adding", "running": "running"}
_NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,248}", re.ASCII)
_VERSION: Final = 1
_TOPIC: Final = "topic:"


@dataclass(frozen=True, slots=True)
class Feed:
    name: str
    table: str = ""
    topic: str = ""
    format: str = DEBEZIUM_JSON
    columns: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    start: str = NOW  # or BEGINNING: the rows that are there come first
    state: _FeedState = "running"
    number: int = 0
    unusable_reason: str = ""  # why it cannot be used
    row_cells: RowCells = ()  # of an unusable feed: its row as it is on disk

    @property
    def is_in_use(self) -> bool:
        return self.state != "adding" and not self.unusable_reason

    @property
    def flow(self) -> Flow:
        """The feed's part of the graph of flows."""
        families = sorted({column.partition(":")[0] for column in self.columns}) or [""]
        return Flow(FEED, self.name, tuple(Place(self.table, one) for one in families), (Place(_TOPIC + self.topic),))

    def images(self, table: Table) -> dict[bytes, frozenset[bytes] | None]:
        """Return the columns of the table that the feed has: for each family its qualifiers, or None for all."""
        families = {family.bytes_name for family in table.families}
        if not self.columns:
            return dict.fromkeys(families)
        found: dict[bytes, frozenset[bytes] | None] = {}
        for column in self.columns:
            family, _, qualifier = column.encode("latin-1").partition(b":")
            known = found.get(family, frozenset())
            found[family] = None if not qualifier or known is None else known | {qualifier}
        return {family: qualifiers for family, qualifiers in found.items() if family in families}

    def is_same(self, other: Feed) -> bool:
        """Tell whether the two are defined in the same way."""
        return to_json(self) == to_json(other)


@dataclass(frozen=True, slots=True)
class FeedSet(DerivationSet[Feed]):
    noun: ClassVar[str] = FEED
    removal: ClassVar[str] = "drop"
    error: ClassVar[type[ColumnarError]] = FeedError

    all: tuple[Feed, ...] = ()

    @property
    def were_any(self) -> bool:
        """Whether the store has, or had, a feed."""
        return bool(self.all) or self.numbers is None or self.numbers.given > 0

    def readers(self, table: str) -> list[Feed]:
        """Return the feeds of the table, including those that are being added or that rest."""
        return [one for one in self.all if one.table == table]

    def adding(self, feed: Feed) -> FeedSet:
        """Return the set with a new feed in state "adding".  Raises FeedError if no number can be given."""
        assert self.find(feed.name) is None, "its name is free"
        numbers = self.next_numbers()
        return replace(self, numbers=numbers).put_one(replace(feed, state="adding", number=numbers.given))


def checked(feed: Feed) -> Feed:
    """Return the feed unchanged.  Raises IllegalArgument, with the fault and its remedy."""
    if not _NAME.fullmatch(feed.name):
        raise IllegalArgument(f"feed name '{feed.name}': use up to 249 letters, digits, '_', '-' and '.'; give --name")
    checked_name(feed.topic)
    if feed.format not in FORMATS:
        raise IllegalArgument(f"format '{feed.format}' of a feed: it is one of {', '.join(FORMATS)}")
    if feed.start not in (NOW, BEGINNING):
        raise IllegalArgument(f"a feed begins from {NOW} or {BEGINNING}, not '{feed.start}'")
    if len(feed.columns) > FEED_COLUMNS:
        raise IllegalArgument(f"a feed names at most {FEED_COLUMNS} columns; name families")
    for column in feed.columns:
        if not column.partition(":")[0]:
            raise IllegalArgument("a column of a feed is written family:qualifier, or family for all of it")
    forms_of(feed.values)
    return feed


def check_table(feed: Feed, table: Table) -> None:
    """Raise IllegalArgument if the table has not the families that the feed names."""
    names = {family.bytes_name.decode("latin-1") for family in table.families}
    missing = sorted({column.partition(":")[0] for column in feed.columns} - names)
    if missing:
        raise IllegalArgument(f"table {table.name} has no family {missing[0]}; it has {', '.join(sorted(names))}")


# --- bytes -------------------------------------------------------------------------------------------


def to_json(feed: Feed) -> bytes:
    held = {
        "version": _VERSION, "name": feed.name, "table": feed.table, "topic": feed.topic, "format": feed.format,
        "columns": list(feed.columns), "values": list(feed.values), "from": feed.start,
    }  # fmt: skip
    return json.dumps(held, sort_keys=True).encode()


def from_json(data: bytes) -> Feed:
    """Raises DamagedData."""
    try:
        held: dict[str, Any] = json.loads(data)
        if held["version"] != _VERSION:
            raise DamagedData(f"definition of a feed of version {held['version']}; this program knows {_VERSION}")
        name, table, topic, form, start = [str(held[key]) for key in ("name", "table", "topic", "format", "from")]
        columns, values = [tuple(map(str, held[key])) for key in ("columns", "values")]
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedData(f"definition of a feed: {error!r}") from error
    return Feed(name, table, topic, form, columns, values, start)


def list_to_json(feeds: FeedSet) -> bytes:
    """Return the feeds as a JSON list of definitions with state, number and why a feed cannot be used."""
    return json.dumps(
        [
            json.loads(to_json(one)) | {"state": one.state, "number": one.number, "unusable": one.unusable_reason}
            for one in feeds.all
        ]
    ).encode()


def list_from_json(data: bytes) -> list[Feed]:
    """Return feeds from a reply.  Raises DamagedData."""
    try:
        held: list[dict[str, Any]] = json.loads(data)
        return [
            replace(
                from_json(json.dumps(one).encode()),
                state=FEED_STATES[one["state"]],
                number=int(one["number"]),
                unusable_reason=str(one["unusable"]),
            )
            for one in held
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedData(f"a list of feeds: {error!r}") from error
