"""The reasons why a file is not stored, changed or read: each tells the person what to do."""

from __future__ import annotations

from wikka_port.files.file_rows import CurrentFile
from wikka_port.texts import _, figure


class FileRefused(Exception):
    """The files of the page are as they were; ``str()`` is a sentence for the person."""


class FileConflict(FileRefused):
    """The name is taken, or somebody changed the file meanwhile.  An upload stays, to be committed another way."""

    def __init__(self, name: str, current: CurrentFile | None) -> None:
        super().__init__(
            _("{name} was changed or added by somebody else meanwhile.", name=name)
            if current is None or current.is_there
            else _("{name} was removed by somebody else meanwhile.", name=name)
        )
        self.name = name
        self.current = current  # None: there is no file of that name (any more)


class TooManyFiles(FileRefused):
    def __init__(self, page: str, most: int) -> None:
        super().__init__(
            _("{page} has {most} files, and that is the most. Put further ones on subpages.", page=page, most=most)
        )


class TooLarge(FileRefused):
    def __init__(self, most_bytes: int) -> None:
        super().__init__(_("The file is too large: {most} bytes are the most.", most=figure(most_bytes)))
        self.most_bytes = most_bytes


class NoSuchFile(FileRefused):
    def __init__(self, page: str, name: str) -> None:
        super().__init__(_("{page} has no file {name}.", page=page, name=name))


class NoSuchVersion(FileRefused):
    def __init__(self, name: str, number: int) -> None:
        super().__init__(_("{name} has no version {number} with a content.", name=name, number=number))


class NoSavedPage(FileRefused):
    """The page does not exist, was deleted, or is a different page of the same name."""

    def __init__(self, page: str) -> None:
        super().__init__(_("There is no page {page} that could have files. Save the page first.", page=page))
        self.page = page


class UploadGone(FileRefused):
    """The upload was thrown away, swept, or continued by another request."""

    def __init__(self) -> None:
        super().__init__(_("This upload has ended. Send the file again."))


class FilesBusy(FileRefused):
    def __init__(self, page: str) -> None:
        super().__init__(
            _("{page} was changed by somebody else at the same moment, again and again. Try again.", page=page)
        )


class MissingContent(Exception):
    """The bytes of a committed version are not in the store: damage, for the operator (``wikka check``)."""

    def __init__(self, sha256: str) -> None:
        super().__init__(f"the store has no content {sha256}")
        self.sha256 = sha256
