"""(pure) What can be wrong with bytes from the network, classed by what follows from it.

Short        nothing is wrong yet: the message goes on after the bytes at hand
Malformed    no message can be found here any more; the connection is answered and closed
Refused      the message is sound but over a bound: once its end is found it is answered, and
             the connection lives
"""

from __future__ import annotations

from columnar.errors import ColumnarError


class Short(Exception):
    """The value goes on behind the bytes that are there."""


class Malformed(Exception):
    """These bytes are no value of the type they claim, whatever follows."""


class Refused(Exception):
    """A sound message over a named bound; ``error`` is what the caller gets to hear."""

    def __init__(self, error: ColumnarError) -> None:
        super().__init__(error.text)
        self.error = error
