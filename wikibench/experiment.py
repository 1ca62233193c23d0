"""A trace and a target, made ready to be replayed once or many times.

All faults of the trace and of the target are found here, before the first request of the load is sent.
"""

from __future__ import annotations

import platform
import random
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Any, cast

import click

from gauge.processes import Role, RoleWatch

from .addresses.paths import Layout, parse_rewrite
from .crew.remote import Workers
from .errors import ForeignPagesError, PlanError
from .generator_limit import known_limit, limits_file, read_limits
from .limits import LINK_NAMES, NAMES_SOUGHT
from .live import LiveLine, snapshot_of
from .pacing import Pace, Planned, TraceShape, plan, planned_seconds, shape_of
from .report import environment
from .request_log import request_log
from .requirements import Requirement, Verdict
from .run import replay
from .secrets import redact_words, redacted
from .summary import Json, Replay, judge_all, roles_of, summarize, why_not_valid
from .targets.login import users_of
from .targets.map_files import load_map
from .targets.target import Target, parse_target, require_loopback
from .targets.target_check import pages_of_others, require_answer
from .trace.lines import Request
from .trace.source import Trace
from .visits import Load


class Experiment:
    """A trace and a target, to be replayed once or, by search, many times."""

    def __init__(
        self,
        trace: Trace,
        shape: TraceShape,
        load: Load,
        late_ms: float,
        workers: Workers | None = None,
        roles: Sequence[Role] = (),
        requests: Path | None = None,
    ) -> None:
        self.trace = trace
        self.shape = shape
        self.load = load
        self.target = load.target
        self._late_ms = late_ms
        self._workers = workers
        self._watch = RoleWatch(roles)
        self._requests = requests

    @classmethod
    def prepared(
        cls,
        paths: tuple[str, ...],
        target: str,
        given: dict[str, Any],
        max_gap_us: int | None,
        hopeless_s: float | None = None,
    ) -> Experiment:
        """Read the trace and check the target; raises the errors of ``errors``."""
        found = parse_target(target)
        headers = found.headers(given["headers"])
        if not given["allow_remote"]:
            require_loopback(found)
        trace = Trace(paths, sort_window=given["sort_window"], skip_bad=given["skip_bad_lines"], host=given["host"])
        trace.open_all(given.get("window_begin"), given.get("window_end"))
        rewrites = tuple(parse_rewrite(text) for text in given["rewrites"])
        layout = Layout(rewrites, given["edit_path"], load_map(given.get("map_name", "plain")))
        known = trace.size_and_span(max_gap_us)
        shape = shape_of(trace.read(), max_gap_us) if known is None else TraceShape(*known)
        if not shape.requests:
            raise PlanError(f"{trace.name}: no request to replay{'' if trace.window.is_all else ' in the window'}")
        require_answer(found, layout.map, headers)
        users = users_of(found, layout.map, given.get("users"), headers)
        found = replace(found, users=users, connections=given.get("connections", "pooled"))
        seen = (*headers, ("Cookie", users[0])) if users else headers
        load = Load(
            found,
            layout,
            seed=given["seed"],
            names=_names(trace, layout),
            expect_404=given["expect_404"],
            headers=headers,
            allow_edits=_require_consent(found, layout, trace, {**given, "headers": seen}),
            warm_up_s=given["warm_up"],
            timeout_s=given["timeout"],
            open_requests=given["open_requests"],
            drain_s=given["drain"],
            hopeless_s=hopeless_s,
        )
        workers = Workers.of_options(given)
        return cls(trace, shape, load, given["lateness"] * 1000, workers, given.get("watch", ()), given.get("requests"))

    def go(self, pace: Pace, title: str, watched: LiveLine | None = None) -> Replay:
        """Replay once.  A line that is ``watched`` by others gets its snapshots from worker processes."""
        planned_s = planned_seconds(pace, self.shape)
        if self.load.warm_up_s >= planned_s > 0:
            raise PlanError(f"the warm-up of {self.load.warm_up_s:g} s leaves nothing of {planned_s:g} s to count")
        load = replace(self.load, planned_s=planned_s)

        def requests() -> Iterator[Planned]:
            skips = chain([pace.skip], repeat(0))  # a folder opens the part where the first round begins

            def read() -> Iterable[Request]:
                return self.trace.read(next(skips))

            return plan(read, replace(pace, skip=0), self.shape, random.Random(pace.poisson_seed))

        self._watch.begin()
        workers = self._workers or (None if watched is None else Workers(1, requests=self._requests))
        with watched or LiveLine(title) as line:
            if workers is not None:
                return workers.replay_plan(load, requests(), line)
            with request_log(self._requests, 1) as log:
                return replay(load, requests(), lambda injector: line.tick(snapshot_of(injector)), log)

    def summary(
        self,
        result: Replay,
        required: tuple[Requirement, ...],
        pace: Pace,
        verdicts: Sequence[Verdict] | None = None,
    ) -> Json:
        """Return the report of the last replay; ``verdicts`` on the requirements if they are not those of the whole."""
        about = {
            "target": self.target.url(""),
            "addresses": [one.url("") for one in self.target.addresses()],
            "map": self.load.layout.map.name,
            "connections": self.target.connections,
            "users": len(self.target.users),
            "command_line": shlex.join(["wikibench", *redact_words(sys.argv[1:])]),
            "seed": self.load.seed,
            "trace": {
                "file": self.trace.name,
                "requests": self.shape.requests,
                "span_s": round(self.shape.span_us / 1e6, 3),
                "unreadable_lines": self.trace.bad_lines,
                "of_other_hosts": self.trace.other_hosts,
                "late_lines": self.trace.late_lines,
            },
            "pace": {
                "rate_per_s": pace.rate,
                "speed": pace.speed,
                "even": pace.even,
                "poisson_seed": pace.poisson_seed,
                "profile": None if pace.profile is None else pace.profile.text,
                "skipped_requests": pace.skip,
                "duration_s": pace.duration_s,
                "loop": pace.loop,
                "max_gap_s": None if pace.max_gap_us is None else pace.max_gap_us / 1e6,
                "timeout_s": self.load.timeout_s,
            },
            "environment": environment(),
            "others_cpu_share": self._watch.others_share(),
            "contention": self._watch.contention(),
            "roles": roles_of(self._watch.uses(), result.recorder.count() + result.warm_up.count()),
        }
        found = summarize(
            result,
            judge_all(required, result) if verdicts is None else verdicts,
            about,
            why_not_valid(result, self._late_ms),
        )
        found["generator"]["limit_here"] = self._known_limit(result)
        return cast("Json", redacted(found, _secrets(self.load.headers)))

    def _known_limit(self, result: Replay) -> Json | None:
        """Return what the generator can do on this machine, as far as it is known; workers elsewhere have no limit."""
        path = limits_file()
        if path is None or (self._workers is not None and self._workers.listener is not None):
            return None
        workers, asked_per_s = result.crew.workers, result.requested_rate
        return known_limit(read_limits(path), platform.node(), workers, environment(), asked_per_s)


def _secrets(headers: Iterable[tuple[str, str]]) -> list[str]:
    """Return the secret values of headers and their parts: of ``Bearer TOKEN`` the token is a secret."""
    return [part for _, value in headers for part in (value, *value.split()[1:])]


def _names(trace: Trace, layout: Layout) -> tuple[str, ...]:
    """Return pages of the trace for edits to link to."""
    names: dict[str, None] = {}
    for request in islice(trace.read(), NAMES_SOUGHT):
        if not request.is_save and not request.is_missing:
            names[layout.name(request.url)] = None
            if len(names) >= LINK_NAMES:
                break
    return tuple(names)


def _require_consent(target: Target, layout: Layout, trace: Trace, given: dict[str, Any]) -> bool:
    """Return whether foreign texts may be overwritten: ask a person at a terminal, refuse without a terminal."""
    if given["allow_edits"]:
        return True
    edited = (layout.page(request.url) for request in trace.saves())
    found, looked = pages_of_others(target, layout, edited, given["headers"])
    if not found:
        return False
    error = ForeignPagesError(target.url(""), found[0], len(found), looked)
    if not sys.stdin.isatty() or not click.confirm(f"{error.said}. Overwrite them?"):
        raise error
    return True
