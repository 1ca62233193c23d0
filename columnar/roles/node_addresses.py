"""The address by which others reach a node; finds those that other machines cannot reach, and says so to operators.

A loopback address, the default of ``--host``, is another machine for each node.  It is right as long as all nodes run
on one machine, so it is remarked on and not refused:

    own        the node names itself so, beside a service of which some host is no loopback address
    leader's   the leader names itself so, and this node does not, or the reverse

The functions are pure.  They know nothing of names that resolve to a loopback address; the caller passes the addresses
on which the node listens.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Final

from columnar.cluster.peer_address import TcpAddress, parse_address
from columnar.coordination.node_record import LeaderRecord
from columnar.wire.browsers import is_loopback

_log = logging.getLogger(__name__)

WILDCARDS: Final = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - compared, not bound


class NodeAddress:
    """The address of this node, beside that of the leader.  Owned by the loop."""

    def __init__(self, name: str) -> None:
        """Pass the node's name."""
        self._name = name
        self.host = ""  # by which others reach the node, once it listens
        self.remark = ""  # what is wrong beside the leader's address; without an end
        self._is_local = False

    def note_listening(self, host: str, bound_hosts: Collection[str], service_hosts: Collection[str]) -> None:
        """Note that the node listens, and that ``host`` is its name for others.

        ``bound_hosts`` are the IP addresses on which it listens, ``service_hosts`` the service's HOST:PORT.
        """
        self.host, self._is_local = host, is_local(host, bound_hosts)
        if self._is_local and (remark := own_remark(host, service_hosts)):
            _log.warning("%s", remark)

    def compare(self, leader: LeaderRecord | None) -> None:
        """Set ``remark`` for the leader that the node follows from now on; None: no node leads."""
        remark = ""
        if leader is not None and leader.node != self._name:
            remark = leader_remark(leader.node, leader.address, is_own_local=self._is_local)
        if remark and remark != self.remark:
            _log.warning("%s", remark)
        self.remark = remark


def is_local(named_host: str, bound_hosts: Collection[str]) -> bool:
    """Return whether no other machine reaches a node that listens on ``bound_hosts`` and names itself so."""
    return is_loopback(named_host) or (bool(bound_hosts) and all(map(is_loopback, bound_hosts)))


def own_remark(named_host: str, service_hosts: Collection[str]) -> str:
    """Return the warning of a node that only its own machine reaches; empty if the service is on loopback too."""
    if all(is_loopback(host.rpartition(":")[0].strip("[]")) for host in service_hosts):
        return ""
    return (
        f"no other machine reaches this node at {named_host}, and the service is on other machines: if nodes run on "
        "other machines too, start each with its own address, --host ADDRESS"
    )


def leader_remark(leader: str, leader_address: str, *, is_own_local: bool) -> str:
    """Return what is wrong if only one of this node and the leader's, of that name, has a loopback address."""
    address = parse_address(leader_address)
    is_leader_local = isinstance(address, TcpAddress) and is_loopback(address.host)
    if is_leader_local == is_own_local:
        return ""
    if is_leader_local:
        return (
            f"{leader_address}, the address of node {leader}, is another machine for each node: start {leader} with "
            "its own address, --host ADDRESS"
        )
    return (
        f"node {leader} leads at {leader_address}, and no other machine reaches this node: start it with its own "
        "address, --host ADDRESS"
    )
