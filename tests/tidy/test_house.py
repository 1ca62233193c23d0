"""The rules of the house, each with a list of what still breaks it, which only shrinks (``house_to_come.txt``).

    small        a module under SMALL_LINES lines with one importer, in its own folder: a part of that importer
    methods      a class of more than METHODS methods of its own: cut it along a noun of the field; REASONS says why a
                 class is not cut
    fields       a class of more than FIELDS fields
    name         a public method of one word that more than SAME_NAME classes define: it needs its noun, so that grep
                 finds what is meant (``filter_cell`` and ``size_bytes`` have theirs)
    sets         a module outside ``columnar/roles`` that sets attributes of other objects: so many places

A line of ``methods``, ``fields`` or ``sets`` ends with a number, which only falls.  ``python -m tests.tidy.test_house``
takes what keeps the rules by now off the list.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from tests.tidy.sources import ROOT, SOURCES, module_name, shown, statements, text_of, tree_of
from tests.tidy.test_layers import imports_of

SMALL_LINES: Final = 80
METHODS: Final = 25
FIELDS: Final = 15
SAME_NAME: Final = 10
TO_COME: Final = ROOT / "tests/tidy/house_to_come.txt"
# Of context managers, files, threads and followers of the standard library's protocols: their names are not ours.
PROTOCOLS: Final = frozenset({"close", "run", "start", "stop"})


REASONS: Final = {
    "DeliveryState": "rows, cursors and windows are one machine: an event changes several of them",
}
_COUNTED: Final = ("methods ", "fields ", "sets ")


def importers_in(sources: Sequence[Path]) -> dict[Path, set[Path]]:
    """The modules of ``sources`` that import each of them."""
    importers = defaultdict(set)
    names = {module_name(path): path for path in sources}
    for path in sources:
        for imported in imports_of(module_name(path), path):
            module = imported if imported in names else imported.rpartition(".")[0]
            if module in names and names[module] != path:
                importers[names[module]].add(path)
    return importers


def small_modules(importers: Mapping[Path, Collection[Path]]) -> Iterator[str]:
    for path, of_it in importers.items():
        is_small = text_of(path).count("\n") < SMALL_LINES and path.name not in ("__init__.py", "__main__.py")
        if is_small and len(of_it) == 1 and next(iter(of_it)).parent == path.parent:
            yield f"small {shown(path)}"


def classes_of(path: Path) -> Iterator[ast.ClassDef]:
    return (node for node in statements(tree_of(path)) if isinstance(node, ast.ClassDef))


def methods_of(node: ast.ClassDef) -> list[str]:
    return [child.name for child in node.body if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)]


def fields_of(node: ast.ClassDef) -> set[str]:
    found = {
        child.target.id
        for child in node.body
        if isinstance(child, ast.AnnAssign) and isinstance(child.target, ast.Name)
    }
    for attribute in ast.walk(node):
        if isinstance(attribute, ast.Attribute) and isinstance(attribute.ctx, ast.Store) and _is_own(attribute):
            found.add(attribute.attr)
    return found


def large_classes(path: Path) -> Iterator[str]:
    for node in classes_of(path):
        if len(methods_of(node)) > METHODS:
            yield f"methods {shown(path)} {node.name} {len(methods_of(node))}"
        if len(fields_of(node)) > FIELDS:
            yield f"fields {shown(path)} {node.name} {len(fields_of(node))}"


def names_of_many(sources: Sequence[Path]) -> Iterator[str]:
    count: dict[str, int] = defaultdict(int)
    for path in sources:
        for node in classes_of(path):
            for name in set(methods_of(node)):
                count[name] += "_" not in name and name not in PROTOCOLS
    return (f"name {name}" for name, classes in count.items() if classes > SAME_NAME)


def _is_own(attribute: ast.Attribute) -> bool:
    return isinstance(attribute.value, ast.Name) and attribute.value.id in ("self", "cls")


def sets_of_others(path: Path) -> Iterator[str]:
    if "roles" in path.parts:
        return
    stores = sum(
        isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and not _is_own(node)
        for node in ast.walk(tree_of(path))
    )
    if stores:
        yield f"sets {shown(path)} {stores}"


@cache
def broken() -> tuple[str, ...]:
    found = [
        *small_modules(importers_in(SOURCES)),
        *names_of_many([path for path in SOURCES if "columnar" in path.parts]),
    ]
    for path in SOURCES:
        found += [*large_classes(path), *sets_of_others(path)]
    return tuple(sorted(found))


def worse(now: Sequence[str], listed: Sequence[str]) -> list[str]:
    """What is broken now and not listed, and what is counted and more than listed."""
    counted = [line.rpartition(" ") for line in listed if line.startswith(_COUNTED)]
    most = {what: int(count) for what, _, count in counted}
    return [
        line
        for line in now
        if line not in listed
        and not (line.startswith(_COUNTED) and int(line.rpartition(" ")[2]) <= most.get(line.rpartition(" ")[0], 0))
    ]


def test_the_house_gets_no_worse() -> None:
    assert worse(broken(), TO_COME.read_text().splitlines()) == []


def test_the_list_only_names_what_is_broken() -> None:
    gone = [line for line in TO_COME.read_text().splitlines() if line not in broken()]
    assert gone == [], "better by now: python -m tests.tidy.test_house"


def test_each_class_of_many_methods_has_its_reason() -> None:
    large = {line.split(" ")[2] for line in broken() if line.startswith("methods ")}
    assert large == REASONS.keys()


def test_each_rule_finds_what_breaks_it(tmp_path: Path) -> None:
    large = tmp_path / "large.py"
    methods = "".join(f"    def take{n}(self):\n        self.f{n} = other.g = 1\n" for n in range(METHODS + 1))
    large.write_text("class Large:\n" + methods)
    assert [line.split()[0] for line in large_classes(large)] == ["methods", "fields"]
    assert [line.rpartition(" ")[2] for line in sets_of_others(large)] == [str(METHODS + 1)]
    many = tmp_path / "many.py"
    many.write_text("".join(f"class C{n}:\n    def take(self): pass\n    def close(self): pass\n" for n in range(11)))
    assert list(names_of_many([many])) == ["name take"]
    assert list(small_modules({many: {large}})) == ["small many.py"]
    assert list(small_modules({many: {large, ROOT / "other.py"}})) == []
    assert list(small_modules({many: {ROOT / "other.py"}})) == [], "of another folder"
    now = ["sets a.py 3", "sets b.py 1", "fields a.py C 17", "methods a.py C 26", "name take"]
    listed = ["sets a.py 2", "sets b.py 4", "fields a.py C 16", "methods a.py C 27"]
    assert worse(now, listed) == ["sets a.py 3", "fields a.py C 17", "name take"]


def main() -> None:
    listed = TO_COME.read_text().splitlines() if TO_COME.exists() else list(broken())
    TO_COME.write_text("".join(f"{line}\n" for line in broken() if line in listed or not worse([line], listed)))


if __name__ == "__main__":
    main()
