"""``columnar doctor``: what is wrong with a store, its folder and its machine, and what to do."""

from __future__ import annotations

import functools
from dataclasses import asdict
from typing import Any, Final

import click

from columnar.client import ClientTls
from columnar.client.store_options import client_settings, store_option
from columnar.client.tls_options import tls_options
from columnar.diagnosis.diagnosis import Subject, diagnose, gather
from columnar.diagnosis.facts import Role
from columnar.diagnosis.findings import Finding, Level, count_problems
from columnar.settings.user_folders import default_data_folder
from columnar.shell.connecting import Misused, output_of
from columnar.shell.node_options import check_memory
from columnar.shell.shell_output import Output

FOUND: Final = 1  # exit status: there is a problem
_COLOURS: Final[dict[Level, str]] = {"ok": "green", "note": "cyan", "warning": "yellow", "problem": "red"}
_NAME_WIDTH: Final = 18


def with_subject(command: Any) -> Any:
    """Add the options that name a store; the command gets a ``Subject`` as its first argument."""

    @click.option("--data", metavar="DIR", help="The data folder.  [default: the store's, else a user's own]")
    @client_settings
    @store_option
    @tls_options
    @click.option("--host", metavar="ADDRESS", help="As the store is to be started, as are the next options.")
    @click.option("--port", type=click.IntRange(1, 65535))
    @click.option("--web-port", type=click.IntRange(-1, 65535))
    @click.option("--health-port", type=click.IntRange(-1, 65535))
    @click.option("--thrift2-port", type=click.IntRange(-1, 65535))
    @click.option("--memory", "memory_bytes", default="", metavar="SIZE", callback=check_memory)
    @click.option("--tls-cert", metavar="FILE")
    @click.option("--tls-key", metavar="FILE")
    @click.option("--tls-client-ca", metavar="FILE")
    @click.option("--role", type=click.Choice(["standalone", "node"]), help="The command that is to serve the folder.")
    @functools.wraps(command)
    def named(
        data: str | None,
        store: str,
        tls: ClientTls | None,
        role: Role | None,
        before_start: bool = False,
        as_json: bool = False,
        **more: Any,
    ) -> Any:
        names = ("host", "port", "web_port", "health_port", "thrift2_port", "tls_cert", "tls_key", "tls_client_ca")
        settings = {name: more.pop(name) for name in names}
        if ordered_bytes := more.pop("memory_bytes"):
            settings["memory"] = {"size_bytes": ordered_bytes}
        if bool(settings["tls_cert"]) != bool(settings["tls_key"]):
            raise Misused("--tls-cert and --tls-key belong together")
        source = click.get_current_context().get_parameter_source("store")
        is_wanted = source is not click.core.ParameterSource.DEFAULT
        default_data = default_data_folder() if data is None else data
        subject = Subject(data, default_data, store, is_wanted, tls, settings, role, before_start)
        return command(subject, output_of(as_json), **more)

    return named


@click.command()
@with_subject
@click.option("--before-start", is_flag=True, help="Judge as for a start now: no other process may serve the folder.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def doctor(subject: Subject, output: Output) -> None:
    """Say what is wrong with a store, its data folder and this machine, why it matters, and what to do.

    Looks at the folder (content, format, lock, rights, file system, space, 30 fsyncs beside the data), ports,
    certificate, open files, memory, clock, program; and asks the store, if one answers. Changes nothing, and any user
    may run it, best the store's own: others see less. A running store's settings are found by its folder; give those
    of a store that does not start as options.

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
