"""The limit of open files of this process, and the number of stores for which it is enough."""

from __future__ import annotations

from typing import Final

PER_STORE: Final = 13  # 10 or 11, one of them for ``SYNCED``, and a few for table files
FOR_OTHERS: Final = 512  # connections, pages, workers


def raise_limit() -> None:
    """Raise the soft limit of descriptors to the hard limit; the usual 1,024 would be enough for only 40 stores."""
    try:
        import resource
    except ImportError:  # Windows counts them differently
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (ValueError, OSError):  # macOS reports a hard limit that it does not grant
            return


def stores_within(wanted: int) -> int:
    """Return ``wanted``, or the number of stores that the limit of descriptors allows to be open; at least one."""
    try:
        import resource
    except ImportError:
        return wanted
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return wanted
    return max(1, min(wanted, (soft - FOR_OTHERS) // PER_STORE))
