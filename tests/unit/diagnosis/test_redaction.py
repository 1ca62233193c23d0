"""What a support archive keeps of texts, settings and keys, and what it leaves out."""

from __future__ import annotations

import io
import json
import os
import re
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from columnar.config import MemorySettings, StandaloneConfig
from columnar.diagnosis.archive import LeftOut, Part, folder_name, json_part, pack
from columnar.diagnosis.bundle import (
    _SECRET_VARIABLE,
    KNOWN_SETTINGS,
    PATH_VARIABLES,
    PLAIN_VARIABLES,
    known_secrets,
    make_parts,
    program_words,
)
from columnar.diagnosis.facts import CertificateFacts
from columnar.diagnosis.redaction import (
    Redactor,
    redact_attributes,
    redact_environment,
    redact_settings,
)
from columnar.diagnosis.store_answers import StoreAnswers
from columnar.errors import abbreviate
from columnar.roles.store_commands import node, standalone
from columnar.roles.store_process import memory_line
from columnar.settings.option_kinds import Setting, variable_of
from columnar.shell.bundle import bundle
from tests.unit.diagnosis.test_checks import WELL
from wikka_port.commands.serve import serve

WORDS = program_words()
SECRET = "zq7XwSecretive"
REGION = "0123456789abcdef0123456789abcdef"
REDACTOR = Redactor(b"salt", WORDS, ["pages", "s2", "s2.1"], [b"hugo\x00schmidt", b"mm"], [b"hunter2hunter2"])


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (f"region {REGION} of pages cannot be opened by s2", f"region {REGION} of pages cannot be opened by s2"),
        (f"region pages,{SECRET},1700000000000.{REGION}. is closed", f"region pages,~.{REGION}. is closed"),
        (f"row {SECRET} is outside region {REGION}", f"row ~ is outside region {REGION}"),
        ("row 4711 is passed over", "row ~ is passed over"),
        (f"the log of hugo\\x00schmidt and of {SECRET}", "the log of ~ and of ~"),
        (f"cannot read '{SECRET}' of \"the catalogue\"", "cannot read ~ of ~"),
        ("it has not answered for 12 s, at epoch 7, 4111222233334444", "it has not answered for 12 s, at epoch 7, ~"),
        (f"ValueError: {SECRET} | File x, line 3 | {SECRET}", "ValueError: ~ | ~"),
        ("process 4711 ended with status 2", "process 4711 ended with status 2"),
        ("block cache 1.5GiB, write buffers 512MiB", "block cache 1.5GiB, write buffers 512MiB"),
        ("row 512MiB and 41112222MiB, 9.7.2", "row ~ and ~, ~"),
    ],
)  # fmt: skip
def test_texts(text: str, kept: str) -> None:
    assert REDACTOR.redact_text(text) == kept


@given(st.binary(min_size=8, max_size=40))
def test_a_row_key_of_any_bytes_leaves_nothing_but_words_of_the_program(key: bytes) -> None:
    found = REDACTOR.redact_text(f"row {abbreviate(key)} is outside region {REGION}")
    said = found.replace(f"region {REGION}", "region")
    assert all(word.lower() in WORDS or not word.isalnum() for word in said.split())


def test_lines_of_the_log() -> None:
    head = "2026-11-21 09:33:57,670 WARNING columnar.slow: "
    line = f"slow request: scannerGetList took 1432 ms table=pages region={REGION} row={SECRET} rows=5; peer=10.0.0.7:1"
    kept = REDACTOR.redact_log(head + line)
    assert kept.startswith(f"{head}slow request: scannerGetList took 1432 ms table=pages region={REGION} row=~")
    assert SECRET not in kept
    assert REDACTOR.redact_log(f"print of a trigger: {SECRET}") == f"({20 + len(SECRET)} characters left out)"


def test_the_sizes_of_the_memory_line_stay() -> None:
    line = memory_line(StandaloneConfig("/data", memory=MemorySettings(1536 << 20)), 1)
    kept = REDACTOR.redact_text(line)
    sizes = re.findall(r"[\d.]+[KMG]iB", line)
    assert len(sizes) >= 3
    assert re.findall(r"[\d.]+[KMG]iB", kept) == sizes


def test_slow_requests() -> None:
    about = f"table=pages region={REGION} row={SECRET} cells=9 rows=2 cells=4 filter={SECRET}; peer=10.0.0.7:40318"
    assert REDACTOR.redact_slow(about) == {"table": "pages", "region": REGION, "rows": 2, "cells": 4}
    assert REDACTOR.redact_slow(f"table={SECRET}") == {}


def test_keys_are_hashes_that_match_within_one_archive() -> None:
    other = Redactor(b"other salt", WORDS, (), (), ())
    assert REDACTOR.hash_key(b"m") == REDACTOR.hash_key(b"m") != REDACTOR.hash_key(b"n")
    assert REDACTOR.hash_key(b"m") != other.hash_key(b"m"), "or a list of likely keys would find it"
    assert REDACTOR.hash_key(b"") == ""


