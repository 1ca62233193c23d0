"""The Thrift 2 service as users run it: a process of its own, its hot modules compiled where they are."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import thriftpy2
from thriftpy2.rpc import make_client

from tests.support.ports import free_port
from tests.support.standalone_store import ENVIRONMENT, StoreProcess

ROOT = Path(__file__).parents[2]
H = thriftpy2.load(str(ROOT / "columnar" / "thrift" / "hbase2.thrift"), module_name="process_hbase2_thrift")
T = b"t"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Any]:
    port = free_port()
    with StoreProcess(tmp_path / "data", "--thrift2-port", str(port)):
        thrift = make_client(H.THBaseService, "127.0.0.1", port, timeout=30_000)
        families = [H.TColumnFamilyDescriptor(name=b"a", maxVersions=3), H.TColumnFamilyDescriptor(name=b"b")]
        thrift.createTable(H.TTableDescriptor(tableName=H.TTableName(qualifier=T), columns=families), [b"m"])
        yield thrift
        thrift.close()


def cell(family: bytes, qualifier: bytes, value: bytes, timestamp: int | None = None) -> Any:
    return H.TColumnValue(family=family, qualifier=qualifier, value=value, timestamp=timestamp)


def test_the_whole_way(client: Any) -> None:
    for stamp in (10, 20, 30, 40):
        cells = [cell(b"a", b"q", b"v%d" % stamp, stamp), cell(b"a", b"z", b"z%d" % stamp, stamp)]
        client.putMultiple(T, [H.TPut(row=row, columnValues=cells) for row in (b"k", b"x")])

    def stamps(row: bytes) -> list[int]:
        column = H.TColumn(family=b"a", qualifier=b"q")
        found = client.get(T, H.TGet(row=row, columns=[column], maxVersions=9))
        return [value.timestamp for value in found.columnValues]

    def delete(row: bytes, kind: int, *columns: Any) -> None:
        client.deleteSingle(T, H.TDelete(row=row, columns=list(columns), deleteType=kind))

    delete(b"k", 0, H.TColumn(family=b"a", qualifier=b"q", timestamp=30))
    assert stamps(b"k") == [40, 20]
    delete(b"k", 0, H.TColumn(family=b"a", qualifier=b"q"), H.TColumn(family=b"a", qualifier=b"q"))
    assert stamps(b"k") == []
    delete(b"x", 3, H.TColumn(family=b"a", timestamp=20))
    assert stamps(b"x") == [40, 30]

    window = {b"a": H.TTimeRange(minStamp=25, maxStamp=35)}
    scan = H.TScan(colFamTimeRangeMap=window, maxVersions=3, limit=1, reversed=True, batchSize=1)
    results = client.getScannerResults(T, scan, 10)
    assert [(r.row, r.columnValues[0].value, r.partial) for r in results] == [
        (b"x", b"v30", True),
        (b"x", b"z30", False),
    ]

    counter = H.TIncrement(row=b"k", columns=[H.TColumnIncrement(family=b"b", qualifier=b"n", amount=3)])
    assert client.increment(T, counter).columnValues[0].value == (3).to_bytes(8, "big")
    then = H.TRowMutations(row=b"k", mutations=[H.TMutation(put=H.TPut(b"k", [cell(b"b", b"q", b"yes")]))])
    assert client.checkAndMutate(T, b"k", b"b", b"n", 2, (3).to_bytes(8, "big"), then) is True
    assert client.checkAndMutate(T, b"k", b"b", b"n", 2, b"other", then) is False
    filtered = H.TGet(row=b"k", filterString=b"QualifierFilter(=, 'binary:q')")
    assert client.get(T, filtered).columnValues[0].value == b"yes"
    with pytest.raises(H.TIOError, match="NoSuchColumnFamilyException"):
        client.get(T, H.TGet(row=b"k", columns=[H.TColumn(family=b"none")]))
    with pytest.raises(H.TIllegalArgument):
        client.getScannerRows(99, 1)


def test_the_ready_line_and_a_port_that_is_taken(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "columnar", "standalone", "--port", "0", "--web-port", "-1"]
    with socket.create_server(("127.0.0.1", 0)) as held:
        taken = str(held.getsockname()[1])
        refused = subprocess.run(
            [*command, "--data", str(tmp_path / "a"), "--thrift2-port", taken],
            capture_output=True,
            text=True,
            env=ENVIRONMENT,
            timeout=60,
            check=False,
        )
    assert refused.returncode == 2
    assert f"cannot listen on 127.0.0.1:{taken}" in refused.stderr.splitlines()[-1]
    assert "choose another with --thrift2-port" in refused.stderr.splitlines()[-1]
    with subprocess.Popen(
        [*command, "--data", str(tmp_path / "b"), "--thrift2-port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=ENVIRONMENT,
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.fullmatch(r"columnar ready store=127\.0\.0\.1:\d+ web=- thrift2=127\.0\.0\.1:(\d+) pid=.*\n", line)
        assert found is not None, line
        thrift = make_client(H.THBaseService, "127.0.0.1", int(found[1]), timeout=30_000)
        assert thrift.getThriftServerType() == 2
        thrift.close()
        process.terminate()
        assert process.wait(60) == 0
