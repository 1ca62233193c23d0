"""A lower layer never imports a higher one; the plan stands in ARCHITECTURE.md, "Layers"."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping
from pathlib import Path

from tests.tidy.sources import PACKAGES, ROOT, SOURCES, module_name, statements, tree_of

# Longest prefix wins.  A module may import its own layer and every lower one.
LAYERS: dict[str, float] = {
    "columnar": 0,
    "columnar.errors": 0,
    "columnar.limits": 0,
    "columnar.memory_plan": 0,
    "columnar.runtime": 0,
    "columnar.model": 1,
    "columnar.storage": 1,
    "columnar.coordination": 1,
    "columnar.config": 1,
    "columnar.settings": 1,
    "columnar.security": 2,
    "columnar.wire": 2,
    "columnar.regions": 3,
    "columnar.master": 3,
    "columnar.client": 3,
    "columnar.cluster": 4,
    "columnar.rights": 4.1,
    "columnar.backup": 4,
    "columnar.operations": 4.2,  # a call of operations may be forwarded; the cluster's links know no operation
    "columnar.flows": 4.5,
    "columnar.checking": 5,
    "columnar.diagnosis": 5,
    "columnar.triggers": 5,
    "columnar.views": 5,
    "columnar.streams": 5,
    "columnar.leases": 5,
    "columnar.queues": 5,
    "columnar.topics": 5,
    "columnar.connections": 5,
    "columnar.thrift": 6,
    "columnar.thrift2": 6,
    "columnar.sqs": 6,
    "columnar.kafka": 6,
    "columnar.webui": 6,
    "columnar.shell": 6,
    "columnar.bench": 6,
    "columnar.advise": 6,
    "columnar.roles": 7,
    "columnar.cli": 7,
    "columnar.__main__": 7,
}
TOP = {
    "__init__",
    "__main__",
    "cli",
    "clock",
    "config",
    "errors",
    "limits",
    "memory_plan",
    "version",
}  # modules of no folder
# Same layer, but strangers to each other.
STRANGERS: list[set[str]] = [
    {"columnar.regions", "columnar.master", "columnar.client"},
    {"columnar.model", "columnar.storage", "columnar.coordination"},
    {
        "columnar.triggers",
        "columnar.views",
        "columnar.streams",
        "columnar.leases",
        "columnar.queues",
        "columnar.topics",
    },
]
# Of wikibench: a trace knows nothing of a target or of HTTP, nor they of it; both know how addresses are spelt.
WIKIBENCH_STRANGERS = {"addresses", "trace", "targets", "http"}
# What may be imported from outside the store, by package.
OUTSIDE: dict[str, tuple[str, ...]] = {
    "wikka_port": (
        "columnar.client",
        "columnar.triggers.api",
        "columnar.errors",
        "columnar.settings",
        "columnar.runtime.log_lines",
        "columnar.runtime.standard_streams",
        "columnar.runtime.file_errors",
        "columnar.runtime.child_processes",
    ),
    "columnar.bench": ("gauge",),
    "benchmarks": (
        "gauge",
        "columnar.bench",
        "columnar.client",
        "columnar.errors",
        "columnar.runtime.compiled",
        "columnar.triggers.api",
        "columnar.wire",
    ),
    "wikibench": (
        "gauge",
        "columnar.runtime.standard_streams",
        "columnar.runtime.file_errors",
    ),
}


def imports_of(name: str, path: Path, *, at_run_time: bool = False) -> list[str]:
    """Every module of ours that ``path`` imports, wherever in the file the import stands.

    ``at_run_time``: without what the types alone need.
    """
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    found = []
    typed = {
        one
        for node in statements(tree_of(path))
        if at_run_time and isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for one in statements(node)
    }
    for node in statements(tree_of(path)):
        if node in typed:
            continue
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                up = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*up, base] if base else up)
            found += [f"{base}.{alias.name}" for alias in node.names]
    return [module for module in found if module.split(".")[0] in PACKAGES]


def prefix_of(module: str) -> str:
    parts = module.split(".")
    while ".".join(parts) not in LAYERS:
        parts.pop()
    return ".".join(parts)


def violations(name: str, imported: list[str]) -> list[str]:
    top = name.split(".")[0]
    bad = []
    for other in imported:
        other_top = other.split(".")[0]
        if top != other_top:
            border = OUTSIDE.get(prefix_of(name) if top == "columnar" else top, ())
            allowed = any(other == a or other.startswith(a + ".") for a in border)
            if not allowed:
                bad.append(f"{name} imports {other}: outside its border")
        elif top == "columnar":
            mine, theirs = prefix_of(name), prefix_of(other)
            if LAYERS[theirs] > LAYERS[mine]:
                bad.append(f"{name} (layer {LAYERS[mine]}) imports {other} (layer {LAYERS[theirs]})")
            bad += [
                f"{name} imports {other}: the two are strangers"
                for group in STRANGERS
                if mine in group and theirs in group and mine != theirs
            ]
    return bad


def test_imports_go_down() -> None:
    found = [bad for path in SOURCES for bad in violations(module_name(path), imports_of(module_name(path), path))]
    assert found == []


def folders_imported(name: str, imported: list[str]) -> set[str]:
    """Return the folders of wikibench that know none of the others, of those that a module of one of them imports."""
    mine = name.split(".")[1]
    found = {other.split(".")[1] for other in imported if other.startswith("wikibench.")}
    return (found - {mine, "addresses"}) & WIKIBENCH_STRANGERS if mine in WIKIBENCH_STRANGERS else set()


def test_the_ground_of_wikibench_stands_alone() -> None:
    modules = [(module_name(path), path) for path in SOURCES if module_name(path).startswith("wikibench.")]
    assert {name.split(".")[1] for name, _ in modules} >= WIKIBENCH_STRANGERS
    assert {name: bad for name, path in modules if (bad := folders_imported(name, imports_of(name, path)))} == {}
    assert folders_imported("wikibench.trace.logs", ["wikibench.targets.target"]) == {"targets"}
    assert not folders_imported("wikibench.visits", ["wikibench.targets.target"])


def test_the_top_has_no_other_modules() -> None:
    assert {path.stem for path in (ROOT / "columnar").glob("*.py")} == TOP, "find the folder that a module belongs to"


def test_the_page_has_the_same_layers() -> None:
    rows = re.findall(r"^\| (\d[\d.]*) \| (.*) \|$", (ROOT / "ARCHITECTURE.md").read_text(), re.M)
    on_the_page = {f"columnar.{name}": float(layer) for layer, text in rows for name in re.findall(r"`(\w+)`", text)}
    assert {name: LAYERS[prefix_of(name)] for name in on_the_page} == on_the_page
    assert LAYERS.keys() - on_the_page.keys() == {"columnar", "columnar.__main__"}, "not on the page"


def test_imports_are_seen_wherever_they_stand(tmp_path: Path) -> None:
    module = tmp_path / "access.py"
    module.write_text(
        "import columnar.errors\n"
        "if True:\n    from . import reads\n"
        "class A:\n    def f(self):\n        try:\n            pass\n        except OSError:\n"
        "            with open('x'):\n                from ..regions.region import Region\n"
    )
    assert imports_of("columnar.operations.access", module) == [
        "columnar.errors",
        "columnar.operations.reads",
        "columnar.regions.region.Region",
    ]


def test_the_checker_sees_an_upward_import() -> None:
    assert violations("columnar.model.cell", ["columnar.regions.region"])
    assert violations("columnar.regions.region", ["columnar.client"])
    assert violations("columnar.operations.access", ["columnar.thrift.translate"])
    assert violations("columnar.cluster.routes", ["columnar.operations.access"])
    assert violations("columnar.views.contributions", ["columnar.triggers.trigger_manager"])
    assert violations("wikibench.trace.lines", ["columnar.client"])
    assert violations("gauge.rounds", ["columnar.bench.measuring"])
    assert violations("columnar.client.table", ["gauge.histogram"])
    assert not violations("columnar.bench.report", ["gauge.histogram"])
    assert not violations("columnar.regions.region", ["columnar.model.cell"])


def circles(imports: Mapping[str, Collection[str]]) -> list[list[str]]:
    """(pure) The groups of modules that import one another, directly or through others (Tarjan)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        number[module] = lowest[module] = len(number)
        stack.append(module)
        for other in imports[module]:
            if other not in number:
                visit(other)
                lowest[module] = min(lowest[module], lowest[other])
            elif other in stack:
                lowest[module] = min(lowest[module], number[other])
        if lowest[module] == number[module]:
            group = stack[stack.index(module) :]
            del stack[stack.index(module) :]
            if len(group) > 1:
                found.append(sorted(group))

    for module in imports:
        if module not in number:
            visit(module)
    return found


def test_no_modules_import_one_another_in_a_circle() -> None:
    names = {module_name(path): path for path in SOURCES if path.name != "__init__.py"}
    imports = {}
    for name, path in names.items():
        modules = (one if one in names else one.rpartition(".")[0] for one in imports_of(name, path, at_run_time=True))
        imports[name] = sorted({module for module in modules if module in names} - {name})
    assert circles(imports) == []


def test_circles_are_found() -> None:
    assert circles({"a": ["b"], "b": ["c", "d"], "c": ["a"], "d": []}) == [["a", "b", "c"]]
    assert circles({"a": ["b"], "b": ["c"], "c": []}) == []
