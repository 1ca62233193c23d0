"""Jobs on many pages, each change made in the visitor's name: links after a rename, a revert, a delete, rights.

The table ``moves`` has a row for each job, with a cell for each of its pages.  So a job can be stopped, shown, undone,
and continued by another process after a crash:

    m:kind   links, subpages, revert, mass-delete, mass-rights, undo      m:state   open, stopped, ended
    m:by m:signed m:reason                              m:lease   "until token": the process that works on the job
    m:from m:to        names of a rename                m:history   the key of the renamed page's history
    m:along            the job that renames the subpages, requested together with this one
    m:since m:author m:prefix   of a mass revert or delete
    m:rights   the change that each page gets (``rights.rules.RightsChange``)
    e:KEY    of a page: "? NAME" not done yet; "N@TOKEN NAME" done, with number and token of the revision that the
             job made; "0@HISTORY NAME" renamed, with the key of the page's history; "0@ROW NAME" deleted, with the
             page's row in ``deleted``; "0@FORMER NAME" of a change of rights its former rights;
             "- NAME: why" left unchanged

A page is read when its turn comes, so the job sees edits made meanwhile.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Annotated, Final

from wikka_port.accounts.rows import Cells, Rows
from wikka_port.limits import JOB_LEASE_MS, JOB_PAGES_MAX, JOB_STEP
from wikka_port.moving.journal import BY, ITEM, KIND, MOVES, REVERTED, SIGNED, STATE, Journal, new_id
from wikka_port.names import MAX_NAME_BYTES, InvalidName, page_key
from wikka_port.page_rows import text_in
from wikka_port.rights.rules import pack_replaced, parse_former, parse_rights_change
from wikka_port.schema import cells_of, fields_in, folded

LINKS, SUBPAGES, REVERT, MASS_DELETE, UNDO = "links", "subpages", "revert", "mass-delete", "undo"
MASS_RIGHTS: Final = "mass-rights"
JOB_KINDS: Final = (LINKS, SUBPAGES, REVERT, MASS_DELETE, MASS_RIGHTS, UNDO)
UNDOABLE: Final = (LINKS, SUBPAGES, REVERT, MASS_DELETE, MASS_RIGHTS)
OPEN, STOPPED, ENDED = b"open", b"stopped", b"ended"
RIGHTS: Final = b"m:rights"
_LEASE: Final = b"m:lease"
_TODO: Final = b"?"
_LEFT: Final = b"-"
_DONE: Final = b"0@"  # of a page without a revision of the job


@dataclass(frozen=True, slots=True)
class Item:
    name: str
    number: int = 0  # of the revision that the job made; 0: the page was moved or deleted
    why: str = ""  # why the page was left unchanged; "": it was not
    token: str = ""  # of the revision that the job made; "": unknown, in an older job
    # The row in ``deleted`` of a deleted page, the key of a renamed page's history, else the former rights.
    place: bytes = b""


@dataclass(frozen=True, slots=True)
class Job:
    id: bytes
    kind: Annotated[str, KIND]
    by: Annotated[str, BY]
    signed: Annotated[str, SIGNED]
    reason: Annotated[str, b"m:reason"]
    source: Annotated[str, b"m:from"] = ""
    target: Annotated[str, b"m:to"] = ""
    redirect: Annotated[bool, b"m:redirect"] = True
    author: Annotated[str, REVERTED] = ""
    since_ms: Annotated[int, b"m:since"] = 0
    of: Annotated[bytes, b"m:of"] = b""  # the job that this one undoes
    history: Annotated[bytes, b"m:history"] = b""  # of the page that was renamed; b"": not known, of an older job
    along: Annotated[bytes, b"m:along"] = b""  # the job of its subpages
    rights: Annotated[str, RIGHTS] = ""  # the change of rights, packed


@dataclass(frozen=True, slots=True)
class Progress:
    job: Job
    state: bytes
    waiting: tuple[str, ...]
    done: tuple[Item, ...]
    left: tuple[Item, ...]

    @property
    def is_open(self) -> bool:
        return self.state == OPEN

    @property
    def is_stopped(self) -> bool:
        return self.state == STOPPED

    @property
    def total(self) -> int:
        return len(self.waiting) + len(self.done) + len(self.left)


Act = Callable[[str], Item]  # does the job's work on one page


class Jobs:
    """The stored jobs.  Thread-safe.  Every method may raise StoreUnavailable."""

    def __init__(self, rows: Rows, clock_ms: Callable[[], int]) -> None:
        self._rows = rows
        self._clock = clock_ms
        self._journal = Journal(rows)

    def begin(self, job: Job, names: Iterable[str]) -> Progress:
        """Store a job with the names of its pages; ``work`` does it."""
        wanted = dict.fromkeys(names)
        cells = {_column(name): _TODO + b" " + name.encode() for name in list(wanted)[:JOB_PAGES_MAX]}
        self._journal.open(job.id, {STATE: OPEN, **cells_of(job), **cells})
        return self.progress(job.id) or Progress(job, OPEN, (), (), ())

    def progress(self, job_id: bytes) -> Progress | None:
        cells = self._rows.row(MOVES, job_id)
        kind = text_in(cells, KIND)
        return _progress(job_id, cells) if kind in JOB_KINDS else None

    def opened(self) -> list[bytes]:
        return [one for one, kind in self._journal.opened().items() if kind in JOB_KINDS]

    def recent(self, limit: int = 50) -> list[Progress]:
        """Return up to ``limit`` jobs that have not ended."""
        found = [self.progress(one) for one in self.opened()[:limit]]
        return [one for one in found if one is not None]

    def stop(self, job_id: bytes) -> bool:
        """Stop a job; return False if it was not running."""
        return self._journal.pass_on(job_id, OPEN, STOPPED)

    def resume_job(self, job_id: bytes) -> bool:
        return self._journal.pass_on(job_id, STOPPED, OPEN)

    def work(
        self,
        job_id: bytes,
        act: Act,
        more: Callable[[Progress], Iterable[str]] = lambda _: (),
        at_end: Callable[[], object] = lambda: None,
    ) -> Progress:
        """Do the remaining work of a job until it is done or stopped; only one process at a time does.

        When all pages are done, ``more`` names pages that were added to the work meanwhile.  ``at_end`` is called
        before the job ends, and when it was stopped.
        """
        token = secrets.token_hex(8)
        progress = self.progress(job_id)
        assert progress is not None, "it was begun"
        if not self._lease(job_id, token):
            return progress
        while progress.state == OPEN:
            waiting = progress.waiting or self._added(progress, more(progress))
            if not waiting:
                at_end()
                if self._journal.pass_on(job_id, OPEN, ENDED):
                    self._journal.close(job_id)
                break
            for name in waiting[:JOB_STEP]:
                self._rows.put(MOVES, job_id, {_column(name): _packed(act(name))})
            if not self._lease(job_id, token):
                break
            progress = self.progress(job_id) or progress
        if progress.is_stopped:
            at_end()
        self._rows.delete(MOVES, job_id, [_LEASE])
        return self.progress(job_id) or progress

    def _added(self, progress: Progress, names: Iterable[str]) -> tuple[str, ...]:
        known = {one.name for one in (*progress.done, *progress.left)}
        new = [name for name in names if name not in known][: max(0, JOB_PAGES_MAX - progress.total)]
        if new:
            self._rows.put(MOVES, progress.job.id, {_column(name): _TODO + b" " + name.encode() for name in new})
        return tuple(new)

    def _lease(self, job_id: bytes, token: str) -> bool:
        """Take the lease on the job, or renew it; return False if another process has it."""
        current = self._rows.row(MOVES, job_id, [_LEASE]).get(_LEASE, b"")
        until, _, owner = current.partition(b" ")
        if current and owner != token.encode() and int(until) > self._clock():
            return False
        lease = b"%d %s" % (self._clock() + JOB_LEASE_MS, token.encode())
        return self._rows.change(MOVES, job_id, {_LEASE: current or None}, {_LEASE: lease})


def _column(name: str) -> bytes:
    return ITEM + page_key(name)


def _packed(item: Item) -> bytes:
    if item.why:
        return _LEFT + b" " + item.name.encode() + b": " + item.why.encode("utf-8", "replace")
    made = item.token.encode() if item.number else item.place
    return b"%d%s %s" % (item.number, b"@" + made if made else b"", item.name.encode())


def renamed_owner(cells: Cells, name: str, new: str) -> dict[bytes, bytes]:
    """Return those cells of work on rights in which the account ``name`` is an owner, with ``new`` in its place.

    This owner is the one that the pages got, or the one that they had; a cell that nobody can read is left alone.
    """
    found = {}
    for column, value in cells.items():
        if column == RIGHTS:
            renamed = _renamed_change(value, name, new)
        elif column.startswith(ITEM) and value.startswith(_DONE):
            former, _blank, page = value[len(_DONE) :].partition(b" ")
            changed = _renamed_former(former, name, new)
            renamed = None if changed is None else _DONE + changed + b" " + page
        else:
            continue
        if renamed is not None:
            found[column] = renamed
    return found


def _renamed_change(packed: bytes, name: str, new: str) -> bytes | None:
    with suppress(ValueError, KeyError, TypeError):
        change = parse_rights_change(packed.decode())
        if folded(change.owner or "") == folded(name):
            return replace(change, owner=new).pack().encode()
    return None


def _renamed_former(packed: bytes, name: str, new: str) -> bytes | None:
    with suppress(ValueError, KeyError, TypeError):
        revision, change = parse_former(packed)
        if folded(change.owner or "") == folded(name):
            return pack_replaced(revision, replace(change, owner=new))
    return None


def _progress(job_id: bytes, cells: Cells) -> Progress:
    items = sorted(_items(cells), key=lambda pair: pair[1].name)
    return Progress(
        Job(job_id, **fields_in(Job, cells)),
        cells.get(STATE, b""),
        tuple(item.name for kind, item in items if kind == _TODO),
        tuple(item for kind, item in items if kind.isdigit()),
        tuple(item for kind, item in items if kind == _LEFT),
    )


def _items(cells: Cells) -> Iterator[tuple[bytes, Item]]:
    for column, value in cells.items():
        if not column.startswith(ITEM):
            continue
        kind, _, rest = value.partition(b" ")
        kind, _, made = kind.partition(b"@")
        said = rest.decode(errors="replace")
        if kind == _LEFT:
            yield kind, _left(column, said)
        else:
            number = int(kind) if kind.isdigit() else 0
            yield kind, Item(said, number, token=made.decode()) if number else Item(said, place=made)


def _is_of(column: bytes, name: str) -> bool:
    try:
        return _column(name) == column
    except InvalidName:
        return False


def _left(column: bytes, said: str) -> Item:
    """Parse a name and why the page was left; both may contain their separator, so the key in ``column`` decides."""
    places = (found.start() for found in re.finditer(": ", said[: MAX_NAME_BYTES + 2]))
    end = next((place for place in places if _is_of(column, said[:place])), said.rfind(": "))
    return Item(said[:end], why=said[end + 2 :])


def new_job(kind: str, by: str, signed: str, reason: str = "", **given: object) -> Job:
    return Job(new_id(), kind, by, signed, reason, **given)  # type: ignore[arg-type]  # fields of Job
