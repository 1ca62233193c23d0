"""Freezes the heap: imported last by the process from which stores are forked, so that no fork's collector reads it."""

import gc

gc.collect()
gc.freeze()
