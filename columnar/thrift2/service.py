"""The Thrift 2 service put together, over the operations that stand behind the Thrift 1 service."""

from __future__ import annotations

from columnar.regions.scanners import ScannerTable
from columnar.regions.server import RegionServer
from columnar.thrift.other_door import OtherDoor
from columnar.thrift.rows import RowMethods
from columnar.thrift.service import ThriftService
from columnar.thrift.slow_log import SlowLog
from columnar.thrift2.errors import to_wire
from columnar.thrift2.rows import RowMethods2
from columnar.thrift2.scans import ScanMethods2
from columnar.thrift2.tables import TableMethods2
from columnar.thrift2.unsupported import UnsupportedMethods
from columnar.wire.idl2 import SERVICE2


def thrift2_service(
    server: RegionServer,
    scanners: ScannerTable,
    slow_log: SlowLog,
    rows: RowMethods,
    tables: TableMethods2,
    thrift1: OtherDoor,
) -> ThriftService:
    return ThriftService(
        scanners,
        slow_log,
        RowMethods2(server, rows),
        ScanMethods2(server, scanners),
        tables,
        UnsupportedMethods(),
        definition=SERVICE2,
        to_wire=to_wire,
        other_door=thrift1,
    )
