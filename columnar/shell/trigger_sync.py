"""``columnar trigger sync | reload``: apply a module's declared triggers (``triggers.api.on``), or its new source."""

from __future__ import annotations

import importlib
import os
import sys
from types import ModuleType
from typing import Any

import click

from columnar.errors import IllegalArgument
from columnar.model.flow_graph import with_places
from columnar.model.trigger_registration import Registration
from columnar.model.trigger_sync import Plan, no_more_declared, plan_of
from columnar.shell.connecting import Misused, Refused, Server, require_confirmation, with_server
from columnar.triggers.declared import On, declared_in


@click.command()
@click.argument("module")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@with_server
def sync(server: Server, module: str, yes: bool, dry_run: bool) -> None:
    """Have the triggers that MODULE declares.

    MODULE is imported here, from this folder or an installed package, and no function of it is called. Shows what is
    added, changed and removed, and asks. Triggers that an earlier sync of MODULE made and that it declares no more
    are removed; all others stay. A trigger that is changed keeps its place: nothing is delivered twice or left out.

    \b
      columnar trigger sync my_triggers --dry-run
      columnar trigger sync my_triggers --yes
    """
    marks = _declared(module)
    present = [one.registration for one in server.connection.triggers.list() if one.registration is not None]
    tables = [name.decode() for name in server.connection.tables()]
    try:
        wanted = [with_places(_registration(server, mark), tables) for mark in marks]
        removed = no_more_declared(present, wanted, module)
        plan = plan_of(present, wanted, removed)
    except IllegalArgument as error:
        raise Refused(error.text) from None
    if not server.output.as_json:
        _show(plan)
    if not plan.is_empty and not dry_run:
        require_confirmation("Change the triggers so?", yes)
        server.connection.triggers.sync(wanted, removed)
    if server.output.as_json:
        server.output.json(_as_json(plan, is_done=not dry_run))
    elif not plan.is_empty and not dry_run:
        click.echo("done")


@click.command()
@with_server
def reload(server: Server) -> None:
    """Take up changed source of triggers.

    From the next call on every function runs as its source is on disk now; calls that run end as they began.
    Installed packages other than the modules that triggers may name stay as they are.
    """
    server.connection.triggers.reload()
    server.output.done("triggers run their source as it is now", {"reloaded": True})


def _declared(name: str) -> list[On]:
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return declared_in(_imported(name))
    except IllegalArgument as error:
        raise Misused(f"module {name}: {error.text}") from None


def _imported(name: str) -> ModuleType:
    """Import the module as it is on disk now, because a prompt may have imported it before."""
    try:
        if name in sys.modules:
            return importlib.reload(sys.modules[name])
        return importlib.import_module(name)
    except IllegalArgument:
        raise
    except Exception as error:
        raise Misused(f"module {name} cannot be imported here: {type(error).__name__}: {error}") from error


def _registration(server: Server, mark: On) -> Registration:
    """Return the registration of a mark, with all families of its table if the mark names no columns."""
    if mark.registration.families:
        return mark.registration
    return mark.with_families(list(server.connection.table(mark.registration.table.encode()).families()))


def _show(plan: Plan) -> None:
    if plan.is_empty:
        click.echo("nothing changes")
    for one in plan.added:
        click.echo(f"add     {one.name}: {one.function} on {one.table}, from {one.from_where}")
    for change in plan.changed:
        click.echo(f"change  {change.current.name}, which keeps its place")
        for line in change.words():
            click.echo(f"          {line}")
    for name in plan.removed:
        click.echo(f"remove  {name}: what was not delivered to it is dropped")


def _as_json(plan: Plan, *, is_done: bool) -> dict[str, Any]:
    return {
        "added": [one.name for one in plan.added],
        "changed": {change.current.name: change.words() for change in plan.changed},
        "removed": list(plan.removed),
        "done": is_done,
    }
