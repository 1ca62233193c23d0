"""Fan-out of a change to its watchers: who is notified, in steps that a crash may repeat."""

from __future__ import annotations

from dataclasses import replace

import pytest

from columnar.triggers.api import Barrier, Checkpoint, Put
from tests.support.memory_notices import RowsClient, carry_out, change_of, derive_watchers
from tests.support.memory_rows import MemoryRows
from wikka_port import schema
from wikka_port.accounts.settings import DEFAULT
from wikka_port.accounts.tables import NEWS, USERS
from wikka_port.limits import WATCHED_ABOVE
from wikka_port.names import page_key
from wikka_port.notices import fan_out, notice_check, watching
from wikka_port.notices.notice_rows import (
    INBOX,
    WATCHERS,
    WATCHES,
    below_target,
    is_place,
    notice_of,
    pack_notify,
    page_target,
    targets_of,
    time_of_place,
)
from wikka_port.notices.watching import TooManyWatches, Watching
from wikka_port.schema import Head

KEY = page_key("Docs/Intro")
HEAD = Head(2, b"a" * 16)
AT = 1_700_000_000_000


def made() -> tuple[MemoryRows, Watching]:
    rows = MemoryRows()
    return rows, Watching(rows, lambda: 5, lambda changed: derive_watchers(rows, changed))  # type: ignore[arg-type]


def put(by: str = "", *, minor: bool = False) -> dict[bytes, bytes]:
    """The cell of an edit, as its commit puts it."""
    cell = pack_notify(by, name="Docs/Intro", head=HEAD, time_ms=AT, is_new=False, minor=minor)
    return {schema.NOTIFY: cell}


def notified(rows: MemoryRows, cells: dict[bytes, bytes], **given: object) -> list[str]:
    """Whom a change notifies."""
    rows.data.pop(INBOX, None)
    carry_out(rows, fan_out.notices(change_of(KEY, cells, **{"at_ms": AT, **given}), RowsClient(rows)))  # type: ignore[arg-type]
    return [row.partition(b"\0")[0].decode() for row in sorted(rows.data.get(INBOX, {}))]


def test_watchers_of_the_page_and_of_the_pages_above_are_notified_once_and_never_the_author() -> None:
    rows, watching = made()
    for name, target in (
        *(("ada", page_target(KEY)), ("ada", below_target("Docs")), ("bob", below_target("DOCS/"))),
        *(("eve", below_target("")), ("dan", below_target("Doc")), ("kim", page_target(page_key("Docs")))),
    ):
        watching.begin(name.encode(), target, "", DEFAULT)
    assert notified(rows, put()) == ["ada", "bob", "eve"]
    assert notified(rows, put("Ada")) == ["bob", "eve"]
    assert rows.row(USERS, b"ada")[NEWS] == b"1700000000000"
    watching.end(b"bob", below_target("Docs"))
    assert notified(rows, put()) == ["ada", "eve"]


def test_minor_edits_notify_those_who_want_them() -> None:
    rows, watching = made()
    watching.begin(b"ada", page_target(KEY), "", DEFAULT)
    watching.begin(b"bob", page_target(KEY), "", replace(DEFAULT, minor=True))
    assert notified(rows, put(minor=True)) == ["bob"]
    watching.take_settings(b"ada", replace(DEFAULT, minor=True))
    watching.take_settings(b"bob", DEFAULT)
    assert notified(rows, put(minor=True)) == ["ada"]
    assert notified(rows, put()) == ["ada", "bob"]


def test_imports_moves_and_repeats_notify_nobody() -> None:
    rows, watching = made()
    watching.begin(b"ada", page_target(KEY), "", DEFAULT)
    assert notified(rows, {schema.BODY: b"an import"}) == []
    assert notified(rows, put(), at_ms=AT + 1) == [], "a move has brought the cell"
    assert notified(rows, put(), is_repeat=True) == []
    assert notified(rows, {schema.NOTIFY: b"["}) == []
    assert notified(rows, put()) == ["ada"]


