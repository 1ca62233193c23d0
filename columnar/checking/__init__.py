"""Whether a store is sound, and what can be repaired without guessing."""
