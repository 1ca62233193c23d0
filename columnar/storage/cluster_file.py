"""The files ``DATA/CLUSTER`` and ``DATA/secret`` of a data folder that belongs to the nodes of a cluster.

    CLUSTER := JSON object and a newline, as
               {"cluster_id": "...", "coordination": "etcd://h1:2379,h2:2379/NAME", "service_id": "..."}
    secret  := 64 hexadecimal digits and a newline; only its user may read it

``CLUSTER`` says which service elects the leader and keeps the leases of the nodes that serve the folder.  Two services
would elect two leaders.  So a node of another service is refused, and a process that serves the folder alone is
refused, until a person has removed the file.  ``cluster_id`` equals the file ``cluster-id`` unless somebody copied one
of the two files from another folder.  The URL has no password.  ``service_id`` is the identity that the service's own
record repeats: two machines that both say localhost name two services by one URL.  A file of an earlier version has
none.

The secret proves to nodes that a peer has access to the folder (``cluster.hello``).

The functions block while they use the disk.
"""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import dataclass
from shlex import quote
from typing import Final

from columnar.errors import DamagedData, HostError
from columnar.storage.durable_files import create_durably

NODES: Final = "nodes"  # ``DATA/nodes/NAME``: files of a node
CLUSTER: Final = "CLUSTER"
SECRET: Final = "secret"  # noqa: S105 - a file's name
SECRET_BYTES: Final = 32
_OF_OTHERS: Final = 0o007


@dataclass(frozen=True, slots=True)
class ClusterFile:
    cluster_id: str
    coordination: str  # URL of the coordination service, without a password
    service_id: str = ""  # of the service's record; "": an earlier version wrote the file


def without_password(url: str) -> str:
    """Return the URL of a coordination service without the password of its user."""
    scheme, found, rest = url.partition("://")
    user, is_user, place = rest.rpartition("@")
    if not (found and is_user):
        return url
    return f"{scheme}://{user.partition(':')[0]}@{place}"


def names_same_service(one: str, other: str) -> bool:
    """Tell whether two URLs name the same service: the same name in it, and at least one common server.

    A service may get further servers, and lose some.
    """
    (scheme, servers, name), (scheme2, servers2, name2) = _parts(one), _parts(other)
    return scheme == scheme2 and name == name2 and not servers.isdisjoint(servers2)


def _parts(url: str) -> tuple[str, frozenset[str], str]:
    scheme, _, rest = url.partition("://")
    servers, _, name = rest.rpartition("@")[2].partition("/")
    return scheme.removesuffix("s"), frozenset(servers.split(",")), name.strip("/")


def to_bytes(file: ClusterFile) -> bytes:
    fields = {"cluster_id": file.cluster_id, "coordination": file.coordination}
    if file.service_id:
        fields["service_id"] = file.service_id
    return json.dumps(fields, sort_keys=True).encode() + b"\n"


def from_bytes(data: bytes) -> ClusterFile:
    """Raises ValueError."""
    fields = json.loads(data)
    if not isinstance(fields, dict) or not all(isinstance(value, str) for value in fields.values()):
        raise ValueError("no JSON object of texts")
    try:
        return ClusterFile(fields["cluster_id"], fields["coordination"], fields.get("service_id", ""))
    except KeyError as missing:
        raise ValueError(f"no {missing}") from None


def read_cluster(data: str) -> ClusterFile | None:
    """Return the content of ``CLUSTER``, or None if there is none.  Raises HostError, DamagedData."""
    path = os.path.join(data, CLUSTER)
    try:
        with open(path, "rb") as file:
            return from_bytes(file.read())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise HostError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise DamagedData(f"{path} is damaged ({error}); put it back from a copy, or {_advice(data)}") from error


def check_without_nodes(data: str) -> None:
    """Raise HostError if the folder belongs to the nodes of a cluster.  Call under the folder's lock."""
    found = read_cluster(data)
    if found is not None:
        raise HostError(
            f"the data folder {data} belongs to the nodes of a cluster, which {found.coordination} coordinates: "
            f"start 'columnar node', or choose another --data. To serve it by one machine again, {_advice(data)}"
        )


def _advice(data: str) -> str:
    return f"stop every node, then remove the file {quote(os.path.join(data, CLUSTER))}"


def check_cluster(data: str, cluster_id: str, coordination: str) -> ClusterFile | None:
    """Return the content of ``CLUSTER`` after comparing it with the node's service; None if the file is missing.

    ``cluster_id`` is that of the folder.  Raises HostError if the folder belongs to another cluster; DamagedData.
    """
    found = read_cluster(data)
    if found is None:
        return None
    if found.cluster_id != cluster_id:
        raise HostError(
            f"{data}/{CLUSTER} is that of the cluster {found.cluster_id}, and the folder is {cluster_id}: one of them "
            f"was copied from another folder. If no node of another folder uses {found.coordination}, "
            f"{_advice(data)}; the next node writes it anew"
        )
    if not names_same_service(found.coordination, coordination):
        raise HostError(
            f"the data folder {data} belongs to the cluster that {found.coordination} coordinates, and not to "
            f"{without_password(coordination)}: start the node with --coordination {found.coordination}. To move the "
            f"cluster to another service, {_advice(data)}; the next node writes it anew"
        )
    return found


def write_cluster(data: str, cluster_id: str, coordination: str, service_id: str = "") -> None:
    """Write ``CLUSTER`` unless a node has written it, and compare it with the node's service.

    Call after the service has answered, and after the folder's format was raised.  Raises as ``check_cluster`` does,
    and HostError if a node of a service with the same URL and a different identity was faster.
    """
    found = check_cluster(data, cluster_id, coordination)
    if found is None:
        mine = ClusterFile(cluster_id, without_password(coordination), service_id)
        try:
            create_durably(os.path.join(data, CLUSTER), to_bytes(mine))
        except OSError as error:
            raise HostError(f"cannot write {data}/{CLUSTER}: {error.strerror}") from error
        found = check_cluster(data, cluster_id, coordination)  # another node may have been faster
    if found is not None and found.service_id and service_id and found.service_id != service_id:
        raise HostError(
            f"a node that reaches a different service at {found.coordination} serves {data} already: give all nodes "
            "the same addresses; localhost is a different machine for each of them"
        )


def read_secret(data: str) -> str:
    """Return the cluster's secret, as hexadecimal text; the first node makes it.  Raises HostError, DamagedData."""
    path = os.path.join(data, SECRET)
    try:
        if not os.path.exists(path):
            create_durably(path, secrets.token_hex(SECRET_BYTES).encode() + b"\n", mode=0o600)
        if os.stat(path).st_mode & _OF_OTHERS:
            raise HostError(f"everybody can read {path}, by which nodes know each other: 'chmod 600 {quote(path)}'")
        with open(path, encoding="ascii", errors="replace") as file:
            found = file.read().strip()
    except OSError as error:
        raise HostError(f"cannot read {path}: {error.strerror}") from error
    if len(found) != 2 * SECRET_BYTES or not set(found) <= set("0123456789abcdef"):
        raise DamagedData(f"{path} is damaged: stop every node, then remove it; the next node makes another")
    return found
