"""An answer over HTTP, or why there is none (pure)."""

from __future__ import annotations

from dataclasses import dataclass, field

from wikibench.outcome import Outcome


@dataclass(slots=True)  # frozen costs a third of a microsecond for each of the fields; nobody writes to one
class Answer:
    """A whole answer.  ``body`` is empty unless the caller keeps it; ``size_bytes`` counts the body in any case."""

    status: int
    location: str = ""
    body: str = ""
    size_bytes: int = 0
    cookies: str = ""  # as a Cookie header sends them back
    read_s: float = field(default=0.0, compare=False)  # of time.perf_counter, at its last byte; 0 if unknown


@dataclass(frozen=True, slots=True)
class NoAnswer:
    outcome: Outcome
    why: str
    was_kept: bool = False  # the connection was used before and closed before the first byte: a GET may be sent again
