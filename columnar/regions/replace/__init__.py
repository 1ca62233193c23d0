"""Regions in the place of others: splits, merges and copies."""
