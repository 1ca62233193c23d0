"""``columnar doctor``: what is wrong with a store, its folder and its machine, and what to do."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import Any, Final

import click

from columnar.client import ClientTls
from columnar.client.store_options import client_settings, store_option
from columnar.client.tls_options import tls_options
from columnar.client.user_options import ClientUser, user_options
from columnar.diagnosis.diagnosis import Subject, diagnose, gather
from columnar.diagnosis.facts import Role
from columnar.diagnosis.findings import Finding, Level, count_problems
from columnar.settings.configured import NAMED, TAKES
from columnar.settings.user_folders import default_data_folder
from columnar.shell.connecting import Misused, output_of
from columnar.shell.node_options import check_memory
from columnar.shell.shell_output import Output

FOUND: Final = 1  # exit status: there is a problem
_COLOURS: Final[dict[Level, str]] = {"ok": "green", "note": "cyan", "warning": "yellow", "problem": "red"}
_NAME_WIDTH: Final = 18
_OF_NODES: Final = "coordination"  # a setting of nodes alone
_OF_START: Final = (
    "host", "port", "web_port", "health_port", "thrift2_port", "sqs_port", "kafka_port", "servers", "trigger_modules",
    _OF_NODES, "tls_cert", "tls_key", "tls_client_ca",
)  # fmt: skip


def with_subject(command: Any) -> Any:
    """Add the options that name a store; the command gets a ``Subject`` as its first argument."""

    @click.option("--data", metavar="DIR", help="The data folder.  [default: the store's, else a user's own]")
    @client_settings
    @store_option
    @tls_options
    @user_options
    @click.option("--host", metavar="ADDRESS", help="As the store is to be started, as are the next options.")
    @click.option("--port", type=click.IntRange(1, 65535))
    @click.option("--web-port", type=click.IntRange(-1, 65535))
    @click.option("--health-port", type=click.IntRange(-1, 65535))
    @click.option("--thrift2-port", type=click.IntRange(-1, 65535))
    @click.option("--sqs-port", type=click.IntRange(-1, 65535))
    @click.option("--kafka-port", type=click.IntRange(-1, 65535))
    @click.option("--memory", "memory_bytes", default="", metavar="SIZE", callback=check_memory)
    @click.option("--servers", type=click.IntRange(0, 64), metavar="N")
    @click.option("--trigger-modules", metavar="M,M")
    @click.option("--coordination", metavar="URL")
    @click.option("--tls-cert", metavar="FILE")
    @click.option("--tls-key", metavar="FILE")
    @click.option("--tls-client-ca", metavar="FILE")
    @click.option("--role", type=click.Choice(["standalone", "node"]), help="The command that is to serve the folder.")
    @functools.wraps(command)
    def named(
        data: str | None,
        store: str,
        tls: ClientTls | None,
        user: ClientUser | None,
        role: Role | None,
        before_start: bool = False,
        as_json: bool = False,
        **more: Any,
    ) -> Any:
        flags = {name: more.pop(name) for name in _OF_START}
        flags["memory"] = more.pop("memory_bytes") or None
        refusal = ""
        if before_start:
            starts: Role = role or ("standalone" if flags[_OF_NODES] is None else "node")
            settings, refusal = _settings_of_start(starts, {"data": data, **_known_to(starts, flags)})
            data = settings.get("data", data)
        elif bool(flags["tls_cert"]) != bool(flags["tls_key"]):
            raise Misused("--tls-cert and --tls-key belong together")
        if not before_start or refusal:
            settings = _as_settings(flags)
        source = click.get_current_context().get_parameter_source("store")
        is_wanted = source is not click.core.ParameterSource.DEFAULT
        default_data = default_data_folder() if data is None else data
        subject = Subject(data, default_data, store, is_wanted, tls, user, settings, role, before_start, refusal)
        return command(subject, output_of(as_json), **more)

    return named


def _settings_of_start(role: Role, flags: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Return the settings of a start with these flags, or none and the line with which the start refuses them.

    The command of the start resolves them itself, in the same process, and hands them over instead of starting; so what
    it refuses is refused in its words.  ``flags``: by name; None for those that were not given.
    """
    words = [f"--{name.replace('_', '-')}={value}" for name, value in flags.items() if value is not None]
    ctx = click.get_current_context()
    if ctx.meta.get(NAMED) is not None:
        words.append(f"--config={ctx.meta[NAMED]}")
    root = ctx.find_root().command
    command = root.get_command(ctx, role) if isinstance(root, click.Group) else None
    assert command is not None, "the program has the commands of both roles"
    found: dict[str, Any] = {}
    try:
        with command.make_context(role, words) as starting, suppress(click.exceptions.Exit):
            starting.meta[TAKES] = found.update
            command.invoke(starting)
    except click.ClickException as error:
        return {}, error.format_message()
    return found, ""


def _known_to(role: Role, flags: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in flags.items() if role == "node" or name != _OF_NODES}


def _as_settings(flags: dict[str, Any]) -> dict[str, Any]:
    """Return the flags by the names that a store's settings have."""
    settings = {name: value for name, value in flags.items() if name not in ("memory", "servers", _OF_NODES)}
    if flags["memory"] is not None:
        settings["memory"] = {"size_bytes": flags["memory"]}
    if flags["servers"] is not None:
        settings["node"] = {"servers": flags["servers"]}
    return settings


@click.command()
@with_subject
@click.option("--before-start", is_flag=True, help="Judge as for a start now: no other process may serve the folder.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def doctor(subject: Subject, output: Output) -> None:
    """Say what is wrong with a store, its data folder and this machine, why it matters, and what to do.

    Looks at the folder (content, format, lock, rights, file system, space, 30 fsyncs beside the data), ports,
    certificate, open files, memory, clock, program; and asks the store, if one answers. Changes nothing, and any user
    may run it, best the store's own: others see less. A running store's settings are found by its folder. With
    --before-start they are those of the command --role, 'columnar standalone' without it: the options that are given
    here, its variables, and its table of the file.

    Exit status: 0 there is no problem, 1 there is one, 2 the command was used wrongly.

    \b
      columnar doctor
      columnar doctor --data /srv/columnar --json
    Why does it not start?
      columnar doctor --before-start --data /srv/columnar --port 9090 --tls-cert store.crt --tls-key store.key
    """
    findings = diagnose(gather(subject))
    problems = count_problems(findings)
    if output.as_json:
        output.json({"problems": problems, "findings": [asdict(finding) for finding in findings]})
    else:
        for finding in findings:
            show_finding(output, finding)
        output.line(f"{problems} problems" if problems != 1 else "1 problem")
    if problems:
        raise SystemExit(FOUND)


def show_finding(output: Output, finding: Finding) -> None:
    if not output.is_terminal:
        output.line("\t".join((finding.level, finding.name, finding.text, finding.why, finding.advice)))
        return
    level = click.style(finding.level.ljust(9), fg=_COLOURS[finding.level], bold=finding.level == "problem")
    output.line(f"{level}{finding.name.ljust(_NAME_WIDTH)}{finding.text}")
    for more in filter(None, (finding.why, finding.advice and f"do: {finding.advice}")):
        output.line(" " * (9 + _NAME_WIDTH) + more)
