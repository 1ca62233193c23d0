"""The audit in parts and by filter, jobs with dead letters, sizes: shown to administrators alone."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import replace
from html import unescape
from itertools import pairwise
from pathlib import Path

import pytest

import wikka_port
from tests.support.memory_rows import MemoryRows
from tests.support.wiki_client import WikiClient
from tests.unit.wikka_port.web.test_reviews import accounts
from wikka_port import maintenance
from wikka_port.accounts import audit as audit_module
from wikka_port.accounts.audit import KINDS, Audit
from wikka_port.accounts.user_names import Unsuitable, checked_name
from wikka_port.files.file_rows import BLOBS
from wikka_port.limits import AUDIT_LISTED
from wikka_port.maintenance import Amount, Refused, contents_of, rows_of
from wikka_port.moving.runner import AUDITED
from wikka_port.names import page_key
from wikka_port.schema import REVISIONS
from wikka_port.visitors import COMMAND, OLD_COMMANDS


@pytest.fixture
def web() -> WikiClient:
    return WikiClient()


@pytest.fixture
def root(web: WikiClient) -> WikiClient:
    return web.signed_in("Root", admin=True)


def notes(root: WikiClient, path: str) -> list[str]:
    return re.findall(r'class="change-note">([^<]*)<', root.get(path).text)


def test_the_audit_is_shown_in_parts_without_a_gap(web: WikiClient, root: WikiClient) -> None:
    clock = [1_000_000]
    audit = Audit(web.wiki.rows, lambda: clock[0])
    for number in range(2 * AUDIT_LISTED + 7):
        clock[0] += number % 2  # of two entries each, the times are equal
        audit.note(
            "status" if number % 3 else "rights", user="Mia" if number % 2 else "Ben", by="Root", note=f"{number}"
        )
    path, seen = "/-/audit", list[str]()
    while path:
        part = notes(root, path)
        assert len(part) <= AUDIT_LISTED
        seen += part
        onward = re.search(r'href="([^"]*)" rel="next"', root.get(path).text)
        path = unescape(onward[1]) if onward else ""
    assert sorted(map(int, seen)) == list(range(2 * AUDIT_LISTED + 7))
    assert all(int(one) >= int(two) - 1 for one, two in pairwise(seen)), "the newest first"
    assert {int(one) % 3 for one in notes(root, "/-/audit?what=rights")} == {0}
    assert {int(one) % 2 for one in notes(root, "/-/audit?user=m%C3%ADa")} == {1}
    assert len(notes(root, "/-/audit?user=root")) == AUDIT_LISTED, "also by whom"
    assert notes(root, "/-/audit?user=Nobody") == []


def test_commands_have_one_name_in_the_audit_in_old_entries_too(web: WikiClient, root: WikiClient) -> None:
    audit = accounts(web).audit
    for number, by in enumerate(("command", "a command", COMMAND, "Command", "Root")):
        audit.note("status", user="Mia", by=by, note=f"{number}")
    assert sorted(one.by for one in audit.recent()) == [COMMAND, COMMAND, COMMAND, "Command", "Root"]
    for typed in (COMMAND, "command", "A Command"):
        assert {"0", "1", "2"} <= set(notes(root, f"/-/audit?user={typed}")), typed
    for taken in ("Command", "a command", COMMAND):
        with pytest.raises(Unsuitable):
            checked_name(taken)


def test_no_module_but_one_names_the_command() -> None:
    words, package = [f'"{word}"' for word in (COMMAND, *OLD_COMMANDS)], Path(wikka_port.__file__).parent
    texts = {path.name: path.read_text(encoding="utf-8") for path in package.rglob("*.py")}
    assert [name for name, text in texts.items() if any(word in text for word in words)] == ["visitors.py"]


def test_a_part_of_the_audit_reads_a_bounded_number(
    web: WikiClient, root: WikiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_module, "AUDIT_SCANNED", 5)
    audit = accounts(web).audit
    for number in range(12):
        audit.note("status", user="Mia" if number == 0 else "Ben", note=f"{number}")
        web.now += 1
    path, steps = "/-/audit?user=Mia", 0
    while not notes(root, path):
        onward = re.search(r'href="([^"]*)" rel="next"', root.get(path).text)
        assert onward, "there are older ones"
        path, steps = unescape(onward[1]), steps + 1
    assert (notes(root, path), steps) == (["0"], 2)
    assert [one.note for one in audit.filtered(user="Mia")] == ["0"]


def kinds_in(text: str) -> set[str]:
    """The kinds that a module's calls of ``note`` may add: each word that the first text of a call may be."""
    found = set[str]()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
            words = [words for one in node.args if (words := _words(one))] if name in ("note", "_note") else []
            found |= words[0] if words else set()
    return found


