"""``columnar get | put | scan | ...`` against a store that serves, as typed."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from columnar.cli import main
from columnar.client import Connection
from columnar.model.flow_status import listed, status_of
from columnar.model.record_codec import pack_records
from columnar.model.trigger_registration import Registration, requested
from columnar.wire.dead_letter import DeadLetter
from tests.support.shell import Shell, store_at


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with store_at(tmp_path_factory.mktemp("shell") / "data") as found:
        yield found


@pytest.fixture
def shell(address: str) -> Shell:
    return Shell(address)


@pytest.fixture
def pages(shell: Shell) -> Iterator[str]:
    shell.out("create", "pages", "text", "meta:versions=3")
    yield "pages"
    shell("enable", "pages")
    shell.out("drop", "pages", "--yes")


def test_put_and_get(shell: Shell, pages: str) -> None:
    shell.out("put", pages, "Rīga", "text:body=Sveiki,\\x00pasaule", "meta:n=\\xFF=1")
    assert shell.out("get", pages, "Rīga") == "Rīga\tmeta:n\t\\xFF=1\nRīga\ttext:body\tSveiki,\\x00pasaule\n"
    assert shell.out("get", pages, "R\\xC4\\xABga", "meta") == "Rīga\tmeta:n\t\\xFF=1\n"
    found = shell.json("get", pages, "Rīga", "text:body")
    assert found["row"] == "Rīga"
    assert [(cell["column"], cell["value"]) for cell in found["cells"]] == [("text:body", "Sveiki,\\x00pasaule")]


def test_versions_and_timestamps(shell: Shell, pages: str) -> None:
    for stamp in ("5", "6", "7", "8"):
        shell.out("put", pages, "r", f"meta:v={stamp}", "--timestamp", stamp)
    assert shell.out("get", pages, "r", "--versions", "9", "--ts").splitlines() == [
        "r\tmeta:v\t8\t8", "r\tmeta:v\t7\t7", "r\tmeta:v\t6\t6",
    ]  # fmt: skip
    assert shell.out("get", pages, "r") == "r\tmeta:v\t8\n"


def test_scan(shell: Shell, pages: str) -> None:
    for row in ("a", "b", "b1", "b2", "c", "\\xFF\\xFF"):
        shell.out("put", pages, row, f"text:n={row}", "meta:k=v")

    def rows(*flags: str) -> list[str]:
        return [line.split("\t")[0] for line in shell.out("scan", pages, "--columns", "meta", *flags).splitlines()]

    assert rows() == ["a", "b", "b1", "b2", "c", "\\xFF\\xFF"]
    assert rows("--start", "b", "--stop", "c") == ["b", "b1", "b2"]
    assert rows("--prefix", "b") == ["b", "b1", "b2"]
    assert rows("--prefix", "b", "--reversed") == ["b2", "b1", "b"]
    assert rows("--prefix", "b", "--reversed", "--limit", "2") == ["b2", "b1"]
    assert rows("--prefix", "\\xFF", "--reversed") == ["\\xFF\\xFF"]
    assert rows("--reversed", "--limit", "2") == ["\\xFF\\xFF", "c"]
    assert rows("--filter", "PrefixFilter('b1')") == ["b1"]
    both = shell.out("scan", pages, "--limit", "1", "--columns", "text:n,meta").splitlines()
    assert both == ["a\tmeta:k\tv", "a\ttext:n\ta"]
    lines = shell.out("scan", pages, "--prefix", "b1", "--json").splitlines()
    assert [json.loads(line)["row"] for line in lines] == ["b1"]
    assert shell.error("scan", pages, "--prefix", "b", "--start", "a", status=2).startswith("--prefix goes without")
    assert shell.out("count", pages) == "6\n"
    assert shell.out("count", pages, "--prefix", "b") == "3\n"
    assert shell.json("count", pages) == {"table": "pages", "rows": 6}


def test_tables(shell: Shell, pages: str) -> None:
    shell.out("create", "ev", "e:ttl=7d,compression=zstd", "--attribute", "DELETE_MARKERS=1000", "--split", "m")
    described = {line.split("\t")[0]: line.split("\t")[1:4] for line in shell.out("tables").splitlines()}
    assert described == {"ev": ["e", "enabled", "2"], "pages": ["meta,text", "enabled", "1"]}
    shell.out("disable", "ev")
    (found,) = [table for table in shell.json("tables") if table["name"] == "ev"]
    assert (found["enabled"], found["regions"], found["families"]) == (False, 2, ["e"])
    assert "'columnar enable TABLE' opens it again" in shell.error("get", "ev", "r")
    assert shell("drop", "ev").exit_code == 2  # nobody can be asked
    shell.out("drop", "ev", "--yes")
    assert "columnar tables" in shell.error("drop", "ev", "--yes")
    assert {"pages"} <= {table["name"] for table in shell.json("tables", "--all")}


def test_families_have_one_version_unless_told(shell: Shell, address: str, pages: str) -> None:
    host, _, port = address.partition(":")
    connection = Connection(host, int(port))
    families = connection.table(pages).families()
    connection.close()
    assert {name: held["max_versions"] for name, held in families.items()} == {b"meta": 3, b"text": 1}


def test_status(shell: Shell, pages: str) -> None:
    facts = shell.json("status")
    assert facts["connections"] >= 1
    assert facts["requests"]["columnarStatus"] >= 1
    program = shell.json("version")
    assert (facts["version"], facts["python"]) == (program["version"], program["python"])
    assert program["build"].startswith(facts["build"]), "the store may not have waited for git"
    names = [line.split("\t")[0] for line in shell.out("status").splitlines()]
    assert names[:4] == ["version", "build", "python", "data"]


def test_refusals_are_one_line_with_the_next_step(shell: Shell, pages: str) -> None:
    assert shell.error("get", "nope", "r") == "TableNotFoundException: nope; 'columnar tables' lists those there are"
    assert "'columnar tables' shows its families" in shell.error("put", pages, "r", "nope:a=1")
    assert "drop it first" in shell.error("create", pages, "f")
    assert shell.error("get", pages, "r") == "there is no such row in pages"
    assert "there is no filter 'Nope'" in shell.error("scan", pages, "--filter", "Nope()")
    assert "write FAMILY:QUALIFIER=VALUE" in shell.error("put", pages, "r", "x", status=2)
    assert "named twice" in shell.error("create", "t2", "f", "f:versions=2", status=2)
    assert "DELETE_MARKERS=" in shell.error("create", "t2", "f", "--attribute", "x", status=2)
    assert "write HOST:PORT" in shell.error("tables", "--store", "a:b:c", status=2)


def test_nobody_there(shell: Shell) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        line = shell.error("tables", "--store", f"127.0.0.1:{port}", status=2)
    assert line.startswith(f"cannot talk to 127.0.0.1:{port}: Connection refused; start one with")


def test_something_else_there(shell: Shell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            for _ in range(2):  # the look whether it is a store, and the client
                client, _ = server.accept()
                with client:
                    client.settimeout(5)
                    if client.recv(100):
                        client.sendall(b"SSH-2.0-OpenSSH_9.2p1\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        shell.error("tables", "--store", f"127.0.0.1:{server.getsockname()[1]}", status=2)
        thread.join()


# --- triggers: the calls as the server hears them ------------------------------------------------


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What is asked of the server about triggers; answered here."""
    calls: list[tuple[Any, ...]] = []
    registration = Registration("t", "pages", "m:f", ("text",), timeout_ms=1_000)
    status = replace(
        listed(status_of(registration), registration, ()),
        lag_changes=3, lag_seconds=0.25, parked_rows=1, dead_letters=2, last_error="File\n  x\nOops: \x1b",
    )  # fmt: skip
    letter = DeadLetter("t", b"pages", b"r\x00", "1-1-1", 8, "a\nValueError: no", "o", 1_700_000_000_000)
    answers = {
        "columnarTriggers": pack_records([status]),
        "columnarTriggerDead": pack_records([letter]),
        "columnarTriggerRetry": 4,
        "columnarTriggerWait": True,
    }

    def call(_self: Connection, method: str, *args: Any) -> Any:
        calls.append((method, *args))
        return answers.get(method)

    monkeypatch.setattr(Connection, "call", call)
    return calls


