"""``columnar view show | top | members | groups | pairs``: read a view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Final

import click

from columnar.client import Group, Member, ViewReader
from columnar.client.view_cells import Key
from columnar.model.view_definition import Source, View
from columnar.shell.completion import completing
from columnar.shell.connecting import Refused, Server, with_server
from columnar.shell.numbers import COUNT
from columnar.shell.text import readable, typed

_LIMIT: Final = click.option("-n", "--limit", default=10, show_default=True, type=COUNT, metavar="N", help="At most N.")
_SIDE: Final = click.option("--side", default="", type=click.Choice(["", "left", "right"]), help="Of a join.")
_GROUP: Final = click.argument("group", nargs=-1, required=True, metavar="GROUP...")
_VIEW: Final = click.argument("name", shell_complete=completing("view"))


@click.command()
@_VIEW
@click.argument("group", nargs=-1, metavar="[GROUP...]")
@with_server
def show(server: Server, name: str, group: tuple[str, ...]) -> None:
    """Show a group's totals, or without GROUP how the view is declared.

    A key of several parts is typed as several words.

    \b
      columnar view show authors
      columnar view show authors alice
      columnar view show visits alice 2026-11-24
    """
    if not group:
        _show_definition(server, name)
        return
    reader = server.connection.view(name)
    key = _key(group)
    if _definition(server, name).join is None:
        found = reader.get(key)
        _refuse_nobody(name, group, found.count)
        server.output.facts(_facts(found))
        return
    left, right = reader.sides(key)
    _refuse_nobody(name, group, left.count or right.count)
    if server.output.as_json:
        server.output.json({"left": _facts(left), "right": _facts(right)})
    else:
        facts = [(f"{side}.{fact}", value) for side, one in (("left", left), ("right", right))
                 for fact, value in _facts(one).items()]  # fmt: skip
        server.output.facts(dict(facts))


@click.command()
@_VIEW
@_GROUP
@_LIMIT
@_SIDE
@with_server
def top(server: Server, name: str, group: tuple[str, ...], limit: int, side: str) -> None:
    """Show the first members of a group by the view's order.

    \b
      columnar view top authors alice -n 3
    """
    _show_members(server, server.connection.view(name).top(_key(group), limit, side=side))


@click.command()
@_VIEW
@_GROUP
@_LIMIT
@_SIDE
@with_server
def members(server: Server, name: str, group: tuple[str, ...], limit: int, side: str) -> None:
    """Show the members of a group, by their rows in the source.

    \b
      columnar view members authors alice -n 100
    """
    _show_members(server, _all_members(server.connection.view(name), _key(group), limit, side))


def _all_members(reader: ViewReader, key: Key, limit: int, side: str) -> list[Member]:
    found: list[Member] = []
    while len(found) < limit:
        page = reader.members(key, min(1_000, limit - len(found)), found[-1] if found else None, side=side)
        if not page:
            break
        found += page
    return found


@click.command()
@_VIEW
@click.option("--prefix", default="", metavar="P", help="Only groups whose keys begin with P.")
@_LIMIT
@with_server
def groups(server: Server, name: str, prefix: str, limit: int) -> None:
    """Show groups with their totals, in the order of their keys.

    \b
      columnar view groups authors
      columnar view groups authors --prefix al -n 100
    """
    facts = [_facts(one) for one in server.connection.view(name).groups(typed(prefix), limit)]
    headings = [fact.replace("_", " ").capitalize() for fact in (facts[0] if facts else ())]
    server.output.records(
        facts,
        lambda one: one,
        headings,
        lambda one: list(one.values()),
        numbers=range(1, len(headings)),
        nothing="There are none.",
    )


@click.command()
@_VIEW
@_GROUP
@click.option("--kind", default="inner", show_default=True, type=click.Choice(["inner", "left", "outer"]))
@_LIMIT
@with_server
def pairs(server: Server, name: str, group: tuple[str, ...], kind: Any, limit: int) -> None:
    """Show the pairs of a join's group: each member of the left side with each of the right one.

    \b
      columnar view pairs orders_of_people alice
      columnar view pairs orders_of_people alice --kind left
    """
    found = list(islice(server.connection.view(name).pairs(_key(group), kind), limit))
    server.output.records(
        found,
        lambda pair: {"left": _as_json(pair[0]), "right": _as_json(pair[1])},
        ("Left", "Carries", "Right", "Carries"),
        lambda pair: (_row(pair[0]), _columns(pair[0]), _row(pair[1]), _columns(pair[1])),
    )


# --- form of answers ---------------------------------------------------------------------------------


def _key(group: Sequence[str]) -> Key:
    parts = tuple(map(typed, group))
    return parts[0] if len(parts) == 1 else parts


def _definition(server: Server, name: str) -> View:
    definition = server.connection.views.status(name).definition
    if definition is None:
        raise Refused(f"view {name} was declared by a newer version: upgrade this program")
    return definition


def _refuse_nobody(name: str, group: Sequence[str], count: int) -> None:
    if not count:
        raise Refused(
            f"nobody is in group {' '.join(group)} of {name}; 'columnar view groups {name}' shows who is there"
        )


def _facts(group: Group) -> dict[str, object]:
    key = group.key if isinstance(group.key, tuple) else (group.key,)
    facts: dict[str, object] = {"group": " ".join(map(readable, key)), "count": group.count}
    facts |= {name: _figure(value) for name, value in {**group.sums, **group.averages}.items()}
    if group.lowest is not None:
        facts |= {"lowest": _figure(group.lowest), "highest": _figure(group.highest)}
    return facts


def _figure(value: object) -> object:
    """Return a figure for JSON; decimals become text, so that no digit changes."""
    if isinstance(value, bytes):
        return readable(value)
    if isinstance(value, int) or value is None:
        return value
    return round(value, 6) if isinstance(value, float) else str(value)


def _as_json(member: Member | None) -> dict[str, object] | None:
    if member is None:
        return None
    shown: dict[str, object] = {"row": readable(member.row)}
    if member.side:
        shown["side"] = member.side
    if member.order is not None:
        shown["order"] = _figure(member.order)
    return shown | {"columns": {readable(name): readable(value) for name, value in member.columns.items()}}


def _show_members(server: Server, found: Sequence[Member]) -> None:
    server.output.records(
        found,
        _as_json,
        ("Row", "Order", "Carries"),
        lambda one: (_row(one), "" if one.order is None else _figure(one.order), _columns(one)),
        numbers=(1,),
        nothing="There are none.",
    )


def _row(member: Member | None) -> str:
    return "-" if member is None else readable(member.row)


def _columns(member: Member | None) -> str:
    if member is None:
        return ""
    return " ".join(f"{readable(name)}={readable(value, 60)}" for name, value in member.columns.items())


def _show_definition(server: Server, name: str) -> None:
    status = server.connection.views.status(name)
    view = _definition(server, name)
    facts: dict[str, object] = {"view": name, "state": status.state, "generation": status.generation}
    sides: Mapping[str, Source] = (
        {"": view.source} if view.join is None else {"left.": view.source, "right.": view.join}
    )
    for side, source in sides.items():
        facts |= {side + fact: value for fact, value in source_facts(source).items()}
    if view.spread > 1:
        facts["spread"] = view.spread
    facts |= {"lag": status.lag_changes, "rejected": status.rejected_rows, "built": status.built_rows}
    if status.last_error:
        facts["last_error"] = status.last_error
    server.output.facts(facts)


def source_facts(source: Source) -> dict[str, object]:
    """Return the declaration of a source by the names of the options."""
    facts: dict[str, object] = {"from": source.table, "by": " and ".join(source.key)}
    if source.where:
        facts["where"] = " and ".join(source.where)
    for option, named in (("sum", source.sums), ("avg", source.averages)):
        if named:
            facts[option] = ", ".join(f"{name}={column}" for name, column in named.items())
    for option, text in (("order", source.order), ("include", ", ".join(source.include))):
        if text:
            facts[option] = text
    return facts
