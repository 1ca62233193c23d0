"""``on``: what a module declares, and what of a change its functions may look at."""

from __future__ import annotations

import pickle
import types
from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from columnar.errors import IllegalArgument
from columnar.model.trigger_registration import Registration
from columnar.triggers.api import Change, ChangedCell, ChangeDraft, Effect, Later, Looked, on
from columnar.triggers.declared import declared_in, marks_of
from columnar.triggers.slices import change_from


def function(change: Change) -> Iterator[Effect]:
    raise AssertionError("nothing runs when it is declared")


def registered(*of: Any, **settings: Any) -> Registration:
    def marked(change: Change) -> None: ...

    (mark,) = marks_of(on(*of, **settings)(marked))
    return mark.with_families([b"f:", b"g:"])


def test_what_is_not_said_has_a_default() -> None:
    assert registered("pages") == Registration(
        "pages-marked", "pages", f"{__name__}:marked", ("f", "g"), row=False, images=True, of_module=__name__
    )


def test_everything_that_is_said_is_in_the_registration() -> None:
    found = registered(
        "pages", columns=["f:a", b"g", "f:\\xFF"], where=["f:a=1"], before=True, row=True,
        look={"fans": ("followers", "row")}, batch=100, within_ms=50, side_by_side=2, share=20, timeout_s=1.5,
        attempts=3, rate="10/s", process="slow", writes=["out", "also"], start="beginning", name="mine",
    )  # fmt: skip
    assert found == Registration(
        "mine", "pages", f"{__name__}:marked", ("f", "g"), True, "beginning", 1_500, 3, True, 2, 20, "10/s", 100, 50,
        "slow", ("f:a", "f:\xff", "g"), ("f:a=1",), (("fans", "followers", "row"),), True, ("also", "out"), __name__,
    )  # fmt: skip


def test_columns_name_their_families() -> None:
    assert registered("pages", columns=["f:a", "f:b"]).families == ("f",)


