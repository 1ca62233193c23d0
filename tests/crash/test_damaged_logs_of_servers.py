"""A data folder whose dead servers left damaged logs: the start, the messages, and the command that repairs it."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from columnar.cli import main as columnar
from columnar.client import ClusterAdmin
from columnar.client.errors import IOError
from columnar.storage.server_folders import LOGGED
from tests.proofs.dead_server_damage import PARTS, TABLE, Killed, killed_store, lose_power
from tests.support.cluster_process import ClusterProcess, until


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Killed:
    return killed_store(tmp_path_factory.mktemp("killed") / "data", 0.4)


def copy_of(whole: Killed, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole.folder, tmp_path / "data"))


def used_servers(data: Path) -> list[Path]:
    """Return the folders of servers that left batches in their logs."""
    found = sorted(one.parent.parent for one in (data / "servers").glob("*/log/*.segment"))
    assert all((one / LOGGED).exists() for one in found)
    return found


def command_in(text: str) -> list[str]:
    found = re.search(r"'columnar (repair --data [^']+)'", text)
    assert found is not None, text
    return shlex.split(found[1])


def refusal_of_a_start(data: Path, servers: int) -> str:
    store = ClusterProcess(data, servers)
    try:
        with pytest.raises(AssertionError, match="it did not start"):
            store.start()
    finally:
        store.kill()
    return store.log.read_text()


def rows_of(store: ClusterProcess) -> tuple[set[bytes], list[str]]:
    """Return the rows that are served, and the reasons for the others."""
    rows, reasons = set[bytes](), []
    connection = store.connection()
    for part in PARTS:
        try:
            rows |= {row for row, _ in connection.table(TABLE).scan(row_prefix=part)}
        except IOError as refusal:
            reasons.append(str(refusal))
    connection.close()
    return rows, reasons


def test_a_server_whose_folder_is_gone_closes_its_regions_until_the_repair(whole: Killed, tmp_path: Path) -> None:
    """Such a log counted as empty once, and acknowledged rows were lost silently."""
    data = copy_of(whole, tmp_path)
    server = used_servers(data)[0]
    shutil.move(server, tmp_path / "aside")
    assert str(server) in refusal_of_a_start(data, 1)

    with ClusterProcess(data, 3) as store:
        connection = store.connection()
        admin = ClusterAdmin(connection)
        until(lambda: all(one.kind == "failed" for one in admin.transitions()))
        rows, reasons = rows_of(store)
        assert reasons
        assert len(reasons) < len(PARTS), "the other regions are served"
        assert all(str(server) in reason for reason in reasons)
        assert {row for row in whole.rows if row not in rows} == {
            row for row in whole.rows if row[:1] not in {one[:1] for one in rows}
        }
        online = CliRunner().invoke(columnar, ["check", "--store", f"127.0.0.1:{store.port}"])
        assert online.exit_code == 1, online.output
        assert str(server) in online.output
        connection.close()
        assert store.stop() == 0

    offline = CliRunner().invoke(columnar, ["check", "--data", str(data)])
    assert offline.exit_code == 1, offline.output
    assert str(server) in offline.output
    command = command_in(reasons[0])
    assert command == command_in(offline.output)
    said = CliRunner().invoke(columnar, command)
    assert said.exit_code == 1, said.output
    assert f"the log of server {server.name}" in said.output
    assert CliRunner().invoke(columnar, command).exit_code == 0
    with ClusterProcess(data, 3) as store:
        assert rows_of(store) == (whole.rows, []), "the processes alone were killed: the regions' own logs have it all"
        assert store.stop() == 0


def test_a_folder_that_is_put_back_is_taken_up_by_the_running_store(whole: Killed, tmp_path: Path) -> None:
    data = copy_of(whole, tmp_path)
    server = used_servers(data)[0]
    shutil.move(server, tmp_path / "aside")
    with ClusterProcess(data, 3) as store:
        connection = store.connection()
        admin = ClusterAdmin(connection)
        until(lambda: all(one.kind == "failed" for one in admin.transitions()))
        failed = [one.encoded_name for one in admin.transitions()]
        assert failed
        shutil.move(tmp_path / "aside", server)
        for one in failed:
            admin.assign(one.encode())
        assert rows_of(store) == (whole.rows, [])
        connection.close()
        assert store.stop() == 0


def test_a_damaged_log_of_one_process_is_salvaged_by_the_command_that_the_start_names(
    whole: Killed, tmp_path: Path
) -> None:
    """One process takes over the folder; then its own log, ``server-log``, is damaged."""
    data = copy_of(whole, tmp_path)
    log = data / "server-log"
    log.mkdir()
    for name in ("run", "SYNCED"):
        shutil.copy(used_servers(data)[0] / "log" / name, log)
    segment = next((used_servers(data)[0] / "log").glob("*.segment"))
    held = bytearray(segment.read_bytes())
    held[len(held) // 2] ^= 1
    (log / segment.name).write_bytes(held)
    refusal = refusal_of_a_start(data, 1)
    assert str(log / segment.name) in refusal
    said = CliRunner().invoke(columnar, command_in(refusal))
    assert said.exit_code == 1, said.output
    assert "cannot be read" in said.output
    assert not log.exists() or not list(log.glob("*.segment"))
    with ClusterProcess(data, 1) as store:
        assert rows_of(store) == (whole.rows, [])
        assert store.stop() == 0


def test_a_restored_backup_of_servers_starts(whole: Killed, tmp_path: Path) -> None:
    """The backup's catalogue names servers whose logs were not saved, as the copies have all of their batches."""
    data, backups = copy_of(whole, tmp_path), tmp_path / "backups"
    with ClusterProcess(data, 3) as store:
        saved = CliRunner().invoke(columnar, ["backup", str(backups), "--store", f"127.0.0.1:{store.port}"])
        assert saved.exit_code == 0, saved.output
    for servers in (3, 1):
        target = tmp_path / f"restored-{servers}"
        said = CliRunner().invoke(columnar, ["restore-backup", str(backups), "--data", str(target)])
        assert said.exit_code == 0, said.output
        with ClusterProcess(target, servers) as store:
            assert rows_of(store) == (whole.rows, [])
            assert store.stop() == 0


@pytest.mark.parametrize("has_power_failed", [False, True])
def test_a_damaged_region_is_saved_with_what_the_log_of_its_dead_server_has(
    whole: Killed, tmp_path: Path, has_power_failed: bool
) -> None:
    """Such a repair was refused once, because the salvaged region would have lacked the log."""
    data = copy_of(whole, tmp_path)
    if has_power_failed:
        lose_power(data)
    regions = [one for one in (data / "regions").iterdir() if one.name != "meta" and (one / "CURRENT").exists()]
    spoiled = max(regions, key=lambda one: sum(path.stat().st_size for path in one.glob("*.log")))
    (spoiled / "CURRENT").unlink()
    with ClusterProcess(data, 3) as store:
        connection = store.connection()
        admin = ClusterAdmin(connection)
        until(lambda: [one.encoded_name for one in admin.transitions() if one.kind == "failed"] == [spoiled.name])
        (why,) = [one.why for one in admin.transitions() if one.kind == "failed"]
        connection.close()
        assert store.stop() == 0
    said = CliRunner().invoke(columnar, command_in(why))
    assert said.exit_code == 1, said.output
    assert f"{spoiled.name}: " in said.output
    with ClusterProcess(data, 3) as store:
        rows, reasons = rows_of(store)
        assert reasons == []
        assert rows == whole.rows, said.output
        assert store.stop() == 0
