"""Differences of two texts (pure): lines first, then words within the lines that changed.

The work on lines, on words and on the shown rows is bounded for any texts.  Lines that occur exactly once in both texts
are matched first (the longest run of them in order, as in patience diff).  Between these anchors Myers' greedy
algorithm runs until the budget is spent.  The remaining lines then count as one replaced block: still right, less fine.

    O(n log n) for the anchors of up to LINES lines, plus at most BUDGET steps for everything between them;
    WORD_BUDGET steps for the words of all changed lines, PAIRING_WORDS to find which line became which;
    O(n) at the speed of memory for the lines that both texts share at their beginning and at their end

Invariant: the old sides of the operations, joined, are the old text; the new sides, joined, are the new text.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple

BUDGET: Final = 150_000  # inner steps of one diff; about a fifth of a second
WORD_BUDGET: Final = 150_000  # of all its lines together
LINES: Final = 20_000  # of each text from its first change on; what follows is not compared
MAX_LINE_TOKENS: Final = 4_000  # longer lines are shown as changed as a whole
MAX_LINE_CHARS: Final = 8 * MAX_LINE_TOKENS
MAX_PAIRING: Final = 2_500  # lines times lines of a block in which the likest pairs are searched
PAIRING_WORDS: Final = 300_000  # compared for that, in all blocks together
LIKENESS_WORDS: Final = 200  # compared of each line: its beginning suffices to find its other version
_PAIR_WORDS: Final = 10  # the cost of a pair beside its words
ALIKE: Final = 0.35  # two lines with this share of common words are versions of each other
CONTEXT: Final = 3  # unchanged lines shown around each change
MAX_ROWS: Final = 3_000  # shown of one diff
MAX_DIFF_CHARS: Final = 500_000
_TOKEN: Final = re.compile(r"\w+|\s+|[^\w\s]")


class Operation(NamedTuple):
    kind: Literal["equal", "replace"]  # replace: either side may be empty
    old_start: int
    old_end: int
    new_start: int
    new_end: int


class Span(NamedTuple):
    text: str
    changed: bool


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a side-by-side view."""

    kind: Literal["equal", "change", "delete", "insert", "skip", "cut"]
    old_number: int = 0  # from 1; 0: this side has no line here
    new_number: int = 0
    old: tuple[Span, ...] = ()
    new: tuple[Span, ...] = ()
    skipped: int = 0  # unchanged lines not shown, for "skip"; "cut": all that follows is not shown


class _Steps:
    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left


class Work:
    """The bound on the cost of one diff; each of several diffs on a page gets a ``share`` of the whole."""

    __slots__ = ("chars", "lines", "pairing", "words")

    def __init__(self, share: float = 1.0) -> None:
        self.lines = _Steps(int(BUDGET * share))
        self.words = _Steps(int(WORD_BUDGET * share))
        self.pairing = _Steps(int(PAIRING_WORDS * share))
        self.chars = _Steps(int(MAX_DIFF_CHARS * share))


def operations(old: Sequence[Hashable], new: Sequence[Hashable], budget: int = BUDGET) -> list[Operation]:
    """Return the operations that make ``new`` of ``old``; neighbours have different kinds."""
    return _operations(old, new, _Steps(budget))


def _operations(old: Sequence[Hashable], new: Sequence[Hashable], steps: _Steps) -> list[Operation]:
    numbers: dict[Hashable, int] = {}
    a = [numbers.setdefault(item, len(numbers)) for item in old]
    b = [numbers.setdefault(item, len(numbers)) for item in new]
    steps.left -= (len(a) + len(b)) // 4
    matches = list(_matches(a, b, steps))
    out: list[Operation] = []
    i = j = 0
    for start_a, start_b, length in [*matches, (len(a), len(b), 0)]:
        if i < start_a or j < start_b:
            out.append(Operation("replace", i, start_a, j, start_b))
        if length and out and out[-1].kind == "equal":
            out[-1] = Operation("equal", out[-1].old_start, start_a + length, out[-1].new_start, start_b + length)
        elif length:
            out.append(Operation("equal", start_a, start_a + length, start_b, start_b + length))
        i, j = start_a + length, start_b + length
    return out