def _words(node: ast.AST) -> set[str]:
    if isinstance(node, ast.IfExp):
        return _words(node.body) | _words(node.orelse)
    return {node.value} if isinstance(node, ast.Constant) and isinstance(node.value, str) else set()


def test_the_filter_knows_every_kind_of_entry() -> None:
    assert kinds_in('self._note("a" if x else "b" if y else "c", name, "d")') == {"a", "b", "c"}
    assert kinds_in('_note(site, "e", "f")') == {"e"}
    sources = [one for one in Path(wikka_port.__file__).parent.rglob("*.py") if "metrics" not in one.name]
    noted = set().union(*(kinds_in(one.read_text(encoding="utf-8")) for one in sources))
    assert noted <= set(KINDS) | {"waiting"}
    assert {"hide revision", "show revision"} <= noted
    assert len(noted) > 15
    assert set(AUDITED.values()) <= set(KINDS)
    with pytest.raises(AssertionError, match="does not know 'shown revision'"):
        Audit(MemoryRows(), lambda: 0).note("shown revision", user="")


def test_dead_letters_are_delivered_again_or_thrown_away(web: WikiClient, root: WikiClient) -> None:
    shown = root.get("/-/jobs").text
    assert "wiki-indexes" in shown
    assert "3 changes wait" in shown
    assert "ValueError: no number" in shown
    assert 'href="/HomePage"' in shown
    form = {**root.form("/-/jobs"), "trigger": "wiki-indexes", "row": page_key("HomePage").hex()}
    assert root.post("/-/jobs", {**form, "retry": "1"}).status_code == 303
    assert root.post("/-/jobs", {**form, "discard": "1"}).status_code == 400, "it asks"
    assert root.post("/-/jobs", {**form, "row": "xyz", "retry": "1"}).status_code == 400
    for buttons in ({}, {"retry": "1", "discard": "1"}):
        refused = root.post("/-/jobs", {**form, **buttons, "sure": "yes"})
        assert refused.status_code == 400
        assert refused.text.count(" checked") == 1, "no other letter is thrown away by a slip"
    assert root.post("/-/jobs", {**form, "row": "", "discard": "1", "sure": "yes"}).status_code == 303
    assert web.wiki.maintenance.done == [
        ("retry", "wiki-indexes", page_key("HomePage")),
        ("discard", "wiki-indexes", b""),
    ]
    assert sorted(one.what for one in accounts(web).audit.recent(9)) == [
        "dead letters discarded",
        "dead letters retried",
    ]
    mia = web.signed_in("Mia")
    for other in (web, mia):
        assert other.get("/-/jobs").status_code == 403
        assert other.post("/-/jobs", {**other.form("/P/edit"), **form, "retry": "1"}).status_code == 403
    assert root.post("/-/jobs", {**form, "csrf": "0.0", "retry": "1"}).status_code == 403
    assert len(web.wiki.maintenance.done) == 2


def test_a_retry_of_nothing_is_no_entry(web: WikiClient, root: WikiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web.wiki.maintenance, "retry", lambda *_: 0)
    form = {**root.form("/-/jobs"), "trigger": "wiki-x", "row": "", "retry": "1"}
    assert root.post("/-/jobs", form).status_code == 303
    assert accounts(web).audit.recent(9) == []


