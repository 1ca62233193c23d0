"""Dead logs that regions of a server lack: how far each is read, and how long it is kept."""

from __future__ import annotations

from columnar.errors import HostError
from columnar.model.owner import Incarnation, OwnershipPeriod
from columnar.model.owner_messages import Segments
from columnar.regions.log.lacking_logs import LackingLogs
from columnar.storage.dead_logs import DeadLog, DeadLogs, Sealed
from columnar.storage.ownership import THIS_RUN, LogPart

HERE, OTHER = Incarnation("s1", 5), Incarnation("s2", 3)
FIRST, SECOND = "00000001.segment", "00000002.segment"
SHORT: Segments = ((FIRST, 90),)
LONG: Segments = ((FIRST, 200), (SECOND, 40))


class OwnLog:
    def unreplayed_parts(self, region: str) -> tuple[LogPart, ...]:
        return ()

    def brought_in(self, region: str) -> None:
        pass


class Logs:
    def __init__(self) -> None:
        self.server_log = OwnLog()
        self.dead_logs = DeadLogs()
        self.read: list[Segments] = []
        self.is_readable = True

    def dead_log(self, _incarnation: str, lengths: Segments) -> DeadLog:
        if not self.is_readable:
            raise HostError("the disk does not answer")
        self.read.append(lengths)
        return DeadLog("nowhere", Sealed())


def lacking(logs: Logs, *regions: int) -> LackingLogs:
    found = LackingLogs(HERE, logs)
    for region in regions:
        found.lacks(region, [OwnershipPeriod(OTHER, 7)])
    return found


def test_a_log_that_has_grown_is_read_anew_for_the_regions_that_still_lack_it() -> None:
    """A server that lives closed one region, and later another: records of the second end behind the first extent."""
    logs = Logs()
    found = lacking(logs, 1, 2)
    found.know([(OTHER, SHORT)])
    assert found.parts_of(1) == (LogPart("s2.3", 7),)
    found.know([(OTHER, LONG)])
    found.parts_of(2)
    found.parts_of(1)
    assert logs.read == [SHORT, LONG]
    found.check_invariants()
    for region in (1, 2):
        assert logs.dead_logs.of("s2.3") is not None
        found.has_all(region)
        found.check_invariants()
    assert logs.dead_logs.of("s2.3") is None


def test_an_extent_that_is_told_late_shortens_nothing() -> None:
    logs = Logs()
    found = lacking(logs, 1)
    found.know([(OTHER, LONG)])
    found.know([(OTHER, SHORT)])
    found.parts_of(1)
    assert logs.read == [LONG]


def test_a_log_that_cannot_be_read_to_its_whole_extent_is_not_here() -> None:
    """Its regions are not opened then."""
    logs = Logs()
    found = lacking(logs, 1)
    found.know([(OTHER, SHORT)])
    found.parts_of(1)
    found.know([(OTHER, LONG)])
    logs.is_readable = False
    found.parts_of(1)
    assert logs.dead_logs.of("s2.3") is None
    logs.is_readable = True
    found.parts_of(1)
    assert logs.read == [SHORT, LONG]
    found.check_invariants()


def test_own_records_are_in_this_runs_log() -> None:
    logs = Logs()
    found = LackingLogs(HERE, logs)
    found.lacks(1, [OwnershipPeriod(HERE, 2)])
    assert found.parts_of(1) == (LogPart(THIS_RUN, 2),)
    assert logs.read == []
    found.check_invariants()
