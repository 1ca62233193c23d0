"""Reading of the server log's folder: its segments, its last run, and the records of earlier runs.

    FOLDER/run                the log's name in hex, and the number of the run that wrote to it last
    FOLDER/00000001.segment   its bytes: ``server_log``

Reads only; ``server_log_files`` writes.  Errors are HostError, and DamagedData where the folder contradicts itself.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Final

from columnar.errors import DamagedData
from columnar.storage.rocks_errors import refused
from columnar.storage.segment_bounds import SegmentBounds
from columnar.storage.server_log import LOG_BYTES, Record, era_of, log_and_run, mark, records_of, whole_bytes

RUN: Final = "run"
_SUFFIX: Final = ".segment"
_ASIDE: Final = "move the folder aside to go on: writes of the last seconds before the crash may stand nowhere else"


@dataclass(slots=True)
class EarlierRuns:
    """Everything that earlier runs left in the folder."""

    log: bytes  # its name; a new one where there is no log yet
    run: int  # the last one's number
    segments: list[str]  # names, the oldest first
    left: dict[str, list[tuple[bytes, Record]]] = field(default_factory=dict)  # by region: mark and batch


def name_of(segment: int) -> str:
    return f"{segment:08d}{_SUFFIX}"


def number_of(name: str) -> int:
    return int(name.removesuffix(_SUFFIX))


def read_earlier(folder: str) -> EarlierRuns:
    """Read all segments.  DamagedData: one is missing, is of another log, or is not whole as far as it was synced."""
    log, run = _last_run(folder)
    found = EarlierRuns(log, run, segments_in(folder))
    _check_bounds(folder, found.segments)
    for name in found.segments:
        _read(folder, name, found)
    return found


def segments_in(folder: str) -> list[str]:
    """Names, the oldest first; none where there is no folder."""
    try:
        return sorted(name for name in os.listdir(folder) if name.endswith(_SUFFIX))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise refused(error, f"cannot read the server's log {folder}") from error


def bytes_of(folder: str, name: str) -> bytes:
    try:
        with open(os.path.join(folder, name), "rb") as held:
            return held.read()
    except OSError as error:
        raise refused(error, f"cannot read the server's log {folder}") from error


def _last_run(folder: str) -> tuple[bytes, int]:
    """The log's name and the run that wrote to it last; a new name where there is no log yet."""
    try:
        with open(os.path.join(folder, RUN), encoding="ascii") as held:
            name, _, run = held.read().partition(" ")
        log = bytes.fromhex(name)
        if len(log) != LOG_BYTES:
            raise ValueError(f"{len(log)} bytes are no name of a log")
        return log, int(run)
    except FileNotFoundError:
        return os.urandom(LOG_BYTES), 0
    except OSError as error:
        raise refused(error, f"cannot read the server's log {folder}") from error
    except ValueError as error:
        raise DamagedData(f"{folder}/{RUN} does not say which run was the last; {_ASIDE}") from error


def _check_bounds(folder: str, segments: list[str]) -> None:
    """DamagedData: a segment is missing, or is not whole as far as it was synced."""
    try:
        lengths = SegmentBounds(folder).read()
    except OSError as error:
        raise refused(error, f"cannot read the server's log {folder}") from error
    for segment, length in lengths.items():
        name = name_of(segment)
        if name not in segments:
            raise DamagedData(f"{os.path.join(folder, name)} is missing; {_ASIDE}")
        whole = whole_bytes(bytes_of(folder, name))
        if whole < length:
            path = os.path.join(folder, name)
            raise DamagedData(f"{path} is damaged or was cut at byte {whole}: {length} were synced; {_ASIDE}")


def _read(folder: str, name: str, found: EarlierRuns) -> None:
    """Add the records of the segment."""
    data = bytes_of(folder, name)
    try:
        era = era_of(data)
    except DamagedData as error:
        raise DamagedData(f"{folder}/{name}: {error.text}; {_ASIDE}") from error
    if era is None:
        return
    log, run = log_and_run(era)
    if log != found.log or run > found.run:
        raise DamagedData(f"{folder}/{name} is of another log than {RUN} beside it says; {_ASIDE}")
    for record in records_of(data):
        found.left.setdefault(record.region, []).append((mark(era, record.number), record))
