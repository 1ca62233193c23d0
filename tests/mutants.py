"""Breaks lines and looks whether a test notices: which promises of a module no test holds.

    python -m tests.mutants --seed 7 --lines 60 wikka_port/moving columnar/views/walks.py

A seed chooses lines of the modules and for each one way to break it: a comparison that is another, ``and`` for ``or``,
``continue`` for ``break``, a condition that is negated, a number that is off by one, a statement that is left out.

First the whole code runs once against the tests of its packages and those nearest to its modules, by how many imports
lie between; each line tells which of them reach it.  Then each mutant runs, in a copy of the tree, against the tests
that reach its line, until one fails or the time is over: those of one process first, and if none notices it those that
start processes.  Those that were not noticed are printed with the line: each is a hole, or the same code in other
words, which a person decides.
"""

from __future__ import annotations

import argparse
import ast
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from tests.support import reached_lines
from tests.support.bounded_run import OVER, TOO_MANY, bounded_run

ROOT: Final = Path(__file__).parent.parent
UNREACHED: Final = "NO TEST REACHES IT"  # OVER: those that reach it take longer; none of these is noticed
QUICK: Final = ("tests/unit", "tests/model", "tests/contracts", "tests/golden")
SLOW: Final = ("tests/integration", "tests/simulation")
REACHED: Final = "reached-lines.txt"
HANGING_SECONDS: Final = 60  # for a single test; one that takes longer on the whole code as well is left out
MOST_PROCESSES: Final = 150  # of one run at once; a broken line may start them without end
OTHERS: Final[dict[type[ast.AST], Callable[[], ast.cmpop]]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    module: Path
    line: int
    text: str  # of the line
    broken: str  # what stands there instead
    source: str  # of the whole module


# --- breaking ----------------------------------------------------------------------------------------


def _put(source: str, node: ast.AST, text: str) -> str:
    """``source`` with ``text`` in the place of the node, whose columns are counted in bytes."""
    lines = source.encode().splitlines(keepends=True)
    begin, end = node.lineno - 1, node.end_lineno - 1  # type: ignore[attr-defined]
    head, tail = lines[begin][: node.col_offset], lines[end][node.end_col_offset :]  # type: ignore[attr-defined]
    return b"".join([*lines[:begin], head, text.encode(), tail, *lines[end + 1 :]]).decode()


def ways_of(node: ast.AST) -> Iterator[str]:
    """What may stand in its place."""
    match node:
        case ast.Compare(ops=[op], left=left, comparators=others):
            yield f"({ast.unparse(ast.Compare(left, [OTHERS[type(op)]()], others))})"
        case ast.BoolOp(op=op, values=values):
            yield f"({ast.unparse(ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values))})"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield f"({ast.unparse(operand)})"
        case ast.BinOp(op=ast.Add() | ast.Sub() as op, left=left, right=right):
            yield f"({ast.unparse(ast.BinOp(left, ast.Sub() if isinstance(op, ast.Add) else ast.Add(), right))})"
        case ast.Constant(value=bool(value)):
            yield str(not value)
        case ast.Constant(value=int(value)):
            yield str(value + 1)
        case ast.Continue():
            yield "break"
        case ast.Break():
            yield "continue"
        case ast.Expr(value=ast.Call()) | ast.Assign() | ast.AugAssign() | ast.Return(value=None) | ast.Raise():
            yield "pass"


def mutants_of(module: Path, source: str) -> dict[int, list[Mutant]]:
    """By line; of the bodies of functions, but for logging, assertions and texts of exceptions."""
    found: dict[int, list[Mutant]] = {}
    lines = source.splitlines()

    def visit(node: ast.AST, tests: bool = False) -> None:
        ways = list(ways_of(node))
        if tests and isinstance(node, ast.Name | ast.Call | ast.Attribute):
            ways = [f"(not {ast.unparse(node)})"]
        for way in ways:
            line: int = node.lineno  # type: ignore[attr-defined]
            broken = _put(source, node, way)
            found.setdefault(line, []).append(Mutant(module, line, lines[line - 1].strip(), way, broken))
        if isinstance(node, ast.Assert | ast.Raise) or _logs(node):
            return
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list") or isinstance(value, ast.arguments):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    visit(child, name == "test")

    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name != "__repr__":
            for statement in node.body:
                visit(statement)
    return found


def is_another(mutant: Mutant, source: str) -> bool:
    """Whether it can be compiled, and is not the same code."""
    try:
        compile(mutant.source, "", "exec")
    except SyntaxError:
        return False
    return ast.dump(ast.parse(mutant.source)) != ast.dump(ast.parse(source))


def chosen_of(paths: list[Path], count: int, rng: random.Random) -> list[Mutant]:
    """One mutant a line, of so many lines of the modules."""
    sources = {path: (ROOT / path).read_text() for path in paths}
    by_line = [line for path, source in sources.items() for line in mutants_of(path, source).values()]
    rng.shuffle(by_line)
    every = (rng.choice(line) for line in by_line)
    return list(islice((one for one in every if is_another(one, sources[one.module])), count))


def _logs(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and ast.unparse(node).startswith("_log.")


# --- which tests -------------------------------------------------------------------------------------


def imports_of(path: Path) -> set[str]:
    """Dotted names in its imports, and texts, some of which name a module that it runs as a process."""
    found = set[str]()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= {node.value, f"{node.value}.__main__"}
        elif isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{one.name}" for one in node.names}
    return found


def dotted(path: Path) -> str:
    parts = list(path.with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


class Nearest:
    """Test files by how many imports lie between them and a module."""

    def __init__(self, root: Path) -> None:
        every = [path.relative_to(root) for path in root.rglob("*.py")]
        self._by_name = {dotted(path): path for path in every}
        self._importing: dict[Path, set[Path]] = {}
        for path in every:
            for name in imports_of(root / path):
                if (target := self._by_name.get(name)) is not None:
                    self._importing.setdefault(target, set()).add(path)

    def tests(self, module: Path, kinds: tuple[str, ...], most: int) -> list[str]:
        distance, edge = {module: 0}, [module]
        while edge:
            following = [one for path in edge for one in sorted(self._importing.get(path, ()))]
            edge = list(dict.fromkeys(one for one in following if one not in distance))
            distance |= {one: 1 + max(distance.values()) for one in edge}
        found = [one for one in distance if one.name.startswith("test_") and str(one).startswith(kinds)]

        def cost(path: Path) -> tuple[int, int]:
            kind = next(at for at, name in enumerate(kinds) if str(path).startswith(name))
            return 0 if module.parent.name in path.parts else distance[path], kind

        return [str(one) for one in sorted(found, key=cost)[:most]]


# --- running -----------------------------------------------------------------------------------------


def copied(folder: Path) -> Path:
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
    for name in filter(None, names.decode().split("\0")):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target)
    return folder


def pytest_run(tree: Path, options: list[str], tests: list[str], seconds: float) -> tuple[int | str, str]:
    """Its status, or OVER or TOO_MANY, and its output."""
    asked = tree / "asked-tests.txt"
    asked.write_text("\n".join(tests))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--timeout={HANGING_SECONDS}", *options]
    environment = reached_lines.environment(tree, tree / REACHED) | {"COLUMNAR_COMPILED": "no"}
    return bounded_run([*command, f"@{asked}"], tree, environment, seconds=seconds, processes=MOST_PROCESSES)


def failed(tree: Path, tests: list[str], seconds: float) -> str:
    """The test that failed, OVER, TOO_MANY, or how the run ended else; empty: none failed."""
    status, output = pytest_run(tree, ["-x"], tests, seconds)
    if status in (OVER, TOO_MANY):
        return str(status)
    if status == 0:
        return ""
    found = re.findall(r"^(?:FAILED|ERROR) (tests/\S+\.py(?:::[^\n]*?)?)(?: - .*)?$", output, re.MULTILINE)
    return found[0] if found else f"status {status}"


def reaching(tree: Path, mutants: list[Mutant], tests: list[str], asked: argparse.Namespace) -> dict[str, list[str]]:
    """By ``path:line`` of the mutants, those of the tests that reach it on the whole code, nearest first."""
    wholes = {one.module: (tree / one.module).read_text() for one in mutants}
    (tree / REACHED).unlink(missing_ok=True)
    for module, whole in wholes.items():
        lines = {one.line for one in mutants if one.module == module}
        (tree / module).write_text(reached_lines.telling(module, whole, lines))
    status, output = pytest_run(tree, [f"-n{asked.workers}", "--dist=loadfile"], tests, asked.reach_seconds)
    for module, whole in wholes.items():
        (tree / module).write_text(whole)
    print(f"{len(tests)} files of tests, status {status}: {output.splitlines()[-10:]}", flush=True)
    if status == TOO_MANY:
        raise SystemExit("the whole code starts too many processes")
    return reached_lines.reached(tree / REACHED)


def run(tree: Path, mutant: Mutant, tests: list[str], seconds: float) -> str:
    """As ``failed``.  A test that fails on the whole code as well, as under load, is left out."""
    path = tree / mutant.module
    whole = path.read_text()
    left = list(tests)
    while left:
        path.write_text(mutant.source)
        try:
            by = failed(tree, left, seconds)
        finally:
            path.write_text(whole)
        if "::" not in by or not failed(tree, [by], seconds):
            return by
        left = left[left.index(by.partition("[")[0]) + 1 :]
    return ""


def asked_of(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="+", type=Path)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--lines", type=int, default=60)
    parser.add_argument("--tests", type=int, default=40, help="so many test files of each kind for a module")
    parser.add_argument("--seconds", type=float, default=240, help="for one mutant")
    parser.add_argument("--reach-seconds", type=float, default=1800, help="for the run that asks which tests reach it")
    parser.add_argument("--workers", type=int, default=2, help="of that run")
    parser.add_argument("--quick", action="store_true", help="without the tests that start processes")
    return parser.parse_args(arguments)


def judged(tree: Path, mutants: list[Mutant], kinds: tuple[str, ...], asked: argparse.Namespace) -> list[Mutant]:
    """Print what became of each against tests of these kinds; those that were not noticed."""
    nearest = Nearest(tree)
    by_module = {one.module: nearest.tests(one.module, kinds, asked.tests) for one in mutants}
    every = list(dict.fromkeys(test for tests in by_module.values() for test in tests))
    by_line = reaching(tree, mutants, every, asked) if every else {}
    order = {file: at for at, file in enumerate(every)}
    left: list[Mutant] = []
    for mutant in mutants:
        own = {file: at - len(every) for at, file in enumerate(by_module[mutant.module])}  # before all others
        files = order | own
        found = by_line.get(f"{mutant.module}:{mutant.line}", [])
        tests = sorted(found, key=lambda test: files[test.partition("::")[0]])
        by = run(tree, mutant, tests, asked.seconds) if tests else UNREACHED
        left += [] if by.startswith("tests/") else [mutant]
        said = f"{by or 'NOT NOTICED'}, {len(tests)} tests"
        print(f"{mutant.module}:{mutant.line}: {mutant.text}\n    {mutant.broken}\n    {said}", flush=True)
    return left


def main() -> None:
    asked = asked_of()
    print(f"--seed {asked.seed}")
    paths = [one for path in asked.modules for one in (sorted(path.rglob("*.py")) if path.is_dir() else [path])]
    chosen = chosen_of(paths, asked.lines, random.Random(asked.seed))
    left = chosen
    with tempfile.TemporaryDirectory() as folder:
        tree = copied(Path(folder))
        for kinds in (QUICK,) if asked.quick else (QUICK, SLOW):
            left = judged(tree, left, kinds, asked)
    print(f"{len(chosen) - len(left)} of {len(chosen)} were noticed; not noticed:")
    for one in left:
        print(f"  {one.module}:{one.line}: {one.text}  ->  {one.broken}")


if __name__ == "__main__":
    main()
