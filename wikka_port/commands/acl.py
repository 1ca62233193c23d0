"""``wikka acl``: the lists of pages, of prefixes of names and of the site, from the command line."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import click

from wikka_port.accounts.audit import Audit
from wikka_port.accounts.directory import Directory
from wikka_port.commands.store_options import StoreOptions, errors, json_option, store_options
from wikka_port.names import InvalidName, normalise
from wikka_port.pages import Page, Wiki
from wikka_port.rights.acl import BadList
from wikka_port.rights.explaining import decisions, explained, words_of
from wikka_port.rights.groups import all_groups
from wikka_port.rights.judging import Guarded
from wikka_port.rights.rules import LISTED, NO_OWNERS, PUBLIC, Privilege, RightsChange
from wikka_port.rights.stored import RightsChanged
from wikka_port.rights.words import mistakes, who_always
from wikka_port.visitors import COMMAND, NOBODY, Visitor

_SITE: Final = "(site)"
_PREFIX: Final = click.option("--prefix", metavar="TEXT", help="Names that begin so, instead of a page.")
_LISTS: Final = (
    click.option("--read", multiple=True, metavar="ENTRY", help="An entry of the list for reading; repeatable."),
    click.option("--write", multiple=True, metavar="ENTRY", help="An entry of the list for editing; repeatable."),
    click.option("--comment-read", multiple=True, metavar="ENTRY", help="The same for reading comments."),
    click.option("--comment-post", multiple=True, metavar="ENTRY", help="The same for posting comments."),
    click.option(
        "--inherit",
        multiple=True,
        type=click.Choice([str(privilege) for privilege in LISTED]),
        help="Take the list away: that of the prefix or the site counts again; repeatable.",
    ),
)
_WHOLE_SITE: Final = click.option("--site", is_flag=True, help="All names, instead of a page.")


@dataclass(frozen=True, slots=True)
class _Place:
    """The page, or the prefix of names, whose lists a command shows or sets."""

    page: str | None
    prefix: str | None  # "": the site

    @property
    def text(self) -> str:
        return self.page if self.page is not None else self.prefix or _SITE


def list_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options by which lists are set and taken away; ``given_lists`` reads their values."""
    for option in reversed(_LISTS):
        command = option(command)
    return command


def given_lists(given: Mapping[str, Any]) -> dict[Privilege, str | None]:
    """Return the lists in the values of ``list_options``, None for those to be taken away.  Raises UsageError."""
    lists: dict[Privilege, str | None] = {one: "\n".join(given[one]) for one in LISTED if given[one]}
    gone = {Privilege(word) for word in given["inherit"]}
    if gone & lists.keys():
        raise click.UsageError(f"--inherit {min(gone & lists.keys())}: entries are given for it, too")
    return lists | dict.fromkeys(gone)


def require_owner(wiki: Wiki, owner: str | None) -> None:
    """End the command unless pages can have this owner; None is no change."""
    if owner is not None and owner not in NO_OWNERS and owner != PUBLIC and not wiki.rights.users([owner]):
        raise click.ClickException(f"there is no user {owner}")


@click.group()
def acl() -> None:
    """Show, set and explain who may read, edit and comment on pages.

    A list has one entry a line, the first that speaks of a visitor decides: * everybody, + everybody who is signed in,
    a name of a user or of a page that lists members as +Name+; ! before an entry means not.
    """


@acl.command()
@click.argument("page", required=False)
@_PREFIX
@_WHOLE_SITE
@json_option
@store_options
def show(page: str | None, prefix: str | None, site: bool, as_json: bool, store: StoreOptions) -> None:
    """Say who may do what with PAGE; without one, the lists of the site and of all prefixes."""
    place = _place(page, prefix, site) if page or prefix is not None or site else None
    with store.open_wiki() as wiki:
        if place is not None and place.page is not None:
            _show_page(wiki, _there(wiki, place.page), as_json)
        else:
            _show_rules(wiki, None if place is None else place.prefix, as_json)


@acl.command("set")
@click.argument("page", required=False)
@_PREFIX
@_WHOLE_SITE
@list_options
@click.option("--owner", metavar="NAME", help=f"Of a page: a registered user, '{PUBLIC}', or '' for nobody.")
@json_option
@store_options
def set_lists(
    page: str | None,
    prefix: str | None,
    site: bool,
    owner: str | None,
    as_json: bool,
    store: StoreOptions,
    **given: Any,
) -> None:
    """Set lists of PAGE, of a prefix or of the site; those that are not named stay as they are.

    A list that stays is not looked at, so an owner can be given to a page whose imported lists have mistakes; they are
    named on stderr. With --json it prints what counts then. For many pages at once: wikka pages set.
    """
    place = _place(page, prefix, site)
    change = RightsChange(owner, given_lists(given))
    if not change.lists and owner is None:
        raise click.UsageError("say what to set: --read, --write, --comment-read, --comment-post, --inherit or --owner")
    with store.open_wiki() as wiki:
        try:
            lists = _set(wiki, place, change)
        except BadList as bad:
            raise click.ClickException(str(bad)) from None
        except RightsChanged:
            raise click.ClickException(
                f"somebody else changed the rights of {place.text} meanwhile; try again"
            ) from None
        Audit(wiki.rows, _now_ms).note("rights", user="", by=COMMAND, note=place.text)
        if as_json and place.page is not None:
            _show_page(wiki, _there(wiki, place.page), as_json=True)
        elif as_json:
            wiki.rights.memory.forget()
            _show_rules(wiki, place.prefix, as_json=True)
    for privilege, mistake in mistakes(lists).items():
        errors.print(f"a list with a mistake stays as it is: {privilege}: {mistake}", markup=False)
    if as_json:
        return
    click.echo(f"The rights of {place.text} are changed; they count within a second.")


