"""The values of the commands' options: durations, shares, rates, requirements."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from gauge.processes import Role
from gauge.rate_profile import RateProfile

from .errors import WikibenchError
from .limits import DRAIN_S, LATE_MS, MOST_WORKERS, OPEN_REQUESTS, TIMEOUT_S
from .requirements import Requirement, parse_requirements

_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|min|h|d)?")
_ROLE: Final = re.compile(r"([\w-]+)=(\d+(?:,\d+)*)")
_SECONDS: Final = {None: 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}

Command = Callable[..., Any]


class Duration(click.ParamType[float]):
    """An option's value in seconds, written as ``90``, ``90s``, ``1.5m`` or ``2h``."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, int | float):
            return float(value)
        match = _DURATION.fullmatch(str(value).strip())
        if match is None:
            self.fail(f"{value!r} is not a duration such as 90s, 2m or 1h", param, ctx)
        return float(match[1]) * _SECONDS[match[2]]


class Share(click.ParamType[float]):
    """An option's value as a share, written as ``5%`` or ``0.05``."""

    name = "share"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, int | float):
            return float(value)
        text = str(value).strip()
        try:
            share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            self.fail(f"{value!r} is not a share such as 5% or 0.05", param, ctx)
        if not 0 <= share <= 1:
            self.fail(f"{value!r} is not between 0% and 100%", param, ctx)
        return share


