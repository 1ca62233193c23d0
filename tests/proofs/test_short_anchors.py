"""The coordination service fails for some seconds; ``python -m tests.proofs.anchors`` is the long form."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.proofs.anchors import CUTS_S, KINDS, LASTS_S, prove
from tests.support.deep import IS_DEEP, cases
from tests.support.node_network import missing
from tests.support.seeds import seed

SHORT = [("leader", 2.0), ("away", 14.0), ("cut", 2.0)]  # away for longer than a lease and LEASE_WAIT_S
LONG = [(kind, LASTS_S.get(kind, 0.0)) for kind in KINDS if kind != "cut"] + [("cut", one) for one in CUTS_S]


def is_there() -> None:
    """Skip the test, or fail it under CI, if it cannot be run."""
    what = missing()
    if what is not None:
        text = f"THE PROOF OF FAILING COORDINATION SERVICES DID NOT RUN: it needs {what}"
        (pytest.fail if os.environ.get("CI", "").lower() in ("true", "1") and os.geteuid() == 0 else pytest.skip)(text)


@pytest.mark.timeout(900 if IS_DEEP else 240)
@pytest.mark.parametrize("kind", cases("coordination services that fail", deep=["etcd", "zookeeper"], short=["etcd"]))
def test_no_node_is_fenced_and_nothing_is_lost_when_the_service_fails(kind: str, tmp_path: Path) -> None:
    is_there()
    number = seed(20261127)
    print(f"COLUMNAR_SEED={number}")
    found, problems = prove(kind, LONG if IS_DEEP else SHORT, number, tmp_path)
    assert problems == []
    assert len(found) == len(LONG if IS_DEEP else SHORT)
