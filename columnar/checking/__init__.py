"""Whether a store is sound, and what can be mended without guessing."""
