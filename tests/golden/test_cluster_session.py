"""The commands of a cluster as text, as ``test_shell_session`` those of one process.

The servers are those of a planned cluster in virtual time, so ages and moves are the same in each run.
``pytest tests/golden/test_cluster_session.py --rewrite`` records the answers anew.
"""

from __future__ import annotations

import io
import sys
import time
from pathlib import Path

import click
import pytest

from columnar.cli import main
from columnar.shell.connecting import connect
from columnar.shell.lines import Statement
from columnar.shell.running import Commands
from columnar.shell.session import KeptConnection, Session, exported
from columnar.shell.store_names import StoreNames
from tests.golden.test_shell_session import Player, played
from tests.support.cluster_store import ClusterStore

FILE = Path(__file__).with_name("cluster_session.txt")
BUSY = {b"d": 900.0, b"h": 250.0, b"": 3.5}  # reads a second of the regions that begin there
COMMANDS = (
    "servers regions where move assign unassign transitions decisions balance balancer auto-split drain undrain restart"
    " stop fence"
)


class ClusterPlayer(Player):
    """``as owner`` and ``as stranger`` say who is asking, ``load`` makes regions busy, ``SECONDS pass``."""

    long = ()

    def __init__(self, commands: Commands, folder: Path, store: ClusterStore) -> None:
        super().__init__(commands, folder)
        self._store = store

    def play(self, statement: Statement) -> list[str]:
        serving, words = self._store.serving, statement.text.split()
        if words[0] == "as":
            serving.do(lambda: self._store.answer_as(may_end_servers=words[1] == "owner"))
        elif words[0] == "load":
            serving.do(lambda: self._store.cluster.rated(BUSY))
        elif words[1:] == ["pass"]:
            cluster = self._store.cluster.cluster
            serving.do(lambda: cluster.run(cluster.now_ms + int(words[0]) * 1_000))
        elif words[:2] == ["hold", "pages"]:
            serving.do(lambda: self._store.cluster.cluster.event("pause_table_transitions", "pages"))
        elif words[:2] == ["release", "pages"]:
            serving.do(lambda: self._store.cluster.cluster.event("released", "pages"))
        else:
            return [self._shortened(line) for line in super().play(statement)]
        return []

    def _shortened(self, line: str) -> str:
        """Decisions name regions by the first eight digits."""
        for number, region in enumerate(self._regions, 1):
            line = line.replace(region[:8], f"{{R{number}}}")
        return line


def test_the_recorded_session(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"COLUMNS": "150", "LINES": "40", "TERM": "xterm", "TZ": "UTC", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    text, kept = FILE.read_text(), KeptConnection(connect)
    assert isinstance(main, click.Group)
    store = ClusterStore(tmp_path / "store")
    try:
        with exported(store.address, None):
            commands = Commands(main, Session(kept, StoreNames(time.monotonic), pages=False))
            player = ClusterPlayer(commands, tmp_path, store)
            found = played(text, player)
    finally:
        kept.close()
        store.stop()
    assert set(COMMANDS.split()) <= player.ran, "each command has its place in the session"
    if request.config.getoption("--rewrite"):
        FILE.write_text(found)
        text = found
    assert found == text