def test_settings_variables_and_attributes() -> None:
    settings = {
        "data": "/srv", "port": 9090, "unheard_of": SECRET, "pin": 4711,
        "node": {
            "name": "n1", "coordination": f"etcd://u:{SECRET}@h:2379/c", "access": {"password": SECRET},
            "fence_command": f"fence_ipmilan -l admin -p {SECRET} -a 10.0.0.7",
        },
    }  # fmt: skip
    kept = redact_settings(settings, KNOWN_SETTINGS)
    assert SECRET not in json.dumps(kept)
    assert kept["node"] == {
        "name": "n1", "coordination": "etcd://h:2379/c", "access": "(left out)",
        "fence_command": "fence_ipmilan (left out)",
    }  # fmt: skip
    assert (kept["data"], kept["port"], kept["unheard_of"], kept["pin"]) == ("/srv", 9090, "(left out)", "(left out)")
    assert redact_settings({"node": {"limit": 5, "word": SECRET}}, {"node"}) == {
        "node": {"limit": 5, "word": "(left out)"}
    }
    variables = {"COLUMNAR_COORDINATION_PASSWORD": SECRET, "COLUMNAR_COMPILED": "no", "AWS_SECRET": SECRET, "TZ": "UTC"}
    assert redact_environment(variables, PLAIN_VARIABLES) == {
        "COLUMNAR_COMPILED": "no", "COLUMNAR_COORDINATION_PASSWORD": "(left out)", "TZ": "UTC",
    }  # fmt: skip
    assert redact_attributes({"DURABILITY": "SYNC_WAL", SECRET: SECRET}, {"DURABILITY"}) == {
        "DURABILITY": "SYNC_WAL",
        "others_left_out": 1,
    }


@pytest.mark.parametrize(
    ("command", "kept"),
    [
        ("", ""),
        ("/usr/sbin/fence-it", "/usr/sbin/fence-it"),
        ("cephfs --id fence", "cephfs (left out)"),
        (f"  fence\t-p{SECRET}", "fence (left out)"),
        (f"PASSWORD={SECRET} fence", "(left out)"),
        (f"fence<<<{SECRET}", "(left out)"),
        (f"'{SECRET}' x", "(left out)"),
    ],
)
def test_of_a_command_the_program_is_kept(command: str, kept: str) -> None:
    assert redact_settings({"node": {"fence_command": command}}, KNOWN_SETTINGS) == {"node": {"fence_command": kept}}


def test_a_part_with_a_known_secret_is_left_out_as_a_whole() -> None:
    answers = StoreAnswers(metrics=b"columnar_up 1\nhunter2hunter2\n")
    parts, left_out = make_parts(WELL, {}, {}, answers, None, REDACTOR)
    assert "metrics.txt" not in {part.name for part in parts}
    assert LeftOut("metrics.txt", "it had a secret that is known here") in left_out
    assert any(one.what == "log.txt" for one in left_out)


@pytest.mark.parametrize("secret", ['pass"word', "back\\slash", "schlüssel", "tab\tbed", "lone\udcffbyte"])
def test_a_secret_is_found_as_json_writes_it(secret: str) -> None:
    redactor = Redactor(b"salt", WORDS, (), (), [os.fsencode(secret)])
    assert redactor.names_secret(json_part("a", {"x": f"it is {secret}."}, "").data)
    assert redactor.names_secret(json.dumps(f"it is {secret}.", ensure_ascii=False).encode("utf-8", "surrogateescape"))
    assert not redactor.names_secret(json_part("a", {"x": "it is none"}, "").data)


def test_secrets_are_in_files_that_variables_name_and_their_paths_are_none(tmp_path: Path) -> None:
    (tmp_path / "store.key").write_text(f"-----BEGIN PRIVATE KEY-----\n{'A1b2' * 16}\n-----END PRIVATE KEY-----\n")
    (tmp_path / "password").write_text(f"{SECRET}\n")
    paths = {
        "COLUMNAR_TLS_KEY": str(tmp_path / "store.key"),
        "COLUMNAR_COORDINATION_PASSWORD_FILE": str(tmp_path / "password"),
    }
    found = known_secrets(WELL, {}, {**paths, "COLUMNAR_COORDINATION_PASSWORD": "of \udcff bytes"})
    assert {b"A1b2" * 16, SECRET.encode(), b"of \xff bytes"} <= set(found)
    assert not {path.encode() for path in paths.values()} & set(found)
    facts = replace(WELL, certificate=CertificateFacts("store.crt", paths["COLUMNAR_TLS_KEY"]))
    redactor = Redactor(b"salt", WORDS, (), (), found)
    parts, _ = make_parts(facts, {}, paths, StoreAnswers(), None, redactor)
    assert "facts.json" in {part.name for part in parts}


def test_each_variable_of_a_secrets_file_is_known_as_a_path() -> None:
    options = [*node.params, *standalone.params, *bundle.params, *serve.params]
    variables = {variable_of(one.program, one) for one in options if isinstance(one, Setting)}
    assert {name for name in variables if _SECRET_VARIABLE.search(name)} == PATH_VARIABLES


def test_the_archive_says_what_is_in_it() -> None:
    data = pack(1_800_000_000.5, [Part("a.txt", b"abc", "letters")], [LeftOut("b", "why")], {"version": "1"})
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        members = archive.getmembers()
        assert [(one.name, one.mode, one.uname) for one in members] == [
            (f"{folder_name(1_800_000_000)}/MANIFEST.json", 0o600, ""),
            ("columnar-bundle-20270115T080000Z/a.txt", 0o600, ""),
        ]
        manifest = json.load(archive.extractfile(f"{folder_name(1_800_000_000)}/MANIFEST.json"))  # type: ignore[arg-type]
    assert manifest == {
        "made": 1_800_000_000,
        "program": {"version": "1"},
        "parts": [{"name": "a.txt", "bytes": 3, "about": "letters"}],
        "left_out": [{"what": "b", "why": "why"}],
    }
