"""The short form of ``python -m tests.proofs.dead_server_damage``: damage is named, and the named command ends it."""

from __future__ import annotations

import os
from pathlib import Path

from tests.proofs.dead_server_damage import run
from tests.support.seeds import seed

ROUNDS = int(os.environ.get("COLUMNAR_DAMAGES", "2"))


def test_damage_to_what_dead_servers_left_is_named_and_ended(tmp_path: Path) -> None:
    played = run(ROUNDS, seed(20261126), seconds=0.3, folder=tmp_path)
    assert [(one.damage, one.wrong) for one in played if one.wrong] == []
