"""Drawings of an experiment's tables: a line for each system, or a bar for each row.

Importing this module imports matplotlib, which is slow, so import it only when a page is made.
"""

from __future__ import annotations

import html
from functools import partial
from itertools import cycle
from typing import Final

from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from wikibench.findings.plots import FAINT, INK, S1, S2, S3, S4, add_legend, svg_of

from .tables import Page, Table

LINES: Final = (S1, S2, S3, S4, INK, FAINT)  # more systems take turns
LOG_FROM: Final = 16.0  # an axis over a wider range of numbers of clients is logarithmic


def drawings_of(page: Page) -> list[str]:
    """Return a drawing of each table as SVG; an empty text for a table that says none, or has no figures."""
    found = []
    for number, table in enumerate(page.tables):
        draw = _draw_lines if "x" in table.plot else _draw_bars
        has_figures = table.plot and (table.lines() if draw is _draw_lines else table.bars())
        found.append(svg_of(f"t{number}", html.escape(table.title), partial(draw, table)) if has_figures else "")
    return found


def _draw_lines(table: Table, axes: Axes) -> None:
    lines = table.lines()
    for (name, points), colour in zip(lines.items(), cycle(LINES), strict=False):
        axes.plot([x for x, _ in points], [y for _, y in points], "o-", color=colour, label=name, markersize=4)
    ticks = sorted({x for points in lines.values() for x, _ in points})
    if ticks[0] > 0 and ticks[-1] / ticks[0] > LOG_FROM:
        axes.set_xscale("log", base=2)
        axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_ylim(bottom=0)
    axes.set_xlabel(table.plot["x"])
    axes.set_ylabel(table.plot["y"])
    add_legend(axes)


def _draw_bars(table: Table, axes: Axes) -> None:
    bars = table.bars()
    for at, (_, value, is_reference) in enumerate(bars):
        axes.barh(at, value, color=FAINT if is_reference else S1, height=0.6)
        axes.annotate(f" {value:,.4g}", (value, at), va="center", color=INK, xytext=(2, 0), textcoords="offset points")
    axes.set_yticks(range(len(bars)), [name for name, _, _ in bars])
    axes.invert_yaxis()
    axes.set_xlim(0, max(value for _, value, _ in bars) * 1.12 or 1.0)
    axes.set_xlabel(table.plot["y"])
