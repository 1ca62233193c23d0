"""``columnar bulk-load``: by ingestion into empty ranges, as ordinary writes elsewhere, with the same result."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from columnar.cli import main
from columnar.client import Connection
from tests.support import trigger_functions
from tests.support.serving import Serving


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    store = Serving(tmp_path / "data").start()
    yield store
    store.stop()


@pytest.fixture
def connection(serving: Serving) -> Connection:
    return serving.connect()


@pytest.fixture
def run(serving: Serving) -> Callable[..., Any]:
    def invoke(*words: str, status: int = 0) -> Any:
        address = f"127.0.0.1:{serving.store.port}"
        result = CliRunner().invoke(main, [*words, "--json"], env={"COLUMNAR_STORE": address})
        assert result.exit_code == status, (result.output, result.stderr, result.exception)
        return json.loads(result.stdout) if status == 0 else result.stderr

    return invoke


FAMILIES = {"a": {"max_versions": 2}, "b": {"max_versions": 1}}
TSV = """z\ta:q\tnewest\t30
a\ta:q\told\t10
a\ta:q\tmiddle\t20
a\ta:q\tnewest\t30
a\tb:q\tlost\t10
a\tb:q\tkept\t20
\\x00\\xFF\ta:\\x00\tbytes \\xFE\t5
a\tb:t\tshort\t40\t99999999999999
a\tb:q\treplaces\t20
"""
CSV = 'm,a:q,"a ""quoted"", value",7\r\nm,b:,,8\r\n'
JSON = """{"row": "n", "column": "a:q", "value": "snow \\u2603", "timestamp": 9}

{"row": "o", "column": "b:x", "value": ""}
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, ...]:
    found = []
    for name, text in (("1.tsv", TSV), ("2.csv", CSV), ("3.json", JSON)):
        path = tmp_path / name
        path.write_text(text, newline="")
        found.append(str(path))
    return tuple(found)


def check_loaded(connection: Connection, name: bytes) -> None:
    table = connection.table(name)
    assert table.cells(b"a", b"a:q", 9, include_timestamp=True) == [(b"newest", 30), (b"middle", 20)]
    assert table.cells(b"a", b"b:q", 9, include_timestamp=True) == [(b"replaces", 20)]
    assert table.row(b"\x00\xff", include_timestamp=True) == {b"a:\x00": (b"bytes \xfe", 5)}
    assert table.row(b"m", include_timestamp=True) == {b"a:q": (b'a "quoted", value', 7), b"b:": (b"", 8)}
    assert table.row(b"n") == {b"a:q": "snow \u2603".encode()}
    assert [row for row, _ in table.scan()] == [b"\x00\xff", b"a", b"m", b"n", b"o", b"z"]


def test_an_empty_table_takes_files_by_ingestion(
    serving: Serving, connection: Connection, run: Callable[..., Any], files: tuple[str, ...]
) -> None:
    connection.create_table(b"t", FAMILIES, splits=[b"m"])
    done = run("bulk-load", "t", *files)
    assert (done["rows"], done["cells"]) == (6, 13)
    assert (done["ingested_regions"], done["written_regions"]) == (2, 0)
    check_loaded(connection, b"t")
    table = connection.table(b"t")
    table.put(b"a", {b"a:q": b"later"})
    assert table.cells(b"a", b"a:q", 9) == [b"later", b"newest"]
    table.delete(b"a", columns=[b"a:q"])
    assert table.cells(b"a", b"a:q", 9) == []
    again = run("bulk-load", "t", *files)
    assert (again["ingested_regions"], again["written_regions"]) == (0, 2)
    check_loaded(connection, b"t")
    regions = {region.info.start: region for region in serving.store.serving.server.open_regions_of("t")}
    assert serving.do(lambda: [r.mark(b"ingesting") for r in regions.values()]) == [None, None]


def test_what_is_there_already_is_compared_by_timestamp(
    connection: Connection, run: Callable[..., Any], files: tuple[str, ...]
) -> None:
    connection.create_table(b"t", FAMILIES, splits=[b"m"])
    connection.table(b"t").put(b"c", {b"b:q": b"stays"})
    connection.table(b"t").put(b"a", {b"b:q": b"newer"}, timestamp=50)
    done = run("bulk-load", "t", *files)
    assert (done["ingested_regions"], done["written_regions"]) == (1, 1)
    assert connection.table(b"t").row(b"a")[b"b:q"] == b"newer"
    assert connection.table(b"t").row(b"c") == {b"b:q": b"stays"}
    assert connection.table(b"t").cells(b"a", b"a:q", 9) == [b"newest", b"middle"]


def test_triggers_see_what_is_loaded(connection: Connection, run: Callable[..., Any], files: tuple[str, ...]) -> None:
    connection.create_table(b"t", FAMILIES, splits=[b"m"])
    connection.create_table(b"audit", {"a": {}})
    connection.triggers.add("noter", b"t", f"{trigger_functions.MODULE}:note", [b"a"])
    done = run("bulk-load", "t", *files)
    assert (done["ingested_regions"], done["written_regions"]) == (0, 2)
    assert "triggers" in done["why_written"]
    check_loaded(connection, b"t")
    assert connection.triggers.wait("noter")
    assert {row for row, _ in connection.table(b"audit").scan()} == {b"\x00\xff", b"a", b"m", b"n", b"z"}


def test_an_export_is_added_to_a_table(connection: Connection, run: Callable[..., Any], tmp_path: Path) -> None:
    for name in (b"one", b"two"):
        connection.create_table(name, FAMILIES)
    for n in range(50):
        connection.table(b"one").put(b"%03d" % n, {b"a:q": b"x", b"b:q": b"%d" % n})
    exported = run("export", "one", str(tmp_path / "x"))
    connection.table(b"two").put(b"zzz", {b"a:q": b"its own"})
    assert run("bulk-load", "two", str(tmp_path / "x"))["ingested_regions"] == 1
    connection.table(b"two").delete(b"zzz")
    assert run("digest", "two")["digest"] == exported["digest"]


def test_bad_lines_are_named_and_nothing_is_loaded(
    connection: Connection, run: Callable[..., Any], tmp_path: Path
) -> None:
    connection.create_table(b"t", FAMILIES)
    for name, text, said in (
        ("x.tsv", "a\ta:q\tv\n\nb\tno column\tv\n", "line 3: 'no column' is no column"),
        ("x.tsv", "a\ta:q\n", "line 1: 2 fields"),
        ("x.tsv", "a\ta:q\tv\tsoon\n", "'soon' is no timestamp"),
        ("x.tsv", "\ta:q\tv\n", "a row key has 1 to"),
        ("x.csv", 'a,a:q,"open\n', "line 1"),
        ("x.json", "[1]\n", "an object with row, column and value"),
        ("x.json", "\n\n{\n", "line 3"),
        ("x.tsv", "a\tnone:q\tv\n", "Column family none does not exist in table t"),
    ):
        (tmp_path / name).write_text(text)
        assert said in run("bulk-load", "t", str(tmp_path / name), status=2)
    assert list(connection.table(b"t").scan()) == []