def test_a_store_that_refuses_is_quoted(web: WikiClient, root: WikiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    form = {**root.form("/-/jobs"), "trigger": "wiki-indexes", "row": ""}

    def refuse(*_: object) -> int:
        raise Refused("the user of the wiki may not do this")

    for name in ("triggers", "retry", "table_bytes"):
        monkeypatch.setattr(web.wiki.maintenance, name, refuse)
    assert "may not do this" in root.get("/-/jobs").text
    assert root.post("/-/jobs", {**form, "retry": "1"}).status_code == 409
    assert "may not do this" in root.get("/-/sizes").text


def test_a_plain_hbase_has_no_jobs(web: WikiClient, root: WikiClient) -> None:
    web.wiki.maintenance.has_triggers = False
    assert "has no triggers" in root.get("/-/jobs").text


def test_sizes_say_how_exact_they_are(web: WikiClient, root: WikiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = MemoryRows()
    for number in range(300):
        rows.put(REVISIONS, page_key(f"Page {number}") + b"0000000001:x", {b"meta:name": b"x"})
        rows.put(BLOBS, (page_key(f"Blob {number}") * 2), {b"b:state": b"live:%016x:1000:" % number})
    assert rows_of(rows, REVISIONS) == Amount(300)  # type: ignore[arg-type]
    assert contents_of(rows) == Amount(300, "exact", 300_000)  # type: ignore[arg-type]
    monkeypatch.setattr(maintenance, "SIZES_READ", 100)
    found = rows_of(rows, REVISIONS)  # type: ignore[arg-type]
    assert found.how == "about"
    assert 240 < found.count < 360
    contents = contents_of(rows)  # type: ignore[arg-type]
    assert (contents.how, contents.size_bytes) == ("about", contents.count * 1_000)
    shown = root.get("/-/sizes").text
    assert "Accounts" in shown
    assert "800 bytes" in shown
    monkeypatch.setattr(maintenance, "ACCOUNTS_COUNTED", 0)
    assert "at least 0" in root.get("/-/sizes").text


def test_the_last_backup_is_what_the_command_noted(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    web = WikiClient(backup_report=report)
    root = web.signed_in("Root", admin=True)
    assert "no backup has reported yet" in root.get("/-/sizes").text
    noted = {"format": "columnar-backup-report 1", "backup": "20261128T010203.004Z", "place": "s3://<b>", "files": 7}
    noted |= {
        "taken_ms": 1_764_000_000_000,
        "tables": 3,
        "bytes": 5_000_000,
        "checked": "",
        "checked_ms": 0,
        "errors": 0,
    }
    report.write_text(json.dumps(noted))
    shown = root.get("/-/sizes").text
    for said in ("20261128T010203.004Z", "3 tables", "7 files", "5.0 MB", "s3://&lt;b&gt;", "not yet"):
        assert said in shown, said
    for checked, errors, said in (("quick", 0, "no file was read"), ("whole", 0, "is whole"), ("whole", 2, "2 faults")):
        report.write_text(json.dumps({**noted, "checked": checked, "checked_ms": 1_764_000_000_001, "errors": errors}))
        assert said in root.get("/-/sizes").text
    report.write_text(json.dumps({**noted, "bytes": "5"}))
    shown = root.get("/-/sizes").text
    assert "is no report of columnar backup" in shown
    assert "20261128T010203.004Z" not in shown
    assert "without --backup-report" in WikiClient().signed_in("Root", admin=True).get("/-/sizes").text


def test_no_english_stands_inside_german_sentences(tmp_path: Path) -> None:
    web = WikiClient(language="de", backup_report=tmp_path / "none.json")
    root = web.signed_in("Root", admin=True)
    assert "Noch hat sich keine Sicherung gemeldet." in root.get("/-/sizes").text
    jobs = root.get("/-/jobs").text
    assert "<dd>läuft · " in jobs
    assert "running" not in jobs
    web.wiki.maintenance.states = [replace(one, state="blocked") for one in web.wiki.maintenance.states]
    assert "<dd>aufgehalten · " in root.get("/-/jobs").text
    known = accounts(web)
    account = known.directory.account("Root")
    assert account is not None
    known.keys.issue(account, label="", scopes=["read", "write"], days=7)
    assert "lesen, schreiben · " in root.get("/-/users?name=Root").text
