"""``--memory``: a small store keeps its bounds, says what is in use, and refuses what cannot fit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from columnar.client.errors import IOError as HBaseError
from columnar.config import MemorySettings
from columnar.limits import MIB
from columnar.memory_plan import least_bytes, planned
from tests.support.cluster_process import ClusterProcess
from tests.support.control_group import ControlGroup, why_no_groups
from tests.support.deep import IS_DEEP
from tests.support.serving import Serving
from tests.support.standalone_store import ENVIRONMENT, PROGRAM

SIZE = 300 * MIB


def parts_of(connection: Any) -> dict[str, Any]:
    return {part.name.decode(): part for part in connection.status().memory}


def test_a_store_has_the_bounds_of_its_plan_and_says_what_is_in_use(tmp_path: Path) -> None:
    store = Serving(tmp_path / "data", memory=MemorySettings(SIZE)).start()
    try:
        plan = planned(SIZE, has_triggers=True)
        connection = store.connect()
        connection.create_table("t", {"f": {}})
        table = connection.table("t")
        for row in range(200):
            table.put(b"%03d" % row, {b"f:a": os.urandom(20_000)})
        parts = parts_of(connection)
        assert {name: part.limitBytes for name, part in parts.items()} == {
            name: most for name, most in plan.bounds.items() if not name.startswith("peer")
        }
        assert parts["write_buffers"].usedBytes > 200 * 20_000
        assert parts["regions"].usedBytes > 0
        assert parts["block_cache"].usedBytes < MIB
        connection.admin.flush(b"t")
        assert all(len(row) == 1 for _, row in table.scan())
        cached = parts_of(connection)["block_cache"].usedBytes
        assert 2 * MIB < cached <= plan.block_cache
    finally:
        store.stop()


def test_the_largest_cell_fits_and_a_request_beyond_the_bound_is_refused(tmp_path: Path) -> None:
    store = Serving(tmp_path / "data", memory=MemorySettings(least_bytes(has_triggers=True))).start()
    try:
        connection = store.connect()
        connection.create_table("t", {"f": {}})
        table = connection.table("t")
        value = os.urandom(10 * MIB - 3)
        table.put(b"large", {b"f:a": value})
        assert table.row(b"large") == {b"f:a": value}
        with pytest.raises(HBaseError, match="RequestTooBig"):
            table.put(b"two", {b"f:a": value[: 8 * MIB], b"f:b": value[: 8 * MIB]})
        assert table.row(b"two") == {}
        assert table.row(b"large") == {b"f:a": value}, "the connection lives"
    finally:
        store.stop()


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--memory", "100MiB"], "--memory 100MiB is too little for one process: at least"),
        (["--memory", "500MiB", "--servers", "3"], "--memory 500MiB is too little for a node with 3 servers: at least"),
        (["--memory", "2 GiBs"], "write for example 512MiB or 2GiB"),
    ],
)
def test_what_is_too_little_ends_the_start_with_one_line(tmp_path: Path, flags: list[str], said: str) -> None:
    command = [*PROGRAM, "--data", str(tmp_path / "data"), "--port", "0", "--web-port", "-1", *flags]
    ended = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert said in ended.stderr.replace("\n", " ")
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "data").exists(), "a refusal changes nothing"


def test_servers_share_it_and_the_status_has_their_sum(tmp_path: Path) -> None:
    with ClusterProcess(tmp_path / "data", 2, "--web-port", "0", "--memory", "1GiB") as cluster:
        plan = planned(1024 * MIB, 2)
        connection = cluster.connection()
        parts = {name: part.limitBytes for name, part in parts_of(connection).items()}
        assert parts["block_cache"] == 2 * plan.block_cache
        assert parts["requests"] == 2 * plan.requests
        assert parts["peer_calls"] == 2 * plan.peer_calls > 0
        connection.close()
        with urllib.request.urlopen(f"{cluster.web}metrics") as page:
            text = page.read().decode()
        name = 'columnar_memory_limit_bytes{part="block_cache",server="s1"} '
        (value,) = [line.removeprefix(name) for line in text.splitlines() if line.startswith(name)]
        assert float(value) == plan.block_cache
        assert "memory: --memory 1GiB, of " in cluster.log.read_text()


@pytest.mark.skipif(not IS_DEEP, reason="a store is loaded within a control group: make test-deep runs it")
def test_a_store_in_a_small_control_group_is_not_ended_under_load() -> None:
    if why := why_no_groups():
        pytest.skip(why)
    command = [sys.executable, "-m", "tests.measure.memory", "load", "--limits", "384MiB", "--minutes", "0.3"]
    ended = subprocess.run([*command, "--rows", "20000"], env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "killed for want of memory: 0" in ended.stdout


@pytest.mark.skipif(bool(why_no_groups()), reason=why_no_groups() or "-")
def test_without_memory_the_limit_of_the_group_decides(tmp_path: Path) -> None:
    with ControlGroup(4 * 1024 * MIB) as group:
        command = group.command([*PROGRAM, "--data", str(tmp_path / "data"), "--port", "0", "--web-port", "-1"])
        process = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stderr is not None
        address = process.stdout.readline().split("store=")[1].split()[0]
        status = [sys.executable, "-m", "columnar", "status", "--json", "--store", address]
        said = subprocess.run(status, env=ENVIRONMENT, capture_output=True, text=True, check=True).stdout
        process.terminate()
        log = process.communicate()[1]
    limit = json.loads(said)["memory"]["block_cache"]["limit_bytes"]
    assert limit == planned(1024 * MIB, is_ordered=False).block_cache
    assert "4GiB; block cache" in log
