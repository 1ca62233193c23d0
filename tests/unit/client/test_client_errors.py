"""Errors and types of the client: one IllegalArgument, messages as text, and what a type checker knows."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import happybase
import Hbase_thrift
import pytest

import columnar.client
from columnar import errors as model_errors
from columnar.client import ClientTls, Connection, Expect, Source, Table, View, hex_splits, uniform_splits
from columnar.client import errors as client_errors
from columnar.client.errors import AlreadyExists, IllegalArgument, IOError, as_ours, hbase_class
from columnar.client.row_operations import to_wire
from columnar.client.tls import given
from columnar.client.view_cells import prefix_of, rows_of
from columnar.client.views import Views
from columnar.wire.idl import hbase

ROOT = Path(__file__).parents[3]
VIEW = View("v", Source("t", key=("f:a", "f:b")))


class NoStore:
    def call(self, *_args: Any) -> Any:
        return b"\x90"  # an empty list of msgpack


@pytest.mark.parametrize(
    "work",
    [
        lambda: Views(NoStore()).status("nope"),  # type: ignore[arg-type]
        lambda: Views(NoStore()).add(View("x", Source("t", key=("f:a",)), spread=0)),  # type: ignore[arg-type]
        lambda: Views(NoStore()).rebuild("x", View("x", Source("t", key=()))),  # type: ignore[arg-type]
        lambda: Expect(b"a:b", b"1", "=="),  # type: ignore[arg-type]
        lambda: to_wire("put"),  # type: ignore[arg-type]
        lambda: hex_splits(0),
        lambda: uniform_splits(-1),
        lambda: ClientTls(cert="c").context(),
        lambda: given(False, "ca", "", ""),
        lambda: rows_of(VIEW, b"one"),
        lambda: prefix_of(VIEW, (b"a", b"b", b"c")),
    ],
)
def test_what_the_client_refuses_is_an_illegal_argument(work: Callable[[], object]) -> None:
    with pytest.raises(IllegalArgument) as caught:
        work()
    assert isinstance(caught.value, model_errors.IllegalArgument), "commands and the wiki catch this one"
    assert str(caught.value) == caught.value.text
    assert len(str(caught.value)) > 20


def test_no_other_illegal_argument_is_in_the_client() -> None:
    assert columnar.client.IllegalArgument is client_errors.IllegalArgument is Hbase_thrift.IllegalArgument
    for path in (ROOT / "columnar" / "client").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == "columnar.errors":
                assert "IllegalArgument" not in {one.name for one in node.names}, path.name


def test_the_text_of_an_error_is_its_message() -> None:
    message = "org.x.NoSuchThing: größe".encode()
    for declared, ours in (
        (Hbase_thrift.IOError, IOError),
        (hbase.IOError, IOError),
        (Hbase_thrift.IllegalArgument, IllegalArgument),
        (hbase.IllegalArgument, IllegalArgument),
        (Hbase_thrift.AlreadyExists, AlreadyExists),
        (hbase.AlreadyExists, AlreadyExists),
    ):
        found: Any = as_ours(declared(message))
        assert isinstance(found, ours)
        assert str(found) == message.decode()
        assert found.message == message, "as happybase has it"
        assert hbase_class(found) == "NoSuchThing"
        assert str(as_ours(declared(None))) == ""
    other = ValueError("x")
    assert as_ours(other) is other


def test_the_classes_are_happybases_when_they_run() -> None:
    assert issubclass(Connection, happybase.Connection)
    assert issubclass(Table, happybase.Table)
    assert issubclass(columnar.client.ConnectionPool, happybase.ConnectionPool)


def test_a_connection_is_a_context_manager() -> None:
    class Counted(Connection):
        seen: list[str]

        def open(self) -> None:
            self.seen.append("open")

        def close(self) -> None:
            self.seen.append("close")

    connection = Counted("127.0.0.1", 1, autoconnect=False)
    connection.seen = []
    with connection as same:
        assert same is connection
        assert connection.seen == ["open"]
    assert connection.seen == ["open", "close"]
    connection.close = lambda: None  # type: ignore[method-assign]


def test_a_type_checker_knows_the_half_of_happybase(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "from columnar.client import Connection\n"
        "with Connection('h') as connection:\n"
        "    table = connection.table('t')\n"
        "    reveal_type(table.row(b'r'))\n"
        "    reveal_type(table.row(b'r', include_timestamp=True))\n"
        "    for row, cells in table.scan(filter='KeyOnlyFilter()'):\n"
        "        reveal_type(cells)\n"
        "    reveal_type(table.counter_inc(b'r', b'f:c'))\n"
        "    reveal_type(connection.tables())\n"
        "    with table.batch(batch_size=10) as batch:\n"
        "        batch.put('r', {})\n"
        "    table.put(b'r', 'no')\n"
    )
    words = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), str(program)]
    said = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=300).stdout
    notes = said.replace("builtins.", "").splitlines()
    for line, text in (
        (4, '"dict[bytes, bytes]"'),
        (5, '"dict[bytes, tuple[bytes, int]]"'),
        (7, '"dict[bytes, bytes]"'),
        (8, '"int"'),
        (9, '"list[bytes]"'),
    ):
        assert any(f"program.py:{line}: note" in one and text in one for one in notes), said
    for line in (11, 12):
        assert f"program.py:{line}: error" in said, said
