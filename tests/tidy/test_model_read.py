"""Each public name of ``columnar.model`` is read by something that acts: no attribute is only computed and tested.

A name is read if code outside the model names it, or the body of a name of the model that is read itself, other than
its own.  A member of a class is read as an attribute, or named by a codec as a string; a keyword that makes a value
is no reading.  Members are distinguished by name alone, not by class.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import columnar

PACKAGE: Final = Path(columnar.__file__).parent
MODEL: Final = PACKAGE / "model"
READERS: Final = (PACKAGE, PACKAGE.parent / "benchmarks", PACKAGE.parent / "wikka_port", PACKAGE.parent / "wikibench")


def words_of(node: ast.AST) -> Iterator[str]:
    """``.name`` for an attribute, ``name`` for a name."""
    for one in ast.walk(node):
        if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Load):
            yield "." + one.attr
        elif isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load):
            yield one.id
        elif isinstance(one, ast.ImportFrom):
            yield from (alias.name for alias in one.names)
        elif isinstance(one, ast.Constant) and isinstance(one.value, str) and one.value.isidentifier():
            yield "." + one.value
        elif isinstance(one, ast.MatchClass):
            yield from ("." + name for name in one.kwd_attrs)


def outside() -> set[str]:
    """Words of all that is not the model; templates read attributes, too."""
    found: set[str] = set()
    for folder in READERS:
        for path in folder.rglob("*.py"):
            if MODEL not in path.parents:
                found.update(words_of(ast.parse(path.read_text(encoding="utf-8"))))
        for path in folder.rglob("*.html"):
            found.update("." + word for word in re.findall(r"[a-z_]+", path.read_text(encoding="utf-8")))
    return found


class Definitions:
    """Of the model: for each name the words of its bodies; for public ones where they are.  Members are ``.name``."""

    def __init__(self) -> None:
        self.words: dict[str, set[str]] = defaultdict(set)
        self.places: dict[str, str] = {}
        self.at_import: set[str] = set()
        for path in sorted(MODEL.rglob("*.py")):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                self._take(node, path.stem, "")

    def _take(self, node: ast.stmt, place: str, dot: str) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            self._define(dot + node.name, place, node)
        elif isinstance(node, ast.ClassDef):
            self._define(dot + node.name, place, *node.bases, *node.decorator_list)
            is_enum = any("Enum" in ast.unparse(base) for base in node.bases)  # whose members are read by their values
            for inner in node.body:
                if not (is_enum and isinstance(inner, ast.Assign)):
                    self._take(inner, f"{place}.{node.name}", ".")
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                for name in (one for one in ast.walk(target) if isinstance(one, ast.Name)):
                    self._define(dot + name.id, place, *([node.value] if node.value is not None else []))
        elif not isinstance(node, ast.Import | ast.ImportFrom):
            self.at_import.update(words_of(node))

    def _define(self, name: str, place: str, *bodies: ast.AST) -> None:
        self.words[name].update(word for body in bodies for word in words_of(body) if word != name)
        bare = name.removeprefix(".")
        if bare.startswith("__"):
            self.at_import |= self.words[name]
        elif not bare.startswith("_"):
            self.places.setdefault(name, place)


def test_every_public_name_of_the_model_is_read() -> None:
    defined = Definitions()
    read = outside() | defined.at_import
    waiting = [name for name in defined.words if name in read]
    while waiting:
        for word in defined.words[waiting.pop()] - read:
            read.add(word)
            waiting += [word] if word in defined.words else []
            if word.startswith(".") and word[1:] in defined.words and word[1:] not in read:  # of a module
                read.add(word[1:])
                waiting.append(word[1:])
    unread = sorted(
        f"{place}.{name.removeprefix('.')}"
        for name, place in defined.places.items()
        if name not in read and "." + name not in read
    )
    assert not unread, f"nobody reads {', '.join(unread)}: use it or remove it"