def test_trigger_add(shell: Shell, pages: str, heard: list[tuple[Any, ...]]) -> None:
    shell.out("trigger", "add", pages, "my.triggers:backlinks")
    flags = ("--name", "x", "--families", "text,meta", "--before", "--from", "beginning", "--timeout", "2.5")
    shell.out("trigger", "add", pages, "m:f", *flags, "--attempts", "7")
    (first, second) = [requested(call[1]) for call in heard]
    families = ("meta", "text")
    assert first == Registration("pages-backlinks", "pages", "my.triggers:backlinks", families)
    more = {"before": True, "from_where": "beginning", "timeout_ms": 2_500, "attempts": 7}
    assert second == Registration("x", "pages", "m:f", families, **more)


def test_trigger_list_and_dead(shell: Shell, heard: list[tuple[Any, ...]]) -> None:
    assert shell.out("trigger", "list") == "t\tpages\ttext\tm:f\trunning\t3\t0.2\t1\t2\tOops: \\x1B\t\n"
    assert shell.json("trigger", "list")[0]["families"] == ["text"]
    assert shell.out("trigger", "dead", "t", "--limit", "5") == "t\tpages\tr\\x00\t8\t1700000000000\tValueError: no\n"
    assert shell.json("trigger", "dead")[0]["output"] == "o"
    assert heard[2:] == [("columnarTriggerDead", "t", b"", 5, False), ("columnarTriggerDead", "", b"", 100, False)]


