"""Followers whose work the governor runs in steps, as those of views and feeds.

A follower that fails pauses, for longer each time, and tries again without a limit: its region cannot be read now, or
what it writes to takes nothing.  It gives up no change.  Owned by the loop.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic, perf_counter
from typing import ClassVar

from columnar.errors import ColumnarError, ProgramFault
from columnar.flows.delivery_state import DeliveryState
from columnar.flows.figures import Figures
from columnar.flows.follower import Follower
from columnar.flows.follower_name import FollowerName
from columnar.flows.governor import STEP_S, GovernedStep, Governor
from columnar.regions.region import Region
from columnar.runtime.faults import FAULTS, UNEXPECTED
from columnar.runtime.planned_step import PlannedStep


@dataclass(frozen=True, slots=True)
class FollowerServices:
    """Parts that all followers of a kind share on a server.  Constant."""

    governor: Governor
    is_intake_paused: Callable[[Follower], bool]  # no change of its region may be taken up now
    step_follower: Callable[[Follower], None]
    progressed: Callable[[Follower], None]
    figures: Figures


class GovernedFollower(Follower):
    loop: ClassVar[str]  # the name of its steps, as for ``Faults.met``

    def __init__(
        self,
        name: FollowerName,
        region: Region,
        families: frozenset[bytes],
        state: DeliveryState,
        services: FollowerServices,
    ) -> None:
        super().__init__(name, region, families, state)
        self._services = services
        self._is_there = True
        self._steps = GovernedStep(services.governor, self.loop, self._work)
        self._retry = PlannedStep(self.loop, lambda: services.step_follower(self))  # no change is taken before it runs

    # --- what a kind decides -------------------------------------------------------------------------

    @abstractmethod
    def _begin_work(self) -> None:
        """Do what a step begins with."""

    @abstractmethod
    def _do_a_little(self) -> bool:
        """Do a part of a step; return whether there is more to do."""

    def _after_work(self) -> None:
        """Notify callers of what a step has done."""
        self._services.progressed(self)

    def _drop_work(self, error: ColumnarError) -> None:
        """Take back what was begun and has failed."""

    # --- steps ---------------------------------------------------------------------------------------

    def dropped(self) -> None:
        self._is_there = False
        self._retry.cancel()

    def _may_work(self) -> bool:
        return self._is_there and not self._retry.is_planned and not self._services.is_intake_paused(self)

    def _work(self) -> bool:
        """Do one step for the governor.  Returns whether there is more to do."""
        if not self._may_work():
            return False
        try:
            self._begin_work()
            ends_s = perf_counter() + STEP_S
            while (more := self._do_a_little()) and perf_counter() < ends_s:
                pass
        except ColumnarError as error:
            self._failed(error)
            more = False
        except UNEXPECTED as fault:
            FAULTS.met(self.loop, fault)
            self._failed(ProgramFault(fault))
            more = False
        self._after_work()
        return more

    def _failed(self, error: ColumnarError) -> None:
        """Retry after a growing pause."""
        self._retry.after(self.state.fail_follower(error.wire_message))  # first, so that it retries if the rest fails
        self._drop_work(error)
        self._services.figures.of(self.name, monotonic()).note_failed()
        if self.logged_failure.is_news(error.text):
            place = self.region.info.encoded
            self._log.warning("%s stops in region %s, and tries again after pauses: %s", self.name, place, error.text)

    def _succeeded(self) -> None:
        self.state.end_failures()
        if self.logged_failure.has_ended():
            self._log.info("%s goes on in region %s", self.name, self.region.info.encoded)

    @property
    def _log(self) -> logging.Logger:
        return logging.getLogger(type(self).__module__)
