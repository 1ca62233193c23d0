"""The waits behind which a write is in a flow: through those that feed it, and on through those that it feeds."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from columnar.model.flow_graph import Flow, Graph, Place, place_of
from columnar.model.flow_waits import queue_before, wait_steps


def flow(name: str, reads: str, writes: str = "") -> Flow:
    return Flow("trigger", name, tuple(map(place_of, reads.split())), tuple(map(place_of, writes.split())))


CHAIN = [flow("a", "pages", "links"), flow("b", "links", "counts"), flow("c", "counts"), flow("alone", "pages")]


def steps(flows: list[Flow], *names: str, downstream: bool = False) -> list[tuple[str, str]]:
    wanted = [one for one in flows if one.name in names]
    return [(one.name, token) for one, token in wait_steps(Graph(flows), wanted, "7-1-1", downstream=downstream)]


def test_only_a_flow_that_nobody_feeds_is_waited_for_by_the_writes_own_token() -> None:
    assert steps(CHAIN, "a") == [("a", "7-1-1")]
    assert steps(CHAIN, "c") == [("a", "7-1-1"), ("b", ""), ("c", "")]
    assert steps(CHAIN, "alone") == [("alone", "7-1-1")]
    assert steps(CHAIN) == []


def test_downstream_goes_on_through_all_that_is_fed() -> None:
    assert steps(CHAIN, "a", downstream=True) == [("a", "7-1-1"), ("b", ""), ("c", "")]
    both = [*CHAIN, flow("second", "notes", "counts")]
    assert steps(both, "a", downstream=True) == [("a", "7-1-1"), ("b", ""), ("second", "7-1-1"), ("c", "")], (
        "what feeds a flow downstream is waited for, too"
    )


def test_a_flow_that_feeds_itself_is_waited_for_once() -> None:
    ring = [flow("a", "t1", "t2"), flow("b", "t2", "t1")]
    assert sorted(steps(ring, "a")) == [("a", ""), ("b", "")]
    assert steps([flow("own", "t1", "t1")], "own") == [("own", "")]


def test_every_flow_comes_after_those_that_feed_it() -> None:
    for seed in range(200):
        rng = Random(seed)
        count = rng.randrange(1, 9)
        flows = [
            flow(f"f{n}", f"t{n}", " ".join(f"t{m}" for m in range(n + 1, count) if rng.random() < 0.4))
            for n in range(count)
        ]
        rng.shuffle(flows)
        graph, wanted = Graph(flows), rng.sample(flows, rng.randrange(1, count + 1))
        found = wait_steps(graph, wanted, "7-1-1", downstream=rng.random() < 0.5)
        place = {one: number for number, (one, _) in enumerate(found)}
        assert set(wanted) <= set(place), f"seed {seed}"
        for one in flows:
            for other in graph.fed_by(one):
                if other in place:
                    assert place[one] < place[other], f"seed {seed}"
        assert all((token == "") == any(one in graph.fed_by(two) for two in flows) for one, token in found), seed


def test_a_wait_ends_at_a_served_queue_and_has_the_sends_that_may_go_there() -> None:
    outbox = Flow("outbox", "sends", (place_of("src"),))
    served = Flow("push", "photos", (place_of("queue:photos"),), (place_of("thumbs"),))
    sizes, feed = flow("sizes", "thumbs"), Flow("feed", "out", (place_of("src"),), (place_of("topic:out"),))
    unseen = [outbox, served, sizes, feed]
    assert steps(unseen, "sizes") == [("sends", "7-1-1"), ("sizes", "7-1-1")], "where the outbox sends is not known yet"
    assert steps(unseen, "out") == [("out", "7-1-1")], "no queue feeds it"
    seen = [replace(outbox, seen=(place_of("queue:photos"),)), served, sizes, feed]
    assert steps(seen, "sends", "sizes", downstream=True) == [("sends", "7-1-1"), ("sizes", "7-1-1")]
    assert dict(steps(seen, "out", "sends", "sizes")).keys() == {"out", "sends", "sizes"}


def test_a_write_that_gets_to_a_flow_only_through_a_queue_is_named_with_that_queue() -> None:
    outbox = Flow("outbox", "sends", (place_of("src"),), seen=(place_of("queue:photos"),))
    served = Flow("push", "photos", (place_of("queue:photos"),), (place_of("thumbs"),))
    sizes, onward = flow("sizes", "thumbs", "wide"), flow("wide", "wide")
    graph = Graph([outbox, served, sizes, onward])
    for far in (sizes, onward):
        assert queue_before(graph, far, ["src"]) == ("src", Place("queue:photos"))
        assert queue_before(graph, far, ["other", "thumbs", "src"]) == ("src", Place("queue:photos"))
        assert queue_before(graph, far, ["thumbs", "other"]) is None
    assert queue_before(graph, outbox, ["src"]) is None
    both = Graph([*graph.flows, flow("copies", "src/f", "thumbs")])
    assert queue_before(both, sizes, ["src"]) is None, "a trigger brings it there, too"
