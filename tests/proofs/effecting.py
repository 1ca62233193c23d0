"""Triggers of the proof of effects: a row's text says which effects its change yields, and how its function behaves.

``f:do`` holds words separated by blanks, each an effect or an action:

    put:K   del:K       a cell of row K of ``even`` that names the row and the trigger
    many                cells of several rows, more than one slice
    nofam  notnum  nomark    effects that are refused, each by another check
    raise  die  later   at the first attempt, or by chance: the change comes again
    broken              raises at each attempt
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from typing import Final

from columnar.triggers.api import Change, Checkpoint, Contribute, Delete, Effect, Later, Put, Tally, on

FED: Final = b"fed"
EVEN: Final = b"even"
WORDS: Final = b"words"  # of no numbers, and without DELETE_MARKERS
GROUPS: Final = b"groups"
DO: Final = b"f:do"
NUMBER: Final = b"f:n"
GROUP: Final = b"f:g"
MANY: Final = 620  # a slice has 500
ATTEMPTS: Final = 2
REFUSED: Final = frozenset({"nofam", "notnum", "nomark", "broken"})
LATER: Final = 0.5  # of the runs
TRIGGERS: Final = ("plain", "batch", "slices")


def column(row: bytes, trigger: str) -> bytes:
    return b"o:" + row + b"." + trigger.encode()


def _effects(change: Change, trigger: str) -> Iterator[Effect]:
    number, own = change.after[NUMBER], column(change.row, trigger)
    for word in change.after[DO].decode().split():
        kind, _, key = word.partition(":")
        row = key.encode()
        if kind == "put":
            yield Put("even", row, {own: number})
        elif kind == "del":
            yield Delete("even", row, [own])
        elif kind == "many":
            for at in range(MANY):
                yield Put("even", b"many%d" % (at % 7), {own: number})
        elif kind == "nofam":
            yield Put("even", b"a", {b"none:q": number})
        elif kind == "notnum":
            yield Tally("words", b"w", {b"n:x": 1})
        elif kind == "nomark":
            yield Delete("words", b"w", [b"n:y"])
        else:
            _behave(kind, change)


def _behave(deed: str, change: Change) -> None:
    if deed == "broken" or (deed == "raise" and change.attempt == 1):
        raise ValueError(deed)
    if deed == "die" and change.attempt == 1:
        os._exit(1)
    if deed == "later" and random.random() < LATER:
        raise Later(0.01)


@on("fed", columns=["f:do", "f:n"], writes=["even", "words"], attempts=ATTEMPTS, name="plain")
def plain(change: Change) -> Iterator[Effect]:
    yield from _effects(change, "plain")


@on("fed", columns=["f:do", "f:n"], writes=["even", "words"], attempts=ATTEMPTS, batch=6, within_ms=5, name="batch")
def batch(changes: Sequence[Change]) -> Iterator[tuple[Change, Effect]]:
    for change in changes:
        for effect in _effects(change, "batch"):
            yield change, effect


@on("fed", columns=["f:do", "f:n"], writes=["even", "words"], attempts=ATTEMPTS, side_by_side=2, name="slices")
def slices(change: Change) -> Iterator[Effect]:
    """Yield more than one slice; after the checkpoint yield everything once more, which must change nothing."""
    if not change.progress:
        yield from _effects(change, "slices")
        yield Checkpoint(b"half")
    yield from _effects(change, "slices")


@on("fed", columns=["f:g", "f:n"], before=True, writes=["groups"], name="groups")
def groups(change: Change) -> Iterator[Effect]:
    for group in change.gone("f:g"):
        yield Contribute("groups", group, None)
    if GROUP in change.after:
        yield Contribute("groups", change.after[GROUP], {b"n:rows": 1, b"n:sum": int(change.after[NUMBER])})
