"""The project's modules, each read and parsed once in a process, for every rule that looks at them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("columnar", "benchmarks", "wikka_port", "wikibench", "gauge")
SOURCES = tuple(path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


def shown(path: Path) -> str:
    """Return the path within the repository; the name alone of a file of a test."""
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def text_of(path: Path) -> str:
    return path.read_text()


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(text_of(path))


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """The node and all statements below it, of whatever depth; no expressions, which are nine nodes of ten."""
    yield node
    for block in _BLOCKS:
        for child in getattr(node, block, ()):
            yield from statements(child)


def complaints(rule: Callable[[Path], list[str]]) -> list[str]:
    """What a rule says of all sources, each with its file; empty where all keep it."""
    return [f"{shown(path)}: {complaint}" for path in SOURCES for complaint in rule(path)]
