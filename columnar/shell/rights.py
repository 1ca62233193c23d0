"""``columnar grant | revoke | permissions | whoami | user | group``."""

from __future__ import annotations

import os
import secrets
from typing import Final

import click

from columnar.client.user_options import read_secret
from columnar.client.users import Permission, UserAdmin
from columnar.errors import HostError, IllegalArgument
from columnar.shell.completion import completing
from columnar.shell.connecting import Misused, Server, somebody_answers, with_server
from columnar.shell.text import readable, typed

_HELP: Final = {"help_option_names": ["-h", "--help"]}
_NEW_PASSWORD: Final = "--new-password-file"  # noqa: S105 - an option's name; --password-file is who signs in
_SCOPE: Final = "[@NAMESPACE | TABLE [FAMILY[:QUALIFIER]]]"


def _admin(server: Server) -> UserAdmin:
    return UserAdmin(server.connection)


def _permission(grantee: str, rights: str, scope: tuple[str, ...]) -> Permission:
    """Return what the words name.  Raises IllegalArgument."""
    if not scope:
        return Permission(grantee, rights.upper())
    if scope[0].startswith("@"):
        if len(scope) > 1:
            raise IllegalArgument(f"'{scope[0]}' is a namespace, and nothing follows it; a table's name has its own")
        return Permission(grantee, rights.upper(), namespace_name=scope[0][1:])
    if len(scope) > 3:
        raise IllegalArgument(f"a scope is {_SCOPE}, not {len(scope)} words")
    column = typed(":".join(scope[1:]))
    family, colon, qualifier = column.partition(b":")
    return Permission(grantee, rights.upper(), "", scope[0], family, qualifier if colon else None)


def _scope_text(one: Permission) -> str:
    if one.table:
        column = readable(one.family) + ("" if one.qualifier is None else ":" + readable(one.qualifier))
        return f"{one.table} {column}".rstrip()
    return "@" + one.namespace_name if one.namespace_name else "everything"


@click.command(context_settings=_HELP)
@click.argument("grantee", metavar="USER|@GROUP")
@click.argument("rights", metavar="RWXCA")
@click.argument("scope", metavar=_SCOPE, nargs=-1, shell_complete=completing("table"))
@with_server
def grant(server: Server, grantee: str, rights: str, scope: tuple[str, ...]) -> None:
    """Give a user or a group rights: on everything, a namespace, a table, a family or a column.

    R reads, W writes, X triggers and views, C makes and changes tables, A administers and grants. They are in force
    on every server when the command ends. Rights count only in a store that runs with --rights on.

    \b
      columnar grant anna RW pages
      columnar grant @readers R @team
      columnar grant bob R pages meta:author
    """
    permission = _permission(grantee, rights, scope)
    _admin(server).grant(permission)
    server.output.done(
        f"{grantee} has {permission.rights} on {_scope_text(permission)}", {"granted": _record(permission)}
    )


@click.command(context_settings=_HELP)
@click.argument("grantee", metavar="USER|@GROUP")
@click.argument("rights", metavar="RWXCA")
@click.argument("scope", metavar=_SCOPE, nargs=-1, shell_complete=completing("table"))
@with_server
def revoke(server: Server, grantee: str, rights: str, scope: tuple[str, ...]) -> None:
    """Take rights that were granted at this very scope; rights at wider and narrower scopes stay."""
    permission = _permission(grantee, rights, scope)
    _admin(server).revoke(permission)
    server.output.done(
        f"{grantee} has no {permission.rights} of {_scope_text(permission)} any more", {"revoked": _record(permission)}
    )


@click.command(context_settings=_HELP)
@click.argument("name", metavar="[TABLE|@NAMESPACE|USER]", default="", shell_complete=completing("table"))
@with_server
def permissions(server: Server, name: str) -> None:
    """Show who may do what: all grants that you may see, or those of a table, a namespace or a user."""
    found = [one for one in _admin(server).permissions() if _is_about(one, name)]
    if server.output.as_json:
        server.output.json([_record(one) for one in found])
        return
    server.output.table(("User", "Rights", "Scope"), [(one.grantee, one.rights, _scope_text(one)) for one in found])


def _is_about(one: Permission, name: str) -> bool:
    return not name or name in (one.grantee, one.table, "@" + one.namespace_name)


def _record(one: Permission) -> dict[str, str | None]:
    return {
        "grantee": one.grantee,
        "rights": one.rights,
        "namespace": one.namespace_name,
        "table": one.table,
        "family": readable(one.family),
        "qualifier": None if one.qualifier is None else readable(one.qualifier),
    }


@click.command(context_settings=_HELP)
@with_server
def whoami(server: Server) -> None:
    """Say as whom the store knows you, with your groups and rights on everything."""
    me = _admin(server).who_am_i()
    if server.output.as_json:
        server.output.json(
            {
                "user": me.user,
                "groups": list(me.groups),
                "rights": me.rights,
                "superuser": me.superuser,
                "rights_on": me.rights_on,
            }
        )
        return
    rows = [
        ("user", me.user or "(nobody has signed in)"),
        ("groups", ", ".join(me.groups)),
        ("rights on everything", me.rights + (" (superuser)" if me.superuser else "")),
        ("the store checks rights", "yes" if me.rights_on else "no: everybody may do everything"),
    ]
    server.output.table(("What", "Value"), rows)


