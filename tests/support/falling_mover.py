"""A process that renames a page and dies by kill -9 as soon as a step is done.

python -m tests.support.falling_mover PORT INDEXES STEP NAME NEW
"""

from __future__ import annotations

import os
import signal
import sys

from wikka_port.moving.mover import By
from wikka_port.pages import Wiki


def main(port: str, indexes: str, step: str, name: str, new: str) -> None:
    wiki = Wiki("127.0.0.1", int(port), indexes=indexes)  # type: ignore[arg-type]  # one of both

    def reached(done: str) -> None:
        if done == step:
            os.kill(os.getpid(), signal.SIGKILL)

    wiki.mover.on_step_done = reached
    wiki.mover.rename(name, new, By("Ann", "account", "killed"))


if __name__ == "__main__":
    main(*sys.argv[1:])