def _matches(a: list[int], b: list[int], steps: _Steps) -> Iterator[tuple[int, int, int]]:
    """Yield the equal runs in order: (start in a, start in b, length)."""
    low_a = low_b = 0
    high_a, high_b = len(a), len(b)
    while low_a < high_a and low_b < high_b and a[low_a] == b[low_b]:
        low_a, low_b = low_a + 1, low_b + 1
    if low_a:
        yield 0, 0, low_a
    while high_a > low_a and high_b > low_b and a[high_a - 1] == b[high_b - 1]:
        high_a, high_b = high_a - 1, high_b - 1
    i, j = low_a, low_b
    for x, y in [*_anchors(a, b, (low_a, high_a), (low_b, high_b)), (high_a, high_b)]:
        if i < x and j < y:
            yield from _myers(a, b, (i, x), (j, y), steps)
        if x < high_a and y < high_b:
            yield x, y, 1
        i, j = x + 1, y + 1
    if high_a < len(a):
        yield high_a, high_b, len(a) - high_a


def _anchors(a: list[int], b: list[int], in_a: tuple[int, int], in_b: tuple[int, int]) -> list[tuple[int, int]]:
    """Return the longest run of items that occur once on each side and are in order on both."""
    once_a = Counter(a[slice(*in_a)])
    once_b = Counter(b[slice(*in_b)])
    place_b = {b[y]: y for y in range(*in_b) if once_b[b[y]] == 1}
    pairs = [(x, place_b[a[x]]) for x in range(*in_a) if once_a[a[x]] == 1 and a[x] in place_b]
    tails: list[int] = []  # smallest y that ends a run of each length
    ends: list[int] = []  # index of that pair
    before: list[int] = []
    for index, (_, y) in enumerate(pairs):
        place = bisect_left(tails, y)
        before.append(ends[place - 1] if place else -1)
        if place == len(tails):
            tails.append(y)
            ends.append(index)
        else:
            tails[place], ends[place] = y, index
    run: list[tuple[int, int]] = []
    index = ends[-1] if ends else -1
    while index >= 0:
        run.append(pairs[index])
        index = before[index]
    run.reverse()
    return run


def _myers(
    a: list[int], b: list[int], in_a: tuple[int, int], in_b: tuple[int, int], steps: _Steps
) -> Iterator[tuple[int, int, int]]:
    """Yield the equal runs of the shortest edit script; none if the budget ends first."""
    (a0, a1), (b0, b1) = in_a, in_b
    n, m = a1 - a0, b1 - b0
    furthest = {1: 0}
    trace: list[dict[int, int]] = []
    for d in range(n + m + 1):
        steps.left -= d + 1
        if steps.left < 0:
            return
        trace.append(dict(furthest) if d < 2 else {k: furthest[k] for k in range(-d - 1, d + 2) if k in furthest})
        steps.left -= d + 1
        for k in range(-d, d + 1, 2):
            down = k == -d or (k != d and furthest.get(k - 1, -1) < furthest.get(k + 1, -1))
            x = furthest[k + 1] if down else furthest[k - 1] + 1
            y = x - k
            start = x
            while x < n and y < m and a[a0 + x] == b[b0 + y]:
                x, y = x + 1, y + 1
            steps.left -= x - start
            furthest[k] = x
            if x >= n and y >= m:
                yield from _runs_from_trace(trace, n, m, a0, b0)
                return


def _runs_from_trace(trace: list[dict[int, int]], n: int, m: int, a0: int, b0: int) -> list[tuple[int, int, int]]:
    runs: list[tuple[int, int, int]] = []
    x, y = n, m
    for d in range(len(trace) - 1, -1, -1):
        furthest = trace[d]
        k = x - y
        down = k == -d or (k != d and furthest.get(k - 1, -1) < furthest.get(k + 1, -1))
        previous_x = furthest[k + 1] if down else furthest[k - 1]
        previous_y = previous_x - (k + 1 if down else k - 1)
        start_x = previous_x if down else previous_x + 1
        if d == 0:
            start_x = 0
        if x > start_x:
            runs.append((a0 + start_x, b0 + start_x - k, x - start_x))
        x, y = previous_x, previous_y
    runs.reverse()
    return runs


