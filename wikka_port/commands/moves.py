"""``wikka rename``, ``delete``, ``undelete``, ``purge``, ``erase``, ``revert``, for the operator, with all rights.

With ``--json`` a command prints one object, and asks its question on stderr.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, Final

import click
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

from wikka_port.commands.store_options import (
    StoreOptions,
    errors,
    json_option,
    progress_bar,
    settled_after,
    store_options,
)
from wikka_port.feeds import iso_time
from wikka_port.handlers.moves import moment
from wikka_port.limits import JOB_PAGES_MAX
from wikka_port.markup.links import redirect_target
from wikka_port.moving import jobs as job_rows
from wikka_port.moving.jobs import ENDED, LINKS, MASS_DELETE, REVERT, SUBPAGES, Job, Jobs, Progress, new_job
from wikka_port.moving.journal import Deleted
from wikka_port.moving.mass import Reverted, edited_by, linking, planned
from wikka_port.moving.refusals import NotMoved
from wikka_port.moving.runner import begin, work
from wikka_port.names import InvalidName, normalise
from wikka_port.pages import Page, Wiki, clock_ms
from wikka_port.rights.erasing import GuardedErasure
from wikka_port.rights.guarded import GuardedWiki
from wikka_port.rights.moving import GuardedMoves
from wikka_port.visitors import COMMAND, OPERATOR

_MAX_LISTED: Final = 50
_SETTLE_S: Final = 30.0
_COLUMNS: Final = (BarColumn(), MofNCompleteColumn(), TextColumn("pages"), TimeRemainingColumn())
DRY: Final = click.option("--dry-run", is_flag=True, help="Say what would be done; nothing is changed.")
REASON: Final = click.option("--reason", default="", help="Is kept with it, for those who look later.")
YES: Final = click.option("--yes", is_flag=True, help="Do not ask.")
_LAST: Final = click.option("--at", default="", metavar="TIME", help="Of several, the one deleted then; else the last.")


@contextmanager
def moving(store: StoreOptions) -> Iterator[GuardedMoves]:
    """Open the wiki's moves; a refusal ends the command with one line."""
    with store.open_wiki(pool=4) as wiki:
        wiki.prepare()
        try:
            yield GuardedWiki(wiki, OPERATOR).moves
        except (NotMoved, InvalidName) as refused:
            raise click.ClickException(str(refused)) from None


@click.command()
@click.argument("name")
@click.argument("new")
@click.option("--redirect/--no-redirect", default=True, show_default=True, help="The old name leads to the new one.")
@click.option("--links/--no-links", default=True, show_default=True, help="Lead the links of other pages to it, too.")
@click.option("--subpages", is_flag=True, help="NAME/x becomes NEW/x.")
@REASON
@DRY
@json_option
@store_options
def rename(
    name: str,
    new: str,
    redirect: bool,
    links: bool,
    subpages: bool,
    reason: str,
    dry_run: bool,
    as_json: bool,
    store: StoreOptions,
) -> None:
    """Rename the page NAME to NEW: history, rights, owner and drafts go along.

    \b
    The page itself is moved at once, however long its history. Links of other
    pages are then rewritten as edits, which Ctrl-C stops; the same command, or
    the next start of the wiki, goes on.
      wikka rename "Old name" "New name"
      wikka rename Manual Handbook --subpages --dry-run
    """
    with moving(store) as moves:
        wiki, old, target = moves.wiki, normalise(name), normalise(new)
        below = [one for one in wiki.names(prefix=f"{old}/", limit=JOB_PAGES_MAX) if one.startswith(f"{old}/")]
        below = below if subpages else []
        sources = [one for one in linking(wiki, old) if one != old] if links else []
        said: dict[str, Any] = {"page": old, "to": target, "done": not dry_run}
        if dry_run:
            if as_json:
                click.echo(json.dumps({**said, "subpages": below, "links": sources}, ensure_ascii=False))
                return
            click.echo(f"{old} would be renamed to {target}.")
            list_names("subpages would be renamed", below)
            list_names("pages link there and would be edited", sources)
            return
        page = wiki.page(old)
        if page is not None and not _leads(page, target):
            moves.rename(old, target, redirect=redirect, reason=reason)
            if not as_json:
                click.echo(f"{old} is now {target}.")
        _settle(wiki)
        sources = [one for one in linking(wiki, old) if one != old] if links else []
        given = {"source": old, "target": target, "redirect": redirect}
        ended = True
        for kind, names in ((SUBPAGES, below), (LINKS, sources)):
            if names:
                progress = worked(wiki, new_job(kind, COMMAND, "wiki", reason, **given), names)
                said[kind] = job_data(progress)
                ended = ended and progress.state == ENDED
                if not as_json:
                    print_job(progress)
        if as_json:
            click.echo(json.dumps(said, ensure_ascii=False))
        end_unless(ended)


