"""The functions of ``triggers`` run by the application, where no store runs them."""

from __future__ import annotations

from columnar.client import Connection
from columnar.triggers.api import Change
from wikka_port import triggers
from wikka_port.effects import carry_out


def run_indexes(connection: Connection, change: Change) -> None:
    """Returns when what follows from the change is on disk.  Errors of the client, as they are."""
    for one in triggers.REGISTRATIONS:
        carry_out(connection, triggers.alone(one.call([change], connection)), change.timestamp)
