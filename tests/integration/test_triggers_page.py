"""The blocks of docs/triggers.md: the module is synced to a store and does what the page says; its tests pass."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from columnar.triggers.testing import assert_converges, effects_of
from tests.support.serving import Serving
from tests.support.shell import Shell

PAGE = (Path(__file__).parents[2] / "docs" / "triggers.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
TESTS = [block for block in BLOCKS if block.startswith("# test_my_triggers.py")]
MODULE = "\n\n".join(block for block in BLOCKS if block not in TESTS)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "my_triggers.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path
    sys.modules.pop("my_triggers", None)


@pytest.mark.usefixtures("folder")
def test_the_pages_own_tests_pass() -> None:
    for block in TESTS:
        held: dict[str, Any] = {}
        exec(block, held)
        tests = [value for name, value in held.items() if name.startswith("test_")]
        assert len(tests) == 2
        for test in tests:
            test()


@pytest.mark.usefixtures("folder")
def test_every_example_that_keeps_a_table_converges() -> None:
    module = importlib.import_module("my_triggers")
    pages = {"pages": {"meta:author": [b"ann", b"bob"], "meta:bytes": [b"3", b"40"]}}
    assert_converges(module.authors, pages, seeds=100)
    fans = {"tweets": {"t:body": [b"hello", b"world"]}, "followers": {b"ann": {b"f:bob": b"", b"f:eve": b""}}}
    assert_converges(module.spread, fans, seeds=100, rows=[b"ann/1", b"ann/2", b"eve/1"])
    assert effects_of(module.thumbnail, after={b"f:original": b"picture", b"f:state": b"draft"}) == []


def test_the_module_runs_against_a_store(folder: Path) -> None:
    serving = Serving(folder / "data", trigger_modules=("my_triggers",)).start()
    try:
        connection = serving.connect()
        for name, families in (
            ("pages", "meta"), ("tags", "page"), ("authors", "n m o"), ("photos", "f"), ("thumbs", "f"),
            ("service", "f"),
            ("tweets", "t"), ("followers", "f"), ("timeline", "t"), ("visits", "v"), ("seen", "v"),
        ):  # fmt: skip
            attributes = {"DELETE_MARKERS": "3600000"} if name in ("tags", "timeline") else {}
            connection.create_table(name, {one: {} for one in families.split()}, attributes=attributes)
        out = Shell(f"127.0.0.1:{serving.store.port}").out("trigger", "sync", "my_triggers", "--yes")
        assert out.count("add ") == 5
        pages, tables = connection.table("pages"), connection.table
        pages.put(b"p1", {b"meta:tags": b"a,b", b"meta:author": b"ann", b"meta:bytes": b"3"})
        pages.put(b"p2", {b"meta:tags": b"b", b"meta:author": b"ann", b"meta:bytes": b"4"})
        pages.put(b"p1", {b"meta:tags": b"b,c", b"meta:author": b"bob"})
        tables("photos").put(b"1", {b"f:original": b"picture", b"f:state": b"draft"})
        tables("photos").put(b"2", {b"f:original": b"picture", b"f:state": b"ready"})
        tables("followers").put(b"ann", {b"f:%04d" % number: b"" for number in range(2_500)})
        tables("tweets").put(b"ann/1", {b"t:body": b"hello"})
        tables("visits").put(b"v1", {b"v:user": b"eve"})
        assert connection.triggers.wait()
        assert connection.triggers.dead_letters() == []
        assert {row: sorted(cells) for row, cells in tables("tags").scan()} == {
            b"b": [b"page:p1", b"page:p2"], b"c": [b"page:p1"],
        }  # fmt: skip
        counted = {row: tables("authors").counter_get(row, b"n:bytes") for row in (b"ann", b"bob")}
        assert counted == {b"ann": 4, b"bob": 3}
        assert [list(cells) for _, cells in tables("thumbs").scan()] == [[b"f:2"]]
        assert sum(1 for _ in tables("timeline").scan()) == 2_500, "three pages of followers"
        assert list(tables("seen").row(b"eve")) == [b"v:v1"]
    finally:
        serving.stop()
