"""House style as a test: sizes, docstrings, purity.  Each message says what to do instead."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULE_LINES = 500
FUNCTION_LINES = 60
# A pure module says "(pure)" in the first line of its docstring and may import none of these.
IMPURE = {"asyncio", "os", "socket", "subprocess", "threading", "time", "random", "tempfile", "shutil", "pathlib"}
BANNED_NAMES = {"utils", "helpers", "common", "misc"}

SOURCES = [
    path for package in ("columnar", "wikka_port", "wikibench") for path in sorted((ROOT / package).rglob("*.py"))
]


def ids(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", SOURCES, ids=ids)
def test_module_is_short_and_documented(path: Path) -> None:
    text = path.read_text()
    tree = ast.parse(text)
    assert text.count("\n") <= MODULE_LINES, f"over {MODULE_LINES} lines: cut it along a noun of the field"
    assert not tree.body or ast.get_docstring(tree), "say what the module is and what it knows nothing of"
    assert path.stem not in BANNED_NAMES, "name the module after what it holds"


@pytest.mark.parametrize("path", SOURCES, ids=ids)
def test_functions_are_short(path: Path) -> None:
    long = [
        f"{node.name} has {node.end_lineno - node.lineno + 1} lines"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > FUNCTION_LINES
    ]
    assert not long, f"{long}: over {FUNCTION_LINES} lines; give the steps names"


@pytest.mark.parametrize("path", SOURCES, ids=ids)
def test_a_module_that_calls_itself_pure_is_pure(path: Path) -> None:
    tree = ast.parse(path.read_text())
    docstring = ast.get_docstring(tree) or ""
    if "(pure)" not in docstring.split("\n", 1)[0]:
        return
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""])
    }
    assert not imported & IMPURE, "values in, values out: take what you need as an argument"


def test_no_workplace_in_the_repository() -> None:
    """Text of the repository speaks of the project alone: no path of somebody's machine."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    needle = re.compile(r"/(?:work|root|home/\w+)/\w")
    offenders = []
    for name in listed.split("\n"):
        path = ROOT / name
        if name and path.is_file() and path.suffix in {".py", ".md", ".toml", ".html", ".sh", ""}:
            text = path.read_text(errors="replace")
            offenders += [name] if needle.search(text) and path != Path(__file__) else []
    assert offenders == []
