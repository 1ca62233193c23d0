"""Names are the field's own: a private word in the name of a module, class, function or field is refused.

``KEPT`` has the exceptions, at most ten, each with its reason.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.tidy.sources import SOURCES, shown, tree_of

# Each had a meaning of its own here, where the field has another word for it.
WORDS: Final = frozenset({
    "told", "tells", "tell", "asked", "asks", "ask", "apart", "here", "elsewhere", "look", "looks", "looked",
    "looking", "away", "back", "shut", "hold", "holds", "held", "handed", "handing", "way", "ways", "door", "doors",
    "lane", "lanes", "ward", "gift", "gifts", "giving", "burial", "burials", "bury", "buried", "ripe", "ripening",
    "showing", "shown", "behind", "tenure", "past", "wish", "wishes", "keeper", "keepers", "twin", "twins", "dear",
    "turn", "turns", "mend", "mends", "mended", "mending", "gathering", "doorbell", "evening", "carrying", "owning",
    "patience", "patiently", "reached",
})  # fmt: skip
PHRASES: Final = re.compile(r"go(es|ing)?_on(_|$)|(at|to)_rest(_|$)|(^|_)rests(_|$)")
KEPT: Final[dict[str, str]] = {
    "look": "``Change.look`` of functions, and a registration's key on disk and on the wire (``--look``)",
    "looked": "``Change.looked`` of functions: the rows that came with a change",
    "Looked": "the class of those rows, which functions import from ``columnar.triggers.api``",
    "is_held": "of a lease, in every lease's manual; programs read ``Lease.is_held``",
    "run_in_slow_lane": "a queue beside the other one, as in the roads of every web server's manual",
}


def words_of(name: str) -> list[str]:
    """The words of a name in either style: ``DeadServerLog`` and ``dead_server_log`` are the same three."""
    return [word for word in re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower().split("_") if word]


def is_private(name: str) -> bool:
    words = words_of(name)
    return name not in KEPT and (not WORDS.isdisjoint(words) or PHRASES.search("_".join(words)) is not None)


def names_in(tree: ast.AST) -> Iterator[str]:
    """The names of classes and functions, of the constants of modules and classes, and of the fields of objects."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield from [node.attr] if isinstance(node.value, ast.Name) and node.value.id == "self" else []
        if isinstance(node, ast.ClassDef | ast.Module):
            for child in node.body:
                targets = child.targets if isinstance(child, ast.Assign) else [getattr(child, "target", None)]
                yield from (target.id for target in targets if isinstance(target, ast.Name))


def private_names(path: Path) -> set[str]:
    return {name for name in (path.stem, *names_in(tree_of(path))) if is_private(name)}


def test_names_have_no_private_word() -> None:
    found = sorted(f"{shown(path)}: {name}" for path in SOURCES for name in private_names(path))
    assert found == [], "say it with the field's word"


def test_the_exceptions_are_few_and_stand() -> None:
    assert len(KEPT) <= 10
    names = {name for path in SOURCES for name in (path.stem, *names_in(tree_of(path)))}
    assert KEPT.keys() <= names


def test_private_words_are_found_in_every_kind_of_name(tmp_path: Path) -> None:
    module = tmp_path / "asked_again.py"
    module.write_text(
        "BEHIND_MS = 1\n"
        "class ViewKeeper:\n    held: int = 0\n    lookup: int = 0\n"
        "    def __init__(self):\n        self._told_s = self.holder = 0\n"
        "    async def go_on_moved(self):\n        def shown(): pass\n"
    )
    found = {"asked_again", "BEHIND_MS", "ViewKeeper", "held", "_told_s", "go_on_moved", "shown"}
    assert private_names(module) == found
