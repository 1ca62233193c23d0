"""The trigger of the variant ``integrated``: a tweet in the author's own timeline goes to all followers.

The store imports this module into its worker of triggers (``--trigger-modules``).  The followers come along with the
change (``look``); the author's own timeline does not (no images), as it grows with each tweet.  Each execution adds a
byte to the file that EXECUTIONS names, which is how the experiment counts executions, also those that a kill makes
twice; the byte says whether the tweet is poison, which the function raises on.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import Final

from benchmarks.flows_plan import FOLLOWERS, FOLLOWERS_FAMILY, IN, OWN, POISON, TIMELINE, refuse_poison
from columnar.triggers.api import Change, Checkpoint, Connection, Effect, Put

EXECUTIONS: Final = "COLUMNAR_BENCH_EXECUTIONS"  # in the environment
NAME: Final = "spread"
POISONED: Final = b"p"  # in the file of executions: of a poison tweet
FOLLOWERS_LOOKUP: Final = "followers"
CHECKPOINT_EVERY: Final = 1_000  # followers


def spread(change: Change) -> Iterator[Effect]:
    cells = {IN + b":" + cell.column.partition(b":")[2]: cell.value for cell in change.changes if cell.kind == "put"}
    note_execution(_executions(), *cells.values())
    begin = int(change.progress or b"0")
    for number, follower in enumerate(islice(change.look(FOLLOWERS_LOOKUP), begin, None), begin):
        if number > begin and number % CHECKPOINT_EVERY == 0:
            yield Checkpoint(b"%d" % number)
        yield Put(TIMELINE, follower[len(FOLLOWERS_FAMILY) + 1 :], cells)


def note_execution(executions: int, *texts: bytes) -> None:
    """Add a byte to the file of executions for the tweet of these texts.  Raises PoisonError if it is poison."""
    os.write(executions, POISONED if any(text.startswith(POISON) for text in texts) else b".")
    for text in texts:
        refuse_poison(text)


def register(connection: Connection, attempts: int) -> None:
    """Add the trigger, which runs from now on, and gives a tweet up after so many attempts."""
    connection.triggers.add(
        NAME,
        TIMELINE,
        f"{__name__}:spread",
        [OWN],
        row=False,
        attempts=attempts,
        look=[(FOLLOWERS_LOOKUP, FOLLOWERS.decode(), "row")],
        writes=[f"{TIMELINE.decode()}:{IN.decode()}"],
    )


@cache
def _executions() -> int:
    return os.open(os.environ[EXECUTIONS], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
