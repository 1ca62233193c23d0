"""Fan-out of a job's moves: each watcher gets one notice of his pages, in rounds of any size, over crashes."""

from __future__ import annotations

import random

import pytest

from columnar.triggers.api import Barrier, Change, ChangedCell, Checkpoint, Put
from tests.support.memory_notices import RowsClient
from tests.support.memory_rows import MemoryRows
from tests.support.seeds import seed
from wikka_port.limits import FAN_OUT_SLICE
from wikka_port.moving.journal import DELETE, DONE, ITEM, MOVES, NOTIFIED, PURGE, RENAME, STATE, Move
from wikka_port.names import page_key
from wikka_port.notices import move_notices
from wikka_port.notices.notice_rows import (
    INBOX,
    OUTGOING,
    WATCHERS,
    below_target,
    notice_of,
    page_target,
    targets_of,
    watcher_row,
)
from wikka_port.schema import Head, cells_of

SEED = seed(3907)
JOB = b"a" * 16


def move(number: int, source: str, target: str, kind: str = RENAME, **given: object) -> Move:
    head = Head(1, b"t" * 16)
    return Move(
        b"%016x" % number, kind, source, target, b"", head, 1_000 + number, "Root", "account", "", False, **given
    )  # type: ignore[arg-type]


class House:
    """Moves of a job, and watchers of some pages."""

    def __init__(self, count: int, accounts: int, rng: random.Random) -> None:
        self.rows = MemoryRows()
        self.moves = [move(number, f"Docs/{number:02}", f"Texts/{number:02}", job=JOB) for number in range(count)]
        self.watched: dict[bytes, set[bytes]] = {}
        for one in self.moves:
            self.rows.put(MOVES, one.id, {STATE: DONE, **cells_of(one)})
            self.rows.put(MOVES, JOB + b"+", {ITEM + one.id: b"1"})
        places = [page_target(page_key(one.source)) for one in self.moves]
        places += [below_target(name) for name in ("", "Docs", "Texts", "Texts/03", "Else")]
        for number in range(accounts):
            account = b"u" * (number % 7 + 1) + b"%d" % number
            self.watched[account] = set(rng.sample(places, rng.randint(0, 4)))
            for target in self.watched[account]:
                self.rows.put(WATCHERS, watcher_row(target, account), {b"w:mail": b"now" if number % 2 else b""})

    def expected(self) -> dict[bytes, list[bytes]]:
        """Return the moves that each account learns of, told in another way than the code does."""
        found = {}
        for account, targets in self.watched.items():
            of = [
                one.id
                for one in sorted(self.moves, key=lambda one: one.target)
                if targets & {*targets_of(one.history, one.source), *targets_of(one.history, one.target)}
            ]
            if of:
                found[account] = of[: move_notices.NOTICED_MOVES]
        return found

    def effects(self, progress: bytes = b"") -> list[object]:
        put = (ChangedCell("put", NOTIFIED, 1, b"1"),)
        change = Change(MOVES, JOB + b"+", 1, "", put, {NOTIFIED: b"1"}, progress=progress)
        return list(move_notices.notices(change, RowsClient(self.rows)))  # type: ignore[arg-type]


def inbox(effects: list[object]) -> dict[bytes, list[bytes]]:
    found: dict[bytes, list[bytes]] = {}
    for one in effects:
        if isinstance(one, Put) and one.table == INBOX:
            notice = notice_of(one.row, one.cells)
            assert notice is not None
            account = one.row.partition(b"\0")[0]
            assert found.get(account, notice.move_ids) == notice.move_ids, "a second run writes the same"
            found[account] = notice.move_ids
    return found


