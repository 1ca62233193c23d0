"""The secret that signs forms, kept in a file that only its owner reads."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Final

_BYTES: Final = 32


def secret_from(path: Path) -> bytes:
    """Return the secret in the file ``path``; create the file with a new secret if it is missing.  Raises OSError."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        secret = path.read_bytes()
        if len(secret) < _BYTES:
            raise OSError(f"{path} is no file of a secret: it has fewer than {_BYTES} bytes") from None
        return secret
    with os.fdopen(descriptor, "wb") as file:
        secret = secrets.token_bytes(_BYTES)
        file.write(secret)
    return secret