def rows(old: str, new: str, *, context: int = CONTEXT, max_rows: int = MAX_ROWS, share: float = 1.0) -> list[Row]:
    """Return the lines of both texts side by side, without unchanged lines far from a change."""
    work = Work(share)
    out: list[Row] = []
    for row in _rows(old.split("\n"), new.split("\n"), context, work):
        size = sum(len(span.text) for span in (*row.old, *row.new))
        if len(out) >= max_rows or work.chars.left <= 0:
            return [*out, Row("cut")]
        if size > work.chars.left:
            row = replace(row, old=_clipped(row.old, work.chars.left // 2), new=_clipped(row.new, work.chars.left // 2))
        work.chars.left -= size
        out.append(row)
    return out


def _clipped(spans: tuple[Span, ...], chars: int) -> tuple[Span, ...]:
    out: list[Span] = []
    for span in spans:
        if len(span.text) > chars:
            return (*out, Span(span.text[:chars] + "…", span.changed))
        out.append(span)
        chars -= len(span.text)
    return tuple(out)


def _rows(a: list[str], b: list[str], context: int, work: Work) -> Iterator[Row]:
    """Yield all rows, each computed when the caller takes it."""
    found, is_whole = changes_of(a, b, work.lines)
    for index, operation in enumerate(found):
        _, a0, a1, b0, b1 = operation
        if operation.kind == "equal":
            head = 0 if index == 0 else min(context, a1 - a0)
            tail = 0 if index == len(found) - 1 else min(context, a1 - a0 - head)
            yield from (_equal(a[a0 + i], a0 + i, b0 + i) for i in range(head))
            if a1 - a0 - head - tail:
                yield Row("skip", a0 + head + 1, b0 + head + 1, skipped=a1 - a0 - head - tail)
            yield from (_equal(a[a1 - i], a1 - i, b1 - i) for i in range(tail, 0, -1))
        else:
            yield from _block(a[a0:a1], b[b0:b1], a0, b0, work)
    if not is_whole:
        yield Row("cut")


def changes_of(a: list[str], b: list[str], steps: _Steps | None = None) -> tuple[list[Operation], bool]:
    """Return the operations on the lines of two texts, and True if they cover both texts.

    With False they end at the bound of LINES.
    """
    low = _common(a, b)
    high = _common(a[low:][::-1], b[low:][::-1])
    end_a, end_b = len(a) - high, len(b) - high
    is_whole = end_a - low <= LINES and end_b - low <= LINES
    middle_a, middle_b = a[low : min(end_a, low + LINES)], b[low : min(end_b, low + LINES)]
    found = [
        Operation(kind, low + a0, low + a1, low + b0, low + b1)
        for kind, a0, a1, b0, b1 in _operations(middle_a, middle_b, steps or _Steps(BUDGET))
    ]
    if low:
        found.insert(0, Operation("equal", 0, low, 0, low))
    if high and is_whole:
        found.append(Operation("equal", end_a, len(a), end_b, len(b)))
    return _joined(found), is_whole


def _joined(found: list[Operation]) -> list[Operation]:
    """Join equal runs that touch."""
    out: list[Operation] = []
    for one in found:
        if out and out[-1].kind == one.kind == "equal":
            out[-1] = Operation("equal", out[-1].old_start, one.old_end, out[-1].new_start, one.new_end)
        else:
            out.append(one)
    return out


def _common(a: list[str], b: list[str]) -> int:
    """Return how many first lines are equal in ``a`` and ``b``; whole runs are compared, at the speed of C."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _equal(line: str, i: int, j: int) -> Row:
    span = (Span(line, False),)
    return Row("equal", i + 1, j + 1, span, span)


def _block(old: list[str], new: list[str], i0: int, j0: int, work: Work) -> Iterator[Row]:
    """Yield the rows of a replaced block; similar lines share a row, any other line has a row of its own."""
    i = j = 0
    for x, y in [*_pairs(old, new, work.pairing), (len(old), len(new))]:
        for k in range(i, x):
            yield Row("delete", old_number=i0 + k + 1, old=(Span(old[k], True),))
        for k in range(j, y):
            yield Row("insert", new_number=j0 + k + 1, new=(Span(new[k], True),))
        if x < len(old) and y < len(new):
            left, right = words(old[x], new[y], work.words)
            yield Row("change", i0 + x + 1, j0 + y + 1, left, right)
        i, j = x + 1, y + 1


def _pairs(old: list[str], new: list[str], steps: _Steps) -> list[tuple[int, int]]:
    """Pair the lines of both texts, in order, so that paired lines have the most words in common."""
    pairs = len(old) * len(new)
    if not pairs:
        return []
    most = min((steps.left // pairs - _PAIR_WORDS) // 2, LIKENESS_WORDS)  # words of a line
    if pairs > MAX_PAIRING or most < 1:
        return [(k, k) for k in range(min(len(old), len(new)))]
    bags_old = [Counter(line[:MAX_LINE_CHARS].split(None, most)[:most]) for line in old]
    bags_new = [Counter(line[:MAX_LINE_CHARS].split(None, most)[:most]) for line in new]
    steps.left -= _PAIR_WORDS * pairs + len(new) * sum(map(len, bags_old)) + len(old) * sum(map(len, bags_new))
    likeness = [[_alike(x, y) for y in bags_new] for x in bags_old]
    best = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]  # of old[i:] and new[j:]
    for i in range(len(old) - 1, -1, -1):
        for j in range(len(new) - 1, -1, -1):
            together = likeness[i][j] + best[i + 1][j + 1] if likeness[i][j] >= ALIKE else 0.0
            best[i][j] = max(together, best[i + 1][j], best[i][j + 1])
    out: list[tuple[int, int]] = []
    i = j = 0
    while i < len(old) and j < len(new) and best[i][j] > 0:
        if best[i][j] == best[i + 1][j]:
            i += 1
        elif best[i][j] == best[i][j + 1]:
            j += 1
        else:
            out.append((i, j))
            i, j = i + 1, j + 1
    if not out and len(old) == len(new) == 1 and old[0].strip() and new[0].strip():
        return [(0, 0)]
    return out


def _alike(x: Counter[str], y: Counter[str]) -> float:
    total = x.total() + y.total()
    return 2 * (x & y).total() / total if total else 0.0


def tokens_of(text: str) -> list[str]:
    """Split the text into words, blanks and single marks; joined, these are the text."""
    return _TOKEN.findall(text)


def words(old: str, new: str, steps: _Steps | None = None) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    """Split two versions of a line into runs of words, each marked as shared by both versions or changed."""
    steps = steps or _Steps(WORD_BUDGET)
    whole = (Span(old, True),), (Span(new, True),)
    if steps.left <= 0 or max(len(old), len(new)) > MAX_LINE_CHARS:
        return whole
    a, b = tokens_of(old), tokens_of(new)
    steps.left -= len(a) + len(b)
    if max(len(a), len(b)) > MAX_LINE_TOKENS:
        return whole
    own = _Steps(min(max(steps.left, 0), BUDGET // 4))
    given = own.left
    left: list[Span] = []
    right: list[Span] = []
    found = _operations(a, b, own)
    steps.left -= given - own.left
    for index, (kind, a0, a1, b0, b1) in enumerate(found):
        # a blank between two changed words counts as changed: one mark reads better than two
        lone_blank = 0 < index < len(found) - 1 and a1 - a0 == 1 and a[a0].isspace()
        changed = kind == "replace" or lone_blank
        _add(left, "".join(a[a0:a1]), changed)
        _add(right, "".join(b[b0:b1]), changed)
    return tuple(left), tuple(right)


def _add(spans: list[Span], text: str, changed: bool) -> None:
    """Append ``text`` to ``spans``; if the last span has the same ``changed``, extend that span instead."""
    if not text:
        return
    if spans and spans[-1].changed == changed:
        text = spans.pop().text + text
    spans.append(Span(text, changed))
