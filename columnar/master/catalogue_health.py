"""(pure) Whether the catalogue can be written: owner rows, operator settings and tables wait while it cannot.

    sound --unsound--> unsound, since when and why --sound--> sound

A write that failed leaves the catalogue sound if its disk was repaired at once; no write goes out before
``unwritable_until_ms`` then.

Knows nothing of rows and disks: ``meta_region`` repairs the disk, and the master's shell reports both events.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class CatalogueHealth:
    unwritable_until_ms: int  # after a write that failed
    failure: str = ""  # why it is unsound; empty: it is sound
    since_ms: int = 0  # it is unsound

    @property
    def is_sound(self) -> bool:
        return not self.failure

    def unsound(self, failure: str, now_ms: int) -> None:
        if self.is_sound:
            self.failure, self.since_ms = failure, now_ms

    def sound(self) -> None:
        self.failure = ""

    def remark(self, now_ms: int) -> str:
        """The state for people; empty while it is sound."""
        if self.is_sound:
            return ""
        seconds = max(0, now_ms - self.since_ms) / 1_000
        return (
            f"for {seconds:.1f} s the catalogue could not be written: {self.failure}. It is tried every second; until "
            "then no region gets another owner, no server is started, and no wish or table is changed"
        )
