"""Two edits of one text put together (pure), where they changed different places.

A change is a run of lines of the old text that became other lines.  Changes of the two sides that overlap,
or only touch, are for people to decide: then there is no merge.  The same change made twice is one.

Knows nothing of revisions and authors.
"""

from __future__ import annotations

from typing import NamedTuple

from wikka_port.diffs import changes_of


class _Change(NamedTuple):
    start: int  # lines of the old text
    end: int
    lines: tuple[str, ...]  # what they became


def merged(old: str, mine: str, theirs: str) -> str | None:
    """Both edits of ``old`` in one text; None where somebody has to choose."""
    lines = old.split("\n")
    ours, others = _changes(lines, mine), _changes(lines, theirs)
    if ours is None or others is None:
        return None
    out: list[str] = []
    done = 0  # lines of the old text that are dealt with
    last: _Change | None = None
    for change in sorted({*ours, *others}):
        if last is not None and change.start <= last.end:
            return None
        out += lines[done : change.start]
        out += change.lines
        done, last = change.end, change
    return "\n".join([*out, *lines[done:]])


def _changes(old: list[str], new_text: str) -> list[_Change] | None:
    """None where the two differ over more lines than are looked at."""
    new = new_text.split("\n")
    found, is_whole = changes_of(old, new)
    if not is_whole:
        return None
    return [
        _Change(one.old_start, one.old_end, tuple(new[one.new_start : one.new_end]))
        for one in found
        if one.kind == "replace"
    ]
