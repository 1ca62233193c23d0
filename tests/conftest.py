"""``--rewrite`` records the answers of the scenarios anew."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="record the answers of tests/scenarios anew")
