"""The sweep: contents that no version refers to, uploads that ended without a commit, and the versions of a purge.

Other modules let their own sweeps run with it (``sweep_also``): a process has one.  Its loop also has files adopted
that wait for a page which is saved (``rights.adoption``); these wait a minute, and no hour.

The steps a to e are those of ``file_rows``.  A purge calls ``erase_versions``, which sweeps the contents at once.  All
others wait for the hourly sweep: of all processes that of one runs, for the row SWEPT_ROW lets one of them begin.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from wikka_port.accounts.rows import Rows
from wikka_port.files.chunks import is_place
from wikka_port.files.contents import Contents
from wikka_port.files.file_rows import (
    BLOB_REFS,
    BLOB_STATE,
    BLOBS,
    FILES,
    SWEPT_ROW,
    UPLOAD_TIME,
    UPLOADS,
    Upload,
    state_of_sweep,
    versions_of_page,
)
from wikka_port.schema import fields_in
from wikka_port.store import NotPrepared, StoreUnavailable

log = logging.getLogger(__name__)
SWEPT_MAX: Final = 1_000  # contents of one sweep; the next one takes the rest
EVERY_S: Final = 3_600.0
TICK_S: Final = 60.0  # of the loop, from the start of a process on
_TICKS: Final = round(EVERY_S / TICK_S)
_STEP: Final = 500  # keys that are compared at a time
_SHA256: Final = b"v:sha256"
_LAST: Final = b"g"  # after every hexadecimal digit


@dataclass(frozen=True, slots=True)
class Swept:
    """The things that a sweep removed."""

    uploads: int = 0
    contents: int = 0
    size_bytes: int = 0  # of the contents
    others: int = 0  # of further sweeps: changes of comments that a crash left unfinished


class Sweep:
    """Thread-safe, and safe beside uploads and other sweeps.  Every method may raise StoreUnavailable."""

    def __init__(
        self,
        rows: Rows,
        contents: Contents,
        clock_ms: Callable[[], int],
        on_step_done: Callable[[str], None] = lambda step: None,
    ) -> None:
        """Call ``on_step_done`` after each step, for tests that crash there."""
        self.on_step_done = on_step_done
        self._rows = rows
        self._contents = contents
        self._clock = clock_ms
        self._others: list[Callable[[], int]] = []

    def sweep_also(self, other: Callable[[], int]) -> None:
        """Let a further sweep, which returns what it removed, run with this one.  Call before the first run."""
        self._others.append(other)

    def run(self, most: int = SWEPT_MAX) -> Swept:
        """Sweep the uploads, and up to ``most`` contents.  O(contents), of which only the keys are read."""
        uploads = sum(self.sweep_upload(one) for one in list(self.old_uploads()))
        contents = size_bytes = 0
        for sha256 in self.unused():
            swept = self.sweep_content(sha256)
            contents += swept >= 0
            size_bytes += max(0, swept)
            if contents >= most:
                break
        return Swept(uploads, contents, size_bytes, sum(other() for other in self._others))

    def run_if_due(self) -> Swept | None:
        """Sweep if no process has begun to within EVERY_S, else return None."""
        now_ms = self._clock()
        cell = self._rows.row(UPLOADS, SWEPT_ROW, [UPLOAD_TIME]).get(UPLOAD_TIME)
        if cell is not None and now_ms - int(cell) < EVERY_S * 1000:
            return None
        if not self._rows.change(UPLOADS, SWEPT_ROW, {UPLOAD_TIME: cell}, {UPLOAD_TIME: b"%d" % now_ms}):
            return None
        return self.run()

    # --- uploads -----------------------------------------------------------------------------------

    def old_uploads(self) -> Iterator[Upload]:
        """Yield the uploads and surplus places that a sweep removes."""
        for row, cells in self._rows.scan(UPLOADS):
            if is_place(row) and UPLOAD_TIME in cells:
                found = Upload(row, **fields_in(Upload, cells))
                if self._clock() > found.ends_ms:
                    yield found

    def sweep_upload(self, upload: Upload) -> bool:
        """Remove an upload that nobody has continued since it was read; its chunks may be a content's."""
        before = b"%d" % upload.time_ms
        if upload.time_ms and not self._rows.change(UPLOADS, upload.place, {UPLOAD_TIME: before}, {UPLOAD_TIME: b"0"}):
            return False
        self.on_step_done("upload taken")
        self._contents.end_upload(upload)
        self.on_step_done("upload")
        return True

    # --- contents ----------------------------------------------------------------------------------

    def unused(self) -> Iterator[str]:
        """Yield the digests without a reference whose content is not gone."""
        start = b""
        while keys := self._rows.row_keys(BLOBS, start, _LAST, limit=_STEP):
            start = keys[-1] + b"\0"
            referred = set(self._rows.row_keys(BLOB_REFS, keys[0], start, limit=_STEP))
            while len(referred) % _STEP == 0 and referred and max(referred) < keys[-1]:  # references without a content
                more = self._rows.row_keys(BLOB_REFS, max(referred) + b"\0", start, limit=_STEP)
                if not more:
                    break
                referred |= set(more)
            unused = [key for key in keys if key not in referred]
            for key, cells in sorted(self._rows.rows(BLOBS, unused).items()):
                if not cells.get(BLOB_STATE, b"gone").startswith(b"gone"):
                    yield key.decode(errors="replace")

    def sweep_content(self, sha256: str) -> int:
        """Remove a content unless something refers to it; return its size, or -1 if it stays."""
        mark = secrets.token_hex(4).encode()
        before = self._contents.blob_state(sha256)
        marked = None if before is None else state_of_sweep(before, mark, "mark")
        if before is None or marked is None or not self._contents.swap_state(sha256, before, marked):
            return -1
        self.on_step_done("mark")
        if self._rows.row(BLOB_REFS, sha256.encode()):
            kept = state_of_sweep(marked, mark, "give up")
            assert kept is not None, "it has this sweep's mark"
            self._contents.swap_state(sha256, marked, kept)
            self.on_step_done("give up")
            return -1
        gone = state_of_sweep(marked, mark, "drop")
        assert gone is not None, "it has this sweep's mark"
        self._contents.put_surplus(sha256, marked)
        self.on_step_done("list")
        if not self._contents.swap_state(sha256, marked, gone):
            return -1  # an upload or another sweep has the content; the listed place waits for the sweep of uploads
        self.on_step_done("drop")
        self._contents.erase_place(marked.place)
        self.on_step_done("delete")
        return marked.size_bytes

    def release(self, sha256: str, version_row: bytes) -> None:
        """Remove the reference of a version to a content."""
        self._contents.unrefer(sha256, version_row)
        self.on_step_done("unrefer")

    # --- a purge -----------------------------------------------------------------------------------

    def erase_versions(self, history: bytes) -> None:
        """Remove all versions of all files of a history, and the contents that nothing else refers to."""
        start, stop = versions_of_page(history)
        while keys := self._rows.row_keys(FILES, start, stop, limit=_STEP):
            for row, cells in self._rows.rows(FILES, keys, [_SHA256]).items():
                self._rows.delete(FILES, row)
                self.on_step_done("version")
                sha256 = cells.get(_SHA256, b"").decode(errors="replace")
                if sha256:
                    self.release(sha256, row)
                    self.sweep_content(sha256)


