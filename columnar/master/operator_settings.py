"""(pure) Operator settings of a cluster; the catalogue keeps them over restarts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OperatorSettings:
    drained: frozenset[str] = frozenset()  # names of servers
    unassigned: frozenset[int] = frozenset()  # regions
    balancer: bool = True
    auto_split: bool = True
