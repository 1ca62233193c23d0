"""``columnar bundle`` of a store with secrets in every place: none is in the archive."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from columnar.cli import main
from columnar.client import Connection, RegionAdmin
from columnar.client.errors import IOError
from columnar.wire.idl import hbase
from tests.support.certificates import Authority
from tests.support.ports import free_port
from tests.support.standalone_store import StoreProcess

NEEDS_PROC = pytest.mark.skipif(not Path("/proc/locks").exists(), reason="not Linux")
VALUE, ROW, SPLIT, QUALIFIER, ATTRIBUTE, PASSWORD, TOKEN = (
    f"{place}Zx9Q{number}wvjK" for number, place in enumerate(("val", "row", "spl", "qua", "att", "pas", "tok"))
)
SECRETS = (VALUE, ROW, SPLIT, QUALIFIER, ATTRIBUTE, PASSWORD, TOKEN)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of an archive of a store that has secrets in rows, attributes, settings, logs and requests."""
    place = tmp_path_factory.mktemp("bundle")
    authority = Authority(place, "authority")
    pair = authority.sign("store")
    flags = ["--tls-cert", pair.cert, "--tls-key", pair.key, "--tls-client-ca", authority.ca]
    flags += ["--slow-ms", "1", "--web-port", str(free_port())]
    store = StoreProcess(place / "data", *flags, is_forked=False)
    store.environment |= {"COLUMNAR_COORDINATION_PASSWORD": PASSWORD, "OTHER_TOKEN": TOKEN}
    client = authority.sign("client")
    with store:
        connection = Connection("127.0.0.1", store.port, tls=authority.client(client))
        fill(connection)
        connection.close()
        with store.log.open("a") as log:  # as a trigger prints, and as a message names a row
            log.write(f"{VALUE} printed\n2026-11-21 09:33:57,670 ERROR columnar.x: no {ROW} in | Error: {VALUE}\n")
        output = place / "case.tar.gz"
        words = ["bundle", "--data", str(place / "data"), "--store", f"127.0.0.1:{store.port}", "--output", str(output)]
        words += ["--tls-ca", authority.ca, "--tls-client-cert", client.cert, "--tls-client-key", client.key]
        done = CliRunner().invoke(main, words, env={"SOME_API_KEY": TOKEN})
        assert done.exit_code == 0, done.output
        assert CliRunner().invoke(main, words).exit_code == 2, "an archive is never overwritten"
    written = store.log.read_text()
    assert all(secret in written for secret in (ROW, SPLIT, VALUE)), "the log has what the archive must not have"
    assert output.stat().st_mode & 0o777 == 0o600
    with tarfile.open(output) as opened:
        found = {
            member.name.partition("/")[2]: opened.extractfile(member).read()  # type: ignore[union-attr]
            for member in opened.getmembers()
        }
    found[":key"] = Path(pair.key).read_bytes()
    return found


def fill(connection: Connection) -> None:
    attributes = {"DURABILITY": "SYNC_WAL", "OWNER": ATTRIBUTE}
    connection.create_table("pages", {"f": {}}, attributes=attributes)
    table = connection.table("pages")
    for row in (ROW, SPLIT):  # few slow requests: the log has eight in a second; their lines name the row
        change = hbase.Mutation(column=f"f:{QUALIFIER}".encode(), value=VALUE.encode() * 100_000)
        connection.client.mutateRow(b"pages", row.encode(), [change], {})
    RegionAdmin(connection).split(b"pages", SPLIT.encode())
    list(table.scan(filter=f"SingleColumnValueFilter('f','{QUALIFIER}',=,'binary:{VALUE}')".encode()))
    with pytest.raises(IOError):
        connection.table(ROW).put(ROW.encode(), {b"f:a": b"1"})


def value(archive: dict[str, bytes], name: str) -> Any:
    return json.loads(archive[name])


@NEEDS_PROC
def test_no_secret_is_in_the_archive(archive: dict[str, bytes]) -> None:
    lines = [line.encode() for line in archive[":key"].decode().splitlines() if len(line) > 30]
    assert lines
    for name, data in archive.items():
        if name != ":key":
            assert [secret for secret in SECRETS if secret.encode() in data] == [], name
            assert [line for line in lines if line in data] == [], name


@NEEDS_PROC
def test_the_archive_has_what_helps(archive: dict[str, bytes]) -> None:
    assert set(archive) - {":key"} == {
        "MANIFEST.json", "doctor.json", "facts.json", "settings.json", "status.json", "servers.json", "regions.json",
        "transitions.json", "decisions.json", "metrics.txt", "slow.json", "log.txt",
    }  # fmt: skip
    assert not any(one["level"] == "problem" for one in value(archive, "doctor.json"))
    (pages,) = [one for one in value(archive, "status.json")["tables"] if one["name"] == "pages"]
    assert pages["attributes"]["DURABILITY"] == "SYNC_WAL"
    regions = value(archive, "regions.json")["pages"]
    assert [one["end"] for one in regions[:-1]] == [one["start"] for one in regions[1:]], "neighbours can be matched"
    assert b"columnar_build_info{" in archive["metrics.txt"]
    slow = value(archive, "slow.json")
    assert slow
    assert all(one["took_ms"] >= 1 and "row" not in one for one in slow)
    settings = value(archive, "settings.json")
    assert settings["settings"]["tls_cert"].endswith(".crt")
    assert settings["environment"]["COLUMNAR_COORDINATION_PASSWORD"] == "(left out)"
    assert "hot modules: " in archive["log.txt"].decode()
    assert "columnar.slow: slow request: " in archive["log.txt"].decode()


@NEEDS_PROC
def test_the_manifest_names_what_is_left_out(archive: dict[str, bytes]) -> None:
    manifest = value(archive, "MANIFEST.json")
    assert {one["name"] for one in manifest["parts"]} == set(archive) - {":key", "MANIFEST.json"}
    assert "values of cells, row keys, columns of rows" in {one["what"] for one in manifest["left_out"]}


def test_without_a_store_there_is_an_archive_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["bundle", "--data", str(tmp_path / "none"), "--store", f"127.0.0.1:{free_port()}", "--json"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    with tarfile.open(json.loads(done.stdout)["file"]) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
        manifest = json.load(opened.extractfile(next(one for one in opened.getmembers() if "MANIFEST" in one.name)))  # type: ignore[arg-type]
    assert names == {"MANIFEST.json", "doctor.json", "facts.json", "settings.json"}
    assert {"what": "status", "why": "no answer: TTransportException"} in manifest["left_out"] or any(
        one["what"] == "store" for one in manifest["left_out"]
    )