def start_sweeping(
    sweep: Sweep, adopt: Callable[[], int], unfinished: threading.Event, stop: threading.Event | None = None
) -> threading.Thread:
    """Sweep in a thread, soon and each EVERY_S, if no other process has.

    ``adopt`` is called at the first tick, after each sweep, and as soon as ``unfinished`` is set.
    """
    ended = stop or threading.Event()

    def ticked() -> None:
        tick = 0
        while not ended.wait(TICK_S):
            if tick % _TICKS == 0 and _has_swept(sweep):
                unfinished.set()
            if unfinished.is_set():
                _adopt(adopt, unfinished)
            tick += 1

    thread = threading.Thread(target=ticked, name="sweep-files", daemon=True)
    thread.start()
    return thread


def _has_swept(sweep: Sweep) -> bool:
    """Sweep if it is due; return whether this process did."""
    try:
        found = sweep.run_if_due()
    except StoreUnavailable as away:
        log.warning("files are swept in an hour: %s", away)
        return False
    except Exception:
        log.exception("files are swept in an hour")
        return False
    if found is not None and found != Swept():
        log.info("swept %d uploads, %d contents of %d bytes, %d changes of comments", *_figures(found))
    return found is not None


def _adopt(adopt: Callable[[], int], unfinished: threading.Event) -> None:
    unfinished.clear()  # before: a save that fails meanwhile sets it again
    try:
        adopt()
    except NotPrepared as older:
        log.warning("files that wait for saved pages are theirs in an hour: %s", older)
    except StoreUnavailable as away:
        unfinished.set()
        log.warning("files that wait for saved pages are theirs in a minute: %s", away)
    except Exception:
        log.exception("files that wait for saved pages are theirs in an hour")


def _figures(swept: Swept) -> tuple[int, int, int, int]:
    return swept.uploads, swept.contents, swept.size_bytes, swept.others
