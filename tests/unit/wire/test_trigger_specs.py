"""Registrations as structs of our IDL: nothing is lost, and what a client leaves out has defaults."""

from __future__ import annotations

from dataclasses import fields, replace

from columnar.model.trigger_registration import Registration, from_json, to_json
from columnar.wire.idl import columnar
from columnar.wire.trigger_specs import registration_of, spec_of

FULL = Registration(
    name="links", table="pages", function="m:links", families=("f", "g\xff"), before=True, from_where="beginning",
    timeout_ms=5_000, attempts=3, row=False, side_by_side=2, share=20, rate="10/s", batch=100, within_ms=50,
    process="slow", columns=("f", "g\xff:a"), where=("f:b=1",), look=(("fans", "followers", "row"),), images=True,
    writes=("out",), of_module="m", allow_cycle=True, allow_expiry=True,
)  # fmt: skip


def test_every_field_travels() -> None:
    bare = Registration("links", "pages", "m:links", ("f",))
    assert all(getattr(FULL, field.name) != getattr(bare, field.name) for field in fields(bare)[3:]), "none by default"
    assert registration_of(spec_of(FULL)) == FULL
    assert registration_of(spec_of(bare)) == bare
    assert from_json(to_json(FULL)) == FULL


def test_what_is_left_out_has_the_default() -> None:
    spec = columnar.TriggerSpec(name="links", table=b"pages", functionName="m:links", families=[b"f:"])
    assert registration_of(spec) == Registration("links", "pages", "m:links", ("f",))


def test_families_and_columns_come_in_one_order() -> None:
    spec = spec_of(replace(FULL, families=("g\xff", "f"), columns=("g\xff:a", "f", "f")))
    assert registration_of(spec) == FULL


def test_a_connection_that_does_not_decode_strings_gives_the_same() -> None:
    spec = spec_of(FULL)
    spec.name, spec.conditions, spec.rate = b"links", [b"f:b=1"], b"10/s"
    spec.looks = [columnar.TriggerLook(name=b"fans", table=b"followers", row=b"row")]
    assert registration_of(spec) == FULL
