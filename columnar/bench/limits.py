"""(pure) The limits of the machine, whatever a store does: stops of processes, fsyncs, a byte there and back.

A machine stops each of its processes now and then: its kernel's own threads have their turn, and where it is virtual
its host gives the core to others.  A call that is due at such a moment waits until it is over, so no store that needs
the core has a lower percentile than that.  ``waits_us`` computes from the stops the wait of a call due at any moment:
the longer a stop, the more moments lie in it.

Knows nothing of files, sockets and clocks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.table import Table

from columnar.bench.latencies import PERCENTILES


@dataclass(frozen=True, slots=True)
class Limit:
    """A row of the table."""

    what: str
    figures_us: Mapping[str, float]  # by the name of the percentile, and ``max``
    kind: str  # "core", "fsync" or "round trip"
    note: str = ""


def waits_us(stops_ns: Sequence[int], measured_ns: int) -> dict[str, float]:
    """Return percentiles of the wait of a call that is due at any moment of the time measured, with ``max``, in us."""
    found = {f"p{share:g}": _waited(stops_ns, (1 - share / 100) * measured_ns) / 1_000 for share in PERCENTILES}
    return {**found, "max": max(stops_ns, default=0) / 1_000}


def _waited(stops_ns: Sequence[int], rest_ns: float) -> float:
    """The wait that is exceeded in moments of ``rest_ns`` together only."""
    longest = sorted(stops_ns, reverse=True)
    total = 0
    for count, stop in enumerate(longest, 1):
        total += stop
        level = (total - rest_ns) / count  # where these alone are longer than that
        if level >= (longest[count] if count < len(longest) else 0):
            return level
    return 0.0


def stopped_share(stops_ns: Sequence[int], measured_ns: int) -> float:
    return sum(stops_ns) / max(measured_ns, 1)


def table_of_limits(limits: Sequence[Limit]) -> Table:
    table = Table(title="Milliseconds", title_justify="left")
    table.add_column("what")
    for share in PERCENTILES:
        table.add_column(f"p{share:g}", justify="right")
    table.add_column("longest", justify="right")
    for limit in limits:
        table.add_row(limit.what, *(f"{figure / 1_000:.2f}" for figure in limit.figures_us.values()))
    return table


def remarks_of_limits(limits: Sequence[Limit]) -> list[str]:
    """Return lines below the table."""
    found = [f"{limit.what}: {limit.note}" for limit in limits if limit.note]
    cores = [limit.figures_us["p99.9"] for limit in limits if limit.kind == "core"]
    if cores:
        found.append(
            f"Of calls to a server that keeps its core busy one in 1,000 waits {max(cores) / 1_000:.1f} ms for the"
            " machine alone, when it falls to the worst core; the store that is measured comes on top."
        )
    return found


def as_json(limits: Sequence[Limit]) -> list[dict[str, Any]]:
    return [asdict(limit) for limit in limits]
