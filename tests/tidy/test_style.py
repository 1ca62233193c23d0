"""House style as a test: sizes, docstrings, purity.  Each message says what to do instead."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

from tests.tidy.sources import ROOT, complaints, statements, text_of, tree_of

MODULE_LINES = 500
FUNCTION_LINES = 60
# A pure module says "(pure)" in the first line of its docstring and may import none of these.
IMPURE = {"asyncio", "os", "socket", "subprocess", "threading", "time", "random", "tempfile", "shutil", "pathlib"}
BANNED_NAMES = {"utils", "helpers", "common", "misc"}


def module_rules(path: Path) -> list[str]:
    text, tree = text_of(path), tree_of(path)
    said = []
    if text.count("\n") > MODULE_LINES:
        said.append(f"over {MODULE_LINES} lines: cut it along a noun of the field")
    if tree.body and not ast.get_docstring(tree):
        said.append("say what the module is and what it knows nothing of")
    if path.stem in BANNED_NAMES:
        said.append("name the module after what it holds")
    return said


def function_rules(path: Path) -> list[str]:
    return [
        f"{node.name} has {node.end_lineno - node.lineno + 1} lines, over {FUNCTION_LINES}; give the steps names"
        for node in statements(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > FUNCTION_LINES
    ]


def purity_rules(path: Path) -> list[str]:
    tree = tree_of(path)
    docstring = ast.get_docstring(tree) or ""
    if "(pure)" not in docstring.split("\n", 1)[0]:
        return []
    imported = {
        name.split(".")[0]
        for node in statements(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""])
    }
    return [
        f"it says that it is pure and imports {name}: take what you need as an argument"
        for name in sorted(imported & IMPURE)
    ]


def test_modules_are_short_and_documented() -> None:
    assert complaints(module_rules) == []


def test_functions_are_short() -> None:
    assert complaints(function_rules) == []


def test_modules_that_call_themselves_pure_are_pure() -> None:
    assert complaints(purity_rules) == []


def test_each_rule_finds_what_breaks_it(tmp_path: Path) -> None:
    broken = tmp_path / "utils.py"
    broken.write_text("import os\n" + "def long():\n" + "    pass\n" * 60 + "\n" * 500)
    assert len(module_rules(broken)) == 3
    within = tmp_path / "within.py"
    steps = "        pass\n" * 60
    within.write_text(f'"""Keys (pure): bytes."""\nif True:\n    import os\nelse:\n    def long():\n{steps}')
    assert [len(rules(within)) for rules in (module_rules, function_rules, purity_rules)] == [0, 1, 1]


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
