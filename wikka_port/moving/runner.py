"""Running jobs: in a thread of the process that got the request, so that no request waits; continued after a crash.

``work`` runs a job in the calling thread, for commands; ``start`` runs it in a new thread.  A starting process calls
``resume``, which finishes moves that a crash interrupted, and continues jobs that no process works on.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from typing import Final

from wikka_port.accounts.audit import Audit
from wikka_port.accounts.directory import Directory
from wikka_port.accounts.rows import Cells
from wikka_port.application_indexes import notify_of_moves
from wikka_port.folder_format import NewerFolder
from wikka_port.moving.jobs import MASS_DELETE, MASS_RIGHTS, REVERT, Item, Job, Jobs, Progress
from wikka_port.moving.journal import MOVES, NOTIFIED, MovesOfJob
from wikka_port.moving.mass import act_of, more_of
from wikka_port.pages import StoreUnavailable, Wiki, clock_ms
from wikka_port.rights.guarded import GuardedWiki
from wikka_port.visitors import COMMAND, NOBODY, OPERATOR, Visitor

log = logging.getLogger(__name__)
AUDITED: Final = {
    MASS_DELETE: "many pages: delete",
    MASS_RIGHTS: "many pages: rights",
    REVERT: "many pages: revert",
}


def guarded_wiki_of(wiki: Wiki, job: Job) -> GuardedWiki:
    """Return the wiki as the visitor who requested the job may see it now."""
    if job.by == COMMAND:
        return GuardedWiki(wiki, OPERATOR)
    account = Directory(wiki.rows, clock_ms).account(job.by)
    if account is None:
        return GuardedWiki(wiki, NOBODY)
    return GuardedWiki(wiki, Visitor(account.name, account.name, account.status, account.admin, ""))


def work(wiki: Wiki, job: Job, step: Callable[[], None] = lambda: None) -> Progress:
    """Work on a job until it ends or is stopped; call ``step`` for each page.  Raises StoreUnavailable."""
    jobs = Jobs(wiki.rows, clock_ms)
    guarded = guarded_wiki_of(wiki, job)
    act = act_of(wiki, jobs, job, guarded.moves.of_job(job.id))

    def one(name: str) -> Item:
        item = act(name)
        step()
        return item

    return jobs.work(
        job.id, one, lambda _: guarded.access.listed(more_of(wiki, job)), at_end=lambda: notify_of_job(wiki, job.id)
    )


def notify_of_job(wiki: Wiki, job_id: bytes) -> bool:
    """Have those who watch the pages notified of what the job has moved since the last call."""

    def notify(row: bytes, cells: Cells) -> None:
        if wiki.indexes == "application":
            wiki.store.run(lambda c: notify_of_moves(c, row, cells, NOTIFIED))

    return MovesOfJob(wiki.rows).notify(job_id, notify)


def begin(wiki: Wiki, job: Job, names: Iterable[str], *, of_kind: str = "", network: str = "") -> Progress:
    """Store a job, which ``work`` or ``start`` does, and note it in the audit if it changes many pages.

    ``of_kind`` is the kind of the job that it undoes.  Raises StoreUnavailable.
    """
    progress = Jobs(wiki.rows, clock_ms).begin(job, names)
    if (of_kind or job.kind) in AUDITED:
        what = "many pages: undo" if of_kind else AUDITED[job.kind]
        note = f"{progress.total} pages, {job.id.decode()}" + (f": {job.reason}" if job.reason else "")
        try:
            Audit(wiki.rows, clock_ms).note(what, user="", by=job.by, note=note, network=network)
        except StoreUnavailable as away:
            log.warning("job %s (%s) by %s is not in the audit: %s", job.id.decode(), what, job.by, away)
    return progress


def start(wiki: Wiki, job: Job) -> threading.Thread:
    thread = threading.Thread(target=_work_logged, args=(wiki, job), name=f"job-{job.id.decode()}", daemon=True)
    thread.start()
    return thread


def _work_logged(wiki: Wiki, job: Job) -> None:
    try:
        work(wiki, job)
    except StoreUnavailable as away:
        log.warning("job %s waits for the next start: %s", job.id.decode(), away)
    except Exception:
        log.exception("job %s ended early; it goes on at the next start", job.id.decode())


def resume(wiki: Wiki) -> int:
    """Finish interrupted moves and jobs; return their number.  Raises StoreUnavailable, NewerFolder."""
    wiki.folder()
    if not wiki.store.run(lambda c: MOVES in c.tables()):
        return 0  # an older wiki's folder, before it is prepared
    jobs = Jobs(wiki.rows, clock_ms)
    count = wiki.mover.finish_all()
    for one in jobs.opened():
        progress = jobs.progress(one)
        if progress is not None and progress.is_open:
            start(wiki, progress.job)
            count += 1
        elif progress is not None and progress.is_stopped:
            notify_of_job(wiki, one)  # the process that worked on it may have ended before
    return count


def start_resuming(wiki: Wiki) -> threading.Thread:
    """Call ``resume`` in a thread, so that a starting process serves at once."""

    def resumed() -> None:
        try:
            resume(wiki)
        except StoreUnavailable as away:
            log.warning("moves that fell wait for the next start: %s", away)
        except NewerFolder as newer:
            log.error("%s", newer)
        except Exception:
            log.exception("moves that fell wait for the next start")

    thread = threading.Thread(target=resumed, name="resume-moves", daemon=True)
    thread.start()
    return thread
