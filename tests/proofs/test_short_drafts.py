"""The short form of the proof of drafts: a kill and a cut, or two of each.

``python -m tests.proofs.drafts --kills 20 --cuts 10`` is the long form.
"""

from __future__ import annotations

import os

import pytest

from tests.browser.conftest import CHROMIUM
from tests.proofs import drafts
from tests.support.deep import seeds

SEED = int(os.environ.get("COLUMNAR_SEED", "20261124"))


def test_it_holds() -> None:
    pytest.importorskip("playwright.sync_api", reason="THE PROOF DID NOT RUN: playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("THE PROOF DID NOT RUN: Chromium is not installed")
    print(f"COLUMNAR_SEED={SEED}")
    each = seeds("kills and cuts of a proof of drafts", deep=20, short=1)
    found = drafts.run(each, each, SEED, longest_s=13.0)
    assert found.wrong == []
    assert found.kills == found.cuts == each
    assert found.drafts > 0