def test_trigger_changes(shell: Shell, heard: list[tuple[Any, ...]]) -> None:
    for verb in ("pause", "resume", "remove"):
        shell.out("trigger", verb, "t")
    assert shell.out("trigger", "retry", "t", "r\\x00") == "4 rows are tried again\n"
    assert shell.json("trigger", "wait", "--sequence", "1-1-5", "--timeout", "1.5") == {"delivered": True}
    assert heard == [
        ("columnarTriggerPause", "t"),
        ("columnarTriggerResume", "t"),
        ("columnarTriggerRemove", "t"),
        ("columnarTriggerRetry", "t", b"r\x00"),
        ("columnarTriggerWait", "", "1-1-5", 1_500),
    ]


def test_trigger_wait_out_of_time(shell: Shell, heard: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Connection, "call", lambda *_: False)
    assert shell.error("trigger", "wait", "t", "--timeout", "0.1").startswith("not delivered within 0.1 s")


# --- administration ------------------------------------------------------------------------------


def test_describe_and_alter(shell: Shell, pages: str) -> None:
    shell.out(
        "alter", pages, "--add", "links:versions=2,compression=zstd", "--change", "meta:ttl=30d,blocksize=64k",
        "--set", "MAX_FILESIZE=2g", "--set", "change_log=1d",
    )  # fmt: skip
    found = shell.json("describe", pages)
    assert list(found["families"]) == ["links", "meta", "text"]
    assert (
        found["families"]["meta"] | {"VERSIONS": "3", "TTL": "2592000", "BLOCKSIZE": "65536"}
        == (found["families"]["meta"])
    )
    assert (found["attributes"], found["regions"]) == ({"MAX_FILESIZE": str(2 << 30), "CHANGE_LOG": "86400"}, 1)
    shell.out("alter", pages, "--drop", "links", "--change", "meta:ttl=", "--set", "CHANGE_LOG=", "--yes")
    found = shell.json("describe", pages)
    assert (list(found["families"]), found["families"]["meta"]["TTL"]) == (["meta", "text"], "FOREVER")
    assert found["attributes"] == {"MAX_FILESIZE": str(2 << 30)}
    lines = [line.split("\t")[0] for line in shell.out("describe", pages).splitlines()]
    assert lines == ["meta", "text"]


def test_a_quota_is_set_shown_and_lifted(shell: Shell, pages: str) -> None:
    shell.out("alter", pages, "--set", "throttle=1000req/sec,read:10M/s")
    assert shell.json("describe", pages)["attributes"] == {"THROTTLE": "1000req/s,read:10MB/s"}
    assert "THROTTLE takes limits such as 1000req/s,10MB/s" in shell.error("alter", pages, "--set", "THROTTLE=fast")
    shell.out("alter", pages, "--set", "THROTTLE=")
    assert shell.json("describe", pages)["attributes"] == {}


def test_a_family_that_is_altered_as_hbase_does_is_added_where_it_is_missing(shell: Shell, pages: str) -> None:
    shell.out("alter", pages, "--family", "text", "--family", "meta:versions=4", "--family", "new:ttl=60")
    listed = shell.json("describe", pages)["families"]
    assert (listed["meta"]["VERSIONS"], listed["new"]["TTL"]) == ("4", "60")
    assert "named twice" in shell.error("alter", pages, "--add", "x", "--family", "x", status=2)


def test_what_alter_refuses(shell: Shell, pages: str) -> None:
    assert shell.error("alter", pages, status=2).startswith("say what to change")
    assert "say --yes" in shell.error("alter", pages, "--drop", "text", status=2)
    assert "takes KEY=VALUE of versions" in shell.error("alter", pages, "--change", "text:nope=1", status=2)
    assert "COMPRESSION is one of" in shell.error("alter", pages, "--add", "x:compression=gzip", status=2)
    assert "--change takes" in shell.error("alter", pages, "--change", "text", status=2)
    assert "NoSuchColumnFamilyException" in shell.error("alter", pages, "--drop", "nope", "--yes")
    assert "read only" in shell.out("alter", pages, "--set", "READONLY=true") + shell.error(
        "put", pages, "r", "text:a=1"
    )
    shell.out("alter", pages, "--set", "READONLY=")


