"""The adviser's page for schemas in the style of Wikka, MediaWiki and WordPress, with logs of their queries.

``COLUMNAR_REWRITE=1`` records them anew; a person must read the difference.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from columnar.advise.text import page
from tests.support.advised import SYSTEMS, design_for


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_page(system: str) -> None:
    path = Path(__file__).with_name(f"advise-{system}.md")
    text = page(design_for(system))
    if os.environ.get("COLUMNAR_REWRITE"):
        path.write_text(text)
    assert path.read_text() == text
