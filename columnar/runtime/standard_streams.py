"""Opens closed standard streams on the null device, before the process opens any other file.

Otherwise the next file or socket would get the descriptor 0, 1 or 2.  Output would be written into it, and libuv, which
takes that descriptor for a standard stream, would end the process when it is closed.
"""

from __future__ import annotations

import os
import sys


def open_closed_streams() -> None:
    """Open the closed streams, and leave open streams unchanged.  Must be called first in a process."""
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
