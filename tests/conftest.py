"""``--rewrite`` records the answers of the scenarios anew; what was not run is said at the end."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="record the answers of tests/scenarios anew")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """A skip is easily overlooked: this is not.  Here, because with several processes only this file is asked."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(str(report.longrepr[2]).removeprefix("Skipped: ") for report in skipped if report.longrepr)
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_sep("!", f"{count} NOT RUN: {reason}", yellow=True, bold=True)
