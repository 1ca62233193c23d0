"""Messages between servers and masters: every class has a codec; damage is told, and newer keys are passed over."""

from __future__ import annotations

import ast
import copy
import dataclasses
import importlib
import random
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgpack
import pytest

from columnar.cluster import message_codec
from columnar.cluster.message_codec import answer_from_plain, answer_to_plain, from_plain, to_plain
from columnar.cluster.value_codec import ERASED, OWN_CODECS, BadValue, fields_of
from columnar.errors import DamagedData
from columnar.model import owner_messages as owners
from columnar.model import region_messages as regions
from columnar.model.region_messages import Message
from columnar.runtime.compiled import HOT
from tests.support.peer_messages import ANSWERS, HIGH, LOW, MESSAGES, MORE, OWNER

ROOT = Path(__file__).parents[3]


def over_the_wire(plain: Any) -> Any:
    return msgpack.unpackb(msgpack.packb(plain))


def message_classes() -> set[type[Message[Any]]]:
    """Every subclass of Message in the sources, also of modules that nobody has imported yet."""
    found = set()
    for path in sorted((ROOT / "columnar").rglob("*.py")):
        module, text = ".".join(path.relative_to(ROOT).with_suffix("").parts), path.read_text()
        if "Message[" not in text:  # as in all but thirty
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef) and any("Message[" in ast.unparse(base) for base in node.bases):
                found.add(getattr(importlib.import_module(module), node.name))
    return found


def test_every_message_has_a_codec_with_all_its_fields_and_is_tried_here() -> None:
    classes = message_classes()
    assert regions.Publish in classes
    assert len(classes) >= 26
    for kind in classes:
        assert fields_of(kind) == tuple(field.name for field in fields(kind)), kind  # type: ignore[arg-type]
    assert set(message_codec.kinds()) == classes
    assert {type(message) for message in MESSAGES} == classes, "add one of each to tests/support/peer_messages.py"


def records_in(kind: Any) -> set[type]:
    """The records that a type is made of."""
    if kind in OWN_CODECS:
        return set()
    found = set[type]().union(*(records_in(part) for part in get_args(kind)))
    if hasattr(kind, "_fields") or is_dataclass(kind):
        hints = get_type_hints(kind)
        found |= {kind}.union(*(records_in(hints[field]) for field in fields_of(kind)))
    return found


def test_types_that_compiling_erases_are_named_as_the_sources_have_them() -> None:
    """A compiled class names ``tuple[int, int]`` as ``tuple``, and ``bytes | None`` as ``type``."""
    answers = [get_args(vars(kind)["__orig_bases__"][0])[0] for kind in message_codec.kinds()]
    records = set[type]().union(*map(records_in, [*message_codec.kinds(), *answers]))
    erased = {
        f"{kind.__name__}.{field}": hint
        for kind in records
        if kind.__module__ in HOT
        for field, hint in get_type_hints(kind).items()
        if not isinstance(hint, type) or get_args(hint)
    }
    assert len(records) >= 60
    assert erased == ERASED


@pytest.mark.parametrize(("message", "answer"), [*ANSWERS, *MORE], ids=lambda value: type(value).__name__)
def test_messages_and_answers_there_and_back(message: Message[Any], answer: Any) -> None:
    name, plain = to_plain(message)
    assert from_plain(name, over_the_wire(plain)) == message
    assert answer_from_plain(message, over_the_wire(answer_to_plain(message, answer))) == answer


def test_schemas_arrive_whole() -> None:
    (publish,) = (one for one in MESSAGES if isinstance(one, regions.Publish))
    name, plain = to_plain(publish)
    arrived = from_plain(name, over_the_wire(plain))
    assert isinstance(arrived, regions.Publish)
    assert arrived.table.family(b"b\xff").ttl_s == 9
    assert arrived.table.durability == "ASYNC_WAL"


def with_unknown_keys(plain: Any) -> Any:
    if isinstance(plain, dict):
        return {name: with_unknown_keys(value) for name, value in plain.items()} | {"of a newer version": [1, {}]}
    return [with_unknown_keys(value) for value in plain] if isinstance(plain, list) else plain


@pytest.mark.parametrize("message", [*MESSAGES, *(message for message, _ in MORE)], ids=lambda one: type(one).__name__)
def test_keys_of_a_newer_version_are_passed_over(message: Message[Any]) -> None:
    name, plain = to_plain(message)
    assert from_plain(name, with_unknown_keys(plain)) == message


def test_a_field_that_an_older_version_does_not_send_has_its_default() -> None:
    name, plain = to_plain(ANSWERS[-1][0])
    older = copy.deepcopy(plain)
    del older["form"], older["spec"]["limit"], older["place"]["past"]
    arrived: Any = from_plain(name, older)
    assert (arrived.form, arrived.spec.limit, arrived.place.is_after_row) == (None, 0, False)


