"""Pages that change their place: renamed, deleted, brought back, removed for good.

Reading order: ``journal`` (what is written down before anything is done), ``places`` (the steps on one row), ``mover``
(the protocol), ``trash`` (deleted pages as they are listed), ``hidden`` (single revisions).
"""
