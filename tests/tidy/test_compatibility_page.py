"""COMPATIBILITY.md and docs/complaints.md name tests that are there: a promise without its test shows at once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEST = re.compile(r"`(tests/[\w/.]+?)(?:::(\w+))?`")


@pytest.mark.parametrize("page", ["COMPATIBILITY.md", "docs/complaints.md"])
def test_every_test_that_is_named_exists(page: str) -> None:
    named = TEST.findall((ROOT / page).read_text())
    missing = []
    for file, function in named:
        path = ROOT / file
        if not path.exists() or (function and f"def {function}(" not in path.read_text()):
            missing.append(f"{file}::{function}")
    assert missing == []
    assert len(named) > 20, "each line of the page names the test that holds it"


def test_every_row_of_the_compatibility_page_names_its_test() -> None:
    rows = [
        line
        for line in (ROOT / "COMPATIBILITY.md").read_text().splitlines()
        if line.startswith("| ") and not line.startswith("| HBase 2.6.1")
    ]
    assert [row[:80] for row in rows if not TEST.search(row)] == []
