"""Measure one wiki again and again: do searches find the same rate, and does 'ab' find no difference?

    python -m tests.measure.same_wiki searches [--count 3] [--duration 20] [--budget SECONDS]
    python -m tests.measure.same_wiki ab       [--count 10] [--rounds 5] [--duration 30] [--rate R]

Starts a store and a wiki of synthetic pages, and a trace of views of these.

    searches    'wikibench search' so many times: the rates lie within 6 % of each other (largest less smallest, over
                the median).  Some 8 minutes a search; --budget 60 --duration 4 ends each after a minute
    ab          'wikibench ab' of the wiki with itself so many times: each says "same" or "cannot tell".  10 minutes
                each, or 20 if a difference had to be confirmed; --rounds 2 --duration 3 --rate 50 takes half a minute

Prints what each found; the exit status is 1 if the bound is missed, or if a search or a comparison is not valid.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gauge.machine import machine, now
from tests.measure.wiki_import import HERE, Checkout
from tests.measure.wiki_views import running

WIKIBENCH: Final = (sys.executable, "-m", "wikibench.cli")
SPREAD: Final = 0.06
NO_DIFFERENCE: Final = ("same", "cannot tell")
REQUIREMENT: Final = "p95<200ms,errors<0.1%"

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Wiki:
    """A running wiki, a trace of views of it, and its processes as wikibench watches them."""

    url: str
    trace: Path
    roles: tuple[str, ...]


@contextmanager
def wiki_with_trace(pages: int, seed: int) -> Iterator[Wiki]:
    """Run a store and a wiki of so many synthetic pages."""
    with tempfile.TemporaryDirectory(prefix="columnar-same-wiki-") as text:
        folder = Path(text)
        with running(Checkout("here", HERE), pages, folder) as wiki:
            url, trace = f"http://{wiki.address}", folder / "views.trace"
            words = ("synth", "--target", url, "--out", trace, "--requests", 20_000, "--rate", 100, "--seed", seed)
            said = wikibench(words, (0,))
            print(f"{pages} pages, seed {seed}; {said.strip()}", flush=True)
            yield Wiki(url, trace, (f"wiki={wiki.wiki}", f"store={wiki.store}"))


def wikibench(words: Sequence[object], statuses: Sequence[int]) -> str:
    """Run a command; return what it printed as errors.  Exits if its status is another one."""
    done = subprocess.run([*WIKIBENCH, *map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode not in statuses:
        raise SystemExit(f"wikibench {' '.join(map(str, words))}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stderr


def search(wiki: Wiki, given: argparse.Namespace, seed: int) -> Json:
    """Return the answer of one search."""
    file = wiki.trace.with_name(f"search-{seed}.json")
    words = ("search", wiki.trace, "--target", wiki.url, "--require", REQUIREMENT, "--seed", seed, "--json", file)
    budget = () if given.budget is None else ("--budget", f"{given.budget:g}s")
    wikibench((*words, "--from", given.first, "--duration", f"{given.duration:g}s", *budget), (0, 1, 3))
    return json.loads(file.read_text())


def compare(wiki: Wiki, given: argparse.Namespace, seed: int) -> Json:
    """Return the comparison of the wiki with itself."""
    out = wiki.trace.with_name(f"ab-{seed}")
    words = ["ab", wiki.trace, "--a", wiki.url, "--b", wiki.url, "--seed", seed, "--out", out, "--rounds", given.rounds]
    for side in ("--watch-a", "--watch-b"):
        words += [word for role in wiki.roles for word in (side, role)]
    rate = () if given.rate is None else ("--rate", given.rate)
    wikibench((*words, "--duration", f"{given.duration:g}s", *rate), (0, 1, 3))  # 1: "worse", which is counted
    return json.loads((out / "comparison.json").read_text())


def search_line(answer: Json) -> str:
    interval = f"90 % between {answer['low_per_s']:.1f} and {answer['high_per_s']:.1f}"
    lateness = max((one["own_lateness_p99_ms"] or 0.0 for one in answer["tries"]), default=0.0)
    end = "" if answer["valid"] else ", NOT VALID"
    return f"{answer['rate_per_s']:.1f}/s, {interval}, {len(answer['tries'])} tries, late by {lateness:.1f} ms{end}"


def judge_searches(answers: Sequence[Json]) -> tuple[str, bool]:
    """Return what the searches say together, and whether they lie within SPREAD of each other."""
    rates = [one["rate_per_s"] for one in answers]
    median = statistics.median(rates)
    if not median or not all(one["valid"] for one in answers):
        return "a search is not valid, or found no rate: missed", False
    spread = (max(rates) - min(rates)) / median
    is_met = spread <= SPREAD
    words = f"{min(rates):.1f} to {max(rates):.1f}/s, a spread of {spread:.1%}; bound {SPREAD:.0%}"
    return f"{words}: {'met' if is_met else 'missed'}", is_met


def comparison_line(found: Json) -> str:
    figures = ", ".join(
        f"{one['figure']} {one['ratio']['low'] - 1:+.1%} to {one['ratio']['high'] - 1:+.1%}"
        for one in found["figures"]
        if one["decides"] and one["ratio"] is not None
    )
    end = "" if found["valid"] else f"; NOT VALID: {'; '.join(found['not_valid_because'])}"
    return f"{found['verdict']}: {figures}{end}"


def judge_comparisons(found: Sequence[Json]) -> tuple[str, bool]:
    """Return what the comparisons say together, and whether none of them found a difference."""
    good = sum(one["verdict"] in NO_DIFFERENCE and one["valid"] for one in found)
    is_met = good == len(found)
    return f"'same' or 'cannot tell' in {good} of {len(found)}: {'met' if is_met else 'missed'}", is_met


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("searches", "ab"))
    parser.add_argument("--count", type=int, help="how many (3 searches, 10 comparisons)")
    parser.add_argument("--pages", type=int, default=1_000, help="of the wiki")
    parser.add_argument("--duration", type=float, help="seconds of a try (20, 30)")
    parser.add_argument("--budget", type=float, help="seconds of a search (none)")
    parser.add_argument("--first", type=float, default=50.0, help="rate at which a search begins")
    parser.add_argument("--rounds", type=int, default=5, help="of a comparison, A B B A each")
    parser.add_argument("--rate", type=float, help="of a comparison (a fifth of the largest)")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    is_search = given.what == "searches"
    count = given.count or (3 if is_search else 10)
    given.duration = given.duration or (20.0 if is_search else 30.0)
    print(f"{now()}, {machine()}, load average {os.getloadavg()[0]:.1f}")
    found = []
    with wiki_with_trace(given.pages, given.seed) as wiki:
        for number in range(count):
            found.append((search if is_search else compare)(wiki, given, given.seed + number))
            print(f"{number + 1}: {(search_line if is_search else comparison_line)(found[-1])}", flush=True)
    words, is_met = (judge_searches if is_search else judge_comparisons)(found)
    print(words)
    sys.exit(not is_met)


if __name__ == "__main__":
    main()
