"""Operations on tables in the model's terms: above the regions, which store rows, below the services, which translate.

    access        tables and the regions of their rows: finds, admits, retries, charges quotas
    throttle      (pure) quotas of tables
    reads         rows by name: one, or several in steps
    writes        mutations of rows, checks among them: one, or batches in steps
    scanners      a place in a table that moves on with each call; the table of the open ones
    scans         scanners with their filters, as a call opens them
    row_deletes   a range of rows
    descriptions  tables and their regions: names, state, sizes; flushes and compactions on request
    region_rows   the rows of one region, for the server itself
    slow_log      a line for each slow request

A caller names its table once (``TableAccess.table``), translates with the schema that it gets, and passes rows,
``ReadSpec``, ``ScanSpec`` or ``RowMutation``.  It gets values, or ``wire.service.Later`` if the answer must
wait for an fsync: no task is made for that, so the hot path has no object of its own for these operations.

An operation on a single row whose region is unavailable, or not open yet, raises RegionUnavailable before it has any
effect: the caller retries it (``access.retried``); RegionNotLocal if another server owns the region.  Operations on
several rows wait by themselves and continue at the row whose region was unavailable.

Knows nothing of Thrift, its structs, and the packing of answers.
"""
