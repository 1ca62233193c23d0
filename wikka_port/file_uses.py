"""(pure) Keys of ``backlinks`` for the files that texts name, beside those of the pages that they link to.

    ~md5 of page, 00, name          pages that name this file with its page, and the page itself if it names the file
    ~md5 of 00, name                pages that name a file without a page, which may lie above them or be shared

A name stands for itself in any case (``file_rows.lookup_key``).  A row of the second kind has candidates: which file a
name without a page means follows from the files that there are (``files.file_html.find_files``), and these change
without a change of the text.  So its reader decides, as a view of the page does.

The rows have the cells of other rows of ``backlinks``, and the trigger, the check and the repair are the same.  No page
has such a key, so no file is ever wanted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final

from wikka_port.files.file_rows import lookup_key
from wikka_port.markup.file_slots import is_wide
from wikka_port.markup.fragments import FileReference

MARK: Final = b"~"


def is_of_file(target: bytes) -> bool:
    return target.startswith(MARK)


def key_of_file(page: str, file: str) -> bytes:
    """Return the key of the texts that name the file of a page."""
    return _key(f"{page}\0{lookup_key(file)}")


def key_of_name(file: str) -> bytes:
    """Return the key of the texts that name such a file and no page."""
    return _key(f"\0{lookup_key(file)}")


def _key(text: str) -> bytes:
    return MARK + hashlib.md5(text.encode("utf-8", "replace"), usedforsecurity=False).hexdigest().encode()


def targets_of_files(page: str, named: Iterable[FileReference]) -> dict[bytes, str]:
    """Return the keys for the files that the text of ``page`` names, each with the file's folded name."""
    found: dict[bytes, str] = {}
    for one in named:
        name = lookup_key(one.name)
        found[key_of_file(one.page or page, name)] = name
        if not one.page and is_wide(one.name):
            found[key_of_name(name)] = name
    return found