@click.command()
@click.argument("names", nargs=-1)
@click.option("--prefix", help="All pages whose names begin so.")
@REASON
@YES
@DRY
@json_option
@store_options
def delete(
    names: tuple[str, ...],
    prefix: str | None,
    reason: str,
    yes: bool,
    dry_run: bool,
    as_json: bool,
    store: StoreOptions,
) -> None:
    """Delete pages: nobody sees them any more, and wikka undelete brings them back.

    \b
      wikka delete "Some page" --reason "asked for by its author"
      wikka delete --prefix Spam --dry-run
    """
    if bool(names) == bool(prefix):
        raise click.UsageError("name pages, or give --prefix")
    with moving(store) as moves:
        pages = moves.wiki.names(prefix=prefix, limit=JOB_PAGES_MAX) if prefix else [normalise(one) for one in names]
        if as_json and (dry_run or not pages):
            click.echo(json.dumps({"pages": pages, "done": False}, ensure_ascii=False))
        elif not as_json:
            list_names("pages would be deleted" if dry_run else "pages are to be deleted", pages)
        if dry_run or not pages:
            return
        if len(pages) > 1 and not yes:
            click.confirm(f"Delete {len(pages):,} pages?", abort=True, err=as_json)
        said: dict[str, Any] = {"pages": pages, "done": True}
        ended = True
        if len(pages) == 1:
            moves.delete(pages[0], reason)
        else:
            progress = worked(moves.wiki, new_job(MASS_DELETE, COMMAND, "wiki", reason), pages)
            said["job"], ended = job_data(progress), progress.state == ENDED
            if not as_json:
                print_job(progress)
        _settle(moves.wiki)
        if as_json:
            click.echo(json.dumps(said, ensure_ascii=False))
        end_unless(ended)
    if not as_json:
        click.echo("Deleted; wikka undelete NAME brings a page back.")


@click.command()
@click.argument("name", required=False)
@click.option("--to", "new", default="", metavar="NAME", help="Under another name.")
@_LAST
@json_option
@DRY
@store_options
def undelete(name: str | None, new: str, at: str, as_json: bool, dry_run: bool, store: StoreOptions) -> None:
    """Bring back the deleted page NAME with its history and rights; without NAME, list what is deleted.

    \b
      wikka undelete
      wikka undelete "Some page"
    """
    with moving(store) as moves:
        if name is None:
            _show_deleted(moves.deleted(), as_json)
            return
        one = _chosen(moves, name, at)
        target = normalise(new) if new else one.name
        if not dry_run:
            moves.undelete(one, target)
            _settle(moves.wiki)
    if as_json:
        click.echo(json.dumps({**_deleted_data(one), "to": target, "done": not dry_run}, ensure_ascii=False))
    elif dry_run:
        click.echo(f"{one.name}, deleted {iso_time(one.time_ms)}, would come back as {target}.")
    else:
        click.echo(f"{target} is there again, with {one.number} revisions.")


