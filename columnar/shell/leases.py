"""``columnar lease list | show | release``."""

from __future__ import annotations

import click

from columnar.client.leases import LeaseInfo
from columnar.shell.connecting import Server, require_confirmation, with_server
from columnar.shell.shell_output import plain_fields
from columnar.shell.text import typed


@click.group()
def lease() -> None:
    """Show who holds which lease, and release one.

    Programs acquire leases with connection.lease(NAME), so that one of them at a time does a job.
    """


@lease.command("list")
@with_server
def list_(server: Server) -> None:
    """List the leases that are held: holder, token, time left.

    \b
      columnar lease list
    """
    server.output.records(
        list(server.connection.leases.list()),
        _as_json,
        ("Lease", "Holder", "Token", "Left (ms)"),
        lambda one: (one.name, one.holder, one.token, one.left_ms),
        numbers=(2, 3),
        nothing="Nobody holds a lease.",
    )


@lease.command()
@click.argument("name")
@with_server
def show(server: Server, name: str) -> None:
    """Show a lease; the holder of a free one is empty, and its token is that of the last holder.

    \b
      columnar lease show import
    """
    server.output.facts(_as_json(server.connection.leases.show(typed(name))))


@lease.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@with_server
def release(server: Server, name: str, yes: bool) -> None:
    """Take a lease from its holder, for example of a program that hangs.

    The holder hears of it when it renews the lease, and may work until then.

    \b
      columnar lease release import
    """
    leases = server.connection.leases
    found = leases.show(typed(name))
    if not found.holder:
        server.output.done(f"nobody holds lease {name}", {"lease": name, "holder": ""})
        return
    require_confirmation(f"Take lease {name} from {found.holder}?", yes)
    was = leases.revoke(typed(name))
    server.output.done(f"lease {name} was held by {was.holder}", {"lease": name, "holder": was.holder})


def _as_json(one: LeaseInfo) -> dict[str, object]:
    return plain_fields(one, "name", "holder", "token", "left_ms")
