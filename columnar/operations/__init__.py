"""Operations on tables in the model's terms: above the regions, which store rows, below the services, which translate.

    access         tables and the regions of their rows: finds regions, admits calls, retries, charges quotas
    throttle       (pure) quotas of tables
    reads          reads of rows by name: one row at once, several in steps
    wide_reads     a row that costs more than one step
    row_plan       the batches of a call's rows, checked before the first write
    writes         mutations of rows, also under conditions: one row at once, batches in steps
    group_calls    a group of rows: read as of one moment, written as one step
    scanners       a place in a table that moves on with each call
    scanner_table  scanners with their filters, as calls open them, and the open scanners by id
    row_deletes    deletes of a range of rows
    descriptions   tables and their regions: names, state, sizes; flushes and compactions on request
    slow_log       a line for each slow request

    distributed_calls          calls over several servers, at their gateway
    operation_peer_handlers    their requests, at the owners of the rows

A caller names its table once (``TableAccess.table``), translates with the schema that it gets, and passes rows,
``ReadSpec``, ``ScanSpec`` or ``RowMutation``.  The caller gets values, or ``wire.service.Later`` if the answer must
wait for an fsync: no task is made for that, so the hot path has no object of its own for these operations.

If a region is unavailable, or not open yet, an operation on a single row raises RegionUnavailable before it has any
effect, and the caller retries it (``access.retried``).  If a different server owns the region, such an operation raises
RegionNotLocal.  Operations on several rows wait by themselves and continue at the row whose region was unavailable.

Knows nothing of Thrift's services, except the forms of rows and values in their replies.
"""
