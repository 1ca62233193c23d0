"""Restarts and stops that a server begins by itself: the command looks, over new connections, until they are over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest
from thriftpy2.transport import TTransportException

from columnar.client.cluster import ClusterChange, ServerStatus
from columnar.client.errors import IOError
from columnar.model.cluster_status_records import BEING_CHANGED
from columnar.shell import server_changes
from columnar.shell.connecting import Refused
from columnar.shell.private_connection import LONGEST_S
from columnar.shell.server_changes import SILENT_S, ServerChanges


def status(state: str, incarnation: int, *notes: str) -> ServerStatus:
    return ServerStatus("s1", state, incarnation, False, 0, 2, 0.0, 0.0, 0, "9.9", "", 1, 3, notes)


BUSY = status("up", 1, BEING_CHANGED)
GONE = TTransportException(TTransportException.END_OF_FILE, "closed")


class Store:
    """The store and its clock: ``looks`` are what each look finds, the last one from then on."""

    is_terminal = False
    address = "h:9090"

    def __init__(self, *looks: ServerStatus | Exception) -> None:
        self._looks = list(looks)
        self.now_s = 0.0
        self.made: list[float] = []  # the patience of each new connection
        self.open = 0
        self.asked: list[str] = []
        self.connection = self
        self.output = self

    # --- as a ``Server`` and its connections -------------------------------------------------------

    def patient(self, seconds: float) -> Any:
        self.made.append(seconds)
        self.open += 1
        return self

    def close(self) -> None:
        self.open -= 1

    # --- as ``ClusterAdmin`` -----------------------------------------------------------------------

    def servers(self) -> Any:
        found = self._looks.pop(0) if len(self._looks) > 1 else self._looks[0]
        if isinstance(found, Exception):
            raise found
        return type("Status", (), {"servers": (found,)})

    def restart(self, name: str) -> ClusterChange:
        self.asked.append(name)
        return ClusterChange(f"{name}.1 begins to restart", False, (), (), 0)

    def stop(self, name: str) -> ClusterChange:
        self.asked.append(name)
        return ClusterChange(f"{name}.1 begins to stop", False, (), (), 0)

    # --- as the clock ------------------------------------------------------------------------------

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


@pytest.fixture
def changes(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Store, ServerChanges]]:
    def made(*looks: ServerStatus | Exception) -> tuple[Store, ServerChanges]:
        store = Store(*looks)
        monkeypatch.setattr(server_changes, "ClusterAdmin", lambda connection: connection)
        monkeypatch.setattr(server_changes, "time", store)
        return store, ServerChanges(cast(Any, store))

    return made


Made = Callable[..., tuple[Store, ServerChanges]]


def test_a_restart_is_over_when_a_later_start_is_up_and_nothing_more_is_done_to_it(changes: Made) -> None:
    later = status("starting", 2, BEING_CHANGED)
    store, made = changes(status("up", 1), BUSY, GONE, OSError("refused"), IOError("try again"), later, status("up", 2))
    change = made.restart("s1")
    assert (change.text, change.done) == ("s1 is up again as s1.2", True)
    assert store.made == [0.0] * 4, "a new one after each that broke, for looks alone"
    assert made.admin is store
    assert store.made[-1] == LONGEST_S, "what comes next has a connection whose answers may take long"
    made.close()
    assert store.open == 0
    assert store.asked == ["s1"], "it is asked for once"


def test_a_stop_is_over_when_the_server_is_down(changes: Made) -> None:
    _, made = changes(BUSY, status("down", 1))
    assert made.stop("s1").text == "s1.1 has stopped; 'columnar restart s1' starts it again"


def test_a_change_that_failed_says_why(changes: Made) -> None:
    _, made = changes(status("up", 1), BUSY, status("up", 1, "its last stop or restart failed: no other is up"))
    with pytest.raises(Refused, match="s1 was not restarted: its last stop or restart failed: no other is up; the log"):
        made.restart("s1")
    _, made = changes(BUSY, status("up", 1))
    with pytest.raises(Refused, match="s1 was not stopped: it is up; the log"):
        made.stop("s1")


def test_nobody_waits_for_ever(changes: Made) -> None:
    store, made = changes(BUSY, GONE)
    with pytest.raises(Refused, match="nobody has answered at h:9090 for 60 s; it goes on"):
        made.stop("s1")
    assert SILENT_S < store.now_s < SILENT_S + 2
    assert store.open == 0
    store, made = changes(BUSY)
    with pytest.raises(Refused, match="is not over after 900 s"):
        made.stop("s1")
    assert LONGEST_S < store.now_s < LONGEST_S + 2
