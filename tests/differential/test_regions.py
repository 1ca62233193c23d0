"""One region or several: every answer is the same, scans and filters in both directions among them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from thriftpy2.protocol.cybin import TCyBinaryProtocolFactory
from thriftpy2.rpc import make_client
from thriftpy2.transport import TCyBufferedTransportFactory

from columnar.wire.idl import SERVICE, columnar
from tests.differential.answers import Answer
from tests.differential.calls import Call
from tests.differential.comparison import compare
from tests.differential.endpoint import Endpoint
from tests.differential.generator import Generator
from tests.support.standalone_store import StoreProcess

SPLITS = [b"\x00\x00", b"a", b"a\x00", b"r03", b"r07", b"r10", b"row7", b"\xff"]


class SplitTables:
    """An endpoint whose tables are made of many regions."""

    def __init__(self, port: int, prefix: bytes) -> None:
        self._endpoint = Endpoint("127.0.0.1", port, prefix)
        self._admin: Any = make_client(
            SERVICE, "127.0.0.1", port, proto_factory=TCyBinaryProtocolFactory(decode_response=False),
            trans_factory=TCyBufferedTransportFactory(),
        )  # fmt: skip

    def run(self, call: Call) -> Answer:
        if call.kind != "tables" or call.method != "createTable":
            return self._endpoint.run(call)
        name, families = call.args
        options = []
        for family in families:
            ttl = family["timeToLive"]
            kept = ttl if 0 < ttl < 2**31 - 1 else None
            options.append(columnar.FamilyOptions(family["name"], family["maxVersions"], kept))
        self._admin.columnarCreateTable(name, options, {}, SPLITS)
        return ["ok", None]

    def close(self) -> None:
        self._endpoint.close()
        self._admin.close()


def test_one_region_and_nine_answer_alike(tmp_path: Path) -> None:
    seed, prefix = 21, b"d_"
    print(f"seed {seed}")
    looks = ("getTableRegions", "getColumnDescriptors", "getRegionInfo")
    with StoreProcess(tmp_path / "a") as one, StoreProcess(tmp_path / "b") as other:
        whole, split = Endpoint("127.0.0.1", one.port, prefix), SplitTables(other.port, prefix)
        calls = (call for call in Generator(seed, prefix).calls(1500) if call.method not in looks)
        found = compare(calls, whole, split, strict=True)
        whole.close()
        split.close()
    assert not found.differences, "\n".join(map(str, found.differences))
    assert found.calls["scan"] > 300
