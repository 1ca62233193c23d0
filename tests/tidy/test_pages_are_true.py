"""Names, numbers and commands on the pages are those of the code: metrics, formats of folders, which commands ask."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click

from columnar.backup.schedule import RunFigures, metrics_text
from columnar.cli import main
from columnar.cluster.peer_address import PEER_SILENT_S
from columnar.coordination.lease import LEASE_MS, LeaseTimes
from columnar.roles.cluster_nodes import KILL_S
from columnar.roles.member_links import RELINK_S
from columnar.shell.hbase_words import VERBS
from columnar.storage import data_folder
from wikka_port.config import WikiConfig
from wikka_port.counters import FAMILIES

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"
OPERATIONS: Final = (DOCS / "operations.md").read_text()
NOT_A_METRIC: Final = {"process_tuning", "wikka_port"}  # a module and a package


def text_of(node: ast.expr, names: dict[str, list[str]]) -> list[str]:
    """The texts that an expression may be: a constant, or an f-string with one name of a loop over tuples."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.JoinedStr):
        head = "".join(part.value for part in node.values if isinstance(part, ast.Constant))
        inner = [
            part.value.id
            for part in node.values
            if isinstance(part, ast.FormattedValue) and isinstance(part.value, ast.Name)
        ]
        return [head + one for one in names.get(inner[0], [])] if inner else [head]
    return []


def loops(tree: ast.AST) -> Iterator[tuple[dict[str, list[Any]], ast.For]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.For) and isinstance(node.target, ast.Tuple) and isinstance(node.iter, ast.Tuple):
            targets = [one.id for one in node.target.elts if isinstance(one, ast.Name)]
            rows = [row.elts for row in node.iter.elts if isinstance(row, ast.Tuple)]
            yield {name: [row[at] for row in rows] for at, name in enumerate(targets)}, node


def served() -> set[str]:
    """The names of all metrics, as ``/metrics`` of store and wiki and the file of backups at intervals have them."""
    found = {"process_resident_memory_bytes", "process_cpu_seconds_total", "process_open_fds"}  # of prometheus_client
    found |= set(re.findall(r"^# TYPE (\S+)", metrics_text(RunFigures()), re.M))
    found |= {f"{one.name}_total" if one.kind == "counter" else one.name for one in FAMILIES}  # of the wiki
    for path in sorted((ROOT / "columnar").rglob("*.py")):
        source = path.read_text()
        if "columnar_" not in source or "measures import" not in source:
            continue
        tree = ast.parse(source)
        within: dict[int, tuple[dict[str, list[str]], list[str]]] = {}
        for columns, loop in loops(tree):
            names = {
                name: [one.value for one in nodes if isinstance(one, ast.Constant)] for name, nodes in columns.items()
            }
            kinds = [one.id for one in columns.get("kind", []) if isinstance(one, ast.Name)]
            for node in ast.walk(loop):
                within[id(node)] = (names, kinds)
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call) and len(node.args) >= 2):
            names, kinds = within.get(id(call), ({}, []))
            texts = text_of(call.args[0], names)
            kind = call.args[1].id if isinstance(call.args[1], ast.Name) else ""
            for at, text in enumerate(texts):
                if text.startswith(("columnar_", "process_")):
                    its = kinds[at] if kind == "kind" else kind
                    found.add(f"{text}_total" if its == "COUNTER" else text)
    return found


def test_pages_name_the_metrics_that_are_served_and_all_of_them() -> None:
    names = served()
    assert len(names) > 45
    pages = [ROOT / "README.md", *DOCS.rglob("*.md")]
    told = {name for page in pages for name in re.findall(r"\b(?:columnar|process|wikka)_[a-z_]+\b", page.read_text())}
    assert told - names - NOT_A_METRIC == set(), "on a page, and not served"
    rows = "\n".join(line for line in OPERATIONS.splitlines() if line.startswith("| `"))
    assert names - set(re.findall(r"`((?:columnar|process|wikka)_[a-z_]+)`", rows)) == set(), "served, and in no table"


def test_the_numbers_of_the_folders_format() -> None:
    row = next(line for line in OPERATIONS.splitlines() if line.startswith("| `FORMAT` |"))
    one, servers, views = data_folder.OF_ONE_PROCESS, data_folder.SERVERS_SINCE, data_folder.VIEWS_SINCE
    nodes = data_folder.NODES_SINCE
    assert f"`columnar-data {one}`; {servers} once several servers" in row
    assert f"{views} once it had a view" in row
    assert f"{nodes} while it belongs to the nodes of a cluster" in row
    assert data_folder.FORMAT_VERSIONS[-1] == max(one, servers, views, nodes), "a newer number has its words here"
    formats = (DOCS / "formats" / "folder.md").read_text()
    for number in data_folder.FORMAT_VERSIONS:
        assert re.search(rf"^\W*{number}\b", formats, re.M), number


def commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from commands(found, (*path, name))
    else:
        yield " ".join(path), command


def test_the_commands_that_ask_are_those_that_the_page_names() -> None:
    page = (DOCS / "administration.md").read_text()
    begin = page.index("These commands ask first")
    asking, _, others = page[begin : page.index("\n\n", begin)].partition("All others")
    every = dict(commands(main))
    said = set(re.findall(r"`([a-z][a-z -]*)`", asking))
    options = {name: {option for one in command.params for option in one.opts} for name, command in every.items()}
    assert said == {name for name, its in options.items() if its & {"--yes", "--confirm"}}
    named = set(re.findall(r"`([a-z][a-z -]*)`", others))
    assert named <= every.keys()
    assert not named & said


def test_the_words_of_hbases_shell_become_what_the_page_says() -> None:
    page = (DOCS / "shell.md").read_text()
    rows = [line.split(" | ") for line in page[page.index("| HBase | ours |") :].splitlines() if line.startswith("| `")]
    told = {}
    for row in rows:
        for word in re.findall(r"`([a-z_]+)\b", row[0]):
            told[word] = row[1]
    assert VERBS.keys() - told.keys() == set(), "verbs that the page has not"
    for word, verb in VERBS.items():
        ours = verb.form.split()[0]
        is_same = "the same" in told[word] and ours == word.removesuffix("_preserve")
        assert is_same or re.search(rf"\b{ours}\b", told[word]), (word, verb.form, told[word])


def test_the_address_of_links_that_commands_print() -> None:
    """As ``test_wiki_user_commands`` holds them to it."""
    page = (DOCS / "wiki-accounts.md").read_text()
    assert "the address of the wiki of this store that started last" in page
    assert f"`http://127.0.0.1:{WikiConfig().port}` if none did" in page


def test_the_times_after_which_a_leader_ends_servers_that_it_does_not_reach() -> None:
    decisions = " ".join((DOCS / "decisions.md").read_text().split())
    assert f"has not ended the server within {KILL_S:g} s (`KILL_S`" in decisions
    machines = (DOCS / "many-machines.md").read_text()
    (lost,) = [line for line in machines.splitlines() if line.startswith("| the link between the leader and one node")]
    fence_s = LeaseTimes.of_lease(LEASE_MS).fence_ms / 1_000
    assert f"{RELINK_S:g} s after the loss the leader has the servers ended" in lost
    assert f"for {RELINK_S:g} s more" in lost
    assert f"some {2 * RELINK_S + fence_s:.0f} s." in lost
    assert f"up to {PEER_SILENT_S} s late" in lost
