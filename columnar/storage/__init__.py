"""The storage layer: an ordered store of bytes with families, atomic batches and group commit."""
