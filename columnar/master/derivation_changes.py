"""Changes of derivations: each is written to the catalogue first, then sent to every owner of regions.

    add     ADDING on disk -> every owner logs changes for it and marks where it begins -> the next state on disk
            -> owners deliver
    others  one write of the catalogue -> owners

Invariants:
    I1. The state after ADDING is written when every owner has marked where the derivation begins, so every later
        change of a source is in a log.
    I2. A derivation that was being added when its master ended, or when a step failed, is called off: no owner was
        sent it as one in use.  It is called off before the next change, at the next start, or when a disk that
        failed takes writes again.
    I3. All kinds share ``lock``.  While a caller holds it, nobody else adds or removes a derivation.  It is taken
        before the lock of the catalogue.

A subclass says how its set is sent, and how a half-made derivation is removed.  Knows nothing of logs, nor of the
number of owners.  Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from columnar.errors import ColumnarError
from columnar.master.catalogue import Catalogue
from columnar.model.derivations import DerivationSet
from columnar.model.region_messages import Message, Peer

S = TypeVar("S", bound=DerivationSet[Any])

_log = logging.getLogger(__name__)


class DerivationChanges(ABC, Generic[S]):
    def __init__(self, catalogue: Catalogue, owner: Peer, lock: asyncio.Lock) -> None:
        self._catalogue = catalogue
        self._owner = owner
        self.lock = lock
        self.at: Callable[[str], None] = lambda _step: None  # called after each step: tests crash there

    @property
    @abstractmethod
    def derivations(self) -> S:
        """The catalogue's set of this kind."""

    @abstractmethod
    def publication(self) -> Message[None]:
        """Return the set as a message to owners."""

    @abstractmethod
    async def forget_derivations(self, names: Sequence[str]) -> None:
        """Remove the named derivations from the catalogue and from the owners.  The caller holds the lock."""

    async def start(self) -> None:
        """Send the set to every owner, before any owner opens a region."""
        async with self.lock:
            await self.settle()
            await self.publish()

    async def publish(self) -> None:
        """Send the catalogue's set to every owner."""
        await self._owner.request_peer(self.publication())

    async def take_up(self, names: Sequence[str], state: str) -> None:
        """Make owners log changes for derivations stored as ADDING; return when every later change is logged."""
        try:
            self.at("written")
            await self.publish()
            self.at("marked")
            wanted = self.derivations
            for name in names:
                wanted = wanted.with_state(name, state)
            await self._catalogue.derivations.write_derivations(wanted)
        except BaseException:
            await self.call_off()
            raise
        self.at(state)
        await self.publish()

    async def call_off(self) -> None:
        try:
            await self.settle()
        except ColumnarError as error:
            _log.warning("what was begun of %ss is called off later: %s", self.derivations.noun, error.text)

    async def settle(self) -> None:
        """Call off half-made derivations (I2).  The caller holds the lock."""
        names = self.derivations.half_made()
        if names:
            await self.forget_derivations(names)
            _log.info("adding %s %s was called off", self.derivations.noun, ", ".join(names))

    async def catalogue_repaired(self) -> None:
        """Call off half-made derivations, as the disk takes writes again."""
        async with self.lock:
            await self.call_off()
