"""(pure) A slow request, for people: pages show the last SLOW_REQUESTS_KEPT of each process."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SlowRequest:
    at_ms: int  # when it was answered, of the Unix epoch
    took_ms: int
    method: str
    about: str  # table, region, row, sizes, peer: as in the log
    server: str = ""  # that answered it; empty in a process that is alone
