"""How many files this process may have open, and how many stores that is enough for."""

from __future__ import annotations

from typing import Final

PER_STORE: Final = 13  # 10 or 11, one of them its bound, and a few for its files
FOR_OTHERS: Final = 512  # connections, pages, workers


def raise_limit() -> None:
    """Raise the soft limit of descriptors to the hard limit: the usual soft limit of 1,024 is enough for 40 stores."""
    try:
        import resource
    except ImportError:  # Windows counts them differently
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (ValueError, OSError):  # macOS names a hard limit that it does not grant
            return


def stores_within(wanted: int) -> int:
    """``wanted``, or as many as the limit of descriptors lets be open at once; at least one."""
    try:
        import resource
    except ImportError:
        return wanted
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return wanted
    return max(1, min(wanted, (soft - FOR_OTHERS) // PER_STORE))
