"""The tables of the proofs, which are made and dropped while the store is killed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from columnar.client import Connection
from columnar.client.errors import AlreadyExists
from tests.proofs import referring
from tests.proofs.asking import Lost, Refused, StoreClient, until_answered

DELIVERY_S: Final = 180.0  # patience with a trigger whose worker and store are killed
WAIT_MS: Final = 10_000  # of one call; below the client's timeout
ATTEMPTS: Final = 1_000  # kills count as attempts of what was running


@dataclass(frozen=True, slots=True)
class Ground:
    """A kind of table with its ``attributes``; with a ``trigger`` each change is delivered to ``referring.refer``."""

    attributes: Mapping[str, str]
    has_trigger: bool = False


PLAIN: Final = Ground({})
LOGGED: Final = Ground({"CHANGE_LOG": "5"})  # each change in the region's log; rows get rising timestamps
MARKED: Final = Ground({"DELETE_MARKERS": "600000"})  # deletes leave markers, as in tables that triggers write
TRIGGERED: Final = Ground({}, has_trigger=True)


def again(client: StoreClient, question: Callable[[Connection], Any]) -> None:
    """Repeat an operation that may be done twice until it is done."""
    until_answered(lambda: client.ask(question))


def make(client: StoreClient, table: bytes, families: Mapping[str, Mapping[str, Any]], ground: Ground) -> None:
    kept = {"max_versions": 1} if "DELETE_MARKERS" in ground.attributes else {}
    again(client, lambda c: _create(c, table, {name: {**one, **kept} for name, one in families.items()}, ground))
    if ground.has_trigger:
        again(client, lambda c: _create(c, referring.TABLE, {referring.FAMILY: {"max_versions": 1}}, MARKED))
        add = lambda c: c.triggers.add("refer", table, referring.FUNCTION, [b"meta"], attempts=ATTEMPTS)  # noqa: E731
        again(client, add)


def _create(connection: Connection, table: bytes, families: Mapping[Any, Mapping[str, Any]], ground: Ground) -> None:
    try:
        connection.admin.create_table(table, families, ground.attributes)
    except AlreadyExists:
        return  # by the call whose answer was lost


def drop(client: StoreClient, table: bytes, ground: Ground) -> None:
    if ground.has_trigger:
        again(client, _remove_trigger)
        again(client, lambda c: _drop(c, referring.TABLE))
    again(client, lambda c: _drop(c, table))


def _remove_trigger(connection: Connection) -> None:
    if connection.triggers.list():
        connection.triggers.remove("refer")


def _drop(connection: Connection, table: bytes) -> None:
    if connection.admin.exists(table):
        connection.admin.drop(table, disable=True)


def deliver(client: StoreClient) -> bool:
    """Wait until the trigger got all changes acknowledged so far; return False if that takes too long or it gave up."""
    deadline = time.monotonic() + DELIVERY_S
    while time.monotonic() < deadline:
        try:
            if client.ask(lambda connection: connection.triggers.wait("refer", timeout_ms=WAIT_MS)):
                return until_answered(lambda: client.ask(lambda c: not c.triggers.dead_letters("refer", limit=1)))
        except (Lost, Refused):
            continue
    return False
