"""(pure) Faults in bytes from the network, classified by their consequence.

The kinds of faults:

    Short        no fault yet: the message continues after the received bytes
    Malformed    no further message can be found; the connection is answered and closed
    Refused      the message is well-formed but exceeds a bound; once its end is found it is answered, and the
                 connection stays open
"""

from __future__ import annotations

from columnar.errors import ColumnarError


class Short(Exception):
    """The value continues after the received bytes."""


class Malformed(Exception):
    """The bytes are not a value of the type that they claim, whatever bytes follow."""


class Refused(Exception):
    """A well-formed message exceeds a bound; ``error``, which names the bound, is the answer to the caller."""

    def __init__(self, error: ColumnarError) -> None:
        super().__init__(error.text)
        self.error = error
