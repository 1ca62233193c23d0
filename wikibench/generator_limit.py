"""The largest rate of this generator on this machine, as ``wikibench limits`` last found it, for reports to say.

    limits.json := {"format": "wikibench-limits-1", "limits": [limit, ...]}        in the user's folder of state
    limit       := {"node", "date", "workers", "page_bytes", "lateness_ms", "rate_per_s", "cpu_us", "environment"}

A limit is of a machine by its node's name, and of a number of workers.  It is stale, and said to be, if it is older
than STALE_DAYS, or was found with another processor, number of cores, Python or HTTP client.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from .whole_files import write_whole

FORMAT: Final = "wikibench-limits-1"
STALE_DAYS: Final = 30
KEPT: Final = 64  # limits in the file, the newest
READABLE_BYTES: Final = 1 << 20
GOOD_SHARE: Final = 0.5  # of the limit: a wiki on the same machine needs its share of the cores
DATE: Final = "%Y-%m-%d %H:%M:%S UTC"
_DECISIVE: Final = {
    "processor": "another processor",
    "cores": "another number of cores",
    "python": "another Python",
    "wikibench_http_client": "another version of its HTTP client",
}
Json = dict[str, Any]


def limits_file() -> Path | None:
    """Return the file; ``WIKIBENCH_STATE`` names another folder.  None if the user has no home."""
    import platformdirs  # 3 ms

    try:
        folder = os.environ.get("WIKIBENCH_STATE") or platformdirs.user_state_dir("wikibench", appauthor=False)
    except RuntimeError:  # no home
        return None
    return Path(folder) / "limits.json"


def limit_of(rate_per_s: float, cpu_us: float, workers: int, page_bytes: int, late_ms: float, machine: Json) -> Json:
    """Return a limit that was found now; ``machine`` is the environment of a report."""
    return {
        "node": platform.node(),
        "date": machine["date"],
        "workers": workers,
        "page_bytes": page_bytes,
        "lateness_ms": late_ms,
        "rate_per_s": round(rate_per_s, 1),
        "cpu_us": round(cpu_us, 1),
        "environment": {name: machine.get(name) for name in _DECISIVE},
    }


def keep_limit(limit: Json, path: Path) -> None:
    """Write the limit into the file, in place of an older one of this machine and number of workers; OSError."""
    others = [one for one in read_limits(path) if (one["node"], one["workers"]) != (limit["node"], limit["workers"])]
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"format": FORMAT, "limits": [*others, limit][-KEPT:]}, indent=1, ensure_ascii=False)
    write_whole(path, text + "\n")


def read_limits(path: Path) -> list[Json]:
    """Return the limits of the file; none if it is not there, or not ours."""
    try:
        with path.open(encoding="utf-8") as file:
            found = json.loads(file.read(READABLE_BYTES))
        if found["format"] != FORMAT:
            return []
        return [one for one in found["limits"] if {"node", "date", "workers", "rate_per_s", "environment"} <= set(one)]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def known_limit(limits: Sequence[Json], node: str, workers: int, machine: Json, asked_per_s: float) -> Json | None:
    """(pure) Return what a report says of the limit of this machine; None if none is known.

    Without the name of the node, which a report does not show.
    """
    of_here = [one for one in limits if (one["node"], one["workers"]) == (node, workers)]
    if not of_here:
        return None
    limit = of_here[-1]
    stale = [f"of {words}" for name, words in _DECISIVE.items() if limit["environment"].get(name) != machine.get(name)]
    age = _moment(machine["date"]) - _moment(limit["date"])
    if age > timedelta(days=STALE_DAYS):
        stale.append(f"{age.days} days old")
    return {
        **{name: limit.get(name) for name in ("date", "workers", "page_bytes", "lateness_ms", "rate_per_s", "cpu_us")},
        "asked_share": round(asked_per_s / limit["rate_per_s"], 4) if limit["rate_per_s"] else None,
        "stale_because": stale,
    }


def words_of_limit(limit: Json | None) -> str:
    """(pure) Return the sentence of a report."""
    if limit is None:
        return "not known: wikibench limits finds it"
    share = limit["asked_share"]
    text = f"{limit['rate_per_s']:,.0f} page views per second ({limit['date'][:10]})"
    if share is not None:
        text += f"; this run asked for {share:.0%} of it"
        if share > GOOD_SHARE:
            text += ", so the generator may be late, and take from a wiki on this machine"
    if limit["stale_because"]:
        text += f"; stale, as it is {' and '.join(limit['stale_because'])}: wikibench limits"
    return text


def _moment(text: str) -> datetime:
    try:
        return datetime.strptime(text, DATE).replace(tzinfo=UTC)
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)
