"""Thrift 2, HTTP, SQS, Kafka and TLS at a cluster: each server answers for rows of another one, at whatever door.

One cluster is plain, one speaks TLS on every port.
"""

from __future__ import annotations

import http.client
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Any

import pytest
from thriftpy2.rpc import make_client

from columnar.bench.calls import FRAME_HEAD, call, puts
from columnar.client import ClientTls, ClusterAdmin, Connection
from tests.support.certificates import Authority
from tests.support.cluster_process import ClusterProcess
from tests.support.kafka_clients import confluent_consumer, confluent_producer, consume, produce_all
from tests.support.sqs_client import abandon_receive, sqs_client
from tests.support.standalone_store import WAIT_S
from tests.support.thrift2_client import H, cell, put
from tests.support.thrift_replies import unpacked

TABLE = b"doors"
SPLITS = [b"d", b"h", b"m", b"r", b"v"]
ROWS = [bytes([letter]) for letter in b"abcdefghijklmnopqrstuvwxyz"]


@dataclass
class Cluster:
    """``ports``: of each server, its own; each owns some of the rows."""

    store: ClusterProcess
    tls: ClientTls | None
    ports: dict[str, int]

    def context(self) -> ssl.SSLContext | None:
        return self.tls.context() if self.tls is not None else None


def connected(port: int, tls: ClientTls | None) -> Connection:
    return Connection("127.0.0.1", port, timeout=int(1_000 * WAIT_S), tls=tls)


@pytest.fixture(scope="module", params=["plain", "TLS"])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder, tls, flags = tmp_path_factory.mktemp("doors"), None, []
    if request.param == "TLS":
        authority = Authority(folder, "ours")
        server, tls = authority.sign("store"), authority.client()
        flags = ["--tls-cert", server.cert, "--tls-key", server.key]
    with ClusterProcess(
        folder / "data", 2, "--thrift2-port", "0", "--sqs-port", "0", "--kafka-port", "0", *flags
    ) as store:
        connection = connected(store.port, tls)
        connection.create_table(TABLE, {"f": {}}, splits=SPLITS)
        admin = ClusterAdmin(connection)
        ports = {one.name: int(one.address.rpartition(":")[2]) for one in admin.servers().servers}
        assert {region.server for region in admin.locations(TABLE)} == set(ports), "each owns some"
        connection.close()
        yield Cluster(store, tls, ports)


def test_thrift_1_at_each_servers_own_port(cluster: Cluster) -> None:
    with ExitStack() as stack:
        one, other = (
            stack.enter_context(closing(connected(port, cluster.tls))).table(TABLE) for port in cluster.ports.values()
        )
        for row in ROWS:
            one.put(row, {b"f:own": row})
        assert {row: other.row(row) for row in ROWS} == {row: {b"f:own": row} for row in ROWS}


def over_http(cluster: Cluster, port: int) -> http.client.HTTPConnection:
    if (context := cluster.context()) is not None:
        return http.client.HTTPSConnection("127.0.0.1", port, timeout=WAIT_S, context=context)
    return http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_S)


def asked(web: http.client.HTTPConnection, method: str, *args: Any) -> Any:
    web.request("POST", "/", call(method, *args)[FRAME_HEAD:], {"Content-Type": "application/x-thrift"})
    return unpacked(method, web.getresponse().read())


def test_http_at_each_servers_own_port(cluster: Cluster) -> None:
    with ExitStack() as stack:
        one, other = (stack.enter_context(closing(over_http(cluster, port))) for port in cluster.ports.values())
        for row in ROWS:
            asked(one, "mutateRow", TABLE, row, puts([(b"f:http", row)]))
        for row in ROWS:
            assert [found.value for found in asked(other, "get", TABLE, row, b"f:http")] == [row]


def test_thrift_2_at_each_server(cluster: Cluster) -> None:
    """Two connections to the port that they share are at two servers."""
    one, other = (
        make_client(
            H.THBaseService,
            "127.0.0.1",
            cluster.store.thrift2_port,
            timeout=int(1_000 * WAIT_S),
            ssl_context=cluster.context(),
        )
        for _ in range(2)
    )
    for row in ROWS:
        one.put(TABLE, put(row, cell(b"f", b"two", row)))
    for row in ROWS:
        found = other.get(TABLE, H.TGet(row=row, columns=[H.TColumn(family=b"f", qualifier=b"two")]))
        assert [one.value for one in found.columnValues] == [row]
    one.close()
    other.close()


def test_sqs_at_the_port_that_the_servers_share(cluster: Cluster) -> None:
    """The clients' connections go to both servers, and one of the two owns the queues."""
    ca = cluster.tls.ca if cluster.tls is not None else ""
    clients = [sqs_client(cluster.store.sqs_port, ca=ca) for _ in range(4)]
    url = clients[0].create_queue(QueueName="shared", Attributes={"VisibilityTimeout": "60"})["QueueUrl"]
    for number, one in enumerate(clients):
        one.send_message(QueueUrl=url, MessageBody=str(number))
    bodies = []
    for one in clients:
        (message,) = one.receive_message(QueueUrl=url, WaitTimeSeconds=5)["Messages"]
        bodies.append(message["Body"])
        clients[0].delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    assert sorted(bodies) == ["0", "1", "2", "3"]
    for one in clients:
        attributes = one.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        assert (attributes["VisibilityTimeout"], attributes["ApproximateNumberOfMessages"]) == ("60", "0")
    with closing(connected(cluster.store.port, cluster.tls)) as connection:
        assert connection.queue("shared").stats().committed == 4


def test_what_comes_for_a_receiver_of_another_server_that_has_gone_comes_to_the_next_one(cluster: Cluster) -> None:
    client = sqs_client(cluster.store.sqs_port, ca=cluster.tls.ca if cluster.tls is not None else "")
    url = client.create_queue(QueueName="abandoned", Attributes={"VisibilityTimeout": "60"})["QueueUrl"]
    for _ in range(4):  # some of them at the server that does not own the queue
        abandon_receive(cluster.store.sqs_port, url, cluster.context())
    client.send_message(QueueUrl=url, MessageBody="a")
    assert client.receive_message(QueueUrl=url, WaitTimeSeconds=20)["Messages"][0]["Body"] == "a"


def test_members_of_a_kafka_group_meet_at_the_port_that_the_servers_share(cluster: Cluster) -> None:
    """The clients' connections go to both servers; each partition has its owner, and the group one coordinator."""
    tls = {"security_protocol": "ssl", "ssl_ca_location": cluster.tls.ca} if cluster.tls is not None else {}
    port = cluster.store.kafka_port
    with closing(connected(cluster.store.port, cluster.tls)) as connection:
        connection.topics.create("shared", 4)
    values = [b"%d" % number for number in range(400)]
    places = produce_all(confluent_producer(port, enable_idempotence=True, **tls), "shared", values)
    assert len(set(places)) == 400
    members = [confluent_consumer(port, "both", "shared", **tls) for _ in range(3)]
    try:
        deadline = time.monotonic() + WAIT_S
        while sorted(len(one.assignment()) for one in members) != [1, 1, 2]:
            assert time.monotonic() < deadline, [one.assignment() for one in members]
            for one in members:
                one.poll(0.05)
    finally:
        for one in members:
            one.close()
    with closing(confluent_consumer(port, "alone", "shared", **tls)) as reader:
        assert sorted(one.value() for one in consume(reader, 400)) == sorted(values)