PASTED = """create 'pasted', {NAME => 'a', VERSIONS => '1', EVICT_BLOCKS_ON_CLOSE => 'false', \
NEW_VERSION_BEHAVIOR => 'false', KEEP_DELETED_CELLS => 'FALSE', CACHE_DATA_ON_WRITE => 'false', \
DATA_BLOCK_ENCODING => 'NONE', TTL => 'FOREVER', MIN_VERSIONS => '0', REPLICATION_SCOPE => '0', BLOOMFILTER => 'ROW', \
CACHE_INDEX_ON_WRITE => 'false', IN_MEMORY => 'false', CACHE_BLOOMS_ON_WRITE => 'false', \
PREFETCH_BLOCKS_ON_OPEN => 'false', COMPRESSION => 'NONE', BLOCKCACHE => 'true', BLOCKSIZE => '65536'},
 {NAME => 'b', INDEX_BLOCK_ENCODING => 'NONE', VERSIONS => '3', KEEP_DELETED_CELLS => 'FALSE', \
DATA_BLOCK_ENCODING => 'FAST_DIFF', TTL => '2592000 SECONDS (30 DAYS)', MIN_VERSIONS => '0', REPLICATION_SCOPE => '0', \
BLOOMFILTER => 'ROWCOL', IN_MEMORY => 'true', COMPRESSION => 'GZ', BLOCKCACHE => 'true', \
BLOCKSIZE => '65536 B (64KB)', METADATA => {'mykey' => 'a,b=c'}},
 {TABLE_ATTRIBUTES => {\
 MAX_FILESIZE => '10737418240 B (10GB)', METADATA => {'hbase.store.file-tracker.impl' => 'DEFAULT'}}}
"""


def test_the_output_of_hbases_describe_makes_a_table(shell: Shell, tmp_path: Path) -> None:
    script = tmp_path / "schema.txt"
    script.write_text(PASTED.replace("\\\n", ""))
    shell.out("shell", str(script))
    found = shell.json("describe", "pasted")
    assert found["attributes"] == {"MAX_FILESIZE": "10737418240", "hbase.store.file-tracker.impl": "DEFAULT"}
    b = found["families"]["b"]
    assert (b["TTL"], b["BLOCKSIZE"], b["VERSIONS"]) == ("2592000", "65536", "3")
    assert (b["DATA_BLOCK_ENCODING"], b["METADATA.mykey"], b["COMPRESSION"]) == ("FAST_DIFF", "a,b=c", "GZ")
    assert "KEEP_DELETED_CELLS" not in b
    again = [f"{name.lower()}={text}" for name, text in b.items() if "," not in text]
    shell.out("create", "again", "b:" + ",".join(again))
    assert shell.json("describe", "again")["families"]["b"] == {k: v for k, v in b.items() if "," not in v}


def test_truncate_and_delete_rows(shell: Shell, pages: str) -> None:
    for row in ("a", "b1", "b2", "c"):
        shell.out("put", pages, row, "text:n=1")
    assert "say which rows" in shell.error("delete-rows", pages, status=2)
    assert "say --yes" in shell.error("delete-rows", pages, "--all", status=2)
    shell.out("delete-rows", pages, "--prefix", "b", "--yes")
    assert [line.split("\t")[0] for line in shell.out("scan", pages).splitlines()] == ["a", "c"]
    shell.out("alter", pages, "--set", "CHANGE_LOG=1h")
    assert shell.json("delete-rows", pages, "--start", "b", "--yes") == {"table": "pages", "rows": 1}
    assert "delete its rows instead" in shell.error("truncate", pages, "--yes")
    shell.out("alter", pages, "--set", "CHANGE_LOG=")
    assert "say --yes" in shell.error("truncate", pages, status=2)
    shell("disable", pages)
    assert shell.json("truncate", pages, "--yes") == {"truncated": "pages"}
    assert shell.json("describe", pages)["enabled"] is True  # as HBase's truncate
    assert shell.out("scan", pages) == ""


def test_split_points_of_a_file(shell: Shell, tmp_path: Path) -> None:
    rows = tmp_path / "rows"
    rows.write_bytes(b"20\n10\r\n\\xFFm\n\xc3\xbc")
    shell.out("create", "of_file", "f", "--splits-file", str(rows))
    assert [one["start"] for one in shell.json("regions", "of_file")] == ["", "10", "20", "ü", "\\xFFm"]
    rows.write_bytes(b"1\n" * 10_000)
    assert "10000 regions at most" in shell.error("create", "x", "f", "--splits-file", str(rows), status=2)
    rows.write_bytes(b"a\n\nb\n")
    assert "split point" in shell.error("create", "x", "f", "--splits-file", str(rows))


