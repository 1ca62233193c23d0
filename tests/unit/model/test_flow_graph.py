"""The graph of flows: who feeds whom, the cycle that a definition would close, and the drawing."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from columnar.errors import IllegalArgument
from columnar.model.flow_graph import Flow, Graph, Measure, Place, place_of


def flow(name: str, reads: str, writes: str = "", seen: str = "", kind: str = "trigger") -> Flow:
    places = [tuple(map(place_of, text.split())) for text in (reads, writes, seen)]
    return Flow(kind, name, *places)


def test_places_are_written_as_they_are_shown() -> None:
    assert [str(place_of(text)) for text in ("pages", "pages/body", "queue:thumbs")] == [
        "pages", "pages/body", "queue:thumbs",
    ]  # fmt: skip
    assert place_of("pages/body") == Place("pages", "body")
    for text in ("", "/body", "pages/", "a/b/c"):
        with pytest.raises(IllegalArgument, match="write table, table/family"):
            place_of(text)


def test_edges_are_between_families() -> None:
    own = flow("spread", "timeline/own", "timeline/in")
    graph = Graph([own, flow("notify", "timeline/in"), flow("other", "timeline/own"), flow("all", "timeline")])
    assert [one.name for one in graph.fed_by(own)] == ["all", "notify"]
    assert graph.cycle_through(own) is None, "it reads another family than it writes"
    assert graph.cycle_through(flow("whole", "timeline/own", "timeline")) is not None


def test_the_cycle_that_a_flow_would_close_is_shown() -> None:
    graph = Graph([flow("a", "t1/f", "t2/f"), flow("b", "t2/f", "t3"), flow("c", "t3/g", "t4/f")])
    assert graph.cycle_through(flow("d", "t4/f", "t5/f")) is None
    cycle = graph.cycle_through(flow("d", "t4/f", "t1/f"))
    assert str(cycle) == "t1/f -> trigger a -> t2/f -> trigger b -> t3/g -> trigger c -> t4/f -> trigger d -> t1/f" or (
        str(cycle) == "t4/f -> trigger d -> t1/f -> trigger a -> t2/f -> trigger b -> t3/g -> trigger c -> t4/f"
    )
    assert str(graph.cycle_through(flow("self", "x/f", "x/f"))) == "x/f -> trigger self -> x/f"


def test_writes_that_were_seen_close_cycles_too() -> None:
    graph = Graph([flow("a", "t1/f", "", "t2/f")])
    assert graph.cycle_through(flow("b", "t2/f", "t1/f")) is not None


def test_another_definition_takes_the_place_of_the_first() -> None:
    graph = Graph([flow("a", "t1/f", "t2/f"), flow("b", "t2/f", "t3/f")])
    assert graph.cycle_through(flow("b", "t3/f", "t1/f")) is None
    assert graph.cycle_through(flow("a", "t3/f", "t2/f")) is not None
    assert len(graph.with_flow(flow("a", "t9/f")).flows) == 2


def test_order() -> None:
    graph = Graph(
        [
            flow("z", "t1/f", "t2/f"),
            flow("y", "t2/f", "t3/f"),
            flow("x", "t3/f", "t4/f"),
            flow("lonely", "t8/f", "t4/g"),
        ]
    )
    names = [one.name for one in graph.in_order()]
    assert names.index("z") < names.index("y") < names.index("x")


def test_a_drawing_names_each_flow_and_ends_in_a_cycle() -> None:
    one = flow("a", "t1/f", "t2/f", "t5/s")
    text = Graph([one, flow("b", "t2/f", "t1/f", kind="view")]).drawing(
        {("trigger", "a"): Measure(2.5, 7, 1.25, "paused")}
    )
    assert "-> trigger a   2.5/s  lag 7 (1.2 s)  paused" in text
    assert "t5/s (seen, not declared)" in text
    assert text.count("(above)") == 1
    assert Graph([]).drawing() == "no flows\n"


@pytest.mark.parametrize("seed", range(40))
def test_random_graphs(seed: int) -> None:
    """A cycle is one, and none is overlooked: against a search for a way back from each flow."""
    rng = random.Random(seed)
    places = [f"t{table}/f{family}" for table in range(4) for family in range(2)] + ["t0", "t1"]
    flows = [
        flow(f"n{number}", " ".join(rng.sample(places, 1)), " ".join(rng.sample(places, rng.randrange(3))))
        for number in range(7)
    ]
    graph = Graph(flows)
    assert sorted(one.name for one in graph.in_order()) == sorted(one.name for one in flows)
    assert all(line.strip() for line in graph.drawing().splitlines() if line)
    for one in flows:
        reached: set[str] = set()
        waiting = [one]
        while waiting:
            at = waiting.pop()
            for other in flows:
                if other.name not in reached and at.feeds(other) is not None:
                    reached.add(other.name)
                    waiting.append(other)
        cycle = graph.cycle_through(one)
        assert (cycle is not None) == (one.name in reached)
        if cycle is not None:
            ring = [*cycle.flows, cycle.flows[0]]
            assert all(earlier.feeds(later) is not None for earlier, later in pairwise(ring))
            assert len({held.name for held in cycle.flows}) == len(cycle.flows)
