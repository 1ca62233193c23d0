"""python -m tests.proofs.wiki_spam: edits of our own making, half of them spam, and what the judge says.

The rules and settings are those of a new wiki.  The exit status is 0 if at most 1 % of the good edits are kept back
and at least 95 % of the bad ones, and if of the names of new accounts no good one is refused and at least 90 % of the
bad ones are.  ``--show`` prints the edits and names that the judge got wrong.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, field

import click
from rich.console import Console
from rich.table import Table

from tests.support.made_account_names import BAD_NAMES, GOOD_NAMES
from tests.support.made_edits import VISITOR, Made, made_edits
from wikka_port.antispam.judging import Submission, Verdict, judge

GOOD_MOST = 0.01
BAD_LEAST = 0.95
BAD_NAMES_LEAST = 0.9
ACCOUNT = "account_name"  # a kind of its own, beside those of edits


@dataclass
class Tally:
    """What became of the edits of a kind."""

    actions: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)

    def count(self, verdict: Verdict) -> None:
        self.actions[verdict.action] += 1
        self.reasons.update(one.code for one in verdict.reasons)

    @property
    def number(self) -> int:
        return self.actions.total()

    @property
    def stopped(self) -> int:
        return self.number - self.actions["accept"]


def judged(edits: list[Made]) -> tuple[dict[tuple[bool, str], Tally], list[tuple[Made, Verdict]]]:
    """Return the tallies by kind, and the edits that were judged wrongly."""
    tallies: dict[tuple[bool, str], Tally] = {}
    wrong = []
    for one in edits:
        verdict = judge(one.submission)
        tallies.setdefault((one.is_good, one.kind), Tally()).count(verdict)
        if one.is_good != (verdict.action == "accept"):
            wrong.append((one, verdict))
    return tallies, wrong


def named_accounts() -> list[Made]:
    """Return the names of new accounts, as a registration has them judged."""
    named = [(name, is_good) for names, is_good in ((GOOD_NAMES, True), (BAD_NAMES, False)) for name in names]
    return [
        Made(ACCOUNT, is_good, Submission("comment", "", "", VISITOR, name=name, is_account=True))
        for name, is_good in named
    ]


def share(tallies: dict[tuple[bool, str], Tally], *, good: bool) -> tuple[int, int]:
    """Return how many of a half were kept back or refused, and how many there are."""
    half = [tally for (is_good, _), tally in tallies.items() if is_good is good]
    return sum(tally.stopped for tally in half), sum(tally.number for tally in half)


def report(tallies: dict[tuple[bool, str], Tally], seed: int) -> None:
    table = Table("", "kind", "edits", "accepted", "waits", "refused", "reasons", title=f"seed {seed}")
    for (is_good, kind), tally in tallies.items():
        found = tally.actions
        reasons = ", ".join(f"{code} {count}" for code, count in tally.reasons.most_common())
        numbers = [str(one) for one in (tally.number, found["accept"], found["review"], found["refuse"])]
        table.add_row("good" if is_good else "bad", kind, *numbers, reasons)
    Console(width=150, highlight=False).print(table)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--seed", default=20261129, show_default=True)
@click.option("--count", default=500, show_default=True, type=click.IntRange(100, 100_000))
@click.option("--show", is_flag=True, help="Print what was judged wrongly.")
def main(seed: int, count: int, show: bool) -> None:
    """Judge edits of our own making."""
    tallies, wrong = judged(made_edits(seed, count))
    names, wrong_names = judged(named_accounts())
    report({**tallies, **names}, seed)
    for one, verdict in (*wrong, *wrong_names) if show else ():
        click.echo(f"--- {one.kind}: {verdict.action} {verdict}\n{one.submission.name or one.submission.new[-600:]}\n")
    good, goods = share(tallies, good=True)
    bad, bads = share(tallies, good=False)
    click.echo(f"good kept back: {good} of {goods} ({good / goods:.1%}, at most {GOOD_MOST:.0%})")
    click.echo(f"bad caught:     {bad} of {bads} ({bad / bads:.1%}, at least {BAD_LEAST:.0%})")
    good_names, all_good = share(names, good=True)
    bad_names, all_bad = share(names, good=False)
    click.echo(f"good names of accounts refused: {good_names} of {all_good} (at most 0)")
    click.echo(f"bad names of accounts refused:  {bad_names} of {all_bad} (at least {BAD_NAMES_LEAST:.0%})")
    are_names_judged = good_names == 0 and bad_names >= BAD_NAMES_LEAST * all_bad
    sys.exit(not (good / goods <= GOOD_MOST and bad / bads >= BAD_LEAST and are_names_judged))


if __name__ == "__main__":
    main()
