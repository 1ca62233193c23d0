"""Reads of a region: from stored pairs to the cells that a reader sees."""
