"""(pure) Regular expressions of ``java.util.regex``, translated to patterns of Python's ``re``.

HBase's clients write Java patterns.  The two languages are mostly the same; the differences are translated:

    (?<n>..) \\k<n>         named groups            \\Q..\\E            quoted text
    (?i) in the middle     to the group's end      \\z \\Z $           the end, before a last line end
    [a-z&&[^b]] [a[bc]]    sets of characters      \\p{Upper} \\P{..}  the ASCII classes
    \\h \\v \\R \\e \\cX \\0n \\x{..}                    escapes Python lacks or reads differently

Constructs without an equivalent in Python are refused by name: \\p of Unicode properties, \\G, \\X, \\b{g}, the flags
d u x U, a lookbehind without a fixed width.  As in Java, matching without regard to case,
\\w, \\d, \\s and \\b know only ASCII.  With (?m), ``$`` takes only the newline as a line end.

Knows nothing of filters; ``bounded_search`` has the searches, whose time is bounded, unlike that of Java's searches.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NoReturn

from columnar.model.bounded_search import BoundedPattern, PatternProblem, PatternTimeout
from columnar.model.character_sets import ClassProblem, escape_set, read_class, written_class

PATTERN_CHARACTERS: Final = 8_192  # a longer pattern takes more than some milliseconds to compile
PATTERN_GROUPS_DEEP: Final = 40  # the compiler of Python is recursive
PATTERN_ITEMS: Final = 100_000  # counting repeated groups expanded, as the engine does: some 0.1 s to compile
REPEATS: Final = 65_535

_LINE_END: Final = "(?:\\r\\n|[\\n\\r\\x85\\u2028\\u2029])"
_AT_END: Final = f"(?={_LINE_END}?\\Z)"
_COUNT: Final = re.compile(r"\{([0-9]{1,10})(?:,([0-9]{0,10}))?\}")
_FLAGS: Final = re.compile(r"\(\?([a-zA-Z]*)(?:-([a-zA-Z]*))?([:)])")
_NAME: Final = re.compile(r"<([a-zA-Z][a-zA-Z0-9]*)>")
_PLAIN_GROUPS: Final = ("(?:", "(?=", "(?!", "(?>", "(?<=", "(?<!")
_SIMPLE_ESCAPES: Final = "bBA"  # the same in both languages

__all__ = ["BoundedPattern", "PatternProblem", "PatternTimeout", "compiled"]


@lru_cache(maxsize=128)  # the parser compiles to check a pattern, the filter to search
def compiled(java: str, *, ignore_case: bool = False) -> BoundedPattern:
    """Return the compiled pattern, with DOTALL.  Raises PatternProblem if Java or Python refuses it."""
    if len(java) > PATTERN_CHARACTERS:
        raise PatternProblem(f"is longer than {PATTERN_CHARACTERS} characters")
    translation = _Translation(java)
    python = translation.run()
    return BoundedPattern(java, python, ignore_case=ignore_case, is_plain=translation.is_plain)


class _Translation:
    """The translation of a pattern in one pass.

    For each open group, ``levels`` has the flag groups opened within it, and ``items`` has the number of its items so
    far.  Items count with repetitions expanded, because an engine may expand a repeated group to its least number of
    matches and one more.
    """

    def __init__(self, java: str) -> None:
        self.java: Final = java
        self.at = 0
        self.out: list[str] = []
        self.levels: list[list[str]] = [[]]
        self.multiline = False
        self.items: list[int] = [0]
        self.last_items = 1  # of the item that a repetition at this point repeats
        self.closes_group = False  # that item is a group
        self.repetitions = 0
        self.repeats_groups = False
        self.has_branches = False  # anywhere
        self.has_inner_branches = False  # within a group

    @property
    def is_plain(self) -> bool:
        """Whether a search takes time at most quadratic in the text's length, or text length times pattern length."""
        if self.repetitions:
            return self.repetitions == 1 and not self.repeats_groups and not self.has_branches
        return not self.has_inner_branches

    def _repeat(self, least: int) -> None:
        """Count a repetition of the last item, ``least`` times or more."""
        self.repetitions += 1
        if not self.closes_group:
            return
        self.repeats_groups = True
        more = self.last_items * max(least, 1)
        self.items[-1] += more
        self.last_items += more
        if self.items[-1] > PATTERN_ITEMS:
            self.refuse(f"repeated groups within each other come to more than {PATTERN_ITEMS} items")

    def refuse(self, why: str) -> NoReturn:
        raise PatternProblem(f"cannot be used: {why} at character {self.at}")

    def run(self) -> str:
        while self.at < len(self.java):
            self.step(self.java[self.at])
        if len(self.levels) > 1:
            self.refuse("a group is not closed")
        return "".join(self.out) + ")" * len(self.levels[0])

    def emit(self, text: str, width: int = 1) -> None:
        self.out.append(text)
        self.at += width

    def step(self, c: str) -> None:
        if c in "*+?":
            self._repeat(0)
            self.emit(c)
            return
        if c == "{":
            self.count()
            return
        self.items[-1] += 1
        self.closes_group, self.last_items = False, 1
        if c == "\\":
            self.escape()
        elif c == "[":
            self.character_class()
        elif c == "(":
            self.group()
        elif c == ")":
            if len(self.levels) == 1:
                self.refuse("')' closes nothing")
            self.last_items = self.items.pop()
            self.items[-1] += self.last_items
            self.closes_group = True
            self.emit(")" * (len(self.levels.pop()) + 1))
        elif c == "|":
            # A flag applies to the end of its group, over every alternative.
            flags = self.levels[-1]
            self.has_branches = True
            self.has_inner_branches = self.has_inner_branches or len(self.levels) > 1
            self.emit(")" * len(flags) + "|" + "".join(flags))
        elif c == "$":
            self.emit("$" if self.multiline else _AT_END)
        else:
            self.emit(c)

    def count(self) -> None:
        found = _COUNT.match(self.java, self.at)
        if found is None:
            self.refuse("'{' begins no repetition")
        if any(int(number) > REPEATS for number in found.groups() if number):
            self.refuse(f"more than {REPEATS} repetitions")
        self._repeat(int(found[1]))
        self.emit(found[0], len(found[0]))

    def character_class(self) -> None:
        try:
            ranges, self.at = read_class(self.java, self.at)
        except ClassProblem as problem:
            raise PatternProblem(f"cannot be used: {problem}") from problem
        self.out.append(written_class(ranges))

    def group(self) -> None:
        java, at = self.java, self.at
        if not java.startswith("(?", at):
            self.open("(", 1)
        elif java.startswith(_PLAIN_GROUPS, at):
            opening = next(known for known in _PLAIN_GROUPS if java.startswith(known, at))
            self.open(opening, len(opening))
        elif name := _NAME.match(java, at + 2):
            self.open(f"(?P<{name[1]}>", len(name[0]) + 2)
        elif flags := _FLAGS.match(java, at):
            self.flags(flags)
        else:
            self.refuse("unknown kind of group")

    def open(self, text: str, width: int) -> None:
        self.levels.append([])
        self.items.append(0)
        if len(self.levels) > PATTERN_GROUPS_DEEP:
            self.refuse(f"groups nested deeper than {PATTERN_GROUPS_DEEP}")
        self.emit(text, width)

    def flags(self, found: re.Match[str]) -> None:
        on, off = found[1], found[2] or ""
        for flag in on + off:
            if flag not in "ims":
                self.refuse(f"the flag '{flag}' is not known here")
        self.multiline = self.multiline or "m" in on
        text = "(?" + "".join(sorted(set(on) - set(off))) + ("-" + "".join(sorted(set(off))) if off else "") + ":"
        if found[3] == ":":
            self.open(text, len(found[0]))
        elif on or off:
            if sum(len(level) + 1 for level in self.levels) > PATTERN_GROUPS_DEEP:
                self.refuse("too many flags")
            self.levels[-1].append(text)
            self.emit(text, len(found[0]))
        else:
            self.at += len(found[0])

    def escape(self) -> None:
        java, at = self.java, self.at
        c = java[at + 1 : at + 2]
        if c == "Q":
            end = java.find("\\E", at + 2)
            end = len(java) if end < 0 else end
            self.emit(re.escape(java[at + 2 : end]), end + 2 - at)
        elif c == "z":
            self.emit("\\Z", 2)
        elif c == "Z":
            self.emit(_AT_END, 2)
        elif c == "R":
            self.emit("(?:\\r\\n|[\\n-\\r\\x85\\u2028\\u2029])", 2)
        elif c == "k":
            name = _NAME.match(java, at + 2)
            if name is None:
                self.refuse("'\\k' names no group")
            self.emit(f"(?P={name[1]})", len(name[0]) + 2)
        elif c and c in "123456789":
            self.emit(f"\\{c}", 2)
            if java[self.at : self.at + 1].isdigit():
                self.refuse("a back reference of two digits")
        elif c and c in _SIMPLE_ESCAPES and not java.startswith("\\b{", at):
            self.emit(f"\\{c}", 2)
        else:
            self.set_escape()

    def set_escape(self) -> None:
        try:
            ranges, end = escape_set(self.java, self.at)
        except ClassProblem as problem:
            raise PatternProblem(f"cannot be used: {problem}") from problem
        self.emit(written_class(ranges), end - self.at)
