"""``columnar advise``: files, errors with the next step, and no ``sqlglot`` before it is needed."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.advised import DATA
from tests.support.shell import command

SQL = "CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(9));\n"


def test_the_page_is_written_or_printed(tmp_path: Path) -> None:
    log = tmp_path / "general.log.gz"
    log.write_bytes(gzip.compress((DATA / "wikka.log").read_bytes()))
    printed = command("advise", str(DATA / "wikka.sql"), "--queries", str(log))
    assert (printed.returncode, printed.stderr) == (0, "")
    out = tmp_path / "design.md"
    written = command("advise", str(DATA / "wikka.sql"), "--queries", str(DATA / "wikka.log"), "--out", str(out))
    assert out.read_text() == printed.stdout
    assert "8 tables, 33 shapes of queries; read its questions" in written.stderr
    assert written.stdout == ""


@pytest.mark.parametrize(
    ("schema", "log", "says"),
    [
        (None, None, "No such file or directory"),
        ("DROP TABLE t;", None, "has no CREATE TABLE that can be read as mysql; see --dialect"),
        ("CREATE TABLE t (a INT ((", None, "not read: CREATE TABLE t (a INT"),
        (SQL, None, "queries: No such file or directory"),
        (SQL, "\n\n", "has no statement; expected MySQL's general log"),
    ],
)
def test_what_cannot_be_used_is_said_in_a_line(tmp_path: Path, schema: str | None, log: str | None, says: str) -> None:
    for name, text in (("schema", schema), ("queries", log)):
        if text is not None:
            (tmp_path / name).write_text(text)
    done = command("advise", str(tmp_path / "schema"), "--queries", str(tmp_path / "queries"))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith("columnar: ")
    assert says in done.stderr


def test_other_dialects(tmp_path: Path) -> None:
    schema = tmp_path / "schema.sql"
    schema.write_text('CREATE TABLE "Order" (id SERIAL PRIMARY KEY, code TEXT UNIQUE NOT NULL, note TEXT);\n'
                      'CREATE UNIQUE INDEX by_note ON "Order" (note);\n')  # fmt: skip
    queries = tmp_path / "queries.sql"
    queries.write_text('SELECT "note" FROM "Order" WHERE code = \'a\';\nSELECT id FROM "Order" WHERE note = $1;\n')
    text = command("advise", str(schema), "--queries", str(queries), "--dialect", "postgres").stdout
    assert "Row: `md5(code)`" in text
    assert "order_by_note" in text


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [one for one in sys.modules if one.split(".")[0] == "sqlglot" or one.startswith("columnar.advise.")]:
        if name != "columnar.advise.commands":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    done = command("advise", str(DATA / "wikka.sql"))
    assert done.returncode == 2
    assert done.stderr == "columnar: advise needs the package sqlglot: pip install 'columnar[advise]'\n"


def test_help_loads_no_parser() -> None:
    code = "import sys; from columnar.cli import main; import columnar.advise.commands; print('sqlglot' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=DATA.parents[2])
    assert done.stdout == "False\n"
