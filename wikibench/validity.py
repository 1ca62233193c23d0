"""Whether a replay says anything of the wiki: it was offered as planned, or the figures are of the generator (pure).

Response times include the generator's own lateness, so a little of it only makes the wiki look slower than it is.
Beyond a bound what was planned was not offered: then the run is not valid, whatever was met or missed.
"""

from __future__ import annotations

from .summary import Replay, milliseconds


def why_not_valid(replay: Replay, late_ms: float) -> list[str]:
    """Return a line for each reason; none: the run is valid."""
    p99_ms = milliseconds(replay.own_lateness, 99.0)
    if p99_ms is None or p99_ms <= late_ms:
        return []
    return [f"the generator itself sent {p99_ms:.4g} ms late (p99); over {late_ms:g} ms the plan was not offered"]
