"""``columnar view ...``: declare, list, check, rebuild and swap views."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from time import monotonic
from typing import Any, Final

import click

from columnar.client import Connection, View, ViewStatus
from columnar.model.view_definition import bound, checked
from columnar.shell import view_reads
from columnar.shell.completion import completing
from columnar.shell.connecting import Misused, Refused, Server, require_confirmation, with_server
from columnar.shell.progress import counting
from columnar.shell.shell_output import plain_fields, remark_on_silent
from columnar.shell.text import readable
from columnar.shell.view_options import SidedCommand, definition_options, view_of
from columnar.shell.view_reads import source_facts
from columnar.views.contributions import rules_of

LONGEST_S: Final = 86_400.0  # a build of a large table takes its time
STEP_MS: Final = 1_000  # of a wait, after which a person sees how far it is
_NAME: Final = click.argument("name", shell_complete=completing("view"))
_DRY_RUN: Final = click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def view() -> None:
    """Declare materialised views and read them.

    \b
    A view follows a table by itself: counts, sums, top lists, indexes, joins.
      columnar view add authors --from pages --by meta:author --sum bytes=meta:bytes --order meta:score:desc
      columnar view show authors alice
      columnar view top authors alice -n 10
      columnar view list
    """


for _command in (view_reads.show, view_reads.top, view_reads.members, view_reads.groups, view_reads.pairs):
    view.add_command(_command)


@view.command(cls=SidedCommand)
@click.argument("name")
@definition_options
@click.option("--wait", is_flag=True, help="Return when all rows that are there are in the view.")
@_DRY_RUN
@with_server
def add(server: Server, name: str, wait: bool, dry_run: bool, **options: Any) -> None:
    """Declare a view: it follows its tables from now on.

    Rows that are there already are shown to it while everything goes on; --wait waits for that.

    \b
    Pages by author, the largest total and the best page of each:
      columnar view add authors --from pages --by meta:author --where 'meta:deleted absent' \\
        --sum bytes=meta:bytes --avg score=meta:score --order meta:score:desc --include meta:title
    An index of tags, one group for each tag of a page:
      columnar view add tags --from pages --by "each meta:tags split ','"
    Visits by day, in 16 rows a day because everybody writes into today's:
      columnar view add visits --from log --by 'day(m:time)' --spread 16
    A join, whose groups hold the rows of both tables:
      columnar view add orders_of --from orders --by f:who --sum total=f:price --join people --by row --include f:city
    """
    declared = view_of(name, options)
    if dry_run:
        _check_locally(server, declared)
        _show_plan(server, declared, f"view {name} would be declared so; nothing was done")
        return
    server.connection.views.add(declared)
    if wait:
        _wait_until_built(server, name)
    text = "is built" if wait else "is being built; 'columnar view list' shows how far it is"
    server.output.done(f"view {name} {text}", {"added": name})


def _check_locally(server: Server, declared: View) -> None:
    """Check the definition alone, as a store does. Raises IllegalArgument."""
    known = {one.name: one.definition for one in server.connection.views.list() if one.definition is not None}
    rules_of(bound(checked(declared), known))


def _show_plan(server: Server, declared: View, text: str) -> None:
    sides = [source_facts(source) for source in declared.sources]
    if server.output.as_json:
        server.output.json({"view": declared.name, "sources": sides, "spread": declared.spread, "done": False})
        return
    for facts in sides:
        server.output.facts(facts)
    if server.output.is_terminal:
        click.echo(text)


def _wait_until_built(server: Server, name: str, table: str = "") -> None:
    """Wait until a view is built; ``table`` is the table of a generation that is not the live one."""
    ends = monotonic() + LONGEST_S
    with closing(server.patient(STEP_MS / 1_000)) as connection, counting(f"building {name}", "rows") as advance:
        while not _is_built(connection, name, table, advance):
            if monotonic() >= ends:
                raise Refused(f"view {name} is still being built; 'columnar view list' shows how far it is")


def _is_built(connection: Connection, name: str, table: str, advance: Callable[[int], None]) -> bool:
    """Return whether the view has all changes written so far, and the master knows that it is built."""
    found = [one for one in connection.views.list() if one.name == name and one.table == (table or one.table)]
    if not found:
        raise Refused(f"view {name} was dropped while it was built")
    advance(found[-1].built_rows)
    if found[-1].state == "live":
        return True
    connection.views.wait(f"{name}@{found[-1].generation}", "", STEP_MS)  # then it is read again
    return False


@view.command("list")
@with_server
def list_(server: Server) -> None:
    """List the views with their sources, their lag, and the rows that they cannot read.

    \b
      columnar view list
    """
    found = server.connection.views.list()
    headings = ("View", "Follows", "By", "State", "Lag", "Seconds", "Built", "Rejected", "Last error")
    nothing = "There are none. Declare one: columnar view add NAME --from TABLE --by FAMILY:QUALIFIER"
    server.output.records(found, _as_json, headings, _line, numbers=(4, 5, 6, 7), nothing=nothing)
    if found and not server.output.as_json:
        remark_on_silent(found[0].silent_servers)


def _line(one: ViewStatus) -> tuple[object, ...]:
    sources = one.definition.sources if one.definition is not None else ()
    return (
        one.table,
        ",".join(source.table for source in sources),
        ",".join(" and ".join(source.key) for source in sources),
        one.state if one.role == "live" else f"{one.state} ({one.role})",
        one.lag_changes,
        f"{one.lag_seconds:.1f}",
        one.built_rows,
        one.rejected_rows,
        readable(one.last_error.encode()),
    )


def _as_json(one: ViewStatus) -> dict[str, object]:
    sources = one.definition.sources if one.definition is not None else ()
    return {
        **plain_fields(one, "name", "table", "generation"),
        "sources": [source_facts(source) for source in sources],
        **plain_fields(
            one, "state", "role", "lag_changes", "lag_seconds", "built_rows", "rejected_rows", "last_error",
            "silent_servers",
        ),
    }  # fmt: skip


@view.command()
@_NAME
@click.option("--yes", is_flag=True, help="Do not ask.")
@_DRY_RUN
@with_server
def drop(server: Server, name: str, yes: bool, dry_run: bool) -> None:
    """Remove a view with its table; its sources stay as they are.

    \b
      columnar view drop authors --dry-run
      columnar view drop authors --yes
    """
    if dry_run:
        tables = [one.table for one in server.connection.views.list() if one.name == name]
        if not tables:
            raise Misused(f"there is no view {name}; 'columnar view list' shows those there are")
        text = f"view {name} would go with its table {', '.join(tables)}; nothing was done"
        server.output.done(text, {"view": name, "tables": tables, "done": False})
        return
    require_confirmation(f"Remove view {name} and its table for good?", yes)
    with closing(server.patient(LONGEST_S)) as connection:
        connection.views.drop(name)
    server.output.done(f"view {name} is gone", {"dropped": name})


@view.command(cls=SidedCommand)
@_NAME
@definition_options
@click.option("--wait", is_flag=True, help="Return when all rows that are there are in the next generation.")
@_DRY_RUN
@with_server
def rebuild(server: Server, name: str, wait: bool, dry_run: bool, **options: Any) -> None:
    """Build the next generation of a view beside the live one, also with another definition.

    Readers go on with the old one until 'columnar view swap'. Without options it is declared as the live one is.

    \b
      columnar view rebuild authors --wait
      columnar view rebuild authors --from pages --by meta:author --sum bytes=meta:bytes --dry-run
    """
    current = server.connection.views.status(name)
    declared = view_of(name, options, current.definition)
    if dry_run:
        _check_locally(server, declared)
        _show_plan(server, declared, f"the next generation of {name} would be declared so; nothing was done")
        return
    is_same = declared == current.definition  # whoever may rebuild need not be able to read what it is made of
    table = server.connection.views.rebuild(name, None if is_same else declared)
    if wait:
        _wait_until_built(server, name, table)
    text = f"'columnar view swap {name}' has readers see it" if wait else "'columnar view list' shows how far it is"
    server.output.done(f"{table} is {'built' if wait else 'being built'}; {text}", {"rebuilt": name, "table": table})


@view.command()
@_NAME
@_DRY_RUN
@with_server
def swap(server: Server, name: str, dry_run: bool) -> None:
    """Have readers of a view see its next generation.

    The swap is one write, and leaves no reader without an answer. The generation before is kept up for an hour, for
    'columnar view rollback'.

    \b
      columnar view swap authors --dry-run
      columnar view swap authors
    """
    if dry_run:
        _say_roles(server, name, "next")
        return
    live, kept = server.connection.views.swap(name)
    text = f"readers of {name} see {live}; {kept} is kept up for an hour"
    server.output.done(text, {"swapped": name, "live": live, "kept": kept})


@view.command()
@_NAME
@_DRY_RUN
@with_server
def rollback(server: Server, name: str, dry_run: bool) -> None:
    """Have readers of a view see the generation before the swap again.

    \b
      columnar view rollback authors
    """
    if dry_run:
        _say_roles(server, name, "kept")
        return
    live, kept = server.connection.views.rollback(name)
    text = f"readers of {name} see {live} again; {kept} is kept up for an hour"
    server.output.done(text, {"rolled_back": name, "live": live, "kept": kept})


def _say_roles(server: Server, name: str, role: str) -> None:
    found = {one.role: one for one in server.connection.views.list() if one.name == name}
    if "live" not in found or role not in found:
        raise Refused(f"view {name} has no {role} generation; 'columnar view list' shows those there are")
    coming = found[role]
    text = f"readers of {name} would see {coming.table} ({coming.state}) in place of {found['live'].table}"
    facts = {"view": name, "live": found["live"].table, role: coming.table, "state": coming.state, "done": False}
    server.output.done(f"{text}; nothing was done", facts)


@view.command()
@_NAME
@click.option("--repair", is_flag=True, help="Set right what is wrong.")
@with_server
def check(server: Server, name: str, repair: bool) -> None:
    """Prove that a view equals its tables, or with --repair set right what is wrong.

    Reads both sides once, while writers write; exit status 1 if something is wrong and was not repaired.

    \b
      columnar view check authors
      columnar view check authors --repair
    """
    with closing(server.patient(LONGEST_S)) as connection, counting(f"checking {name}", "rows"):
        report = connection.views.check(name, repair=repair)
    facts = plain_fields(report, "view", "source_rows", "rejected", "groups", "members", "wrong", "unsure", "repaired")
    findings = [plain_fields(one, "kind", "table", "row", "text") for one in report.findings]
    if server.output.as_json:
        server.output.json({**facts, "findings": findings})
    else:
        server.output.facts(facts)
        for one in findings:
            server.output.line(f"{one['kind']} {one['row']} of {one['table']}: {one['text']}")
    if report.wrong > report.repaired:
        raise Refused(f"view {name} is wrong in {report.wrong - report.repaired} places" + _then(name, repair))


def _then(name: str, repaired: bool) -> str:
    step = f"'columnar view rebuild {name}' builds it anew" if repaired else f"'columnar view check {name} --repair'"
    return f"; {step}"
