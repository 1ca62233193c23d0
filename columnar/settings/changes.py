"""(pure) The differences between the settings in force and those that were read again, as the log names them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Changes:
    """Settings whose values differ, by key."""

    before: Mapping[str, Any]  # the values in force
    taken: Mapping[str, Any]  # the new values of settings that can change at once
    waiting: tuple[str, ...]  # settings that need a restart

    @classmethod
    def between(cls, before: Mapping[str, Any], after: Mapping[str, Any], live: Collection[str]) -> Changes:
        """Compare; ``live`` can change at once.  A setting that only a newer program knows is ignored."""
        differing = [key for key, value in before.items() if key in after and after[key] != value]
        taken = {key: after[key] for key in differing if key in live}
        return cls(before, taken, tuple(key for key in differing if key not in live))

    def lines(self, file: str) -> Iterator[tuple[bool, str]]:
        """Yield the lines of the log on a file that was read, each with whether it is a warning."""
        said = ", ".join(
            f"{key} {_text(value)} (before: {_text(self.before[key])})" for key, value in self.taken.items()
        )
        if said:
            yield False, f"the settings in {file} were read again, and are in force: {said}"
        if self.waiting:
            yield True, f"changed in {file}, needs a restart: {', '.join(self.waiting)}"
        if not said and not self.waiting:
            yield False, f"the settings in {file} were read again; nothing has changed"


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
