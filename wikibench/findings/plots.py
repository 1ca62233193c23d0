"""Drawings of a report's plots for paper and for browsers without script, as SVG for inlining into a page.

matplotlib draws with stand-in colours that are exchanged for CSS variables, so that
one drawing serves light and dark pages; text stays text.

Importing this module imports matplotlib, which is slow, so import it only when a report is made.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter, NullLocator

Json = dict[str, Any]

# stand-in colour -> CSS variable of the page; no two alike, none that matplotlib uses by itself
COLOURS: Final = {
    "#010203": "var(--ink)",
    "#020304": "var(--faint)",
    "#030405": "var(--s1)",
    "#040506": "var(--s2)",
    "#050607": "var(--s3)",
    "#060708": "var(--s4)",
}
INK, FAINT, S1, S2, S3, S4 = COLOURS
SIZE_IN: Final = (9.0, 3.4)
DRAWN_INTERVALS: Final = 100  # of a report; more are joined, because paper shows no more and a page is sent by mail
LOG_FROM: Final = 30.0  # a range of latencies wider than this factor is drawn on a logarithmic axis
MILLISECONDS_A_SECOND: Final = 1000
LEGEND_CHARS_AN_INCH: Final = 12.0  # of the legend's type size
LEGEND_MARK_CHARS: Final = 6  # width of the line before a label
SHORTEST_STRETCH: Final = 0.25  # of a stretch: a rate over less is noise

Draw = Callable[[Axes], None]
Points = Mapping[str, Sequence[tuple[float, float]]]


def draw(name: str, title: str, summary: Json, points: Points) -> str:
    """Return the drawing of this plot as SVG.  ``points`` are the percentile curves by name (``distribution``)."""
    summary = joined(summary)
    drawn: dict[str, Draw] = {
        "latency": lambda axes: _latency(axes, summary),
        "distribution": lambda axes: _distribution(axes, points),
        "rate": lambda axes: _rate(axes, summary),
        "failures": lambda axes: _failures(axes, summary),
    }
    return svg_of(name, title, drawn[name])


def joined(summary: Json) -> Json:
    """Return a report of at most DRAWN_INTERVALS: neighbours are joined, counts add up, the slowest stays."""
    rows = summary["intervals"]
    width = -(-len(rows) // DRAWN_INTERVALS)
    if width <= 1:
        return summary
    groups = [rows[at : at + width] for at in range(0, len(rows), width)]
    joined_rows = [_joined(group) for group in groups]
    return {**summary, "is_joined": True, "interval_s": summary["interval_s"] * width, "intervals": joined_rows}


def _joined(rows: Sequence[Json]) -> Json:
    failed: Counter[str] = Counter()
    for row in rows:
        failed.update(row["failed"])
    found: Json = {"start_s": rows[0]["start_s"], "failed": dict(failed)}
    for name in ("asked", "answered", "conflicts"):
        found[name] = sum(row[name] for row in rows)
    for name in ("p50_ms", "p95_ms", "p99_ms", "max_ms"):
        found[name] = max((row[name] for row in rows if row[name] is not None), default=None)
    return found


def svg_of(name: str, title: str, draw: Draw) -> str:
    """Return what ``draw`` draws as SVG for a page that has the CSS variables; ``name`` is unique in the page."""
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": name, "font.family": "sans-serif", "font.size": 10}):
        figure = Figure(figsize=SIZE_IN, layout="constrained")
        axes = figure.add_subplot()
        draw(axes)
        _dress(axes)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return _inline(buffer.getvalue(), name, title)


def _inline(svg: str, name: str, title: str) -> str:
    """Change a stand-alone SVG so that several SVGs can stand in one page."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r'(?<=<svg) (.*?)width="[^"]*"', r" \1", svg, count=1, flags=re.DOTALL)
    svg = re.sub(r'^(<svg[^>]*?)\s+height="[^"]*"', r"\1", svg, count=1, flags=re.DOTALL)
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"-?\d+\.\d{2,}(?![\d%])", lambda number: f"{float(number[0]):.1f}", svg)  # seen no finer
    svg = re.sub(r"\s*\n\s*", "\n", svg)
    svg = re.sub(r"<!--.*?-->\n?", "", svg, flags=re.DOTALL)
    svg = re.sub(r"font-family: [^;\"]*", "font-family: sans-serif", svg)  # else each text lists ten families
    svg = re.sub(r"(?<=\d)\.0(?=[ \n\"])", "", svg)
    # ids are unique in a page or clip paths of a hidden drawing would be used by a shown one
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = svg.replace("url(#", f"url(#{name}-").replace('href="#', f'href="#{name}-')
    for colour, variable in COLOURS.items():
        svg = svg.replace(colour, variable)
    return svg.replace("<svg", f'<svg role="img" aria-label="{title}"', 1)


def _dress(axes: Axes) -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(FAINT)
    axes.tick_params(colors=INK, which="both", length=3)
    axes.xaxis.label.set_color(INK)
    axes.yaxis.label.set_color(INK)
    axes.set_axisbelow(True)
    axes.grid(visible=True, axis="y", color=FAINT, linewidth=0.5, alpha=0.6)
    legend = axes.get_legend()
    if legend is not None:
        for text in legend.get_texts():
            text.set_color(INK)


