"""``columnar nodes``: the nodes of a cluster on many machines, with the sums of their servers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from columnar.client import ClusterAdmin
from columnar.client.cluster import ClusterStatus, ServerStatus
from columnar.shell.connecting import Refused, Server
from columnar.shell.private_connection import with_cluster

LEADS, FOLLOWS, ENDED = "leads", "follows", "ended"


@click.command()
@with_cluster
def nodes(server: Server) -> None:
    """Show the nodes of a cluster: who leads, their servers, regions, load, requests a second.

    A node that has ended is shown until the next leader, with the servers that it had.

    \b
      columnar nodes
      columnar nodes --json
    """
    found = ClusterAdmin(server.connection).servers()
    if not found.living_nodes:
        raise Refused("this store runs on one machine and has no nodes: 'columnar servers' shows its servers")
    records = [_node(name, found) for name in _names(found)]
    if server.output.as_json:
        server.output.json({"nodes": records, "remarks": list(found.remarks)})
        return
    rows = [
        (
            one["name"],
            one["state"],
            f"{one['servers_up']}/{len(one['servers'])}",
            one["regions"],
            f"{one['load']:.1f}",
            f"{one['requests_per_s']:.1f}",
            one["connections"],
            one["zone"] or "-",
            " ".join(one["versions"]) or "-",
            " ".join(one["servers"]) or "-",
        )
        for one in records
    ]
    headings = ("Node", "State", "Up", "Regions", "Load", "Requests/s", "Clients", "Zone", "Version", "Servers")
    server.output.table(headings, rows, numbers=(2, 3, 4, 5, 6))
    for remark in found.remarks:
        click.echo(remark, err=True)


def _names(found: ClusterStatus) -> list[str]:
    """Return the living nodes, the leader first, then those that have ended."""
    return [*found.living_nodes, *sorted(set(found.nodes.values()) - set(found.living_nodes))]


def _node(name: str, found: ClusterStatus) -> dict[str, Any]:
    own: Sequence[ServerStatus] = [one for one in found.servers if found.nodes.get(one.name) == name]
    state = LEADS if name == found.living_nodes[0] else FOLLOWS if name in found.living_nodes else ENDED
    return {
        "name": name,
        "state": state,
        "servers": [one.name for one in own],
        "servers_up": sum(one.state == "up" for one in own),
        "regions": sum(one.regions for one in own),
        "load": sum(one.load for one in own),
        "requests_per_s": sum(one.requests_per_s for one in own),
        "connections": sum(one.connections for one in own),
        "zone": next((found.zones[one.name] for one in own if one.name in found.zones), ""),
        "versions": sorted({one.version for one in own if one.version}),
    }
