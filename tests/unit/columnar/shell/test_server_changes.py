"""Restarts and stops that a server begins by itself: the command looks, over new connections, until they are over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest
from thriftpy2.transport import TTransportException

from columnar.client.cluster import ClusterChange, ClusterStatus, ServerStatus
from columnar.client.errors import IOError
from columnar.model.cluster_status_records import BEING_CHANGED
from columnar.shell import server_changes
from columnar.shell.connecting import Refused
from columnar.shell.private_connection import LONGEST_S
from columnar.shell.server_changes import SILENT_S, ServerChanges, order_servers


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
        self.lost: list[Exception] = []  # in the place of the first answers
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
        if self.lost:
            raise self.lost.pop(0)
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


def test_a_restart_that_a_leader_left_half_done_is_requested_again(changes: Made) -> None:
    stopped = status("down", 0)  # by the next leader, which has not seen it run
    store, made = changes(status("up", 1), GONE, status("starting", 0), stopped, stopped, BUSY, status("up", 2))
    store.lost = [
        IOError(b"CallTimeoutException: the leader ended before it answered"),
        IOError(b"DoNotRetryIOException: there is no server s1"),  # the next leader has not heard of it yet
    ]
    assert made.restart("s1").text == "s1 is up again as s1.2"
    assert store.asked == ["s1", "s1", "s1"]


def test_a_restart_whose_answer_alone_was_lost_is_not_repeated(changes: Made) -> None:
    store, made = changes(status("up", 1), BUSY, status("up", 2))
    store.lost = [GONE]
    assert made.restart("s1").text == "s1 is up again as s1.2"
    assert store.asked == ["s1"]


def test_a_command_begins_while_nobody_leads(changes: Made) -> None:
    nobody = IOError(b"NotServingRegionException: the leader cannot be reached; nothing was done, try again")
    store, made = changes(nobody, nobody, status("up", 1), BUSY, status("up", 2))
    assert made.restart("s1").text == "s1 is up again as s1.2"
    assert store.asked == ["s1"]


def test_a_refusal_is_not_repeated(changes: Made) -> None:
    for name in ("ConstraintException: no other server is up", "RegionTooBusyException: node n2.7 cannot be reached"):
        store, made = changes(status("up", 1))
        store.lost = [IOError(name.encode())]
        with pytest.raises(IOError, match=name.partition(":")[0]):
            made.restart("s1")
        assert store.asked == ["s1"]


def cluster(states: dict[str, str]) -> ClusterStatus:
    """Return a cluster that n2.5 leads, of servers in these states; their names begin with their nodes'."""
    servers = tuple(
        ServerStatus(name, state, 1, False, 0, 2, 0.0, 0.0, 0, "", "", 1, 3, ()) for name, state in states.items()
    )
    nodes = {name: {"n1": "n1.9", "n2": "n2.5", "n3": "n3.7", "n4": "n4.1"}[name.partition("-")[0]] for name in states}
    return ClusterStatus(servers, 1, 0, 0, False, True, (), nodes=nodes, living_nodes=("n2.5", "n1.9", "n3.7"))


def test_the_servers_of_the_leader_are_the_last_in_turn() -> None:
    found = cluster(dict.fromkeys(("n1-s1", "n1-s2", "n2-s1", "n2-s2", "n3-s1"), "up") | {"n3-s2": "down"})
    assert order_servers(found) == ["n1-s1", "n1-s2", "n3-s1", "n2-s1", "n2-s2"]
    assert order_servers(found, "n2") == order_servers(found, "n2.5") == ["n2-s1", "n2-s2"]
    assert order_servers(found, "n3") == ["n3-s1"]


def test_a_node_without_servers_to_restart_is_refused() -> None:
    found = cluster({"n1-s1": "up", "n3-s1": "down", "n4-s1": "down"})
    with pytest.raises(Refused, match=r"there is no node n; there are n2\.5, n1\.9, n3\.7"):
        order_servers(found, "n")
    for node in ("n2", "n3", "n4"):
        with pytest.raises(Refused, match=f"node {node} has no server that is up"):
            order_servers(found, node)
