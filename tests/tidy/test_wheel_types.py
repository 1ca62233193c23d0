"""The hot modules compile where a wheel is built: mypy finds no error in them without the libraries they import."""

from __future__ import annotations

from pathlib import Path

from mypy import api

from columnar.runtime.compiled import HOT, source_of
from columnar.runtime.compiling import OPTIONS

ROOT = Path(__file__).parents[2]


def test_the_hot_modules_need_no_library_for_their_types() -> None:
    sources = [str(source_of(name, ROOT / "columnar")) for name in HOT]
    cache = ROOT / ".mypy_cache" / "wheel"
    said, complaints, status = api.run(
        [
            *OPTIONS.split(),
            "--config-file",
            str(ROOT / "pyproject.toml"),
            "--no-site-packages",
            "--cache-dir",
            str(cache),
            *sources,
        ]
    )
    assert status == 0, f"'make wheels' would make a wheel without compiled modules: {said}{complaints}"
