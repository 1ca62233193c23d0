"""(pure) The figures of the ETH experiment as tables for a person and as JSON for a program.

A figure of several rounds is their median.  Latencies are in milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from statistics import median
from typing import Any, Final

from rich.table import Table

from benchmarks.flows_figures import (
    BACKLOG_S,
    BESIDE,
    REFERENCE,
    Figures,
    FlowRuns,
    completions_ms,
    drained_after_s,
    extras_of,
    figures_of,
    pauses_ms,
    phases_ms,
    spread_of,
)
from benchmarks.flows_oracle import Verdict
from benchmarks.flows_plan import drain_bound_s

PARTS: Final = ("app", "store", "worker", "queue")
LEAST_BACKLOG: Final = 32  # tweets: fewer that are open at the end are no sign of a rate that was not kept
RATED: Final = ("W2", *BESIDE)
BUSY_LATE_MS: Final = 5.0  # over it the application itself was late


def median_of(found: Sequence[Figures], figure: Callable[[Figures], float]) -> float:
    return median(map(figure, found))


def table_of(workload: str, found: Sequence[FlowRuns], plain: Sequence[FlowRuns] = ()) -> Table:
    """Return the table of a workload, with all variants; ``plain`` has the runs of W2, beside which some stand."""
    if workload in BESIDE:
        return _beside(workload, found, plain)
    return {"W1": _saturating, "W2": _saturating, "W3": _burst, "W4": _faults}[workload](found)


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left")
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number < 2 else "right")
    return table


def _saturating(found: Sequence[FlowRuns]) -> Table:
    workload = found[0].workload
    title = "W1, saturating" if workload == "W1" else "W2, open loop"
    table = _table(
        title, "load", "variant", "tweets/s", f"of\n{REFERENCE}", "response ms\np50 / p99 / p99.9 / max", "stddev",
        "propagation ms\np50 / p99 / max", "drain s", "CPU us a tweet\n" + " + ".join(PARTS), "app\nbytes",
        "execu-\ntions",
    )  # fmt: skip
    reference = {one.title: one for one in found if one.variant == REFERENCE}
    for one in found:
        figures = [figures_of(flow_run) for flow_run in one.runs]
        rate = median_of(figures, lambda each: each.rate)
        beside = reference.get(one.title)
        full = median(figures_of(flow_run).rate for flow_run in beside.runs) if beside else 0.0
        table.add_row(
            one.title,
            one.variant,
            f"{rate:,.0f}",
            f"{rate / full:.2f}" if full else "",
            times_of([each.response_ms for each in figures], "p50", "p99", "p99.9", "max"),
            times_of([each.response_ms for each in figures], "stddev"),
            times_of([each.propagation_ms for each in figures], "p50", "p99", "max"),
            f"{median_of(figures, lambda each: each.drain_s):.2f}",
            " + ".join(_cpu(figures, part) for part in PARTS),
            f"{median_of(figures, lambda each: each.app_bytes):,.0f}",
            _executions(figures),
        )
    return table


def _burst(found: Sequence[FlowRuns]) -> Table:
    seconds = found[0].runs[0].phases[1].seconds
    table = _table(
        f"W3, {found[0].title}; drained at the latest {drain_bound_s(seconds):.1f} s after it if work goes on at"
        " the saturation", "load", "variant", "before it\np50 / p99 / max ms", "in it\np50 / p99 / max ms",
        "after it\np50 / p99 / max ms", "refused", "never\nanswered", "drained\nafter s", "propagation ms\nmax",
    )  # fmt: skip
    for one in found:
        flow_run, figures = one.runs[0], figures_of(one.runs[0])
        after_s = drained_after_s(flow_run)
        table.add_row(
            " / ".join(f"{phase.rate:,.0f}" for phase in flow_run.phases) + " /s",
            one.variant,
            *(times_of([each], "p50", "p99", "max") for each in phases_ms(flow_run)),
            str(sum(figures.refusals.values())),
            str(figures.unanswered),
            "not" if after_s is None else f"{after_s:.1f}",
            times_of([figures.propagation_ms], "max"),
        )
    return table


def _faults(found: Sequence[FlowRuns]) -> Table:
    table = _table(
        "W4, faults", "fault", "variant", "tweets", "longest time without\nacknowledgement ms",
        "after a kill ms\nmedian / max", "never\nanswered", "connections\nbroken", "refused", "drain s",
        "execu-\ntions",
    )  # fmt: skip
    for one in found:
        figures = [figures_of(flow_run) for flow_run in one.runs]
        pauses = sorted(pause for flow_run in one.runs for pause in pauses_ms(flow_run))
        tweets = sum(each.tweets for each in figures)
        table.add_row(
            one.title,
            one.variant,
            f"{tweets:,}",
            f"{max(each.gap_ms for each in figures):,.0f}",
            f"{median(pauses):,.0f} / {pauses[-1]:,.0f}" if pauses else "",
            str(sum(each.unanswered for each in figures)),
            str(sum(each.breaks for each in figures)),
            str(sum(sum(each.refusals.values()) for each in figures)),
            f"{max(each.drain_s for each in figures):.2f}",
            _executions(figures),
        )
    return table


def _beside(workload: str, found: Sequence[FlowRuns], plain: Sequence[FlowRuns]) -> Table:
    """Return a table with a line for the load alone and one for the load with what happens beside it."""
    title, *heads = _BESIDE_HEADS[workload]
    table = _table(
        f"{workload}, {title}", "load", "variant", "beside it", "response ms\np50 / p99 / max",
        "propagation ms\np50 / p99 / max", "drain s", *heads,
    )  # fmt: skip
    without = {(one.variant, one.title): one for one in plain}
    for one in found:
        for runs in (without.get((one.variant, one.title)), one):
            if runs is None:
                continue
            figures = [figures_of(flow_run) for flow_run in runs.runs]
            table.add_row(
                runs.title,
                runs.variant,
                workload if runs is one else "nothing (W2)",
                times_of([each.response_ms for each in figures], "p50", "p99", "max"),
                times_of([each.propagation_ms for each in figures], "p50", "p99", "max"),
                f"{median_of(figures, lambda each: each.drain_s):.2f}",
                *(_extra_cells(one) if runs is one else [""] * len(heads)),
            )
    return table


_BESIDE_HEADS: Final = {
    "W5": (
        "a celebrity tweets; times are the others'", "celebrity's\ntweets", "not in all\nin time",
        "in all timelines\nafter ms, p50 / max",
    ),
    "W6": (
        "poison; times are the others'. In the sync variants nobody but the application spreads: they have no W6",
        "poison", "given up", "executions\nof each",
    ),
    "W7": ("splits and merges of the timeline", "splits", "merges", "failed", "ms of each\np50 / max"),
}  # fmt: skip


def _extra_cells(one: FlowRuns) -> list[str]:
    (found,) = zip(*(extras_of(one.workload, flow_run).values() for flow_run in one.runs), strict=True)
    if one.workload == "W5":
        tweets, completed = (
            sum(each["tweets"] for each in found),
            _all_ms(completions_ms(each.sent) for each in one.runs),
        )
        return [str(tweets), str(tweets - len(completed)), times_of([spread_of(completed)], "p50", "max")]
    if one.workload == "W6":
        counts = [str(sum(each[name] for each in found)) for name in ("tweets", "given_up")]
        return [*counts, f"{median(each['executions'] for each in found):.2f}"]
    counts = [str(sum(each[name] for each in found)) for name in ("splits", "merges", "failed")]
    times = _all_ms([ms for _, ms in each.changes] for each in one.runs)
    return [*counts, times_of([spread_of(times)], "p50", "max")]


def _all_ms(found: Iterable[Iterable[float]]) -> list[float]:
    return [ms for each in found for ms in each]


def table_of_verdicts(verdicts: dict[str, Verdict], session: dict[str, tuple[int, int]]) -> Table:
    """Return the table of verdicts with, as ``session``, own timelines read and missed at once."""
    table = _table(
        "Oracle, when all is drained", "variant", "good", "tweets\nacknowledged", "copies of them\nat followers",
        "missing\ncells", "strange\ncells", "torn tweets,\nunacknowledged", "poison", "given\nup", "lost", "spoiled",
        "own timeline\nreads", "misses",
    )  # fmt: skip
    for variant, found in verdicts.items():
        reads, misses = session[variant]
        is_good = found.is_good and not misses
        counts = (
            found.tweets, found.copies, found.missing, found.strange, found.torn, found.poison, found.given_up,
            found.lost, found.spoiled, reads, misses,
        )  # fmt: skip
        table.add_row(variant, "yes" if is_good else "NO", *(f"{count:,}" for count in counts))
    return table


def remarks_of(found: Sequence[FlowRuns], verdicts: dict[str, Verdict]) -> list[str]:
    """Return lines below the tables: rates that were not kept, runs that the application limited, missing tweets."""
    remarks = []
    for one in found:
        where = f"{one.variant}, {one.workload}, {one.title}"
        figures = [figures_of(flow_run) for flow_run in one.runs]
        rate = one.runs[0].phases[0].rate or 0.0
        backlog = median_of(figures, lambda each: each.backlog)
        if one.workload in RATED and backlog > max(BACKLOG_S * rate, LEAST_BACKLOG):
            remarks.append(f"{where}: the rate was not kept, {backlog:.0f} tweets were open at the end.")
        if any(not each.is_drained for each in figures):
            remarks.append(f"{where}: not everything was spread in time.")
        late = max(each.late_p99_ms for each in figures)
        if late > BUSY_LATE_MS:
            remarks.append(f"{where}: the application itself sent 1 in 100 tweets {late:.1f} ms late or later.")
        remarks += [
            f"{where}: refused {count} times: {words}" for each in figures for words, count in each.refusals.items()
        ]
        remarks += [
            f"{where}: a change of regions failed {count} times: {words}"
            for flow_run in one.runs
            for words, count in flow_run.failures.items()
        ]
    remarks += [f"{variant}: {example}" for variant, verdict in verdicts.items() for example in verdict.examples]
    return remarks


def as_json(found: Sequence[FlowRuns]) -> list[dict[str, Any]]:
    """Return each load of each variant with the figures of all its rounds."""
    return [
        {
            "workload": one.workload,
            "load": one.title,
            "variant": one.variant,
            "phases": [asdict(phase) for phase in one.runs[0].phases],
            "rounds": [asdict(figures_of(flow_run)) | extras_of(one.workload, flow_run) for flow_run in one.runs],
            **({"responses_of_phases_ms": phases_ms(one.runs[0])} if len(one.runs[0].phases) > 1 else {}),
            **({"drained_after_s": drained_after_s(one.runs[0])} if one.workload == "W3" else {}),
            **({"pauses_ms": [pauses_ms(flow_run) for flow_run in one.runs]} if one.workload == "W4" else {}),
        }
        for one in found
    ]


def times_of(found: Sequence[dict[str, float]], *names: str) -> str:
    """Return the medians of these percentiles in words."""
    known = [each for each in found if each]
    return " / ".join(_ms(median(each[name] for each in known)) for name in names) if known else ""


def _ms(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _cpu(figures: Sequence[Figures], part: str) -> str:
    known = [each.cpu_us[part] for each in figures if part in each.cpu_us]
    return f"{median(known):,.0f}" if known else "-"


def _executions(figures: Sequence[Figures]) -> str:
    found = median_of(figures, lambda each: each.executions)
    return f"{found:.3f}" if found else "-"
