"""Drawings of a search: its tries in order, and response times by rate.  Importing this module imports matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from .plots import FAINT, INK, S1, S2, S3, add_legend, svg_of, time_axis


def draw_tries(tries: Sequence[tuple[float, bool, bool]], low: float, rate: float, high: float) -> str:
    """Return the plot of tries as SVG: rate, whether kept, whether valid; and the answer with its interval."""

    def draw(axes: Axes) -> None:
        for label, marker, colour in (("kept", "o", S1), ("missed", "x", S3), ("not valid", "+", FAINT)):
            points = [(at, one[0]) for at, one in enumerate(tries, start=1) if _kind(*one[1:]) == label]
            if points:
                axes.plot(*zip(*points, strict=True), marker, color=colour, label=label, markersize=6, zorder=3)
        if rate:
            axes.axhspan(low, high, color=S2, alpha=0.2, linewidth=0, label="interval of 90 %")
            axes.axhline(rate, color=INK, linewidth=1, linestyle=(0, (4, 3)), label=f"answer: {rate:,.4g}/s")
        axes.set_ylim(bottom=0)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("try")
        axes.set_ylabel("requests per second")
        add_legend(axes)

    return svg_of("tries", "Tries in order, by rate", draw)


def _kind(is_kept: bool, is_valid: bool) -> str:
    if not is_valid:
        return "not valid"
    return "kept" if is_kept else "missed"


def draw_curve(points: Sequence[Mapping[str, float | None]]) -> str:
    """Return response times by the rate asked for, as SVG; ``points`` have "asked/s" and "p50, ms" to "p99, ms"."""

    def draw(axes: Axes) -> None:
        found: list[float] = []
        for name, colour in (("p50", S1), ("p95", S2), ("p99", S3)):
            known = [(one["asked/s"], ms) for one in points if (ms := one[f"{name}, ms"]) is not None]
            if known:
                axes.plot(*zip(*known, strict=True), "o-", color=colour, label=name, markersize=4)
                found += [ms for _, ms in known]
        axes.set_xlim(left=0)
        time_axis(axes, found)
        axes.set_xlabel("requests asked per second")
        add_legend(axes)

    return svg_of("curve", "Response times by rate", draw)
