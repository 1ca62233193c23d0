"""Writes of a region: from operations on rows to drafts, batches and change records."""
