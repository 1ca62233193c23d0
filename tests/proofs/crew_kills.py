"""``python -m tests.proofs.crew_kills``: kills and stops of a load's workers and controller, by real processes.

Each round is a replay by ``wikibench replay`` with two workers against a server of its own, which notes each request
with its moment.  Each request has a path of its own.

    a worker killed      at a random moment: exit status 3; every planned request is answered, failed, interrupted or
                         lost; the whole rate comes within 1 s; every request that is due later than that comes
    controller killed    at a random moment, or while it writes its report: its workers end within 2 s, and 1.5 s after
                         the kill nothing comes any more; a file of the report is whole or not there
    a worker stopped     (SIGSTOP) for up to 5 s, then continued: a worker that connects by itself, as those of other
                         machines do, and that nobody kills.  The requests add up; if it was lost, the status is 3 and
                         the whole rate comes within 3 s

In each round nothing is sent twice, and no process is left.  A kill before the load begins ends the command with status
2, and nothing of the plan has been sent.  A round takes 5 to 14 s, so 100 kills, 20 kills and 100 stops take 35
minutes; --worker-kills 5 --controller-kills 5 --stops 2 takes a minute and a half.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import click
from rich.console import Console

from gauge.processes import children_of
from tests.proofs.verdict import end_report
from tests.support.noted_load import (
    Command,
    EvenPlan,
    command,
    even_plan,
    moments_of,
    noting_server,
    report_of,
    sent_twice,
    wait_until,
    whole_again_s,
)
from tests.support.stop_schedule import begin_of
from tests.support.stopping_server import Notes
from wikibench.crew.clocks import UNHEARD_S
from wikibench.crew.controller_state import SILENT_S

LOCAL_S: Final = 1.0  # until the whole rate comes again, with workers of one machine
END_S: Final = 2.0  # for workers to end after their controller
CLOSE_S: Final = 0.2  # around SILENT_S: a worker that was stopped for so long may be lost or not
LONGEST_STOP_S: Final = 5.0
TOKEN: Final = "0123456789abcdef0123456789abcdef"


@dataclass
class Found:
    """What the rounds of one kind have shown."""

    counts: Counter[str] = field(default_factory=Counter)
    longest_s: dict[str, float] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def note_longest(self, name: str, seconds: float, bound_s: float, about: str) -> None:
        self.longest_s[name] = max(self.longest_s.get(name, 0.0), seconds)
        if seconds > bound_s:
            self.wrong.append(f"{about}: {name} {seconds:.2f} s, over {bound_s:g}")

    def expect(self, is_so: bool, problem: str) -> None:
        if not is_so:
            self.wrong.append(problem)

    def line(self) -> str:
        counted = [f"{count:,} {name}" for name, count in sorted(self.counts.items())]
        return ", ".join(counted + [f"{name} {seconds:.2f} s" for name, seconds in sorted(self.longest_s.items())])


Round = Callable[[Found, random.Random, EvenPlan, Path, str], None]


def kill_worker(found: Found, rng: random.Random, plan: EvenPlan, folder: Path, about: str) -> None:
    """Kill one of two workers, and judge what its controller made of it."""
    words = ("replay", plan.trace, "--workers", 2, "--json", folder / "report.json")
    with noting_server() as notes, command(folder / "said", *words, "--target", notes.url) as controller:
        victim = rng.choice(workers_of(controller))
        time.sleep(rng.uniform(0.0, plan.seconds - LOCAL_S - 0.5))
        os.kill(victim, signal.SIGKILL)
        killed_s = time.monotonic()
        status = controller.wait()
        found.expect(not controller.processes(), f"{about}: processes are left")
        output = controller.output
    if status == 2 and "lost before the load began" in output:
        found.counts["before the load"] += 1
        found.expect(not moments_of(notes, plan), f"{about}: requests of a load that did not begin")
        return
    found.counts["during the load"] += 1
    found.expect(status == 3, f"{about}: status {status}: {output[-500:]}")
    judge_sums(found, plan, notes, folder / "report.json", about, lost_workers=1)
    judge_rate(found, plan, notes, killed_s, LOCAL_S, about)


def kill_controller(found: Found, rng: random.Random, plan: EvenPlan, folder: Path, about: str) -> None:
    """Kill the controller, and judge its workers and the files that it leaves."""
    report = folder / "out"
    connections = rng.choice(("pooled", "fresh"))  # with fresh ones some are being made when the workers end
    words = ("replay", plan.trace, "--workers", 2, "--report", report, "--csv", report, "--connections", connections)
    with noting_server() as notes, command(folder / "said", *words, "--target", notes.url) as controller:
        workers_of(controller)
        is_late = rng.random() < 0.5
        if is_late:
            name = rng.choice(("report.json", "report.html", "intervals.csv"))  # it, or what becomes it
            wait_until(lambda: any(report.glob(f"*{name}*")) or controller.process.poll() is not None)
            time.sleep(rng.choice((0.0, rng.uniform(0.0, 0.01))))
        else:
            time.sleep(rng.uniform(0.0, plan.seconds))
        has_ended = controller.process.poll() is not None
        controller.process.kill()
        killed_s = time.monotonic()
        controller.wait()
        try:
            found.note_longest(
                "until the workers end", wait_until(lambda: not controller.processes(), 20), END_S, about
            )
        except TimeoutError:
            found.wrong.append(f"{about}: workers live on 20 s after their controller: {controller.processes()}")
        time.sleep(UNHEARD_S)  # for requests that a process of another session might send
    found.counts["that had ended" if has_ended else "at its report" if is_late else "during the load"] += 1
    last_s = max((moment_s - killed_s for _, moment_s, _ in notes.read), default=0.0)
    found.note_longest("until the last request", last_s, UNHEARD_S, about)
    judge_twice(found, plan, notes, about)
    for file in sorted(report.glob("[!.]*")):  # a hidden one was to become a file
        found.counts["whole files"] += 1
        found.expect(is_whole(file), f"{about}: {file.name} is half written, {file.stat().st_size} bytes")


def stop_worker(found: Found, rng: random.Random, plan: EvenPlan, folder: Path, about: str) -> None:
    """Stop one of two workers that connect by themselves, continue it, and judge the sums."""
    token = folder / "token"
    token.write_text(TOKEN)
    stop_s = rng.choice((rng.uniform(0.2, SILENT_S), rng.uniform(SILENT_S, LONGEST_STOP_S)))  # half of them are lost
    crew = ("--listen", "127.0.0.1:0", "--expect", 2, "--token-file", token)
    words = ("replay", plan.trace, *crew, "--json", folder / "report.json")
    with ExitStack() as stack:
        notes = stack.enter_context(noting_server())
        controller = stack.enter_context(command(folder / "said", *words, "--target", notes.url))
        worker = ("worker", controller.address(), "--token-file", token)
        workers = [stack.enter_context(command(folder / f"said-{n}", *worker)) for n in range(2)]
        time.sleep(rng.uniform(3.0, 6.0))  # the load begins some 3 s after the start of the workers
        victim = rng.choice(workers)
        os.killpg(victim.pid, signal.SIGSTOP)
        stopped_s = time.monotonic()
        time.sleep(stop_s)
        os.killpg(victim.pid, signal.SIGCONT)
        status = controller.wait()
        for one in workers:
            one.wait()
        found.expect(not any(one.processes() for one in (controller, *workers)), f"{about}: processes are left")
    lost = judge_sums(found, plan, notes, folder / "report.json", f"{about}, stopped for {stop_s:.2f} s")
    found.counts["that were lost" if lost else "that were not lost"] += 1
    found.expect(status == 3 if lost else status in (0, 3), f"{about}: status {status}")
    is_within = begin_of(plan.starts_s, moments_of(notes, plan)) < stopped_s
    found.counts["during the load" if is_within else "before the load"] += 1
    if is_within and abs(stop_s - SILENT_S) > CLOSE_S:
        found.expect(lost == (stop_s > SILENT_S), f"{about}: {lost} workers lost after a stop of {stop_s:.2f} s")
    if lost and is_within:
        judge_rate(found, plan, notes, stopped_s, SILENT_S, about)


def workers_of(controller: Command) -> list[int]:
    """Return the ids of both worker processes as soon as they exist."""
    wait_until(lambda: len(children_of(controller.pid)) == 2 or controller.process.poll() is not None)
    workers = children_of(controller.pid)
    if len(workers) != 2:
        raise SystemExit(f"the workers did not start: {controller.output}")
    return workers


def judge_sums(
    found: Found, plan: EvenPlan, notes: Notes, file: Path, about: str, lost_workers: int | None = None
) -> int:
    """Judge that each planned request has one end, and that none was sent twice; return how many workers were lost."""
    judge_twice(found, plan, notes, about)
    if not file.exists():
        found.wrong.append(f"{about}: no report")
        return 0
    report = report_of(file)
    requests, lost = report["requests"], report["generator"]["workers_lost"]
    ended = requests["counted"] + requests["lost"]  # counted: answered, failed and interrupted
    found.counts["requests planned"] += len(plan.starts_s)
    found.counts["requests lost"] += requests["lost"]
    found.expect(ended == len(plan.starts_s), f"{about}: {ended} of {len(plan.starts_s)} planned requests have an end")
    missing = len(plan.starts_s) - len(moments_of(notes, plan))
    found.expect(missing <= requests["lost"], f"{about}: {missing} never came, and {requests['lost']} count as lost")
    found.expect(report["ending"] == "complete", f"{about}: its end was {report['ending']!r}")
    found.expect(lost_workers in (None, lost), f"{about}: {lost} workers were lost")
    return int(lost)


def judge_rate(found: Found, plan: EvenPlan, notes: Notes, since_s: float, bound_s: float, about: str) -> None:
    """Judge that the whole rate comes again within the bound, and that all that is due after it comes."""
    moments_s = moments_of(notes, plan)
    again_s = whole_again_s(moments_s.values(), since_s, plan.rate)
    found.note_longest("until the whole rate", again_s, bound_s, about)
    late_s = since_s + bound_s - begin_of(plan.starts_s, moments_s)
    missing = sum(at_s > late_s and path not in moments_s for path, at_s in plan.starts_s.items())
    found.expect(not missing, f"{about}: {missing} requests that were due {bound_s:g} s later never came")


def judge_twice(found: Found, plan: EvenPlan, notes: Notes, about: str) -> None:
    twice = sent_twice(notes, plan)
    found.expect(not twice, f"{about}: {len(twice)} requests were sent twice, such as {twice[:3]}")


def is_whole(file: Path) -> bool:
    """Say whether a file of a report has its end."""
    text = file.read_text()
    if file.suffix == ".json":
        try:
            json.loads(text)
        except ValueError:
            return False
    return text.rstrip().endswith("</html>") if file.suffix == ".html" else text.endswith("\n")


def prove(
    kinds: dict[str, tuple[Round, int]],
    seed: int,
    rate: float,
    seconds: float,
    folder: Path,
    tell: Callable[[str], None],
) -> dict[str, Found]:
    """Run so many rounds of each kind; return what was found by kind."""
    all_found: dict[str, Found] = {}
    for kind, (play, rounds) in kinds.items():
        found = all_found[kind] = Found()
        lasts_s = seconds + (LONGEST_STOP_S if play is stop_worker else 0.0)
        for number in range(rounds):
            about = f"{kind} {number + 1}"
            own = folder / about.replace(" ", "-")
            own.mkdir(parents=True)
            try:
                play(found, random.Random(f"{seed} {about}"), even_plan(own, rate, lasts_s), own, about)
            except TimeoutError as error:
                found.wrong.append(f"{about}: {error}")
            tell(f"{about} of {rounds}: {found.line()}")
    return all_found


KINDS: Final[dict[str, Round]] = {
    "worker killed": kill_worker,
    "controller killed": kill_controller,
    "worker stopped": stop_worker,
}


@click.command(
    help=(__doc__ or "").replace("\n\n", "\n\n\b\n"), context_settings={"help_option_names": ["-h", "--help"]}
)
@click.option("--worker-kills", default=100, show_default=True, type=click.IntRange(0))
@click.option("--controller-kills", default=20, show_default=True, type=click.IntRange(0))
@click.option("--stops", default=100, show_default=True, type=click.IntRange(0))
@click.option("--rate", default=200.0, show_default=True, type=click.FloatRange(20), help="Requests a second.")
@click.option("--seconds", default=3.0, show_default=True, type=click.FloatRange(2), help="Of a replay, without stops.")
@click.option("--seed", default=1, show_default=True)
def main(worker_kills: int, controller_kills: int, stops: int, rate: float, seconds: float, seed: int) -> None:
    console = Console(soft_wrap=True, highlight=False, markup=False)
    folder = Path(tempfile.mkdtemp(prefix="columnar-crew-kills-"))
    rounds = dict(zip(KINDS, (worker_kills, controller_kills, stops), strict=True))
    kinds = {kind: (play, rounds[kind]) for kind, play in KINDS.items()}
    with console.status("starting") as status:
        found = prove(kinds, seed, rate, seconds, folder, status.update)
    console.print(f"seed {seed}, {rate:g} requests a second for {seconds:g} s, two workers")
    for kind, one in found.items():
        console.print(f"{rounds[kind]} x {kind}: {one.line()}")
    end_report(console, [problem for one in found.values() for problem in one.wrong], folder)


if __name__ == "__main__":
    sys.exit(main())
