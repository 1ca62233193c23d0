"""What the words of the store mean: cells, mutations, schemas, scans, filters.  Pure."""
