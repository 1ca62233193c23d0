"""A folder that nodes served: one machine is refused until a person says so, and then has everything."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from columnar.cli import main
from columnar.model.system_tables import SYSTEM_TABLES
from columnar.storage.cluster_file import write_cluster
from columnar.storage.region_folders import RegionFolders
from columnar.storage.rocks import RocksEngine
from tests.proofs.battle import checked
from tests.support.cluster_process import ClusterProcess

ROWS = {b"%02d" % n: b"value %d" % n for n in range(40)}
GENERATION = 3  # of the regions' folders
LEADER = 5  # generation of the catalogue's


def run(*words: str, status: int = 0) -> Any:
    result = CliRunner().invoke(main, [*words, "--json"])
    assert result.exit_code == status, (result.output, result.stderr, result.exception)
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of two servers that were killed, whose regions nodes took over one after the other."""
    folder = tmp_path_factory.mktemp("nodes") / "data"
    with ClusterProcess(folder, 2) as store:
        connection = store.connection()
        connection.create_table(b"t", {"f": {"max_versions": 1}}, splits=[b"10", b"20", b"30"])
        for row, value in ROWS.items():
            connection.table(b"t").put(row, {b"f:q": value})
        connection.close()
        store.kill()
    raise_generations(folder)
    engine = RocksEngine()
    folders = RegionFolders(str(folder / "regions"), engine)
    folders.use_generations(lambda _encoded: GENERATION)
    names = [name for name in os.listdir(folders.root) if name != "meta"]
    for generation in (1, GENERATION):
        for name in names:
            folders.take_over(name, generation, generation)
    folders.take_over("meta", LEADER, LEADER)
    (folder / "regions" / names[0]).mkdir()  # a server that woke
    (folder / "regions" / f"{names[0]}.4.9.new").mkdir()
    (folder / "FORMAT").write_text("columnar-data 9\n")
    write_cluster(str(folder), (folder / "cluster-id").read_text().strip(), "etcd://h1:2379/wiki")
    return folder


def raise_generations(folder: Path) -> None:
    """Write the generation into the rows of owners."""
    store = RocksEngine().open_store(str(folder / "regions" / "meta"), frozenset())
    batch, count = store.batch(), 0
    for space in store.spaces:
        for key, value in store.scan(space, b"", b"\xff" * 9):
            if b'"generation": 0' in value:
                batch.put(space, key, value.replace(b'"generation": 0', b'"generation": %d' % GENERATION))
                count += 1
    store.write_batch(batch)
    store.sync()
    store.close()
    assert count >= 4


@pytest.fixture
def data(template: Path, tmp_path: Path) -> Path:
    shutil.copytree(template, tmp_path / "data")
    return tmp_path / "data"


@pytest.mark.parametrize("servers", [(), ("--servers", "2")], ids=["one process", "two servers"])
def test_one_machine_is_refused_while_the_folder_belongs_to_nodes(data: Path, servers: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "columnar.cli", "standalone", "--data", str(data), "--port", "0", *servers]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode != 0
    assert f"the data folder {data} belongs to the nodes of a cluster, which etcd://h1:2379/wiki" in ended.stderr
    assert f"stop every node, then remove the file {data}/CLUSTER" in ended.stderr
    assert any(name.endswith(f".{GENERATION}") for name in os.listdir(data / "regions"))


@pytest.mark.parametrize("servers", [1, 2])
def test_one_machine_has_all_once_the_file_is_removed(data: Path, servers: int) -> None:
    (data / "CLUSTER").unlink()
    with ClusterProcess(data, servers) as store:
        connection = store.connection()
        assert {row: cells[b"f:q"] for row, cells in connection.table(b"t").scan()} == ROWS
        connection.table(b"t").put(b"99", {b"f:q": b"new"})
        connection.close()
        assert (data / "FORMAT").read_text() == "columnar-data 8\n"
        assert not [name for name in os.listdir(data / "regions") if "." in name], "an older program knows the names"
    assert run("check", "--data", str(data))["errors"] == 0


def test_a_check_reads_the_newest_generations_and_says_what_is_older(data: Path) -> None:
    found = run("check", "--data", str(data))
    assert found["errors"] == 0
    assert found["looked_at"]["regions"] == 4
    older = [one for one in found["findings"] if one["text"] == "an older generation of a region's folder"]
    regions = sum(name.endswith(f".{GENERATION}") for name in os.listdir(data / "regions"))
    assert regions == 4 + len(SYSTEM_TABLES)
    assert len(older) == 2 * regions + 1 + 2, "two sources of each, the catalogue's, and what a server made anew"
    assert found["findings"] == older
    assert checked(data) == [], "a proof calls none of them a fault"


def test_a_check_finds_a_folder_of_a_higher_generation_than_the_catalogue_names(data: Path) -> None:
    name = next(name for name in os.listdir(data / "regions") if name.endswith(f".{GENERATION}"))
    (data / "regions" / name).rename(data / "regions" / f"{name.partition('.')[0]}.7")
    found = run("check", "--data", str(data), status=1)
    said = [one["text"] for one in found["findings"] if one["severity"] == "error"]
    assert said == [
        f"its folder {name.partition('.')[0]}.7 is of a higher generation than the catalogue's, {GENERATION}: "
        "no server opens it"
    ]
    repaired = run("repair", "--data", str(data))
    assert repaired["errors_after"] == 0


def test_a_repair_makes_the_newest_generations_the_only_folders_and_removes_nothing(data: Path) -> None:
    """Also of a folder that lost its ``FORMAT``."""
    before = len(os.listdir(data / "regions"))
    (data / "FORMAT").unlink()
    result = run("repair", "--data", str(data))
    assert "FORMAT: written anew, as it was missing" in result["done"]
    regions = 5 + len(SYSTEM_TABLES)
    assert f"the newest folders of {regions} regions were renamed: nodes had replaced older ones" in result["done"]
    left = os.listdir(data / "regions")
    assert not [name for name in left if "." in name]
    assert len(os.listdir(data / "lost+found")) == before - len(left)
    assert (data / "CLUSTER").exists(), "it is the nodes' folder as before"
    assert run("check", "--data", str(data))["errors"] == 0
    (data / "CLUSTER").unlink()
    with ClusterProcess(data, 1) as store:
        connection = store.connection()
        assert {row: cells[b"f:q"] for row, cells in connection.table(b"t").scan()} == ROWS
        connection.close()
