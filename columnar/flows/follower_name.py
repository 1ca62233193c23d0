"""(pure) Names of followers: a kind and a name, from which the key of the cursor is made.

    cursor key := NAME          of a trigger, as before there were kinds
                | KIND:NAME     of any other kind

A trigger's name has no colon, so no two followers share a key.
"""

from __future__ import annotations

from typing import Final, NamedTuple

TRIGGER: Final = "trigger"
OUTBOX: Final = "outbox"


class FollowerName(NamedTuple):
    kind: str
    name: str

    @property
    def key(self) -> str:
        return self.name if self.kind == TRIGGER else f"{self.kind}:{self.name}"

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


OUTBOX_NAME: Final = FollowerName(OUTBOX, "sends")  # of all tables that take sends


def trigger(name: str) -> FollowerName:
    return FollowerName(TRIGGER, name)


def of_key(key: str) -> FollowerName:
    kind, colon, name = key.partition(":")
    return FollowerName(kind, name) if colon else FollowerName(TRIGGER, key)
