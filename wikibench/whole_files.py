"""Files that are whole or not there, whenever the process that writes them ends."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Write ``text`` beside the path, sync it, and rename it; a pipe or a device is written as it is.

    Raises OSError of the path itself.
    """
    path = path.resolve()  # a link stays one
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8")
        return
    made = path.with_name(f".{path.name}.new")
    try:
        with made.open("w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        made.replace(path)
    except OSError as error:
        with suppress(OSError):
            made.unlink()
        raise OSError(error.errno, error.strerror, str(path)) from error
