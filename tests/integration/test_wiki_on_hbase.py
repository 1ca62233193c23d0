"""The wiki on a real Apache HBase: prepared, filled, edited, linked and checked over its Thrift gateway.

COLUMNAR_TEST_HBASE=HOST:PORT names a gateway (Thrift 1, buffered, binary) whose HBase holds no wiki;
without it nothing is run.  The wiki's tables are dropped at the end.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import happybase
import pytest
import requests

from tests.support.ports import free_port
from tests.support.standalone_store import ENVIRONMENT
from wikka_port import schema
from wikka_port.accounts.tables import TABLES as ACCOUNT_TABLES
from wikka_port.editing.kept_drafts import TABLES as DRAFT_TABLES

GATEWAY = os.environ.get("COLUMNAR_TEST_HBASE", "")
DUMP = Path(__file__).parents[1] / "data" / "small-dump.xml"
TABLES = tuple(table.name for table in (*schema.TABLES, *ACCOUNT_TABLES, *DRAFT_TABLES))
HIDDEN = re.compile(r'<input type="hidden" name="(csrf|base)" value="([^"]*)"')
MOST_S = 300

pytestmark = [
    pytest.mark.skipif(not GATEWAY, reason="COLUMNAR_TEST_HBASE names no HBase gateway: the wiki was not tried on one"),
    pytest.mark.timeout(3 * MOST_S),  # a table takes HBase a second or two
]


@pytest.fixture
def gateway() -> Iterator[str]:
    host, _, port = GATEWAY.rpartition(":")
    connection = happybase.Connection(host, int(port), timeout=60_000)
    held = set(connection.tables()) & set(TABLES)
    assert not held, f"that HBase has tables of a wiki, which this would drop: {sorted(held)}"
    connection.close()
    yield GATEWAY
    connection = happybase.Connection(host, int(port), timeout=60_000)
    for name in set(connection.tables()) & set(TABLES):
        connection.delete_table(name, disable=True)
    connection.close()


def wikka(command: str, *words: str, gateway: str) -> str:
    """What the command says; it must end well."""
    ended = subprocess.run(
        [sys.executable, "-m", "wikka_port", command, *words, "--store", gateway, "--indexes=application"],
        capture_output=True, text=True, timeout=MOST_S, env=ENVIRONMENT, check=False,
    )  # fmt: skip
    print(f"$ wikka {command} {' '.join(words)}\n{ended.stdout}{ended.stderr}")
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@contextlib.contextmanager
def serving(gateway: str) -> Iterator[str]:
    """The wiki's address."""
    command = [sys.executable, "-m", "wikka_port", "serve", "--store", gateway, "--indexes=application"]
    process = subprocess.Popen(
        [*command, "--port", str(free_port()), "--workers", "1"], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT
    )
    assert process.stdout is not None
    try:
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found, "it did not say where it serves"
        yield found[0].rstrip("/")
    finally:
        process.terminate()
        process.communicate(timeout=60)


def edit(visitor: requests.Session, page: str, body: str) -> requests.Response:
    """What a browser does: fetch the form, send it back."""
    form = visitor.get(f"{page}/edit", timeout=60)
    assert form.status_code == 200
    fields = {name: unescape(value) for name, value in HIDDEN.findall(form.text)}
    return visitor.post(f"{page}/edit", data={**fields, "body": body, "note": "by hand"}, timeout=60)


def test_the_wiki_lives_on_a_real_hbase(gateway: str) -> None:
    assert "Ready" in wikka("prepare", gateway=gateway)
    assert "26  pages" in wikka("import", str(DUMP), gateway=gateway)
    assert "0 differences" in wikka("check", gateway=gateway)
    with serving(gateway) as wiki, requests.Session() as visitor:
        saved = edit(visitor, f"{wiki}/Harbour_master", "He watches the [[Lighthouse]] and the [[Fog bell]].")
        assert saved.status_code == 200
        assert saved.url.startswith(f"{wiki}/Harbour_master")
        assert "He watches the" in saved.text
        lighthouse = visitor.get(f"{wiki}/Lighthouse/backlinks", timeout=60)
        assert "Harbour master" in lighthouse.text
        assert "Main Page" in lighthouse.text, "links of the dump are there too"
        assert "Fog bell" in visitor.get(f"{wiki}/-/wantedpages", timeout=60).text
        assert "Harbour master" in visitor.get(f"{wiki}/-/recentchanges", timeout=60).text
        assert edit(visitor, f"{wiki}/Harbour_master", "He sleeps.").status_code == 200
        assert "Harbour master" not in visitor.get(f"{wiki}/Lighthouse/backlinks", timeout=60).text
        assert "Fog bell" not in visitor.get(f"{wiki}/-/wantedpages", timeout=60).text
        assert "by hand" in visitor.get(f"{wiki}/Harbour_master/revisions", timeout=60).text
    assert "0 differences" in wikka("check", gateway=gateway)


def test_an_operator_rules_it(gateway: str) -> None:
    """Rights, accounts and every move of pages, with all indexes right after each."""

    def done(command: str, *words: str) -> str:
        said = wikka(command, *words, gateway=gateway)
        assert "0 differences" in wikka("check", gateway=gateway)
        return said

    wikka("prepare", gateway=gateway)
    wikka("import", str(DUMP), gateway=gateway)
    assert "Alice: invited" in done("user", "add", "Alice", "--email", "alice@example.org")
    done("acl", "set", "Lighthouse", "--read", "+", "--write", "Alice")
    done("acl", "set", "--site", "--comment-post", "+")
    assert "Alice may. Nobody else may. (the page's own list)" in wikka("acl", "show", "Lighthouse", gateway=gateway)
    assert "Lighthouse is now Pharos." in done("rename", "Lighthouse", "Pharos")
    assert "Alice may. Nobody else may." in wikka("acl", "show", "Pharos", gateway=gateway), "rights go along"
    done("rename", "Pharos", "Beacon", "--no-redirect", "--subpages")
    done("delete", "Beacon", "--yes", "--reason", "asked for")
    assert "Beacon  by (command): asked for" in wikka("undelete", gateway=gateway)
    assert "Beacon is there again" in done("undelete", "Beacon")
    done("delete", "--prefix", "H", "--yes")
    assert "1 revisions are gone for good" in done("purge", "HomePage", "--yes")
    done("undelete", "Harbour:About", "--to", "Harbour:Info")
    assert "not brought back" in done("import", str(DUMP))
    with serving(gateway) as wiki, requests.Session() as visitor:
        assert visitor.get(f"{wiki}/Beacon", timeout=60).status_code == 403
        assert edit(visitor, f"{wiki}/Spam", "Buy [[Beacon]]").status_code == 200
        author = re.search(r"Visitor [0-9a-f]+", visitor.get(f"{wiki}/Spam/revisions", timeout=60).text)
        assert author is not None
        found = visitor.get(f"{wiki}/-/search?q=Buy", timeout=60)
        assert "Spam" in found.text
    assert "Spam: 1 edits go, deleted" in done("revert", author[0], "--yes")
