"""Replacement of regions by successors: splits, merges and copies."""
