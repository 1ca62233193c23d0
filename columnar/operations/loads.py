"""Ingestion of rows as sorted files, into their region on this or another server."""

from __future__ import annotations

from columnar.errors import RegionNotLocal
from columnar.operations.access import TableAccess
from columnar.regions.life.retry import retry_until_ready
from columnar.regions.tables import ServedTable
from columnar.regions.write.ingestion import IncomingRows, ingest


async def ingest_rows(access: TableAccess, served: ServedTable, incoming: IncomingRows) -> bool:
    """As ``regions.ingestion.ingest``; OutcomeUnknown, after which the same load may be begun again."""
    served.schema.check_written_by()
    try:
        region = await retry_until_ready(lambda: access.region_for(access.again(served), incoming.first))
    except RegionNotLocal as error:
        return await access.remote(error).ingest(served, incoming)
    return await ingest(region, incoming)
