"""Standard streams that are closed: opened on the null device, before the process opens anything else.

Else the next socket or file gets the number 0, 1 or 2: output would be written into it, and libuv, which holds that
number for a standard stream, aborts the process.
"""

from __future__ import annotations

import os
import sys


def open_closed_streams() -> None:
    """Call first of all in a process; open streams stay as they are."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            found = os.open(os.devnull, os.O_RDONLY if number == 0 else os.O_WRONLY)
            if found != number:
                os.dup2(found, number)
                os.close(found)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, closefd=False))
