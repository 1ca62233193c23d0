"""The place of backups that a person names: a folder, or ``s3://BUCKET/PREFIX``; and the file of a key."""

from __future__ import annotations

import os

from columnar.backup.backup_store import BackupStore
from columnar.backup.folder_store import FolderStore
from columnar.backup.sealing import new_key_text, parse_key
from columnar.errors import CallerError, HostError
from columnar.runtime.file_errors import files_in


def store_at(place: str, endpoint_url: str | None = None) -> BackupStore:
    """Return the backup store at a place.  Raises CallerError or HostError."""
    scheme, separator, _ = place.partition("://")
    if separator and scheme != "s3":
        raise CallerError(f"'{place}' is no place of backups: write a folder, or s3://BUCKET/PREFIX")
    if not separator:
        if endpoint_url is not None:
            raise CallerError(f"--endpoint-url is for s3://BUCKET/PREFIX; {place} is a folder")
        return FolderStore(place)
    from columnar.backup.s3_store import S3Store, client_of, location_of  # boto3 takes a second to load

    bucket, prefix = location_of(place)
    return S3Store(client_of(endpoint_url), bucket, prefix)


def read_key(path: str | None) -> bytes | None:
    """Return the key in the file; None if no file is named."""
    if path is None:
        return None
    try:
        with open(path, "rb") as file:
            return parse_key(file.read(1_024), path)
    except OSError as error:
        raise HostError(f"cannot read the key file {path}: {error.strerror}") from error


def make_key_file(path: str) -> None:
    """Make a file with a new key that its user alone may read.  Raises CallerError if the file exists."""
    with files_in(path):
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            raise CallerError(f"{path} exists already; a key that backups need must not be replaced") from None
        with open(descriptor, "wb") as file:
            file.write(new_key_text())
            file.flush()
            os.fsync(file.fileno())
