"""(pure) Faults of bytes from the network, classed by their consequence.

Short        no fault yet: the message continues after the received bytes
Malformed    no further message can be found; the connection is answered and closed
Refused      the message is sound but over a bound: once its end is found it is answered, and
             the connection lives
"""

from __future__ import annotations

from columnar.errors import ColumnarError


class Short(Exception):
    """The value continues after the received bytes."""


class Malformed(Exception):
    """These bytes are no value of the type they claim, whatever follows."""


class Refused(Exception):
    """A sound message over a named bound; ``error`` is the caller's error."""

    def __init__(self, error: ColumnarError) -> None:
        super().__init__(error.text)
        self.error = error
