"""Lines of a copied source tree that record which tests run them, also in processes that a test starts.

A call before the statement of a line appends the line's number and the running test to a file. pytest names the test in
``PYTEST_CURRENT_TEST``, which processes inherit; a process that serves several tests counts for the first.
"""

from __future__ import annotations

import ast
import os
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Final

VARIABLE: Final = "REACHED_LINES"  # the file's path
_CALLED: Final = "_reached_"
_PROBE: Final = f"""
def {_CALLED}(place, seen=set()):
    import os
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
    path = os.environ.get("{VARIABLE}")  # a test may start a process without it
    if path and test and (place, test) not in seen:
        seen.add((place, test))
        with open(path, "a") as found:
            found.write(f"{{place}}\\t{{test}}\\n")
"""


class _Telling(ast.NodeTransformer):
    """A transformer that puts a call before the innermost statement around each line."""

    def __init__(self, path: Path, lines: Iterable[int]) -> None:
        self._path = path
        self._left = set(lines)

    def visit(self, node: ast.AST) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node, ast.Module | ast.ClassDef):
            return node
        for name in ("body", "orelse", "finalbody"):
            if isinstance(body := getattr(node, name, None), list):
                setattr(node, name, [one for statement in body for one in self._told(statement)])
        return node

    def _told(self, statement: ast.stmt) -> list[ast.stmt]:
        around = {line for line in self._left if statement.lineno <= line <= (statement.end_lineno or 0)}
        self._left -= around
        calls = [ast.parse(f"{_CALLED}({f'{self._path}:{line}'!r})").body[0] for line in sorted(around)]
        return [*calls, statement]


def telling(path: Path, source: str, lines: Iterable[int]) -> str:
    """Return the module's source, in which each of the lines records that it was reached."""
    tree = _Telling(path, lines).visit(ast.parse(source))
    at = 1 + max(
        (
            at
            for at, one in enumerate(tree.body)
            if (isinstance(one, ast.ImportFrom) and one.module == "__future__")
            or (at == 0 and isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
        ),
        default=-1,
    )
    tree.body[at:at] = ast.parse(_PROBE).body
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def reached(file: Path) -> dict[str, list[str]]:
    """Return tests by ``path:line``, without their parameters."""
    found: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for line in file.read_text(errors="replace").splitlines() if file.exists() else []:
        place, _, test = line.partition("\t")
        found[place][test.partition("[")[0]] = None
    return {place: list(tests) for place, tests in found.items()}


def environment(tree: Path, file: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(tree), VARIABLE: str(file)}
