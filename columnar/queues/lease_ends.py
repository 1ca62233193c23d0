"""(pure) How leases end, or go on: the words of requests, and the lease that follows.

commit      the message is removed
rollback    the message comes again after a delay
put off     as rollback, but the attempt does not count
extend      the lease goes on
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from columnar.errors import IllegalArgument
from columnar.queues.keys import ERROR_BYTES, LONGEST_MS, LeaseCell

COMMIT, ROLL_BACK, PUT_OFF, EXTEND = "commit", "rollback", "put off", "extend"
_WORDS: Final = (COMMIT, ROLL_BACK, PUT_OFF, EXTEND)


def check_end(what: str, ms: int) -> None:
    """Raise IllegalArgument unless a lease may end so, or go on so, with an extension or delay of ``ms``."""
    if what not in _WORDS:
        raise IllegalArgument(
            f"{what!r}: a lease ends with {COMMIT}, {ROLL_BACK} or {PUT_OFF}, or goes on with {EXTEND}"
        )
    if not (1 if what == EXTEND else 0) <= ms <= LONGEST_MS:
        raise IllegalArgument(f"{ms} ms: an extension or delay is between 1 and {LONGEST_MS} ms")


def following(cell: LeaseCell, what: str, until_ms: int, error: bytes) -> LeaseCell:
    """Return the lease after its end without a commit, or its extension."""
    cell = replace(cell, until_ms=until_ms)
    if what == EXTEND:
        return cell
    cell = replace(cell, lease=0, error=error[:ERROR_BYTES])
    return replace(cell, attempts=cell.attempts - 1) if what == PUT_OFF else cell
