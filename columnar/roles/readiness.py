"""(pure) The readiness of a node to take clients, and the sentence that says why it is not ready.

    lasting    the node is drained, its lease does not hold, its folder stalls, none of its servers takes connections:
               not ready from the first look that finds it
    passing    the node has no leader, or one of its servers is not linked with the leader or lacks the leader's routes:
               not ready once this has lasted for ``leaderless_s``

A server needs the leader for no call about rows: it knows the owners of all regions, and serves its own.  If the nodes
were not ready whenever leaders change, a balancer would find no ready node at all in the middle of a change that no
reader notices.  Calls about tables wait for the next leader for LEADERLESS_S at most, and then fail; so a node that has
had no leader for longer sends its clients elsewhere.

The clock of each passing obstacle is its own: two servers that restart one after the other are two short obstacles.

Knows nothing of links, leases and servers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

LEADERLESS_S: Final = 10.0  # as long as a client's call waits for a leader (``leader_link.LEADER_WAIT_S``)
LEADERLESS_LEASES: Final = 4  # the longest election takes less than three (docs/many-machines.md), then servers link
_LEADER: Final = ""  # the subject of an obstacle that is no server's


def leaderless_s(lease_s: float) -> float:
    """Return how long a node stays ready without a leader: longer than an election takes by this lease."""
    return max(LEADERLESS_S, LEADERLESS_LEASES * lease_s)


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """The facts by which a node is ready.  A text is a sentence without an end; it is empty if all is well."""

    is_leaving: bool  # the node is drained until its next start
    has_lease: bool
    service: str  # the coordination service does not answer
    folder: str  # the data folder stalls
    servers: int  # of the node; without servers the node may only lead
    taking: int  # how many of them take connections
    leader: str  # why there is no link to a leader, and this node does not lead with its catalogue open
    strays: tuple[str, ...]  # living servers that are not linked with the leader, or have no routes of it

    def lasting(self) -> tuple[str, ...]:
        found = []
        if self.is_leaving:
            found.append("this node is drained until its next start: take another one")
        if not self.has_lease:
            why = f": {self.service}" if self.service else ""
            found.append(f"the lease of this node does not hold, so its servers withhold answers{why}")
        if self.folder:
            found.append(self.folder)
        if self.servers and not self.taking:
            found.append("no server of this node takes connections yet")
        return tuple(found)

    def passing(self) -> Mapping[str, str]:
        """Return the sentences by their subjects."""
        found = {_LEADER: self.leader} if self.leader else {}
        return found | {
            server: f"server {server} is not linked with the leader, or has no routes of it yet"
            for server in self.strays
        }


class Readiness:
    """The obstacles of a node in time.  Call ``note`` at least once a second, also while nobody asks."""

    def __init__(self, leaderless_s: float) -> None:
        """Pass how long a passing obstacle may last."""
        self._leaderless_s = leaderless_s
        self._since_s: dict[str, float] = {}  # when each passing obstacle began, by its subject

    def note(self, facts: NodeFacts, now_s: float) -> tuple[str, ...]:
        """Return the reasons why the node is not ready, the one to be named first; none if it is ready."""
        passing = facts.passing()
        self._since_s = {subject: self._since_s.get(subject, now_s) for subject in passing}
        late = (text for subject, text in passing.items() if now_s - self._since_s[subject] >= self._leaderless_s)
        return (*facts.lasting(), *late)


def start_failure(facts: NodeFacts, within_s: float) -> str:
    """Return why a start has failed that was not over in time though nothing named held it up, and what to do."""
    advice = "; its lines in this log say why"
    if facts.leader:
        why = facts.leader
        advice = (
            "; see that all nodes mount the same folder and reach each other at their peer ports, and read the log of "
            "the node that leads, or should lead"
        )
    elif found := (*facts.passing().values(), *facts.lasting()):
        why = found[0]
    else:
        why = "some regions have no server"
        advice = "; 'columnar transitions' at another node says which and why, as the log of the node that leads"
    what = "the servers did not start" if facts.servers else "no node led that this one could link with"
    return f"{what} within {within_s:.0f} s: {why}{advice}. Then start this node again"
