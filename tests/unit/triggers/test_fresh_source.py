"""Which modules a worker forgets when an author has changed his source."""

from __future__ import annotations

import json
import types

import click

from columnar.triggers.worker import forgotten


def module(path: str | None) -> types.ModuleType:
    made = types.ModuleType("made")
    made.__file__ = path
    return made


def test_modules_of_authors_are_forgotten_and_no_others() -> None:
    loaded = {
        "columnar.client": module("/src/columnar/client/__init__.py"),  # at the start
        "my_triggers": module("/src/my_triggers.py"),
        "helping": module("/src/helping.py"),
        "fast": module("/src/fast.cpython-312.so"),
        "sys": module(None),
        "json": json,
        "click": click,
        "installed.triggers": click,
        "installed": click,
    }
    found = forgotten(loaded, ["columnar.client"], ["my_triggers", "installed.triggers"])
    assert sorted(found) == ["helping", "installed", "installed.triggers", "my_triggers"]
