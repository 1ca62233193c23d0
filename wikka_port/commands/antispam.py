"""``wikka antispam``: the settings of antispam, their changes, and the judgement on a text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import click

from wikka_port.accounts.audit import Audit, note_settings
from wikka_port.antispam.judging import Author, Kind, Submission, judge
from wikka_port.antispam.policy import SWITCHES, BadPolicy, Policy, changed_policy, pack_policy
from wikka_port.antispam.stored_policy import policy_history, read_policy, write_policy
from wikka_port.commands.store_options import StoreOptions, json_option, store_options
from wikka_port.feeds import iso_time
from wikka_port.handlers.antispam import CHANGE, FIELDS, LISTS, changed_names, differences, fields_of
from wikka_port.pages import clock_ms
from wikka_port.visitors import COMMAND

REFUSED: Final = 1  # exit status
_KEYS: Final = (*FIELDS, *SWITCHES)


@click.group()
def antispam() -> None:
    """Settings of antispam: numbers of links, words, sites, the question, first edits.

    \b
    Show them, and change some; the value of a list may be a file with an entry a line:
      wikka antispam show
      wikka antispam set page_links=20 first_edits=review
      wikka antispam set words=@badwords.txt
      wikka antispam set question="What river is here?" answers=Ems
    Who changed what, and what a text would get from a visitor:
      wikka antispam history
      wikka antispam test comment.txt --kind comment
    """


@antispam.command()
@json_option
@store_options
def show(store: StoreOptions, as_json: bool) -> None:
    """Show the settings in force."""
    with store.open_wiki() as wiki:
        policy = read_policy(wiki.rows).policy
    _print_policy(policy, as_json)


@antispam.command("set")
@click.argument("changes", nargs=-1, required=True, metavar="NAME=VALUE...")
@json_option
@store_options
def set_policy(store: StoreOptions, changes: tuple[str, ...], as_json: bool) -> None:
    """Change settings, at once in every process of the wiki; the value of a list may be @FILE."""
    given: dict[str, Any] = {}
    for change in changes:
        name, equals, value = change.partition("=")
        if not equals or name not in _KEYS:
            raise click.BadParameter(f"'{change}' is no change: write NAME=VALUE, with one of {', '.join(_KEYS)}")
        given[name] = _text_of(value) if name in LISTS else value
    with store.open_wiki() as wiki:
        before = read_policy(wiki.rows)
        try:
            policy = changed_policy(before.policy, given)
            if policy != before.policy:
                write_policy(wiki.rows, before.revision, policy, by=COMMAND, now_ms=clock_ms())
                note_settings(Audit(wiki.rows, clock_ms), CHANGE, changed_names(before.policy, policy), by=COMMAND)
        except BadPolicy as bad:
            click.echo(f"wikka: {bad}", err=True)
            raise SystemExit(REFUSED) from None
    _print_policy(policy, as_json)


def _text_of(value: str) -> str:
    if not value.startswith("@"):
        return value.replace(",", "\n")
    try:
        return Path(value[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as wrong:
        raise click.BadParameter(f"{value[1:]} cannot be read: {wrong}") from None


@antispam.command()
@json_option
@store_options
def history(store: StoreOptions, as_json: bool) -> None:
    """List the changes of the settings, the newest first."""
    with store.open_wiki() as wiki:
        found = policy_history(wiki.rows)
    for one in found:
        kept = differences(one.policy)
        if as_json:
            click.echo(json.dumps({"time": iso_time(one.time_ms), "by": one.by, **kept}, ensure_ascii=False))
        else:
            words = "; ".join(f"{key}: {value[:200]}" for key, value in kept.items()) or "all as at first"
            click.echo(f"{iso_time(one.time_ms)}  {one.by}  {words}")


@antispam.command("test")
@click.argument("file", type=click.File(encoding="utf-8"))
@click.option("--kind", type=click.Choice(["page", "comment", "suggestion"]), default="page", show_default=True)
@click.option("--name", default="", help="The name of a new page that has the text.")
@json_option
@store_options
def test_text(store: StoreOptions, file: Any, kind: Kind, name: str, as_json: bool) -> None:
    """Say what a visitor without an account would get for the text in FILE ('-' is the standard input)."""
    with store.open_wiki() as wiki:
        policy = read_policy(wiki.rows).policy
    verdict = judge(Submission(kind, "", file.read(), Author(), name=name), policy)
    if as_json:
        reasons = [{"code": one.code, "sentence": str(one)} for one in verdict.reasons]
        click.echo(json.dumps({"verdict": verdict.action, "reasons": reasons}, ensure_ascii=False))
        return
    click.echo(verdict.action)
    for reason in verdict.reasons:
        click.echo(f"  {reason.code}: {reason}")


def _print_policy(policy: Policy, as_json: bool) -> None:
    changed = json.loads(pack_policy(policy))
    if as_json:
        values = {**fields_of(policy), **changed, **{key: getattr(policy, key) for key in SWITCHES}}
        lists = {key: list(getattr(policy, key)) for key in LISTS}
        click.echo(json.dumps({**values, **lists}, indent=1, ensure_ascii=False))
        return
    for key in _KEYS:
        value = getattr(policy, key)
        shown = ", ".join(value) if key in LISTS else value
        click.echo(f"{key} = {shown}{'' if key in changed else '  (as at first)'}")
