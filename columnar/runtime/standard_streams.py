"""Standard streams that are closed: opened on the null device, before the process opens anything else.

Else the next file or socket would get the number 0, 1 or 2: output would be written into it, and libuv, which holds
that number for a standard stream, ends the process when it is closed.
"""

from __future__ import annotations

import os
import sys


def open_closed_streams() -> None:
    """Call first of all in a process; open streams stay as they are."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            found = os.open(os.devnull, os.O_RDONLY if number == 0 else os.O_WRONLY)
            if found != number:
                os.dup2(found, number)
                os.close(found)
            os.set_inheritable(number, True)
    for name, number, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, closefd=False))