@click.command()
@click.argument("name")
@_LAST
@YES
@DRY
@json_option
@store_options
def purge(name: str, at: str, yes: bool, dry_run: bool, as_json: bool, store: StoreOptions) -> None:
    """Remove the deleted page NAME for good: its texts, and all that indexes know of it.

    Delete it first. The audit keeps a line that says what was purged and when. It cannot be brought back.
    """
    with moving(store) as moves:
        one = _chosen(moves, name, at)
        said = f"{one.name}, deleted {iso_time(one.time_ms)} by {one.by}, {one.number} revisions"
        if not dry_run and not yes:
            click.confirm(f"{said}: remove for good?", abort=True, err=as_json)
        count = one.number if dry_run else moves.purge(one)
    if as_json:
        found = {**_deleted_data(one), "revisions": count, "done": not dry_run}
        click.echo(json.dumps(found, ensure_ascii=False))
    elif dry_run:
        click.echo(f"{said}: would be gone for good.")
    else:
        click.echo(f"{count} revisions are gone for good.")


@click.command()
@click.argument("name")
@click.argument("revision", type=click.IntRange(1))
@REASON
@YES
@json_option
@store_options
def erase(name: str, revision: int, reason: str, yes: bool, as_json: bool, store: StoreOptions) -> None:
    """Erase the text and the note of one revision of the page NAME for good.

    The audit keeps a line. The newest revision cannot be erased: save another text first. An export that has the
    revision brings it back if it is imported again.

    \b
      wikka erase "Some page" 7 --reason "a password"
    """
    with moving(store) as moves:
        if not yes:
            click.confirm(f"{name}, revision {revision}: erase for good?", abort=True, err=as_json)
        GuardedErasure(moves).erase_revision(name, revision, reason=reason)
        _settle(moves.wiki)
    click.echo(json.dumps({"page": name, "revision": revision, "erased": True}) if as_json else "It is erased.")


@click.command()
@click.argument("author", required=False)
@click.option(
    "--since", default="yesterday", show_default=True, metavar="TIME", help="2026-11-24, or with T15:00 (UTC)."
)
@click.option(
    "--undo",
    metavar="ID",
    help="Take back what an earlier revert, a delete of many pages, or the links of a rename did.",
)
@REASON
@YES
@DRY
@json_option
@store_options
def revert(
    author: str | None,
    since: str,
    undo: str | None,
    reason: str,
    yes: bool,
    dry_run: bool,
    as_json: bool,
    store: StoreOptions,
) -> None:
    """Take back all edits that AUTHOR signed since a moment; pages that AUTHOR began are deleted.

    \b
    A page that somebody else has edited since is left as it is, and listed.
      wikka revert "Visitor 7f3a" --since 2026-11-23 --dry-run
      wikka revert --undo 0123456789abcdef
    """
    if (author is None) == (undo is None):
        raise click.UsageError("name an author, or give --undo ID")
    since_ms = moment(since)
    if since_ms is None:
        raise click.UsageError(f"--since {since}: write the moment as 2026-11-24 or 2026-11-24T15:00")
    with moving(store) as moves:
        wiki = moves.wiki
        if undo is not None:
            _undo(wiki, undo, as_json)
            return
        assert author is not None, "one of both is given"
        names = list(edited_by(wiki, author, since_ms))
        plans = [planned(wiki, author, since_ms, name) for name in names[:_MAX_LISTED]]
        if as_json and (dry_run or not names):
            shown = [asdict(one) for one in plans]
            click.echo(json.dumps({"pages": names, "plans": shown, "done": False}, ensure_ascii=False))
        elif not as_json:
            _show_plans(plans, len(names))
        if dry_run or not names:
            return
        if not yes:
            click.confirm("Take these edits back?", abort=True, err=as_json)
        given = {"author": author, "since_ms": since_ms}
        job = new_job(REVERT, COMMAND, "wiki", reason or f"All of {author} since {since}", **given)
        do_job(wiki, job, names, as_json)


# --- steps -------------------------------------------------------------------------------------


def _leads(page: Page, target: str) -> bool:
    """Return whether the page redirects to ``target``, left by a rename that stopped before it rewrote all links."""
    return redirect_target(page.body, markup=page.markup) == target


