"""What tests of this folder share."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module")
def frozen() -> Iterator[None]:
    """All that the process holds is out of the garbage collector's sight.

    A replay collects garbage before it starts its clock: among the objects of thousands of tests that takes over a
    second each time.
    """
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
