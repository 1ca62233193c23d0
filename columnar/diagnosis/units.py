"""(pure) Sizes and times of findings as text."""

from __future__ import annotations


def size_text(size_bytes: float) -> str:
    """Return a size in the unit that gives a readable number; a KiB is 1,024 bytes."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size_bytes < 1024:
            return f"{size_bytes:.0f} {unit}" if unit == "B" or size_bytes >= 100 else f"{size_bytes:.1f} {unit}"
        size_bytes /= 1024
    return f"{size_bytes:.1f} TiB"


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1_000:.3g} ms"


def duration_text(seconds: float) -> str:
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"