@click.group(context_settings=_HELP)
def user() -> None:
    """Give users passwords and tokens, list and drop them.

    \b
    A user who signs in by a certificate or a Unix socket needs no account:
      columnar user password anna
      columnar user token backup --label nightly --output backup.token
      columnar user remove-token backup nightly
      columnar user list
      columnar user drop anna
    """


@user.command("list")
@with_server
def list_users(server: Server) -> None:
    """List users with an account or a group."""
    found = _admin(server).users()
    if server.output.as_json:
        server.output.json(
            [
                {"name": one.name, "password": one.has_password, "tokens": one.tokens, "groups": one.groups}
                for one in found
            ]
        )
        return
    rows = [
        (one.name, "yes" if one.has_password else "no", ", ".join(one.tokens), ", ".join(one.groups)) for one in found
    ]
    server.output.table(("User", "Password", "Tokens", "Groups"), rows)


@user.command()
@click.argument("name")
@click.option(_NEW_PASSWORD, "file", metavar="FILE", help="File with it, or -; else a person types it twice.")
@with_server
def password(server: Server, name: str, file: str | None) -> None:
    """Set a user's password; the account is made if there is none.

    The password stays on this machine: the store gets hashes. A user may set the own one, an administrator any.

    \b
      columnar user password anna
      columnar user password anna --new-password-file new.txt
    """
    _admin(server).set_password(name, _new_password(name) if file is None else read_secret(file, _NEW_PASSWORD))
    server.output.done(f"the password of {name} is set", {"password": name})


def _new_password(name: str) -> str:
    if not somebody_answers():
        raise Misused(f"nobody can type the new password of {name} here: name a file with {_NEW_PASSWORD}")
    typed: str = click.prompt(f"New password of {name}", hide_input=True, confirmation_prompt="Again", err=True)
    return typed


@user.command()
@click.argument("name")
@click.option(
    "--label", metavar="LABEL", help="By which it is listed and removed; a token that has it ends.  [default: random]"
)
@click.option("--output", "file", metavar="FILE", help="Write it into a new file that nobody else can read.")
@with_server
def token(server: Server, name: str, label: str | None, file: str | None) -> None:
    """Make a token, which signs a program in as the user; the account is made if there is none.

    The token is shown once: the store keeps its hash. 'columnar user list' has the labels, and 'columnar user
    remove-token' takes the token back.

    \b
      columnar user token backup --label nightly --output backup.token
      columnar tables --user backup --token-file backup.token
    """
    label = label or secrets.token_hex(3)
    place = None if file is None else _new_file(file)
    try:
        made = _admin(server).add_token(name, label)
    except BaseException:
        if file is not None and place is not None:
            os.close(place)
            os.unlink(file)
        raise
    if file is not None and place is not None:
        with open(place, "w") as written:
            written.write(made + "\n")
        server.output.done(f"token {label} of {name} is in {file}", {"user": name, "label": label, "file": file})
    elif server.output.as_json:
        server.output.json({"user": name, "label": label, "token": made})
    else:
        click.echo(f"token {label} of {name}; it is not shown again", err=True)
        click.echo(made)


@user.command()
@click.argument("name")
@with_server
def drop(server: Server, name: str) -> None:
    """Drop a user's account, grants and memberships; triggers of the user must be removed before."""
    _admin(server).drop_user(name)
    server.output.done(f"user {name} is gone", {"dropped": name})


@user.command("remove-token")
@click.argument("name")
@click.argument("label")
@with_server
def remove_token(server: Server, name: str, label: str) -> None:
    """Take a user's token, by its label; who has it can no longer sign in."""
    _admin(server).remove_token(name, label)
    server.output.done(f"token {label} of {name} is gone", {"removed": label})


@click.group(context_settings=_HELP)
def group() -> None:
    """Put users into groups, to which rights are granted as @NAME.

    \b
      columnar group add readers anna bob
      columnar grant @readers R pages
      columnar group remove readers bob
    """


@group.command()
@click.argument("name")
@click.argument("users", nargs=-1, required=True, metavar="USER...")
@with_server
def add(server: Server, name: str, users: tuple[str, ...]) -> None:
    """Add users to a group, which is made with its first member."""
    _admin(server).change_group(name.removeprefix("@"), adds=users)
    server.output.done(f"{', '.join(users)} in {name}", {"group": name, "added": list(users)})


@group.command()
@click.argument("name")
@click.argument("users", nargs=-1, required=True, metavar="USER...")
@with_server
def remove(server: Server, name: str, users: tuple[str, ...]) -> None:
    """Take users from a group, which ends with its last member."""
    _admin(server).change_group(name.removeprefix("@"), removes=users)
    server.output.done(f"{', '.join(users)} no longer in {name}", {"group": name, "removed": list(users)})


def _new_file(path: str) -> int:
    """Open a new file that only its owner reads.  Raises HostError."""
    try:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise HostError(f"{path} exists; name a new file with --output, or remove it") from None
    except OSError as error:
        raise HostError(f"cannot make {path}: {error.strerror}") from error
