"""(pure) The values of the store: cells, mutations, schemas, scans, filters."""
