"""The methods of the Thrift 1 service on rows and scanners, over one region server, by their names."""

from __future__ import annotations

from functools import partial
from typing import Any

from columnar.errors import RegionUnavailable
from columnar.operations.access import retried
from columnar.thrift.reads import ReadMethods, ScanMethods
from columnar.thrift.writes import WriteMethods
from columnar.wire.service import Later
from tests.support.region_house import House


class RowCalls:
    def __init__(self, house: House) -> None:
        operations = house.operations
        self.reads = ReadMethods(operations)
        self.writes = WriteMethods(operations)
        self._parts = (self.reads, self.writes, ScanMethods(operations))
        for info in house.served.regions:
            house.region(info.start)

    def __getattr__(self, name: str) -> Any:
        """Return the method; it waits for unavailable regions as the service does."""
        method = next(getattr(part, name) for part in self._parts if hasattr(part, name))

        def call(ctx: Any, *args: Any) -> Any:
            try:
                return method(ctx, *args)
            except RegionUnavailable as away:
                return retried(partial(method, ctx, *args), away, ctx.has_gone)

        return call


async def answer_of(found: Any) -> Any:
    """Return the answer of a method, and wait for it if necessary."""
    if isinstance(found, Later):
        await found.future
        return found.result
    return await found if hasattr(found, "__await__") else found
