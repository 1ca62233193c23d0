"""The epochs that a catalogue gives to starts: servers that died together start together."""

from __future__ import annotations

import asyncio

import pytest

from columnar.errors import OutcomeUnknown
from columnar.master.catalogue import Catalogue
from tests.support.changing_house import CatalogueRows


def test_epochs_that_are_raised_at_once_are_different_and_each_is_on_disk_when_it_is_given() -> None:
    async def scenario() -> None:
        rows = CatalogueRows()
        catalogue = Catalogue([], rows.write)

        async def raised() -> tuple[int, int]:
            return await catalogue.ownership.raise_epoch(), Catalogue(rows.read(), rows.write).ownership.epoch

        found = await asyncio.gather(*(raised() for _ in range(4)))
        assert sorted(epoch for epoch, _ in found) == [1, 2, 3, 4]
        assert all(epoch <= on_disk for epoch, on_disk in found)
        assert catalogue.ownership.epoch == Catalogue(rows.read(), rows.write).ownership.epoch

    asyncio.run(scenario())


def test_an_epoch_that_was_not_written_does_not_keep_the_next_ones() -> None:
    async def scenario() -> None:
        rows = CatalogueRows()
        catalogue = Catalogue([], rows.write)
        rows.failure = OutcomeUnknown("the fsync failed")
        with pytest.raises(OutcomeUnknown):
            await catalogue.ownership.raise_epoch()
        rows.failure = None
        assert await catalogue.ownership.raise_epoch() == Catalogue(rows.read(), rows.write).ownership.epoch

    asyncio.run(scenario())
