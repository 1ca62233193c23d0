"""Operations on tables in the model's terms: above the regions, which hold rows, below the services, which translate.

    access        tables and the regions of their rows: finds, admits, retries, accounts for what was done
    throttle      (pure) quotas of tables
    reads         rows by name: one, or several in steps
    writes        mutations of rows, checks among them: one, or batches in steps
    scanners      a place in a table that moves on with each call; the table of the open ones
    scans         scanners with their filters, as a call opens them
    row_deletes   a range of rows
    descriptions  tables and their regions: names, state, sizes
    region_rows   the rows of one region, for the server itself
    upkeep        flushes and compactions that a person asks for
    retries       a call whose region is unavailable for a moment
    slow_log      a line for each slow request

A caller names its table once (``TableAccess.table``), translates with the schema that it gets, and hands over rows,
``ReadSpec``, ``ScanSpec`` or ``RowMutation``.  It gets values back, or ``wire.service.Later`` where the answer must
wait for an fsync: no task is made for that, so the hot path has no object of its own for these operations.

A single row whose region is unavailable, or not open yet, raises RegionUnavailable before anything was done: the caller
begins the call anew (``retries``); RegionNotLocal, where another server owns it.  Operations on several rows wait by
themselves and continue at the row whose region was away.

Knows nothing of Thrift, its structs, or how an answer is packed.
"""