@pytest.mark.parametrize(
    ("name", "plain", "why"),
    [
        ("no_such", {}, "'no_such' is no message"),
        ("withdraw", {}, "Withdraw without table"),
        ("withdraw", {"table": b"t"}, "Withdraw.table: bytes in the place of str"),
        ("close_regions", {"regions": {}}, "CloseRegions.regions: dict in the place of a list"),
        ("middle_row", {"region": {"table": "t"}}, "RegionInfo without end, region_id, start"),
        ("middle_row", {"region": {"table": "t", "region_id": True}}, "RegionInfo.region_id: bool in the place of int"),
        ("middle_row", {"region": [1]}, "list in the place of a map"),
        ("publish", {"table": b"{}", "is_enabled": True, "regions": []}, "no schema of a table"),
        ("publish", {"table": b"\xff", "is_enabled": True, "regions": []}, "no schema of a table"),
        (
            "rows",
            {"table": "t", "form": {}, "groups": [{"rows": [], "read": {"projection": {"families": [[b"a"]]}}}]},
            "ReplyForm without",
        ),
        (
            "rows",
            {"groups": [{"rows": [], "read": {"projection": {"families": [[b"a"]]}}}]},
            "Projection.families: 1 values in the place of 2",
        ),
        ("replace_routes", {"number": 1, "routes": [{"server": "s1"}]}, "'s1' names no incarnation"),
    ],
)
def test_what_is_no_message_is_told(name: str, plain: dict[str, Any], why: str) -> None:
    with pytest.raises(BadValue, match=why):
        from_plain(name, plain)


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([[b"r"]], "short one"),
        ([[b"r", 0, []]], "values without their columns"),
        ([[b"r", -1, [b"v"]]], "values without their columns"),
        ([[b"r", None, True, [[9]]]], "9 is no operation"),
        ([[b"r", None, True, [[2, b"a", b"q"]]]], "short one"),
        ([[b"r", None, True, [[2, b"a", b"q", b"5"]]]], "bytes in the place of int"),
        ([["r", None, True, []]], "str in the place of bytes"),
    ],
)
def test_what_are_no_writes_is_told(rows: list[Any], why: str) -> None:
    with pytest.raises(BadValue, match=why):
        from_plain("apply", {"table": "t", "rows": {"rows": rows}})


def test_a_schema_of_a_newer_version_is_for_the_operator() -> None:
    """To leave an attribute out would serve the table by another schema than the master's."""
    name, plain = to_plain(ANSWERS[0][0])
    plain["table"] = plain["table"].replace(b'"max_versions"', b'"newer": 1, "max_versions"')
    with pytest.raises(DamagedData, match="upgrade"):
        from_plain(name, plain)


def damaged(plain: Any, rng: random.Random) -> Any:
    if isinstance(plain, dict) and plain and rng.random() < 0.8:
        key = rng.choice(sorted(plain))
        return {name: damaged(value, rng) if name == key else value for name, value in plain.items()}
    if isinstance(plain, list) and plain and rng.random() < 0.8:
        at = rng.randrange(len(plain))
        return [damaged(value, rng) if number == at else value for number, value in enumerate(plain)]
    return rng.choice([None, 7, -1, 0.5, True, b"bytes", "text", [], [1, 2], {}, {"x": 1}])


def test_damaged_messages_are_messages_or_told() -> None:
    rng, told = random.Random(19), 0
    for _ in range(4_000):
        message, answer = rng.choice([*ANSWERS, *MORE])
        name, plain = to_plain(message)
        try:
            assert isinstance(from_plain(name, damaged(plain, rng) if plain else plain), Message)
            answer_from_plain(message, damaged(answer_to_plain(message, answer), rng))
        except BadValue:
            told += 1
    assert told > 1_000


def test_regions_are_values_again() -> None:
    name, plain = to_plain(regions.CloseRegions((LOW, HIGH)))
    arrived: Any = from_plain(name, over_the_wire(plain))
    assert {LOW, HIGH} == set(arrived.regions), "they are hashed by servers"


def test_messages_about_owners_of_an_older_peer_have_no_reading_of_a_clock() -> None:
    for message in (owners.OpenRegion(HIGH, OWNER, clock_ms=7), owners.RenumberRegion(LOW, OWNER, clock_ms=7)):
        name, plain = to_plain(message)
        del plain["clock_ms"]
        assert from_plain(name, over_the_wire(plain)) == dataclasses.replace(message, clock_ms=0)
    close = owners.CloseRegion(HIGH, 8)
    plain = answer_to_plain(close, owners.GivenUp(8, True, 7))
    del plain["clock_ms"]
    assert answer_from_plain(close, over_the_wire(plain)) == owners.GivenUp(8, True)
