"""Deep tests that a change touches: ``python -m tests.support.touched [--base COMMIT] [--within SECONDS]`` runs them.

A deep test file takes shares (``tests.support.deep``); ``make test`` runs its shares, this all of its seeds and cases.
A file is touched if it imports a changed source, or names its module, directly or through others.  The nearest to the
change run first, by the number of imports between; tests for which the time does not suffice are counted at the end.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Final

import click

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = ("columnar", "wikka_port", "wikibench", "benchmarks", "gauge", "tests")
SHARES: Final = "tests/support/deep.py"
Imports = Mapping[str, Collection[str]]  # of each source file, by its path in the checkout


def touched(changed: Collection[str], imports: Imports) -> list[str]:
    """(pure) The deep test files that a change of these files touches, the nearest first."""
    importers: dict[str, set[str]] = {}
    for file, imported in imports.items():
        for one in imported:
            importers.setdefault(one, set()).add(file)
    deep = {file for file in importers.get(SHARES, ()) if file.rpartition("/")[2].startswith("test_")}
    distance = {file: 0 for file in changed if file in imports}
    waiting = deque(sorted(distance))
    while waiting:
        file = waiting.popleft()
        for one in sorted(importers.get(file, ())):
            if one not in distance:
                distance[one] = distance[file] + 1
                waiting.append(one)
    return sorted(deep & distance.keys(), key=lambda file: (distance[file], file))


def imports_of(files: Mapping[str, str]) -> Imports:
    """(pure) ``files``: the text of each source file, by its path."""
    by_module = {module_of(path): path for path in files}
    return {path: {by_module[one] for one in _named(text) if one in by_module} for path, text in files.items()}


def module_of(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _named(text: str) -> Iterator[str]:
    """Modules that a source imports or starts by name; a name that it takes from a package may be one."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from (node.value, f"{node.value}.__main__")


def sources() -> dict[str, str]:
    paths = (path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in paths}


def changed_since(base: str) -> list[str]:
    return _git("diff", "--name-only", base, "HEAD").splitlines()


def usual_base() -> str:
    """Where this branch left ``origin/main``; on that itself, or without a remote, the commit before.

    Empty in a clone of a single commit.
    """
    head = _git("rev-parse", "HEAD")
    for branch in ("origin/main", "main"):
        left = _git("merge-base", "HEAD", branch, may_fail=True)
        if left and left != head:
            return left
    return _git("rev-parse", "--verify", "--quiet", "HEAD~1", may_fail=True)


def _git(*words: str, may_fail: bool = False) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=not may_fail)
    return done.stdout.strip()


@click.command()
@click.option("--base", default="", help="what changed since this commit; else since the branch left main")
@click.option("--within", type=int, default=600, show_default=True, help="seconds; what has not begun by then is named")
def main(base: str, within: int) -> None:
    base = base or usual_base()
    if not base:
        click.echo("This clone has a single commit, so no change is known: no deep tests are run.")
        return
    changed = changed_since(base)
    files = touched(changed, imports_of(sources()))
    said = f"{len(files)} deep test files are touched by {len(changed)} files that changed since {base[:12]}"
    click.echo(f"{said}, the nearest first, within {within} s:" if files else f"{said}.")
    for file in files:
        click.echo(f"  {file}")
    if not files:
        return
    command = [sys.executable, "-m", "pytest", "-n", "3", "--dist", "load", "--maxschedchunk", "1"]
    command += [f"--within={within}", *files]
    os.chdir(ROOT)
    os.execve(sys.executable, command, {**os.environ, "COLUMNAR_DEEP": "1"})


if __name__ == "__main__":
    main()
