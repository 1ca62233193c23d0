"""(pure) The findings of a check, each with place, severity and remedy, and the totals of the checked items."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final


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


TOTALS: Final = (
    "tables", "regions", "cells", "older_versions", "log_records", "cursors", "snapshots", "value_bytes",
)  # fmt: skip


@dataclass(slots=True)
class Report:
    totals: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TOTALS, 0))  # of what was checked
    findings: list[Finding] = field(default_factory=list)

    def add_finding(self, severity: Severity, place: str, text: str, advice: str = "") -> None:
        self.findings.append(Finding(severity, place, text, advice))

    @property
    def errors(self) -> int:
        return sum(finding.severity is Severity.ERROR for finding in self.findings)