def add_legend(axes: Axes) -> None:
    """Draw a legend above the plot, in as many columns as fit its width."""
    labels = [len(label) + LEGEND_MARK_CHARS for label in axes.get_legend_handles_labels()[1]]
    figure = axes.get_figure(root=True)
    if not labels or figure is None:
        return
    fitting = int(figure.get_figwidth() * LEGEND_CHARS_AN_INCH / max(labels))
    columns = max(1, min(len(labels), fitting))
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=columns, frameon=False, fontsize=9, borderpad=0)


def _latency(axes: Axes, summary: Json) -> None:
    rows = [interval for interval in summary["intervals"] if interval["p50_ms"] is not None]
    at = [row["start_s"] + summary["interval_s"] / 2 for row in rows]
    curves = {name: [row[f"{name}_ms"] for row in rows] for name in ("p50", "p95", "p99", "max")}
    axes.fill_between(at, curves["p50"], curves["p95"], color=S1, alpha=0.22, linewidth=0)
    axes.fill_between(at, curves["p95"], curves["p99"], color=S2, alpha=0.22, linewidth=0)
    marker = "o" if len(rows) < 3 else None
    for name, colour in (("p50", S1), ("p95", S2), ("p99", S3)):
        axes.plot(at, curves[name], color=colour, linewidth=1.6, label=name, marker=marker, markersize=3)
    axes.plot(at, curves["max"], color=FAINT, linewidth=0.8, label="max", marker=marker, markersize=3)
    for row in summary["requirements"]:
        if row["unit"] == "ms" and row["requirement"].startswith("p"):
            axes.axhline(row["limit"], color=INK, linewidth=1, linestyle=(0, (4, 3)), label=row["requirement"])
    time_axis(axes, [value for curve in curves.values() for value in curve])
    each = f"; the slowest of each {summary['interval_s']:g} s" if summary.get("is_joined") else ""
    axes.set_xlabel(f"seconds from the start of the replay{each}")
    add_legend(axes)


def _distribution(axes: Axes, points: Points) -> None:
    last = 1.0
    for (name, curve), colour, style in zip(points.items(), (S2, S1), ("-", "--"), strict=False):
        if curve:
            axes.plot([x for x, _ in curve], [y for _, y in curve], color=colour, linestyle=style, label=name)
            last = max(last, curve[-1][0])
    axes.set_xscale("log")
    ticks = [2.0, *(10.0**n for n in range(1, 8))]
    shown = [tick for tick in ticks if tick <= last * 1.2] or ticks[:1]
    axes.set_xticks(shown, [_quantile(tick) for tick in shown])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("share of requests that was no slower")
    time_axis(axes, [y for curve in points.values() for _, y in curve])
    add_legend(axes)


def _quantile(inverse: float) -> str:
    return f"{100 * (1 - 1 / inverse):.7g}%"


def _rate(axes: Axes, summary: Json) -> None:
    width = summary["interval_s"]
    rows = summary["intervals"]
    # the last interval ends with the replay; counted as a whole one it would look like a fall of the rate
    last = rows[-1]["start_s"] if rows else 0.0
    end = last + min(width, max(summary["duration_s"] - last, SHORTEST_STRETCH * width))
    edges = [row["start_s"] for row in rows] + [end] if rows else [0.0, width]
    lengths = [after - before for before, after in pairwise(edges)]
    requested = [row["asked"] / length for row, length in zip(rows, lengths, strict=False)] or [0.0]
    got = [row["answered"] / length for row, length in zip(rows, lengths, strict=False)] or [0.0]
    axes.stairs(requested, edges, color=S2, linewidth=1.8, label="asked", baseline=None)
    axes.stairs(got, edges, color=S1, linewidth=1.4, label="got", baseline=None)
    axes.set_ylim(bottom=0, top=max([*requested, *got]) * 1.08 or 1.0)
    axes.set_ylabel("requests per second")
    axes.set_xlabel("seconds from the start of the replay")
    add_legend(axes)


def _failures(axes: Axes, summary: Json) -> None:
    width, rows = summary["interval_s"], summary["intervals"]
    edges = [*(row["start_s"] for row in rows), rows[-1]["start_s"] + width]
    names = sorted({name for row in rows for name in row["failed"]})
    layers = [(name, [row["failed"].get(name, 0) for row in rows]) for name in names]
    layers.append(("conflict", [row["conflicts"] for row in rows]))
    base = [0.0] * len(rows)
    colours = [S3, S2, S4, S1, FAINT, INK]
    for index, (name, counts) in enumerate(layers):
        if any(counts):
            top = [below + count for below, count in zip(base, counts, strict=True)]
            colour = colours[index % len(colours)]
            axes.stairs(top, edges, baseline=base, fill=True, color=colour, label=name)
            base = top
    axes.set_ylim(0, max(1.0, *base) * 1.08)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylabel(f"requests per {width:g} s")
    axes.set_xlabel("seconds from the start of the replay")
    add_legend(axes)


def time_axis(axes: Axes, values: Sequence[float]) -> None:
    """Dress the axis of ``values`` in milliseconds; a wide range is drawn on a logarithmic axis."""
    positive = [value for value in values if value > 0]
    if positive and max(positive) / min(positive) > LOG_FROM:
        axes.set_yscale("log")
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _time_label(value)))


def _time_label(value_ms: float) -> str:
    if value_ms >= MILLISECONDS_A_SECOND:
        return f"{value_ms / MILLISECONDS_A_SECOND:g} s"
    return f"{value_ms:g} ms"
