"""Experiments: systems, loads, their order and their tables, each a file; see docs/experiments.md."""
