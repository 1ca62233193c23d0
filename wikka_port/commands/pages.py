"""``wikka pages``: pages by name, owner, last author, lists and time, listed and changed together; as ``/-/pages``."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import click

from wikka_port.commands.acl import given_lists, list_options, require_owner
from wikka_port.commands.moves import DRY, REASON, YES, do_job, list_names, moving
from wikka_port.commands.store_options import StoreOptions, errors, json_option, store_options
from wikka_port.feeds import iso_time
from wikka_port.handlers.moves import moment
from wikka_port.limits import JOB_PAGES_MAX
from wikka_port.moving.jobs import MASS_DELETE, MASS_RIGHTS, Job, new_job
from wikka_port.page_selection import NOBODY, NONE, OWN, PageFilter, SelectedPage, selected, selected_of_all
from wikka_port.pages import Wiki
from wikka_port.rights.acl import BadList
from wikka_port.rights.rules import PUBLIC, RightsChange
from wikka_port.rights.words import checked_list
from wikka_port.visitors import COMMAND

LISTED_MAX: Final = 100_000


@dataclass(frozen=True, slots=True)
class _Filter:
    """The options that select pages."""

    wanted: PageFilter
    is_all: bool  # whether --all was given

    def require(self) -> None:
        if self.wanted.is_empty != self.is_all:
            said = (
                "--all is for all pages: leave the other filters out" if self.is_all else "select pages, or give --all"
            )
            raise click.UsageError(said)


def _filters(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of ``_filter``."""
    for option in reversed(
        (
            click.option("--prefix", default="", metavar="TEXT", help="Names that begin so, without case and accents."),
            click.option("--owner", default="", metavar="NAME", help=f"Pages of this owner; '{NOBODY}': without one."),
            click.option("--author", default="", metavar="NAME", help="Pages that this author changed last."),
            click.option("--lists", type=click.Choice([OWN, NONE]), help="With a list of their own, or with none."),
            click.option(
                "--since", default="", metavar="TIME", help="Changed at 2026-11-24 or 2026-11-24T15:00, or later."
            ),
            click.option("--until", default="", metavar="TIME", help="Changed before that moment (UTC)."),
        )
    ):
        command = option(command)
    return command


def _filter(given: dict[str, Any]) -> PageFilter:
    times = {key: moment(given[key]) if given[key] else 0 for key in ("since", "until")}
    for key, value in times.items():
        if value is None:
            raise click.UsageError(f"--{key} {given[key]}: write the moment as 2026-11-24 or 2026-11-24T15:00")
    names = {key: given[key] for key in ("prefix", "owner", "author")}
    return PageFilter(**names, lists=given["lists"] or "", since_ms=times["since"] or 0, until_ms=times["until"] or 0)


@click.group()
def pages() -> None:
    """Pages by name, owner, last author, lists and time: listed, given an owner or lists, or deleted.

    \b
    List the pages that nobody owns, and those that "Visitor 7f3a" changed last:
      wikka pages list --owner "(Nobody)"
      wikka pages list --author "Visitor 7f3a" --since yesterday
    Give the pages of a person who left to somebody else; make a part of the wiki for some:
      wikka pages set --owner Ben --new-owner Mia
      wikka pages set --prefix Vault/ --read +Vault+ --inherit write --dry-run
    Delete many; wikka revert --undo ID takes any of it back:
      wikka pages delete --author Spammer --since 2026-11-23
    """


@pages.command("list")
@_filters
@click.option("--limit", default=1_000, show_default=True, type=click.IntRange(1, LISTED_MAX), help="At most so many.")
@json_option
@store_options
def list_pages(store: StoreOptions, limit: int, as_json: bool, **given: Any) -> None:
    """List pages by name; without a filter all of them."""
    wanted = _filter(given)
    found, start = list[SelectedPage](), ""
    with store.open_wiki() as wiki:
        while len(found) < limit:
            part, start = selected(wiki.rows, wiki, wanted, start=start, most=limit - len(found))
            found += part
            if not start:
                break
    if as_json:
        click.echo(json.dumps([_data(one) for one in found], indent=1, ensure_ascii=False))
    else:
        for one in found:
            lists = f"  lists: {', '.join(one.lists)}" if one.lists else ""
            click.echo(f"{iso_time(one.time_ms)}  {one.name}  owner: {one.owner or '-'}  by: {one.author}{lists}")
    if start:
        errors.print(f"there may be more, from {start} on: raise --limit", markup=False)


def _data(one: SelectedPage) -> dict[str, Any]:
    return {
        "name": one.name,
        "owner": one.owner,
        "author": one.author,
        "changed": iso_time(one.time_ms),
        "lists": [str(privilege) for privilege in one.lists],
    }


_ALL: Final = click.option("--all", "is_all", is_flag=True, help="All pages.")


@pages.command("set")
@_filters
@_ALL
@click.option("--new-owner", metavar="NAME", help=f"A registered user, '{PUBLIC}', or '' for nobody.")
@list_options
@REASON
@YES
@DRY
@json_option
@store_options
def set_rights(
    store: StoreOptions,
    is_all: bool,
    new_owner: str | None,
    reason: str,
    yes: bool,
    dry_run: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Give pages an owner, or lists of their own; --inherit takes lists away. Everything else stays as it is."""
    chosen = _Filter(_filter(given), is_all)
    chosen.require()
    lists = given_lists(given)
    if new_owner is None and not lists:
        raise click.UsageError(
            "say what to set: --new-owner, --read, --write, --comment-read, --comment-post, --inherit"
        )
    try:
        kept = {one: None if text is None else checked_list(one, text) for one, text in lists.items()}
    except BadList as bad:
        raise click.ClickException(str(bad)) from None
    change = RightsChange(new_owner, kept)
    job = new_job(MASS_RIGHTS, COMMAND, "wiki", reason, rights=change.pack())
    with moving(store) as moves:
        require_owner(moves.wiki, new_owner)
        _change(moves.wiki, chosen.wanted, job, "changed", yes=yes, dry_run=dry_run, as_json=as_json)


@pages.command("delete")
@_filters
@_ALL
@REASON
@YES
@DRY
@json_option
@store_options
def delete_pages(
    store: StoreOptions, is_all: bool, reason: str, yes: bool, dry_run: bool, as_json: bool, **given: Any
) -> None:
    """Delete pages: nobody sees them any more, and wikka undelete brings them back."""
    chosen = _Filter(_filter(given), is_all)
    chosen.require()
    job = new_job(MASS_DELETE, COMMAND, "wiki", reason)
    with moving(store) as moves:
        _change(moves.wiki, chosen.wanted, job, "deleted", yes=yes, dry_run=dry_run, as_json=as_json)


def _change(wiki: Wiki, wanted: PageFilter, job: Job, what: str, *, yes: bool, dry_run: bool, as_json: bool) -> None:
    """Do a job on the pages that match, after the question; those beyond JOB_PAGES_MAX names are left."""
    found, onward = selected_of_all(wiki.rows, wiki, wanted)
    names = [one.name for one in found]
    if not as_json:
        list_names(f"pages would be {what}" if dry_run else f"pages are to be {what}", names)
    if onward:
        errors.print(f"{JOB_PAGES_MAX:,} names are looked at at once; from {onward} on: do it again", markup=False)
    if dry_run or not names:
        if as_json:
            click.echo(json.dumps({"pages": names, "done": False, "onward": onward}, ensure_ascii=False))
        return
    if not yes:
        click.confirm(f"{len(names):,} pages: are they to be {what}?", abort=True, err=as_json)
    do_job(wiki, job, names, as_json)
