"""(pure) What a check finds: where, how bad, what to do about it; and the totals of what it checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum


class Severity(IntEnum):
    NOTE = 0  # worth knowing, nothing is wrong
    WARNING = 1  # room is wasted, or something was cut off; no reader sees it
    ERROR = 2  # data is damaged, missing or contradicts itself


@dataclass(frozen=True, slots=True)
class Finding:
    severity: Severity
    place: str  # table, region, folder or snapshot
    text: str
    advice: str = ""

    def line(self) -> str:
        advice = f"; {self.advice}" if self.advice else ""
        return f"{self.severity.name.lower()}\t{self.place}\t{self.text}{advice}"


@dataclass(slots=True)
class CheckTotals:
    """Totals of what was checked."""

    tables: int = 0
    regions: int = 0
    cells: int = 0
    older_versions: int = 0
    log_records: int = 0
    cursors: int = 0
    snapshots: int = 0
    value_bytes: int = 0


@dataclass(slots=True)
class Report:
    totals: CheckTotals = field(default_factory=CheckTotals)
    findings: list[Finding] = field(default_factory=list)

    def add(self, severity: Severity, place: str, text: str, advice: str = "") -> None:
        self.findings.append(Finding(severity, place, text, advice))

    @property
    def errors(self) -> int:
        return sum(finding.severity is Severity.ERROR for finding in self.findings)
