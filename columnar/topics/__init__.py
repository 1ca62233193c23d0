"""Topics: partitioned logs of record batches, as rows of one table."""
