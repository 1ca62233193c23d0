"""Lines of a module tell which test ran them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.reached_lines import VARIABLE, reached, telling

PLACE = Path("columnar/some.py")
SOURCE = '''"""A module."""

from __future__ import annotations


def sign(number):
    if number < 0:
        return (
            -1
        )
    return 1
'''


def test_a_line_within_a_statement_tells_when_the_statement_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "found"))
    module: dict[str, object] = {}
    exec(compile(telling(PLACE, SOURCE, [9, 11]), "some.py", "exec"), module)
    sign = module["sign"]
    assert callable(sign)
    monkeypatch.setenv("PYTEST_CURRENT_TEST", "tests/a.py::one[x y] (call)")
    assert [sign(5), sign(6)] == [1, 1]
    monkeypatch.setenv("PYTEST_CURRENT_TEST", "tests/a.py::two (call)")
    assert [sign(-5), sign(5)] == [-1, 1]
    assert reached(tmp_path / "found") == {
        "columnar/some.py:9": ["tests/a.py::two"],
        "columnar/some.py:11": ["tests/a.py::one", "tests/a.py::two"],
    }
    monkeypatch.delenv(VARIABLE)
    assert sign(0) == 1
