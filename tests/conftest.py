"""``--rewrite`` records the answers of the scenarios anew; tests that could not run are named at the end."""

from __future__ import annotations

from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="record the answers of tests/scenarios anew")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """A skip is easily overlooked; one whose reason says DID NOT RUN is not."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = {report.longrepr[2] for report in skipped if isinstance(report.longrepr, tuple)}
    for reason in sorted(reasons):
        if "DID NOT RUN" in reason:
            terminalreporter.write_sep("!", reason.removeprefix("Skipped: "), red=True, bold=True)
