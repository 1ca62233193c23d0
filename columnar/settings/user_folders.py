"""The folders of a user: of settings, of a store's data, and of state as the history of a shell.

A process of a container may run under a number without an entry in the list of users and without ``HOME``; then there
are no such folders, which ends no command that does not need one.
"""

from __future__ import annotations

from typing import Literal

import click


def user_folder(kind: Literal["user_config_dir", "user_data_dir", "user_state_dir"], program: str) -> str | None:
    """Return a folder of this user by the name of its function in platformdirs; None if the user has no home."""
    import platformdirs  # 3 ms that a command with a named file and folder does not need

    try:
        return str(getattr(platformdirs, kind)(program, appauthor=False))
    except RuntimeError:  # no home
        return None


def default_data_folder() -> str:
    """Return the folder of a user's data.  Raises click.UsageError if the user has no home."""
    folder = user_folder("user_data_dir", "columnar")
    if folder is None:
        raise click.UsageError("this user has no home folder for the data; name a folder with --data")
    return folder
