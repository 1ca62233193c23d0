"""Checks of the options of ``columnar node`` and ``standalone``.  Each raises UsageError, with the next step."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import click

_CLIENTS_PORTS: Final = ("thrift2_port", "sqs_port", "kafka_port")


def check_fence(_context: click.Context, _option: click.Parameter, command: str) -> str:
    """Return the fence command, whose quotes must be closed."""
    from shlex import split

    try:
        split(command)
    except ValueError as error:
        raise click.BadParameter(f"{error}") from error
    return command


def check_memory(_context: click.Context, _option: click.Parameter, said: str) -> int:
    """Return the bytes of ``--memory``; 0 if it was left out."""
    from columnar.memory_plan import parse_bytes

    try:
        return parse_bytes(said) if said else 0
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def check_name(name: str | None) -> str:
    """Return the node's name, by default the host's."""
    if name is None:
        import platform  # 2 ms that the other commands do not need

        name = platform.node().partition(".")[0]
    if re.fullmatch(r"[a-z0-9][a-z0-9-]{0,39}", name, re.IGNORECASE) is None:
        raise click.UsageError(f"'{name}' names no node: letters, digits and '-', 40 at most; choose one with --name")
    return name


def check_zone(zone: str) -> str:
    if zone and re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,62}", zone, re.IGNORECASE) is None:
        raise click.UsageError(f"'{zone}' names no zone: letters, digits, '.', '_' and '-', 63 at most (--zone)")
    return zone


def check_servers(servers: int, never_leads: bool, settings: Mapping[str, Any]) -> int:
    """Refuse a node that would do nothing, and a port for clients that nobody would serve."""
    if servers == 0 and never_leads:
        raise click.UsageError("a node with --servers 0 and --never-leads would do nothing: leave one of them out")
    for name in _CLIENTS_PORTS if servers == 0 else ():
        if settings[name] >= 0:
            option = "--" + name.replace("_", "-")
            raise click.UsageError(f"a node with --servers 0 serves no clients: leave {option} out")
    return servers
