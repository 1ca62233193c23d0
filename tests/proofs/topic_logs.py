"""The whole log of a partition, for proofs."""

from __future__ import annotations

from columnar.client import Connection
from columnar.client.topics import ReadRecord
from tests.proofs.asking import StoreClient, until_answered


def read_log(client: StoreClient, topic: str, partition: int) -> list[ReadRecord]:
    """Return all records of a partition."""
    records: list[ReadRecord] = []

    def read(connection: Connection) -> list[ReadRecord]:
        return connection.topic(topic).read(partition, len(records))

    while found := until_answered(lambda: client.ask(read)):
        records += found
    return records
