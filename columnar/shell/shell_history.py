"""The history of the shell's prompt: a file of the user's alone, bounded.

    file   := entry*
    entry  := "\\n" "# " time "\\n" ("+" line "\\n")+        prompt_toolkit's form (``FileHistory``)

Not kept: what begins with a blank, and what repeats the entry before.
"""

from __future__ import annotations

import os
from typing import Final

from prompt_toolkit.history import FileHistory

from columnar.limits import SHELL_HISTORY_BYTES

_PRIVATE: Final = 0o600


class PrivateHistory(FileHistory):
    """Opened by ``opened``; a file that can no longer be written keeps nothing more, and says nothing."""

    def append_string(self, string: str) -> None:
        if string.strip() and not string[0].isspace() and self.get_strings()[-1:] != [string]:
            super().append_string(string)

    def store_string(self, string: str) -> None:
        try:
            super().store_string(string)
        except OSError:  # a full disk is no reason to end a session; the session's own history continues
            return


def opened(folder: str) -> PrivateHistory:
    """OSError if the folder cannot be made or the file not be written."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    path = os.path.join(folder, "shell_history")
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, _PRIVATE), "r+b") as file:
        os.chmod(path, _PRIVATE)  # it may hold values, and an earlier hand may have opened it to others
        size = file.seek(0, os.SEEK_END)
        if size > SHELL_HISTORY_BYTES:
            file.seek(size - SHELL_HISTORY_BYTES // 2)
            kept = file.read()
            file.seek(0)
            file.write(kept[kept.find(b"\n\n# ") + 1 :])  # from the first whole entry on
            file.truncate()
    return PrivateHistory(path)
