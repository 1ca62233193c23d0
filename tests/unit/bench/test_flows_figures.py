"""Figures of a turn of the ETH experiment, from times that were made up."""

from __future__ import annotations

from array import array
from collections import Counter

from rich.table import Table

from benchmarks.flows_figures import (
    FlowRun,
    FlowRuns,
    at_share,
    drained_after_s,
    extras_of,
    figures_of,
    gap_ms,
    pauses_ms,
    phases_ms,
    saturation_of,
    spread_of,
)
from benchmarks.flows_oracle import Verdict
from benchmarks.flows_plan import Marked, Phase, Probes, Sent, burst
from benchmarks.flows_report import remarks_of, table_of

S = 1_000_000_000
MS = 1_000_000


def sent(due: list[int], acknowledged: list[int], **more: object) -> Sent:
    return Sent(0, 0, array("q", due), array("q", acknowledged), 9 * S, **more)  # type: ignore[arg-type]


def turn(found: Sent, *phases: Phase, drained_ns: int = 0, executions: int = 0, **more: object) -> FlowRun:
    return FlowRun("v", phases or (Phase(1.0, 4.0),), found, drained_ns, True, executions, 100, **more)  # type: ignore[arg-type]


def test_a_response_counts_from_when_the_tweet_was_due_also_if_it_was_never_answered() -> None:
    found = figures_of(turn(sent([0, S // 2, 2 * S], [10 * MS, S // 2 + 20 * MS, 0])))
    assert found.response_ms["p50"] == 20
    assert found.response_ms["max"] == 7_000
    assert (found.tweets, found.unanswered, found.backlog) == (2, 1, 1)


def test_the_rate_counts_until_all_is_spread() -> None:
    one = sent([0] * 6, [S // 2] * 6)
    assert figures_of(turn(one, drained_ns=3 * S, executions=6)).rate == 2
    assert figures_of(turn(one, drained_ns=S // 4, executions=6)).rate == 6, "the load's own time at least"


def test_the_rate_of_an_application_that_writes_everything_is_of_the_loads_time() -> None:
    found = figures_of(turn(sent([0, 0, 0], [S // 2, S, 5 * S]), drained_ns=6 * S))
    assert (found.rate, found.backlog, found.drain_s) == (2, 1, 0)


def test_processor_time_and_bytes_are_for_each_tweet() -> None:
    noted = sent([0, 0], [1, 2], bytes=700, cpu_s=0.004)
    found = figures_of(turn(noted, executions=3, cpu_s={"store": 0.01}))
    assert found.cpu_us == {"app": 2_000, "store": 5_000}
    assert (found.app_bytes, found.executions) == (350, 1.5)


def test_percentiles_are_values_that_were_measured() -> None:
    held = sorted(range(1, 101))
    assert [at_share(held, share) for share in (50, 99, 99.9)] == [50, 99, 100]
    assert spread_of([2.0, 4.0])["stddev"] == 1
    assert spread_of([]) == {}


def test_gaps_and_pauses_are_between_acknowledgements() -> None:
    noted = sent([0] * 5, [1 * S, 2 * S, 5 * S, 6 * S, 8 * S])
    assert gap_ms(noted) == 3_000
    assert pauses_ms(turn(noted, kills_ns=(S + S // 2, 6 * S + 1))) == [3_000, 2_000 - 1e-6]


def test_each_phase_has_the_responses_of_the_tweets_that_were_due_in_it() -> None:
    phases = burst(10, 1)
    found = phases_ms(turn(sent([0, 2 * S, 3 * S], [1 * MS, 2 * S + 5 * MS, 3 * S + 2 * MS]), *phases))
    assert [each["max"] for each in found] == [1, 5, 2]


def test_a_burst_is_drained_when_what_was_due_is_done() -> None:
    due = [2 * S] * 10
    samples = [(2 * S, 100), (3 * S, 104), (4 * S, 108), (5 * S, 110)]
    noted = sent(due, [2 * S] * 10, samples=samples)
    assert drained_after_s(turn(noted, *burst(1, 1), executions=10)) == 2
    assert drained_after_s(turn(noted, *burst(1, 1))) == 0, "the application writes everything: acknowledged is done"
    assert drained_after_s(turn(sent(due, [0] * 10, samples=samples), *burst(1, 1))) is None


def test_remarks_say_what_went_wrong_and_the_saturation_is_of_sync() -> None:
    slow = sent([0] * 100, [2 * S] * 100, late_us=Counter({9_000: 5}), refusals=Counter({"too busy": 3}))
    turns = (turn(slow, Phase(1.0, 100.0)),)
    found = [FlowRuns("W2", "80%", "sync", turns), FlowRuns("W2", "80%", "integrated", turns)]
    said = remarks_of(found, {"sync": Verdict(missing=1, examples=("tweet 9 lacks 1",))})
    assert sum("the rate was not kept, 100 tweets" in one for one in said) == 2
    assert sum("9.0 ms late" in one for one in said) == 2
    assert "sync, W2, 80%: refused 3 times: too busy" in said
    assert said[-1] == "sync: tweet 9 lacks 1"
    quick = sent([0] * 5, [S // 2] * 5)
    closed = [FlowRuns("W1", "closed", name, (turn(quick, Phase(1.0, None)),)) for name in ("integrated", "sync")]
    assert saturation_of(closed) == 5
    assert [table_of(one, found).row_count for one in ("W2", "W4")] == [2, 2]


def test_the_celebritys_tweets_have_a_time_of_their_own() -> None:
    marked, probes = Marked(celebrity=frozenset({1, 2})), Probes([(0, 7 * MS)], {1: 4 * S})
    noted = turn(sent([0, S, 2 * S], [10 * MS, 3 * S, 0], marked=marked, probes=probes))
    figures = figures_of(noted)
    assert (figures.response_ms["max"], figures.propagation_ms["max"], figures.unanswered) == (10, 7, 1)
    celebrity = extras_of("W5", noted)["celebrity"]
    assert (celebrity["tweets"], celebrity["completion_ms"]["max"]) == (2, 3_000), "from when the tweet was due"
    (cells,) = rows_of(table_of("W5", [FlowRuns("W5", "50%", "v", (noted,))]))
    assert cells[6:] == ["2", "1", "3,000 / 3,000"]


def test_poison_counts_if_its_tweet_was_acknowledged() -> None:
    marked = Marked(poison=frozenset({0, 2, 9}))
    noted = turn(sent([0, 0, 0], [1, 1, 0], marked=marked), given_up=1, executed_in_vain=8)
    assert extras_of("W6", noted) == {"poison": {"tweets": 1, "given_up": 1, "executions": 8}}
    assert extras_of("W2", noted) == {}


def test_a_burst_and_faults_have_figures_of_each_round() -> None:
    """Tables of an experiment have figures of rounds; these two stood beside the rounds, so no table had them."""
    kills = turn(sent([0, 0, 0], [S, 2 * S, 5 * S]), kills_ns=(S + S // 2, 3 * S))
    faults = extras_of("W4", kills)["faults"]
    assert (faults["count"], faults["pause_ms"]["max"]) == (2, 2_000)
    assert extras_of("W4", turn(sent([0], [MS])))["faults"] == {"count": 0, "pause_ms": {}}
    phases = [Phase(1.0, 1.0), Phase(1.0, 3.0), Phase(1.0, 1.0)]
    due = [0, S, S, S + S // 2, 2 * S + S // 2]
    late = turn(sent(due, [MS, S + MS, 2 * S + MS, 2 * S + 2 * MS, 2 * S + S // 2 + MS], samples=[(3 * S, 0)]), *phases)
    assert extras_of("W3", late) == {"burst": {"drained_after_s": 1.0}}


def test_changes_of_regions_are_counted_by_kind_and_stand_beside_the_same_load_without_them() -> None:
    quick = sent([0], [MS])
    changed = turn(quick, changes=(("split", 5.0), ("merge", 9.0), ("split", 7.0)), failures={"too busy": 2})
    found = extras_of("W7", changed)["changes"]
    assert (found["splits"], found["merges"], found["failed"], found["ms"]["max"]) == (2, 1, 2, 9)
    with_them = [FlowRuns("W7", "50%", "v", (changed, changed))]
    plain = [FlowRuns("W2", share, "v", (turn(quick),)) for share in ("50%", "80%")]
    rows = rows_of(table_of("W7", with_them, plain))
    assert [cells[:3] for cells in rows] == [["50%", "v", "nothing (W2)"], ["50%", "v", "W7"]]
    assert rows[1][6:] == ["4", "2", "4", "7 / 9"]
    assert remarks_of(with_them, {})[0] == "v, W7, 50%: a change of regions failed 2 times: too busy"


def rows_of(table: Table) -> list[list[str]]:
    return [list(map(str, cells)) for cells in zip(*(column.cells for column in table.columns), strict=True)]
