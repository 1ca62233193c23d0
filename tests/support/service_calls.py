"""The methods of the Thrift 1 service on rows and scanners, over one house, by their names."""

from __future__ import annotations

from typing import Any

from columnar.thrift.checks import CheckMethods
from columnar.thrift.reads import ReadMethods
from columnar.thrift.scans import ScanMethods
from columnar.thrift.writes import WriteMethods
from tests.support.region_house import House


class RowCalls:
    def __init__(self, house: House) -> None:
        operations = house.operations
        self.reads = ReadMethods(operations)
        self.writes = WriteMethods(operations)
        self._parts = (self.reads, self.writes, CheckMethods(operations), ScanMethods(operations))

    def __getattr__(self, name: str) -> Any:
        return next(getattr(part, name) for part in self._parts if hasattr(part, name))