@pytest.mark.parametrize("at_once", [1, 2, 5, 1_000])
@pytest.mark.parametrize("noticed", [2, 50])
def test_each_watcher_gets_one_notice_with_his_pages(
    at_once: int, noticed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(move_notices, "WATCHERS_AT_ONCE", at_once)
    monkeypatch.setattr(move_notices, "NOTICED_MOVES", noticed)
    for turn in range(5):
        house = House(12, 40, random.Random(SEED + turn))
        effects = house.effects()
        assert inbox(effects) == house.expected()
        rows = [one.row for one in effects if isinstance(one, Put) and one.table == INBOX]
        assert rows == sorted(rows), "in the order of their names, for the checkpoints"
        assert len(rows) == len(set(rows))
        mails = sum(isinstance(one, Put) and one.table == OUTGOING for one in effects)
        assert 0 < mails < len(rows)


def test_a_crash_anywhere_leaves_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(move_notices, "WATCHERS_AT_ONCE", 7)
    monkeypatch.setattr(move_notices, "FAN_OUT_STEP", 5)
    house = House(12, 40, random.Random(SEED))
    whole = house.effects()
    assert sum(isinstance(one, Checkpoint) for one in whole) >= 5
    for crash in range(len(whole)):
        kept = [one.state for one in whole[:crash] if isinstance(one, Checkpoint)]
        again = house.effects(kept[-1] if kept else b"")
        assert inbox([*whole[:crash], *again]) == house.expected(), crash
        assert not kept or len(again) < len(whole)


def test_slices_are_short_and_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(move_notices, "WATCHERS_AT_ONCE", 5)
    sizes = []

    def smallest(count: int, found: dict[bytes, object]) -> list[bytes]:
        sizes.append(len(found))
        return sorted(found)[:count]

    monkeypatch.setattr(move_notices, "nsmallest", smallest)
    house = House(40, 0, random.Random(SEED))
    for number in range(400):
        target = page_target(page_key(house.moves[number % 40].source))
        house.rows.put(WATCHERS, watcher_row(target, b"u%03d" % number), {})
    slices = [0]
    for one in house.effects():
        slices = [*slices, 0] if isinstance(one, Barrier) else [*slices[:-1], slices[-1] + isinstance(one, Put)]
    assert sum(slices) == 2 * 400
    assert max(slices) <= 2 * FAN_OUT_SLICE
    assert 2 * 5 < max(sizes) <= 3 * 5


def test_what_notifies_nobody() -> None:
    house = House(3, 10, random.Random(SEED))
    client = RowsClient(house.rows)

    def notified(one: Move, **given: object) -> int:
        put = (ChangedCell("put", STATE, 1, DONE),)
        change = Change(MOVES, one.id, 1, "", put, {STATE: DONE, **cells_of(one)}, **given)  # type: ignore[arg-type]
        return sum(isinstance(effect, Put) for effect in move_notices.notices(change, client))  # type: ignore[arg-type]

    for target in ("", "Docs"):
        house.rows.put(WATCHERS, watcher_row(below_target(target), b"ada"), {})
        house.rows.put(WATCHERS, watcher_row(below_target(target), b"root"), {})
    assert notified(move(77, "Docs/x", "Docs/y")) >= 2
    assert notified(move(77, "Docs/x", "Docs/x", DELETE)) >= 2
    assert notified(move(77, "Docs/x", "Docs/y", job=JOB)) == 0, "the job does"
    assert notified(move(77, "Docs/x", "Docs/y", quiet=True)) == 0
    assert notified(move(77, "Docs/x", "Docs/y", PURGE)) == 0
    assert notified(move(77, "Docs/x", "Docs/y"), is_repeat=True) == 0
    rows = {effect.row for effect in _of(move(77, "Docs/x", "Docs/y"), client)}
    assert not any(row.startswith(b"root\0") for row in rows), "the mover himself"


def _of(one: Move, client: RowsClient) -> list[Put]:
    change = Change(MOVES, one.id, 1, "", (ChangedCell("put", STATE, 1, DONE),), {STATE: DONE, **cells_of(one)})
    return [effect for effect in move_notices.notices(change, client) if isinstance(effect, Put)]  # type: ignore[arg-type]
