"""A rename dies by ``kill -9`` at each of its steps: the next start finishes it, and nothing is lost or doubled."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from tests.support.standalone_store import ENVIRONMENT, ROOT, StoreProcess
from wikka_port import schema
from wikka_port.consistency import check
from wikka_port.moving.runner import resume
from wikka_port.pages import Wiki

STEPS = ("intent", "mark", "arrive", "leave", "moved", "settle", "done")


def test_a_rename_that_dies_at_a_step_is_finished_at_the_next_start(tmp_path: Path) -> None:
    with StoreProcess(tmp_path / "data", "--trigger-modules", "wikka_port.triggers") as store:
        wiki = Wiki("127.0.0.1", store.port)
        wiki.prepare()
        for step in STEPS:
            for number, text in enumerate(("one", "two [[Target]]")):
                wiki.save(f"Page {step}", text, author="Ann", base=number)
            words = [str(store.port), "triggers", step, f"Page {step}", f"New {step}"]
            child = [sys.executable, "-m", "tests.support.falling_mover", *words]
            assert subprocess.run(child, env=ENVIRONMENT, cwd=ROOT, check=False).returncode == -signal.SIGKILL
            shown = [page.body for word in ("Page", "New") if (page := wiki.page(f"{word} {step}")) is not None]
            assert "two [[Target]]" in shown
        assert resume(wiki) == len(STEPS)
        for step in STEPS:
            old, new = wiki.page(f"Page {step}"), wiki.page(f"New {step}")
            assert new is not None, step
            assert [one.body for one in wiki.revisions(new.name, bodies=True)] == ["two [[Target]]", "one"]
            assert old is not None
            assert old.body.startswith("#REDIRECT"), step
        rows = wiki.store.run(lambda c: list(c.table(schema.REVISIONS).scan(columns=[schema.TIME])))
        assert len(rows) == 3 * len(STEPS), "two revisions and a redirect of each"
        assert wiki.settle("", 30)
        assert check(wiki, settle=lambda: wiki.settle("", 30)).differences == ()
        assert sorted(wiki.backlinks("Target")) == sorted(f"New {step}" for step in STEPS)
        wiki.store.close()
