"""python -m tests.overload: a store under everything at once, and what its good clients notice of it."""

from __future__ import annotations

import sys

import click

from columnar.limits import MIB
from tests.overload.overload import ALL, BOUNDS, as_json, run
from tests.overload.siege import TooFewDescriptors


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--seconds", default=20.0, show_default=True, help="Under siege.")
@click.option("--quiet-seconds", default=5.0, show_default=True, help="Before and after it.")
@click.option("--connections", default=2_000, show_default=True, help="Of the attackers.")
@click.option("--mute", default=200, show_default=True, help="How many of them never read a reply.")
@click.option("--attack", default="all", metavar="KIND,KIND", help=f"All, or some of {', '.join(sorted(ALL))}.")
@click.option("--bounds", is_flag=True, help="Print the sum that the store's memory is held to, and end.")
@click.option("--json", "json_path", metavar="FILE", help="Write the figures here too.")
def main(
    seconds: float, quiet_seconds: float, connections: int, mute: int, attack: str, bounds: bool, json_path: str | None
) -> None:
    """Bring up a store, measure its good clients, besiege it, and look whether every bound held.

    Exit status: 0 all held; 1 one did not; 2 it could not be measured.
    """
    if bounds:
        for what, size in BOUNDS.items():
            click.echo(f"{size // MIB:5} MiB  {what}")
        click.echo(f"{sum(BOUNDS.values()) // MIB:5} MiB  beside what the store holds when it is quiet")
        return
    kinds = ALL if attack == "all" else frozenset(attack.split(","))
    if kinds - ALL:
        raise click.UsageError(f"there is no attack {', '.join(kinds - ALL)}; there are {', '.join(sorted(ALL))}")
    try:
        report = run(seconds, connections, mute, kinds, quiet_s=quiet_seconds)
    except TooFewDescriptors as error:
        raise click.UsageError(str(error)) from None
    for line in report.lines():
        click.echo(line)
    if json_path:
        with open(json_path, "w", encoding="utf-8") as file:
            file.write(as_json(report))
    for problem in report.problems():
        click.echo(f"PROBLEM: {problem}")
    sys.exit(bool(report.problems()))


if __name__ == "__main__":
    main()
