"""A store that kills itself at a step of a change of views: VIEW_STORE_DIES_AT names the step (``ViewChanges.at``).

VIEW_STORE_KEPT_MS says for how long a generation is kept after a swap.
"""

from __future__ import annotations

from tests.support.patched_store import serve  # isort: skip - first: it asks for the sources

import os
import signal

from columnar.master import view_generations
from columnar.master.view_changes import ViewChanges

DIES_AT = "VIEW_STORE_DIES_AT"
KEPT_MS = "VIEW_STORE_KEPT_MS"


def die(step: str) -> None:
    if step == os.environ[DIES_AT]:
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    view_generations.KEPT_MS = int(os.environ[KEPT_MS])  # type: ignore[misc]
    start = ViewChanges.start

    async def started(changes: ViewChanges) -> None:
        changes.at = die
        await start(changes)

    ViewChanges.start = started  # type: ignore[method-assign]
    serve()
