"""The options by which a node proves itself to its coordination service.

The settings become part of a command line of the node's process, so they name a password's file, and never the
password itself; ``COLUMNAR_COORDINATION_PASSWORD`` stays in the environment.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from columnar.coordination.service_access import PASSWORD, PASSWORD_FILE
from columnar.settings.option_kinds import Setting

F = TypeVar("F", bound=Callable[..., Any])


class StoreSetting(Setting):
    """An option of a store, with its variable: COLUMNAR_PORT for --port."""

    program = "columnar"


_OPTIONS: Final = (
    click.option(
        "--coordination-user",
        "user",
        cls=StoreSetting,
        default="",
        metavar="USER",
        help=f"User of the service; its password is in {PASSWORD_FILE} or the variable {PASSWORD}.",
    ),
    click.option(
        PASSWORD_FILE,
        "password_file",
        cls=StoreSetting,
        default="",
        metavar="FILE",
        help="File with the user's password.",
    ),
    click.option(
        "--coordination-ca",
        "ca_file",
        cls=StoreSetting,
        default="",
        metavar="FILE",
        help="Authorities that sign the certificates of an etcds:// or zookeepers://, PEM.  "
        "[default: those that the system trusts]",
    ),
    click.option(
        "--coordination-cert",
        "cert_file",
        cls=StoreSetting,
        default="",
        metavar="FILE",
        help="Certificate of this node for a service that requires one, PEM.",
    ),
    click.option(
        "--coordination-key",
        "key_file",
        cls=StoreSetting,
        default="",
        metavar="FILE",
        help="Key of that certificate.",
    ),
)
_NAMES: Final = ("user", "password_file", "ca_file", "cert_file", "key_file")


def with_access(command: F) -> Callable[..., Any]:
    """Give a command the options; it gets them as ``access``, the fields of ``ServiceAccess``.

    The command has an argument ``coordination`` too, the address of the service.
    """

    @functools.wraps(command)
    def run(coordination: str, **given: Any) -> Any:
        access = {name: given.pop(name) for name in _NAMES}
        _check(coordination, access)
        return command(coordination=coordination, access=_absolute(access), **given)

    for option in reversed(_OPTIONS):
        option(run)
    return run


def _check(coordination: str, access: dict[str, str]) -> None:
    """Raise UsageError if options lack what they need, or would not be used."""
    from columnar.coordination.service_address import BadServiceAddress, ServiceAddress

    try:
        is_tls = ServiceAddress.parse(coordination).is_tls
    except BadServiceAddress as error:
        raise click.UsageError(f"--coordination: {error.text}") from error
    has_password = bool(access["password_file"] or os.environ.get(PASSWORD))
    if bool(access["user"]) != has_password:
        raise click.UsageError(
            f"--coordination-user and a password go together: the password is in {PASSWORD_FILE} or {PASSWORD}"
        )
    if bool(access["cert_file"]) != bool(access["key_file"]):
        raise click.UsageError("--coordination-cert and --coordination-key go together: give both files, or none")
    if (access["ca_file"] or access["cert_file"]) and not is_tls:
        raise click.UsageError("certificates are of an etcds:// or zookeepers:// address; --coordination has no TLS")


def _absolute(access: dict[str, str]) -> dict[str, str]:
    return {name: value if name == "user" or not value else os.path.abspath(value) for name, value in access.items()}