def test_regions_flush_and_compact(shell: Shell) -> None:
    shell.out("create", "hashed", "f:compression=none", "--splits-hex", "4")
    shell.out("put", "hashed", "4711", "f:q=v")
    shell.out("flush", "hashed")
    shell.out("compact", "hashed")
    assert shell.json("compact", "hashed", "--major") == {"compacted": "hashed", "major": True}
    found = shell.json("regions", "hashed")
    assert [one["start"] for one in found] == ["", "40000000", "80000000", "c0000000"]
    assert (found[1]["open"], found[1]["writes"]) == (True, 1)
    shell.out("flush", found[1]["encoded_name"])
    assert len(shell.out("regions", "hashed").splitlines()) == 4
    assert "neither a table nor a region" in shell.error("flush", "nope")
    assert "say how to split once" in shell.error("create", "x", "f", "--split", "a", "--splits-hex", "4", status=2)
    shell.out("drop", "hashed", "--yes")


def test_namespaces(shell: Shell) -> None:
    assert "'columnar namespace list'" in shell.error("create", "team:pages", "f")
    shell.out("namespace", "create", "team")
    shell.out("create", "team:pages", "f")
    assert shell.json("namespace", "list") == ["columnar", "default", "team"]
    assert shell.out("namespace", "list", "team") == "team:pages\n"
    assert "only empty namespaces" in shell.error("namespace", "drop", "team")
    shell.out("drop", "team:pages", "--yes")
    shell.out("namespace", "drop", "team")
    assert shell.out("namespace", "list").split() == ["columnar", "default"]


# --- help ----------------------------------------------------------------------------------------


def test_every_command_teaches_with_help() -> None:
    names = [
        line.split()[0] for line in CliRunner().invoke(main, ["--help"]).stdout.split("Commands:")[1].splitlines()[1:]
    ]
    assert names[0] == "standalone"
    for name in names:
        shown = CliRunner().invoke(main, [name, "--help"], prog_name="columnar")
        assert shown.exit_code == 0
        assert f"columnar {name}" in shown.stdout.split("Options:")[0], name
    assert CliRunner().invoke(main, ["nope"]).exit_code == 2


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_completion(name: str) -> None:
    assert "_COLUMNAR_COMPLETE" in CliRunner().invoke(main, ["completion", name]).stdout


def test_split_and_merge(shell: Shell, pages: str) -> None:
    for row in ("a", "b", "c", "d"):
        shell.out("put", pages, row, "text:n=1")
    low, high = shell.json("split", pages, "c")["regions"]
    assert low.startswith("pages,,")
    assert high.startswith("pages,c,")
    shell.json("split", low, "b")
    assert [line.split("\t")[0] for line in shell.out("scan", pages).splitlines()] == ["a", "b", "c", "d"]
    assert "not with itself" in shell.error("merge", high, high)
    first, second = shell.json("split", high, "d")["regions"]
    assert shell.json("merge", second, first)["region"].startswith("pages,c,")
    assert "neither a table nor a region" in shell.error("merge", first, second)
    assert "table of the system" in shell.error("split", "columnar:dead_letters", "x")
    assert [line.split("\t")[0] for line in shell.out("scan", pages).splitlines()] == ["a", "b", "c", "d"]


def test_help_and_standalone_load_little() -> None:
    """The help needs none of the libraries; the server gets those of its page after it is ready."""
    code = "import sys; from columnar.cli import main; main(['--help'], standalone_mode=False); print(*sys.modules)"
    root = Path(__file__).parents[2]
    shown = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True).stdout
    loaded = set(shown.splitlines()[-1].split())
    assert "click" in loaded
    assert not loaded & {"happybase", "thriftpy2", "rich", "jinja2", "rocksdict", "asyncio", "prometheus_client"}
    assert not {name for name in loaded if name.startswith("prompt_toolkit")}
    code = "import sys, columnar.shell.console, columnar.shell.rows; print(*sys.modules)"  # a script has no prompt
    shown = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True).stdout
    assert not {name for name in shown.split() if name.startswith("prompt_toolkit")}
    code = "import sys, columnar.roles.store_process; print(*sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True).stdout
    assert not set(shown.split()) & {
        "click",
        "prompt_toolkit",
        "thriftpy2",
        "rich",
        "jinja2",
        "werkzeug",
        "waitress",
        "prometheus_client",
    }
