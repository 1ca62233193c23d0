"""(pure) Merge of two edits of one text: pieces merged automatically, and places where a person has to choose.

    old, mine, theirs -> pieces: Agreed | Choice, in order; joined they are the merged text

A change replaces a run of lines of the old text by new lines.  Changes of the two sides that neither overlap
nor touch are both taken.  Otherwise the words of these lines are compared, and changes with an unchanged word between
them are both taken, too.  The rest is a Choice.  A change that both sides made is taken once.

Invariant: each change of either side is whole in an Agreed piece, or in a Choice with all lines of both sides.

The work is bounded like that of a difference (``diffs``); a text over these bounds is one Choice.  Knows nothing of
revisions and authors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from wikka_port.diffs import BUDGET, changes_of, operations, tokens_of

MERGED_TOKENS: Final = 8_000  # words and marks compared in one place; a longer place becomes a Choice
CHOICES_MAX: Final = 50  # with more Choices the whole text becomes one
Lines = tuple[str, ...]
Side = Literal["mine", "theirs", "both"]  # both: theirs, then mine
SIDES: Final[tuple[Side, ...]] = ("theirs", "mine", "both")


@dataclass(frozen=True, slots=True)
class Agreed:
    lines: Lines
    changed: bool = False  # by one side, or both


@dataclass(frozen=True, slots=True)
class Choice:
    old: Lines
    mine: Lines
    theirs: Lines

    def taken(self, side: Side) -> Lines:
        return {"mine": self.mine, "theirs": self.theirs, "both": self.theirs + self.mine}[side]


Piece = Agreed | Choice


class _Change(NamedTuple):
    start: int  # of the old items
    end: int
    items: Lines  # what they became


def merged(old: str, mine: str, theirs: str) -> str | None:
    """Return both edits of ``old`` in one text, or None if a person has to choose."""
    found = pieces(old, mine, theirs)
    return None if any(isinstance(piece, Choice) for piece in found) else resolved(found, {})


def pieces(old: str, mine: str, theirs: str) -> list[Piece]:
    """Merge both edits into pieces, with at most CHOICES_MAX Choices."""
    lines = old.split("\n")
    ours, others = _changes(lines, mine), _changes(lines, theirs)
    whole: list[Piece] = [Choice(tuple(lines), tuple(mine.split("\n")), tuple(theirs.split("\n")))]
    if mine == theirs:
        return [Agreed(tuple(mine.split("\n")), mine != old)]
    if ours is None or others is None:
        return whole
    found = list(_pieces(lines, ours, others))
    return found if sum(isinstance(piece, Choice) for piece in found) <= CHOICES_MAX else whole


def resolved(found: Sequence[Piece], sides: Mapping[int, Side]) -> str:
    """Return the merged text; ``sides`` has a side for each Choice, by number from 0.  Raises KeyError if one lacks."""
    out: list[str] = []
    number = 0
    for piece in found:
        if isinstance(piece, Agreed):
            out += piece.lines
        else:
            out += piece.taken(sides[number])
            number += 1
    return "\n".join(out)


def _changes(old: list[str], new_text: str) -> list[_Change] | None:
    """Return the changes from ``old`` to the new text, or None if they reach over more lines than are compared."""
    new = new_text.split("\n")
    found, is_whole = changes_of(old, new)
    if not is_whole:
        return None
    return [
        _Change(one.old_start, one.old_end, tuple(new[one.new_start : one.new_end]))
        for one in found
        if one.kind == "replace"
    ]


def _pieces(old: list[str], ours: list[_Change], others: list[_Change]) -> Iterator[Piece]:
    done = 0  # lines of the old text already in a piece
    for start, end, mine, theirs in _places(ours, others):
        if done < start:
            yield Agreed(tuple(old[done:start]))
        yield _place(tuple(old[start:end]), _applied(old, start, end, mine), _applied(old, start, end, theirs))
        done = end
    if done < len(old):
        yield Agreed(tuple(old[done:]))


def _places(ours: list[_Change], others: list[_Change]) -> Iterator[tuple[int, int, list[_Change], list[_Change]]]:
    """Yield the runs of the old text in which changes overlap or touch, with the changes of each side."""
    every = sorted([(change, 0) for change in ours] + [(change, 1) for change in others])
    index = 0
    while index < len(every):
        start, end = every[index][0].start, every[index][0].end
        place: tuple[list[_Change], list[_Change]] = ([], [])
        while index < len(every) and every[index][0].start <= end:
            change, side = every[index]
            place[side].append(change)
            end = max(end, change.end)
            index += 1
        yield start, end, *place


def _applied(old: Sequence[str], start: int, end: int, changes: list[_Change]) -> Lines:
    out: list[str] = []
    done = start
    for change in changes:
        out += old[done : change.start]
        out += change.items
        done = change.end
    return (*out, *old[done:end])


def _place(old: Lines, mine: Lines, theirs: Lines) -> Piece:
    if mine in (theirs, old):
        return Agreed(theirs, changed=True)
    if theirs == old:
        return Agreed(mine, changed=True)
    words = _by_words(old, mine, theirs)
    return Choice(old, mine, theirs) if words is None else Agreed(words, changed=True)


def _by_words(old: Lines, mine: Lines, theirs: Lines) -> Lines | None:
    """Merge both edits of a few lines by words.

    Returns None if no unchanged word separates changes of the two sides, or the lines are too long.
    """
    if not (old and mine and theirs):
        return None  # a side deleted the lines, or both inserted lines in one place
    texts = [tokens_of("\n".join(lines)) for lines in (old, mine, theirs)]
    if max(map(len, texts)) > MERGED_TOKENS:
        return None
    base, ours, others = texts
    changes = [(change, 0) for change in _token_changes(base, ours)]
    changes += [(change, 1) for change in _token_changes(base, others)]
    changes.sort()
    ends = [-1, -1]  # of the last change of either side
    out: list[str] = []
    done = 0
    last: _Change | None = None
    for change, side in changes:
        if change == last:
            ends[side] = change.end
            continue
        other_end = ends[1 - side]
        if other_end >= 0 and not _is_separated(base, other_end, change.start):
            return None
        out += base[done : change.start]
        out += change.items
        done, last = change.end, change
        ends[side] = change.end
    return tuple("".join([*out, *base[done:]]).split("\n"))


def _token_changes(old: list[str], new: list[str]) -> list[_Change]:
    return [
        _Change(one.old_start, one.old_end, tuple(new[one.new_start : one.new_end]))
        for one in operations(old, new, BUDGET // 4)
        if one.kind == "replace"
    ]


def _is_separated(tokens: list[str], end: int, start: int) -> bool:
    """Return whether an unchanged word lies between the two changes."""
    return any(token[0].isalnum() or token[0] == "_" for token in tokens[end:start]) if end < start else False
