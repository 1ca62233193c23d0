"""Messages that triggers send: the right of the trigger's owner, and the queue as a place of the flow graph."""

from __future__ import annotations

import pytest

from columnar.errors import AccessDenied
from columnar.flows.at_hand import value_bytes
from columnar.flows.effects import Write, writes_of
from columnar.model.derivations import Triggers
from columnar.model.effect import Send
from columnar.model.flow_graph import Place
from columnar.model.rights import Grant, RightsRecord, Scope, rights_from
from columnar.model.trigger_registration import Registration
from columnar.regions.log.change_record import ChangeRecord
from columnar.rights.rights_check import RightsHolder
from columnar.triggers.effect_places import EffectPlaces
from columnar.triggers.owner_rights import OwnerRights


def sent(body: bytes = b"body") -> list[Write]:
    return writes_of([list(Send("queue:mail", body))], 5)


def test_the_owner_needs_the_right_to_push() -> None:
    holder = RightsHolder()
    grants = (
        Grant("clerk", Scope(table="pages"), rights_from("RW")),
        Grant("reader", Scope(), rights_from("RXCA")),
        Grant("sender", Scope(), rights_from("W")),
    )
    holder.take_record(RightsRecord(grants))
    rights = OwnerRights(holder)

    def check(owner: str) -> None:
        rights.check_writes(Registration("t", "pages", "m:f", ("f",), owner=owner), sent())

    for owner in ("clerk", "reader"):
        with pytest.raises(AccessDenied, match="WRITE"):
            check(owner)
    check("sender")
    check("")  # added while rights were off


def test_the_queue_is_a_place_that_the_trigger_writes() -> None:
    triggers = Triggers().adding(Registration("t", "pages", "m:f", ("f",)))
    places = EffectPlaces(lambda: triggers, list)
    places.check("t", sent(), 0)
    assert places.seen("t") == [Place("queue:mail")]


def test_the_bodies_of_messages_count_as_bytes_at_hand() -> None:
    sends = sent(b"x" * 1_000)[0][1].sends
    assert value_bytes(ChangeRecord(b"row", 5, (), sends=sends)) == 1_000
