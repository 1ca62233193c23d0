"""Pages that change their place: renamed, deleted, brought back, removed for good.

Reading order: ``journal`` (what is written down before anything is done; deleted pages), ``steps`` (the steps on one
row), ``mover`` (the protocol, and hidden revisions), ``jobs`` (work on many pages), ``runner``.
"""
