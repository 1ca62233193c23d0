"""How often one network may keep drafts and request previews; for threads, and for all processes of a wiki."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from wikka_port import limits
from wikka_port.edit_buckets import EditBuckets
from wikka_port.security import RateLimiter


@dataclass(frozen=True, slots=True)
class EditingLimits:
    drafts: RateLimiter
    new_drafts: RateLimiter  # without an account
    previews: RateLimiter


def make_editing_limits(buckets: EditBuckets, clock: Callable[[], float]) -> EditingLimits:
    return EditingLimits(
        RateLimiter(limits.DRAFTS_PER_MINUTE, limits.DRAFT_BURST, buckets, clock, "draft "),
        RateLimiter(limits.NEW_DRAFTS_PER_MINUTE, limits.NEW_DRAFT_BURST, buckets, clock, "new draft "),
        RateLimiter(limits.PREVIEWS_PER_MINUTE, limits.PREVIEW_BURST, buckets, clock, "preview "),
    )
