"""The check of a store, and the repairs that need no guessing."""