@pytest.mark.parametrize(
    "start",
    [datetime(2026, 11, 24, 8, 0, tzinfo=UTC), datetime(2026, 11, 24, 8, 0), "2026-11-24T09:00+01:00"],
    ids=["zoned", "bare", "text"],
)
def test_a_time_is_written_in_utc(start: datetime | str) -> None:
    assert registered("pages", start=start).from_where == "2026-11-24T08:00:00.000Z"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"columns": [":a"]}, "family:qualifier"),
        ({"where": ["f:a"]}, "condition 'f:a'"),
        ({"look": {"a": ("t", "each f:")}}, "of one row"),
        ({"start": "yesterday"}, "not from 'yesterday'"),
    ],
)
def test_what_is_wrong_is_told_where_it_is_written(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(IllegalArgument, match=message):
        on("pages", **settings)


def module_with(**functions: Callable[..., Any]) -> types.ModuleType:
    module = types.ModuleType("declaring")
    for label, made in functions.items():
        made.__module__ = "declaring"
        setattr(module, label, made)
    return module


def declared(*marks: Any, label: str = "made") -> Callable[..., Any]:
    def made(change: Change) -> None: ...

    made.__module__, made.__name__ = "declaring", label
    for mark in marks:
        made = mark(made)
    return made


def test_a_module_declares_by_name() -> None:
    two = declared(on("z"), on("a", name="first"))
    found = declared_in(module_with(made=two, plain=declared(label="plain")))
    assert [(mark.registration.name, mark.registration.table) for mark in found] == [("first", "a"), ("z-made", "z")]


def test_what_is_imported_from_elsewhere_is_none_of_the_modules() -> None:
    module = module_with()
    marked = on("pages")(function)
    module.function = marked  # type: ignore[attr-defined]
    assert declared_in(module) == []


def test_two_of_one_name_and_functions_out_of_reach_are_refused() -> None:
    with pytest.raises(IllegalArgument, match="two triggers are called x"):
        declared_in(module_with(made=declared(on("a", name="x")), other=declared(on("b", name="x"), label="other")))
    with pytest.raises(IllegalArgument, match="by another name"):
        declared_in(module_with(alias=declared(on("a"), label="made")))


# --- changes -------------------------------------------------------------------------------------------

BARE: list[Any] = [b"t", b"r", 7, "1-1-1", [], None, None, 1, False, 5, 0, None, None]


def change(before: dict[bytes, bytes], after: dict[bytes, bytes]) -> Change:
    return change_from([*BARE[:6], before, *BARE[7:11], after, None])


def test_differences_of_images() -> None:
    found = change(
        {b"f:tags": b"b,a", b"f:author": b"ann", b"g:x": b"1"},
        {b"f:tags": b"a,c,c", b"f:author": b"ann", b"g:y": b"1"},
    )
    assert (found.came("f:tags", split=","), found.gone(b"f:tags", split=b",")) == ((b"c",), (b"b",))
    assert (found.came("f:author"), found.gone("f:author")) == ((), ())
    assert (found.came(b"g:"), found.gone("each g:")) == ((b"y",), (b"x",))
    assert found.came("each f:tags split ','") == (b"c",)
    assert found.stamp == found.timestamp == 7


def test_a_value_that_cannot_be_read_gives_nothing() -> None:
    found = change({b"f:author": b""}, {b"f:author": b"ann", b"f:time": b"soon"})
    assert (found.came("f:author"), found.gone("f:author"), found.came("day(f:time)")) == ((b"ann",), (), ())
    with pytest.raises(IllegalArgument, match="key 'nonsense'"):
        found.came("nonsense")


@pytest.mark.parametrize(
    ("look", "message"),
    [
        (lambda c: c.after[b"f:a"], "columnar trigger sync"),
        (lambda c: c.gone(b"f:a"), "before=True|columnar trigger sync"),
        (lambda c: c.before.get(b"f:a"), "before=True"),
        (lambda c: len(c.now), "row=True"),
        (lambda c: c.look("fans"), "no look 'fans'"),
    ],
)
def test_what_was_not_asked_for_says_how_to_ask(look: Callable[[Change], Any], message: str) -> None:
    with pytest.raises(LookupError, match=message):
        look(change_from(BARE))


class Pages:
    """A table that notes what is asked of it."""

    def __init__(self, cells: dict[bytes, bytes]) -> None:
        self.cells, self.asked = cells, list[tuple[bytes, bytes]]()

    def slice(
        self, _row: bytes, family: bytes, start: bytes, stop: bytes = b"", *, limit: int
    ) -> list[tuple[bytes, bytes]]:
        self.asked.append((family, start))
        held = [(c[len(family) + 1 :], v) for c, v in sorted(self.cells.items()) if c.startswith(family + b":")]
        return [(q, v) for q, v in held if q >= start and (not stop or q < stop)][: min(limit, 2)]


def test_a_look_goes_on_where_what_came_along_ends() -> None:
    cells = {b"f:%d" % n: b"%d" % n for n in range(5)} | {b"g:": b"empty", b"g:1": b"g"}
    table = Pages(cells)
    looked = Looked(b"t", b"r", {b"f:0": b"0", b"f:1": b"1"}, [b"f", b"g"], lambda _name: table)
    assert list(looked) == sorted(cells)
    assert table.asked == [(b"f", b"1\x00"), (b"f", b"3\x00"), (b"f", b"4\x00"), (b"g", b""), (b"g", b"1\x00")]
    assert (looked[b"f:0"], looked[b"g:1"], looked.get(b"h:1"), b"f:9" in looked) == (b"0", b"g", None, False)
    with pytest.raises(KeyError):
        looked[b"f:9"]


def test_a_look_at_a_table_that_is_gone_says_so() -> None:
    with pytest.raises(LookupError, match="no table"):
        list(Looked(b"t", b"r", {}, problem="no table"))


@pytest.mark.parametrize("seconds", [0, 0.5, Later.LONGEST_S])
def test_a_change_may_be_put_off_by_any_time_up_to_the_longest(seconds: float) -> None:
    assert Later(seconds).seconds == seconds


@pytest.mark.parametrize("seconds", [-0.5, Later.LONGEST_S + 1, float("nan")])
def test_a_change_is_put_off_by_no_other_time(seconds: float) -> None:
    with pytest.raises(ValueError, match="put off by 0 to"):
        Later(seconds)


def test_a_change_that_is_decoded_is_as_one_that_is_made() -> None:
    steps = [[1, b"f:a", 5, b"v"], [3, b"f", 6, b""]]
    decoded = change_from([b"t", b"r", 7, "1-1-1", steps, {b"f:a": b"v"}, {}, 2, True, 5, 3, {}, None, True], b"state")
    cells = (ChangedCell("put", b"f:a", 5, b"v"), ChangedCell("delete family", b"f", 6))
    made = Change(b"t", b"r", 7, "1-1-1", cells, {b"f:a": b"v"}, {}, 2, True, 5, b"state", 3, {}, {}, True)
    assert decoded == made
    assert type(decoded) is Change
    assert {*ChangeDraft.__slots__} == {*Change.__slots__}
    assert replace(decoded, row=b"s") == replace(made, row=b"s")
    assert pickle.loads(pickle.dumps(decoded)) == made
    with pytest.raises(FrozenInstanceError):
        decoded.row = b"s"  # type: ignore[misc]
