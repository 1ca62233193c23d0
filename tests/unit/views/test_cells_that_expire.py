"""Cells that expire behind a lasting one: a view is not built of rows that would change without a change."""

from __future__ import annotations

import asyncio

from columnar.model.mutation import Delete, Put
from columnar.model.schema import Family
from tests.support.view_house import ViewHouse, by_a, in_view_house


@in_view_house
async def test_a_version_that_expires_behind_a_lasting_one_is_told_of(house: ViewHouse) -> None:
    """Else a delete of the newest version would bring it to light, and nobody would hear of its end."""
    await house.changes.create(b"t", [Family("f", max_versions=3)])
    await house.write("t", b"1", Put(b"f", b"a", b"brief", None, 60_000))
    house.clock.now_ms += 1  # type: ignore[attr-defined]
    await house.write("t", b"1", Put(b"f", b"a", b"lasting"))
    await house.add(by_a())
    while not house.owner.views.view_statuses()[0].last_error:  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0.001)
    assert "row 1 of t has a time to live in f:a" in house.owner.views.view_statuses()[0].last_error
    await house.write("t", b"1", Delete(b"f", b"a"), Put(b"f", b"a", b"new"))
    await house.settled("by_a")
    await house.write("t", b"1", Delete(b"f", b"a", None, True))
    await house.settled("by_a")
    assert await house.totals("by_a") == {}