class Profile(click.ParamType[RateProfile]):
    """An option's value as a rate that changes, written as ``100/s 1m, 100..400/s 2m``."""

    name = "profile"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> RateProfile:
        if isinstance(value, RateProfile):
            return value
        try:
            return RateProfile.parsed(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Requirements(click.ParamType[tuple[Requirement, ...]]):
    """The clauses of a --require."""

    name = "requirements"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[Requirement, ...]:
        if isinstance(value, tuple):
            return value
        try:
            return parse_requirements(str(value))
        except WikibenchError as error:
            self.fail(str(error), param, ctx)


class ProcessesOfRole(click.ParamType[Role]):
    """``ROLE=PID[,PID...]``: processes of this machine."""

    name = "processes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Role:
        if isinstance(value, Role):
            return value
        match = _ROLE.fullmatch(str(value).strip())
        if match is None:
            self.fail(f"{value!r} is not of the form wiki=1234 or wiki=1234,1235", param, ctx)
        role = Role(match[1], tuple(int(pid) for pid in match[2].split(",")))
        for pid in role.pids:
            if not os.path.exists(f"/proc/{pid}"):
                self.fail(f"no process {pid} runs on this machine", param, ctx)
        return role


class Header(click.ParamType[tuple[str, str]]):
    """``Name: value``."""

    name = "header"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        name, colon, text = str(value).partition(":")
        if not colon or not name.strip():
            self.fail("it is not of the form 'Name: value' (and is not shown: it may be a secret)", param, ctx)
        if any(not char.isprintable() or ord(char) > 0xFF for char in name + text):
            self.fail("a header has neither line ends nor letters beyond Latin-1 (and is not shown)", param, ctx)
        return name.strip(), text.strip()


def load_options(command: Command) -> Command:
    """Add the options for requests and their target, which replay and search share."""
    return pair_load_options(_WATCH(_TARGET(command)))


def pair_load_options(command: Command) -> Command:
    """Add the options for requests alone; a command with two targets names them itself."""
    for option in reversed(_LOAD_OPTIONS):
        command = option(command)
    return command


_TARGET: Final = click.option(
    "--target",
    required=True,
    multiple=True,
    callback=lambda _context, _option, addresses: " ".join(addresses),
    help="The wiki, such as http://127.0.0.1:8080; given several times, its addresses take turns.",
)
_WATCH: Final = click.option(
    "--watch",
    type=ProcessesOfRole(),
    multiple=True,
    metavar="ROLE=PID,...",
    help="Processes of this machine whose CPU a request is reported, such as wiki=1201.",
)
_LOAD_OPTIONS: Final = (
    click.argument("trace", nargs=-1, required=True, type=click.Path(exists=True, allow_dash=True), metavar="TRACE..."),
    click.option(
        "--allow-remote",
        is_flag=True,
        help="Load a wiki that is not on this machine. Only for a site that is yours: a replay can take it down.",
    ),
    click.option(
        "--allow-edits",
        is_flag=True,
        help="Let the trace's edits overwrite pages whose text no replay wrote. Only for a wiki that is yours.",
    ),
    click.option(
        "--map",
        "map_name",
        default="plain",
        show_default=True,
        metavar="NAME|FILE",
        help="The kind of wiki: columnar, mediawiki, dokuwiki, wikka, plain, or a file (TOML). "
        "columnar:root=NAME names the page at /.",
    ),
    click.option(
        "--users",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Edits are of these users, signed in before the load: a file with name,password lines.",
    ),
    click.option(
        "--connections",
        type=click.Choice(["pooled", "fresh", "visitor"]),
        default="pooled",
        show_default=True,
        help="Kept for all visits, one a request, or one a visit.",
    ),
    click.option("--seed", default=1, show_default=True, help="Bodies of edits are made from (seed, page, number)."),
    click.option("--even", is_flag=True, help="With a rate: equal gaps, in place of the trace's own stretched to it."),
    click.option("--warm-up", type=Duration(), default=0.0, help="Requests of the first so many seconds do not count."),
    click.option(
        "--timeout",
        type=Duration(),
        default=TIMEOUT_S,
        show_default=True,
        help="From sending to the last byte.",
    ),
    click.option(
        "--open",
        "open_requests",
        type=click.IntRange(1),
        default=OPEN_REQUESTS,
        show_default=True,
        help="Requests in the air at once; the next waits, and its wait counts.",
    ),
    click.option(
        "--drain",
        type=Duration(),
        default=DRAIN_S,
        show_default=True,
        help="Seconds after the last intended start; what is unsent or unanswered then has failed.",
    ),
    click.option(
        "--lateness",
        type=Duration(),
        default=LATE_MS / 1000,
        show_default=True,
        help="The generator's own (p99) up to which a run is valid; beyond it the exit status is 3.",
    ),
    click.option(
        "--workers",
        type=click.IntRange(1, MOST_WORKERS),
        default=1,
        show_default=True,
        help="Processes that share the load, for rates that one core cannot send; --open is shared, too.",
    ),
    click.option("--listen", metavar="HOST:PORT", help="Wait here for workers of other machines (wikibench worker)."),
    click.option("--expect", type=click.IntRange(1, MOST_WORKERS), help="With --listen: how many workers to wait for."),
    click.option(
        "--token-file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="With --listen: the token that each worker must have, too; needed to listen beyond this machine.",
    ),
    click.option("--all-or-nothing", is_flag=True, help="End the replay when a worker is lost."),
    click.option("--expect-404", is_flag=True, help="A page that is not there is no failure (recorded traces)."),
    click.option("--header", "headers", type=Header(), multiple=True, help="Sent with every request, 'Name: value'."),
    click.option(
        "--rewrite",
        "rewrites",
        multiple=True,
        metavar="/OLD/=/NEW/",
        help="Exchange a prefix of the trace's paths, such as /wiki/=/ ; the first that fits is used.",
    ),
    click.option(
        "--edit-path",
        default="",
        help="Where the edit form of a page is, in place of the map's: {page} is its path, {title} its name.",
    ),
    click.option("--host", help="Use only the requests of this host of the trace."),
    click.option("--skip-bad-lines", is_flag=True, help="Count unreadable lines and go on, in place of stopping."),
    click.option(
        "--sort-window",
        type=click.IntRange(1),
        help="Stream files, repairing disorder of up to so many lines; else large ones are sorted in TMPDIR first.",
    ),
)