@acl.command()
@click.argument("page")
@click.option("--user", metavar="NAME", help="For this user; without it, for a visitor who is not signed in.")
@json_option
@store_options
def explain(page: str, user: str | None, as_json: bool, store: StoreOptions) -> None:
    """Say what one visitor may do with PAGE, and which entry decides it.

    Exit status: 0 he may read it, 1 he may not.
    """
    with store.open_wiki() as wiki:
        found = _there(wiki, page)
        visitor = _visitor(wiki, user)
        guarded = Guarded(found.name, found.rights, True, wiki.rights.rules())
        decided = decisions(wiki.rights, visitor, guarded)
    if as_json:
        data = {str(one): {"allowed": it.allowed, "reason": it.reason} for one, it in decided.items()}
        click.echo(json.dumps({"page": found.name, "user": visitor.name, "may": data}, indent=1))
    else:
        for privilege, decision in decided.items():
            click.echo(f"{privilege:13} {'yes' if decision.allowed else 'no':4} {decision.reason}")
    raise SystemExit(0 if decided[Privilege.READ].allowed else 1)


@acl.command()
@json_option
@store_options
def groups(as_json: bool, store: StoreOptions) -> None:
    """List the groups that lists name, with the first of their members."""
    with store.open_wiki() as wiki:
        found, more = all_groups(wiki.rows, wiki.rights)
    if as_json:
        data = [{"name": one.name, "members": one.members, "count": one.count} for one in found]
        click.echo(json.dumps({"groups": data, "complete": not more}, indent=1, ensure_ascii=False))
        return
    for one in found:
        click.echo(f"{one.name} ({one.count}): {', '.join(one.members) or 'it names nobody'}")
    if not found:
        click.echo("No list names a group.")
    if more:
        click.echo("Only a part of the pages with lists of their own was searched.", err=True)


# --- steps -------------------------------------------------------------------------------------


def _place(page: str | None, prefix: str | None, site: bool) -> _Place:
    if (page is not None) + (prefix is not None) + site != 1:
        raise click.UsageError("name one of these: a page, --prefix TEXT, or --site")
    return _Place(page, "" if site else prefix)


def _there(wiki: Wiki, name: str) -> Page:
    try:
        found = wiki.page(normalise(name))
    except InvalidName as problem:
        raise click.ClickException(str(problem)) from None
    if found is None:
        raise click.ClickException(f"there is no page {name}")
    return found


def _visitor(wiki: Wiki, user: str | None) -> Visitor:
    if user is None:
        return NOBODY
    account = Directory(wiki.rows, _now_ms).account(user)
    if account is None:
        raise click.ClickException(f"there is no user {user}")
    return Visitor(account.name, account.name, account.status, account.admin, "")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _set(wiki: Wiki, place: _Place, change: RightsChange) -> Mapping[Privilege, str]:
    """Set lists and owner of a page, or lists of a prefix; return its lists then.  Raises BadList, RightsChanged."""
    if place.page is None:
        if change.owner is not None:
            raise click.UsageError("--owner is for a page")
        assert place.prefix is not None, "a place is one or the other"
        return wiki.rights.change_rules(place.prefix, change.lists, wiki.rights.rules()).lists_of(place.prefix)
    page = _there(wiki, place.page)
    require_owner(wiki, change.owner)
    return wiki.rights.change(page.name, page.rights, *change.onto(page.rights)).lists


def _show_page(wiki: Wiki, page: Page, as_json: bool) -> None:
    found = explained(wiki.rights, page.name, page.rights)
    wrong = mistakes({one.privilege: one.access.text for one in found})
    if as_json:
        lists = {
            str(one.privilege): {
                "list": one.access.text,
                "from": str(one.source),
                "words": list(one.words.lines),
                "mistake": wrong.get(one.privilege),
            }
            for one in found
        }
        click.echo(json.dumps({"page": page.name, "owner": page.owner, "lists": lists}, indent=1))
        return
    click.echo(who_always(page.owner))
    for one in found:
        click.echo(f"{one.title}: {' '.join(one.words.lines)} ({one.source})")
        for warning in (*one.words.warnings, *([wrong[one.privilege]] if one.privilege in wrong else [])):
            click.echo(f"  {warning}")


def _show_rules(wiki: Wiki, prefix: str | None, as_json: bool) -> None:
    rules = wiki.rights.rules()
    prefixes = rules.prefixes() if prefix is None else [rules.folded_prefix(prefix)]
    lists = {
        begin: {one: rules.lists[one, begin].text for one in LISTED if (one, begin) in rules.lists}
        for begin in prefixes
    }
    if as_json:
        click.echo(
            json.dumps({begin: {str(p): text for p, text in of.items()} for begin, of in lists.items()}, indent=1)
        )
        return
    if not any(lists.values()):
        click.echo("There is no list: everybody may do everything." if prefix is None else "There is no list for it.")
    for begin, of in lists.items():
        for privilege, text in of.items():
            words = words_of(wiki.rights, text)
            click.echo(f"{begin or _SITE}  {privilege}: {' '.join(words.lines)}")
            for warning in words.warnings:
                click.echo(f"  {warning}")
