"""The journal of leaders' decisions in a data folder, kept over restarts: ``DATA/decisions.jsonl``.

    line := JSON {"at_ms", "kind", "regions", "server", "why", "text"} "\\n"       oldest first

Lines are appended once a second and not synced.  A crash loses lines of the last second, and may leave an incomplete
line, which is skipped.  If the file exceeds JOURNAL_BYTES, it is replaced by its last DECISIONS_KEPT lines.

``DecisionJournal`` blocks; ``DecisionRecorder`` has it work in a thread, and is owned by the loop.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Final

from columnar.limits import KIB
from columnar.master.cluster_control import ClusterReports
from columnar.master.instructions import DECISIONS_KEPT
from columnar.model.cluster_status_records import DecisionStatus
from columnar.runtime.faults import surviving

_log = logging.getLogger(__name__)

NAME: Final = "decisions.jsonl"
KEEP_S: Final = 1.0  # between two appends
JOURNAL_BYTES: Final = 512 * KIB
_FIELDS: Final = ("at_ms", "kind", "regions", "server", "why", "text")


def line_of(decision: DecisionStatus) -> bytes:
    fields = asdict(decision)
    return json.dumps({field: fields[field] for field in _FIELDS}, sort_keys=True).encode() + b"\n"


def parse_decision(line: bytes) -> DecisionStatus | None:
    """Decode a line; None if it is incomplete, or was written by a newer version."""
    try:
        fields = json.loads(line)
        regions = tuple(map(str, fields["regions"]))
        server, why, text = (str(fields[field]) for field in ("server", "why", "text"))
        return DecisionStatus(0, str(fields["kind"]), regions, server, why, text, int(fields["at_ms"]))
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


class DecisionJournal:
    def __init__(self, data: str) -> None:
        self._path = os.path.join(data, NAME)
        self._failure = ""  # the last failure that was logged
        self._ends_whole = False  # False if the last line may be incomplete, after a full disk or a kill

    def read_decisions(self) -> list[DecisionStatus]:
        """Return the last DECISIONS_KEPT decisions, oldest first; an empty list if the file cannot be read."""
        return [decision for decision in map(parse_decision, self._lines()) if decision is not None]

    def _lines(self) -> Sequence[bytes]:
        try:
            with open(self._path, "rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - 2 * JOURNAL_BYTES))
                return [line for line in file.read().split(b"\n") if line][-DECISIONS_KEPT:]
        except FileNotFoundError:
            return ()
        except OSError as error:
            _log.warning("earlier decisions cannot be read from %s: %s", self._path, error.strerror)
            return ()

    def append(self, decisions: Iterable[DecisionStatus]) -> None:
        """Append decisions, oldest first.  Logs once that the disk refuses them; the decisions are also in memory."""
        data = b"".join(map(line_of, decisions))
        try:
            with open(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as file:
                file.write(data if self._ends_whole else b"\n" + data)
                size = file.tell()
            if size > JOURNAL_BYTES:
                self._shorten()
            self._failure, self._ends_whole = "", True
        except OSError as error:
            self._ends_whole = False
            if str(error) != self._failure:
                self._failure = str(error)
                _log.warning("decisions are not kept over a restart: %s", error)

    def _shorten(self) -> None:
        last = [line for line in self._lines() if line]
        half = f"{self._path}.new"
        with open(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as new:
            new.write(b"".join(line + b"\n" for line in last[-DECISIONS_KEPT:]))
        os.replace(half, self._path)


class DecisionRecorder:
    """Appends a leader's new decisions to the journal, from ``start`` until ``stop`` or ``cancel``."""

    def __init__(self, data: str, reports: ClusterReports) -> None:
        self._journal = DecisionJournal(data)
        self._reports = reports
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Give the reports the decisions of earlier leaders, and begin to append."""
        self._reports.follow_decisions(await asyncio.to_thread(self._journal.read_decisions))
        self._task = asyncio.create_task(self._keep_all())

    async def _keep_all(self) -> None:
        while True:
            await asyncio.sleep(KEEP_S)
            with surviving("the journal of decisions"):
                await self._keep_new()

    async def _keep_new(self) -> None:
        fresh = self._reports.take_decisions()
        if fresh:
            await asyncio.to_thread(self._journal.append, fresh)

    async def stop(self) -> None:
        """Append the last decisions."""
        self.cancel()
        await self._keep_new()

    def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()