def _show_plans(plans: list[Reverted], count: int) -> None:
    for plan in plans:
        to = f"back to revision {plan.to}" if plan.to else "deleted"
        to = f"{plan.current_name} has this name again" if plan.current_name else to
        click.echo(f"  {plan.name}: {plan.why or f'{plan.edits} edits go, {to}'}")
    click.echo(f"{count:,} pages{'' if count <= _MAX_LISTED else f'; the first {_MAX_LISTED} are shown'}")


def _undo(wiki: Wiki, job_id: str, as_json: bool) -> None:
    jobs = Jobs(wiki.rows, clock_ms)
    progress = jobs.progress(job_id.encode())
    if progress is None:
        raise click.ClickException(f"there is no work {job_id}")
    jobs.stop(progress.job.id)
    job = progress.job
    given = {"source": job.target, "target": job.source, "of": job.id, "redirect": False}
    undo = new_job(job_rows.UNDO, COMMAND, "wiki", f"Undo of {job_id}", **given)
    do_job(wiki, undo, [one.name for one in progress.done], as_json, of_kind=job.kind)


def worked(wiki: Wiki, job: Job, names: list[str], *, of_kind: str = "") -> Progress:
    """Work on a job, with a progress bar; Ctrl-C stops the job so that it can be continued."""
    begin(wiki, job, names, of_kind=of_kind)
    with progress_bar(*_COLUMNS, total=len(names)) as bar:
        try:
            return work(wiki, job, lambda: bar(advance=1))
        except KeyboardInterrupt:
            Jobs(wiki.rows, clock_ms).stop(job.id)
            errors.print(f"stopped; what is done stays. Take it back: wikka revert --undo {job.id.decode()}")
            raise SystemExit(1) from None


def do_job(wiki: Wiki, job: Job, names: list[str], as_json: bool, *, of_kind: str = "") -> None:
    """Work on a job and say what became of it; exit with 1 unless it has ended."""
    progress = worked(wiki, job, names, of_kind=of_kind)
    if as_json:
        click.echo(json.dumps(job_data(progress), ensure_ascii=False))
    else:
        print_job(progress)
    end_unless(progress.state == ENDED)


def job_data(progress: Progress) -> dict[str, Any]:
    return {
        "job": progress.job.id.decode(),
        "ended": progress.state == ENDED,
        "done": [one.name for one in progress.done],
        "left": {one.name: one.why for one in progress.left},
    }


def print_job(progress: Progress) -> None:
    for one in progress.left[:_MAX_LISTED]:
        errors.print(f"  left as it is: {one.name}: {one.why}", markup=False)
    job = progress.job.id.decode()
    click.echo(f"{len(progress.done):,} pages done, {len(progress.left):,} left as they are ({job})")


def end_unless(ended: bool) -> None:
    if not ended:
        raise SystemExit(1)


def _settle(wiki: Wiki) -> None:
    if settled_after(wiki, _SETTLE_S) is None:
        errors.print("the indexes do not know of it yet; they will in a moment")


def list_names(what: str, names: list[str]) -> None:
    click.echo(f"{len(names):,} {what}{':' if names else '.'}")
    for name in names[:_MAX_LISTED]:
        click.echo(f"  {name}")
    if len(names) > _MAX_LISTED:
        click.echo(f"  and {len(names) - _MAX_LISTED:,} more")


def _chosen(moves: GuardedMoves, name: str, at: str) -> Deleted:
    found = moves.deleted(normalise(name))
    if at:
        found = [one for one in found if iso_time(one.time_ms).startswith(at)]
    if not found:
        raise click.ClickException(f"no deleted page is called {name}{f' and was deleted {at}' if at else ''}")
    return found[0]


def _deleted_data(one: Deleted) -> dict[str, Any]:
    return {"name": one.name, "deleted": iso_time(one.time_ms), "by": one.by, "reason": one.reason}


def _show_deleted(found: list[Deleted], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps([_deleted_data(one) for one in found], indent=1, ensure_ascii=False))
        return
    for one in found:
        click.echo(f"{iso_time(one.time_ms)}  {one.name}  by {one.by}{f': {one.reason}' if one.reason else ''}")
    click.echo(f"{len(found):,} deleted pages")
