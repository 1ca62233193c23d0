"""What a server answered to a session, kept in a file: HBase's answers for those who have no HBase at hand.

gzip of lines:  {"from": server, "seed": seed, "prefix": prefix}    the head
                [call, answer]                                       one line each, in order
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path

from tests.differential.answers import Answer
from tests.differential.calls import Call, from_text, to_text
from tests.differential.comparison import Answering


class Recording:
    """Stands for the endpoint that was recorded, as long as it is asked the same in the same order."""

    def __init__(self, path: Path) -> None:
        head, *lines = gzip.decompress(path.read_bytes()).decode().splitlines()
        self.head: dict[str, str] = json.loads(head)
        kept = [json.loads(line) for line in lines]
        self.calls: list[Call] = [from_text(call) for call, _ in kept]
        self._answers: list[Answer] = [answer for _, answer in kept]
        self._next = 0

    def run(self, call: Call) -> Answer:
        assert call == self.calls[self._next], "a recording answers the session that was recorded"
        self._next += 1
        return self._answers[self._next - 1]


def record(path: Path, head: dict[str, str], calls: Iterable[Call], server: Answering) -> int:
    """Runs the session; returns the size of the file."""
    lines = [json.dumps(head)]
    lines += (json.dumps([to_text(call), server.run(call)]) for call in calls)
    # No name and no time inside: the same answers make the same file.
    data = gzip.compress("\n".join(lines).encode(), mtime=0)
    path.write_bytes(data)
    return len(data)