def test_a_fan_out_goes_on_behind_its_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash at each place: the rows of both runs together are those of one."""
    monkeypatch.setattr(fan_out, "FAN_OUT_STEP", 3)
    rows, watching = made()
    # each account begins as the one before: the row behind a step is the next one, not the next name
    for number in range(8):
        watching.begin(b"u" * (number + 1), page_target(KEY) if number % 2 else below_target("Docs"), "", DEFAULT)
    client = RowsClient(rows)
    whole = list(fan_out.notices(change_of(KEY, put(), at_ms=AT), client))  # type: ignore[arg-type]
    wanted = {(one.table, one.row) for one in whole if isinstance(one, Put)}
    assert len(wanted) == 16
    assert sum(isinstance(one, Checkpoint) for one in whole) == 2
    for crash in range(len(whole)):
        first = whole[:crash]
        kept = [one.state for one in first if isinstance(one, Checkpoint)]
        change = change_of(KEY, put(), at_ms=AT, progress=kept[-1] if kept else b"")
        second = list(fan_out.notices(change, client))  # type: ignore[arg-type]
        assert {(one.table, one.row) for one in [*first, *second] if isinstance(one, Put)} == wanted, crash
        if kept:
            assert len(second) < len(whole), "it does not begin anew"


def test_a_fan_out_gives_way_after_few_watchers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each slice of the worker ends with a barrier, also where watchers are left out."""
    monkeypatch.setattr(fan_out, "FAN_OUT_STEP", 10)
    monkeypatch.setattr(fan_out, "FAN_OUT_SLICE", 3)
    rows, watching = made()
    for number in range(25):
        watching.begin(b"u%02d" % number, page_target(KEY), "", replace(DEFAULT, minor=number % 2 == 0))
    for minor, most in ((False, 3), (True, 2)):
        slices = [0]
        for one in fan_out.notices(change_of(KEY, put(minor=minor), at_ms=AT), RowsClient(rows)):  # type: ignore[arg-type]
            slices = [*slices, 0] if isinstance(one, Barrier) else [*slices[:-1], slices[-1] + isinstance(one, Put)]
        assert sum(slices) == (26 if minor else 50)
        assert max(slices) == 2 * most
        assert len(slices) == 9


def test_targets_are_bounded_and_places_are_checked() -> None:
    assert targets_of(KEY, "A/b/C") == [page_target(KEY), b"b", b"ba", b"ba/b", b"ba/b/c"]
    assert len(targets_of(KEY, "/".join("x" * 100))) == WATCHED_ABOVE + 2
    rows, watching = made()
    watching.begin(b"ada", page_target(KEY), "", DEFAULT)
    notified(rows, put())
    (row, cells), *_ = rows.data[INBOX].items()
    notice = notice_of(row, cells)
    assert notice is not None
    assert (notice.time_ms, notice.head.number, notice.page, notice.history) == (
        1_700_000_000_000,
        2,
        "Docs/Intro",
        KEY,
    )
    assert time_of_place(notice.place) == notice.time_ms
    assert is_place(notice.place)
    assert not any(map(is_place, (b"", b"x" * 29, notice.place + b"0", notice.place[:-1] + b"\0")))
    assert notice_of(b"ada\0junk", cells) is None


def test_an_account_watches_a_bounded_number_of_things(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "WATCHES_MAX", 2)
    _, own = made()
    for name in ("A", "B"):
        own.begin(b"ada", below_target(name), name, DEFAULT)
    own.begin(b"ada", below_target("A"), "A", DEFAULT)
    with pytest.raises(TooManyWatches):
        own.begin(b"ada", below_target("C"), "C", DEFAULT)
    own.begin(b"adam", below_target("C"), "C", DEFAULT)
    own.forget(b"ada")
    assert [one.name for one in own.of(b"adam")] == ["C"]


def test_the_check_finds_each_fault() -> None:
    rows, own = made()
    rows.put(USERS, b"ada", {b"account:id": b"1", b"account:status": b"active"})
    rows.put(USERS, b"bob", {b"account:id": b"1", b"account:status": b"deleted"})
    for name in (b"ada", b"bob"):
        own.begin(name, page_target(KEY), "", DEFAULT)
    notified(rows, put())
    watcher = page_target(KEY) + b"\0ada"
    rows.put(WATCHERS, page_target(KEY) + b"\0eve", {b"w:minor": b""})
    del rows.data[WATCHERS][watcher]
    found = list(notice_check.differences(rows, 9, lambda at: at))  # type: ignore[arg-type]
    assert {(one.kind.value, one.table, one.row.partition(b"\0")[0][:3]) for one in found} == {
        ("missing", WATCHERS, b"p" + KEY[:2]),
        ("stale", WATCHERS, b"p" + KEY[:2]),
        ("stale", WATCHES, b"bob"),
        ("stale", INBOX, b"bob"),
    }
