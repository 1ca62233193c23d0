"""Deep tests that a change touches, found by imports: the nearest first, and none that cannot notice the change."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support import touched as touched_tests
from tests.support.touched import SHARES, imports_of, sources, touched, usual_base

FILES = {
    SHARES: "",
    "columnar/leaf.py": "",
    "columnar/middle.py": "from columnar import leaf",
    "columnar/other.py": "import columnar.middle",
    "columnar/__main__.py": "from columnar.other import run",
    "tests/support/store.py": 'PROGRAM = ["python", "-m", "columnar"]',
    "tests/model/test_near.py": "from columnar.leaf import x\nfrom tests.support.deep import seeds",
    "tests/model/test_far.py": "import columnar.other\nfrom tests.support.deep import seeds",
    "tests/crash/test_kills.py": "from tests.support.store import PROGRAM\nfrom tests.support import deep",
    "tests/unit/test_shallow.py": "from columnar.leaf import x",
}
IMPORTS = imports_of(FILES)
NEAR, FAR, KILLS = "tests/model/test_near.py", "tests/model/test_far.py", "tests/crash/test_kills.py"


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (["columnar/leaf.py"], [NEAR, FAR, KILLS]),
        (["columnar/middle.py"], [FAR, KILLS]),
        (["columnar/__main__.py"], [KILLS]),
        (["tests/support/store.py", "columnar/leaf.py"], [KILLS, NEAR, FAR]),
        ([NEAR], [NEAR]),
        ([SHARES], [KILLS, FAR, NEAR]),
        (["tests/unit/test_shallow.py", "docs/page.md", "columnar/gone.py"], []),
        ([], []),
    ],
)
def test_the_deep_files_that_import_a_changed_one_are_touched_the_nearest_first(
    changed: list[str], expected: list[str]
) -> None:
    assert touched(changed, IMPORTS) == expected


def test_each_deep_file_of_the_checkout_is_found_and_the_store_touches_those_that_kill_it() -> None:
    files = sources()
    imported = imports_of(files)
    found = touched([SHARES], imported)
    imports = "\nfrom tests.support.deep import "
    takes_shares = {path for path, text in files.items() if imports in text and "/test_" in path}
    assert {*found} == takes_shares
    by_storage = touched(["columnar/storage/commit.py"], imported)
    assert "tests/crash/test_kill_nine.py" in by_storage
    assert "tests/unit/wikka_port/test_markup_bounds.py" not in by_storage


def test_the_base_is_where_the_branch_left_main_else_the_commit_before_if_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*words: str) -> str:
        command = ["git", "-c", "user.name=n", "-c", "user.email=e", *words]
        return subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout.strip()

    monkeypatch.setattr(touched_tests, "ROOT", tmp_path)
    git("init", "-q", "-b", "main")
    git("commit", "-q", "--allow-empty", "-m", "first")
    assert usual_base() == ""
    first = git("rev-parse", "HEAD")
    git("commit", "-q", "--allow-empty", "-m", "second")
    assert usual_base() == first
    second = git("rev-parse", "HEAD")
    git("checkout", "-q", "-b", "change")
    git("commit", "-q", "--allow-empty", "-m", "third")
    git("commit", "-q", "--allow-empty", "-m", "fourth")
    assert usual_base() == second
