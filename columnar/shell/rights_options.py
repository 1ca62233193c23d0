"""The options of users and rights, of every command that starts a store."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from columnar.shell.coordination_options import StoreSetting

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS: Final = (
    click.option(
        "--rights",
        cls=StoreSetting,
        default="off",
        show_default=True,
        type=click.Choice(["on", "off"]),
        help="Whether users must sign in and may do what grants allow (docs/security.md), or everybody may do all.",
    ),
    click.option(
        "--socket",
        "socket",
        cls=StoreSetting,
        default="",
        metavar="PATH",
        help="Unix socket for clients of this machine, mode 0660; users are those of the system.",
    ),
    click.option(
        "--superuser",
        "superusers",
        cls=StoreSetting,
        multiple=True,
        metavar="NAME",
        help="With --rights on: a user, or an @group, who may do everything; may be repeated.",
    ),
)


def with_rights(command: F) -> Callable[..., Any]:
    """Give a command the options; it gets them as ``rights``, the fields of ``config.RightsSettings``."""

    @functools.wraps(command)
    def run(rights: str, socket: str, superusers: tuple[str, ...], **given: Any) -> Any:
        path = os.path.abspath(socket) if socket else ""
        return command(rights={"is_on": rights == "on", "socket": path, "superusers": superusers}, **given)

    for option in reversed(_OPTIONS):
        option(run)
    return run
