"""Documents of the index of words beside the pages: comments, and files with their texts.

    page      key of the page                                            32 hexadecimal digits
    comment   key of the history, "c", number (7)                        40
    file      key of the page, "f", beginning of the MD5 of its name     48

A key says where its document lies, so a posting needs nothing more; the rows and cells are those of ``postings``.  A
comment belongs to a history and keeps its key when the page gets another name; a file's key is that of the page's row,
and the file is found there by its name.

The words of a comment are in its text.  Removed comments, and those under review, have none.  The words of a file are
in its name (as those of a title), in its description (as those of a heading), and, if it is a text, in the first
FILE_TEXT_BYTES of its content.  Both are stemmed as English.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Final, Literal

from columnar.client import Connection
from wikka_port.comments.comment_rows import OP, PLAIN, Comment, comment_of, comment_row, parse_comment_row
from wikka_port.files.chunks import chunk_row
from wikka_port.files.content_types import BY_MEDIA_TYPE, text_of
from wikka_port.files.file_rows import BLOB_STATE, BLOBS, CHUNK, CHUNKS, CurrentFile, parse_blob_state
from wikka_port.page_rows import Cells
from wikka_port.schema import KEY_BYTES
from wikka_port.search.page_text import page_text, title_text
from wikka_port.search.postings import Postings, of_parts

Kind = Literal["page", "comment", "file"]
KINDS: Final[tuple[Kind, ...]] = ("page", "comment", "file")
FILE_TEXT_BYTES: Final = 256 * 1024  # of a text file; what follows is not searched
_COMMENT: Final = b"c"
_FILE: Final = b"f"
_DIGEST_CHARS: Final = 15
_TAG: Final = re.compile(r"<[^<>]{0,2000}>")
_OF_MARKUP: Final = frozenset({"text/html", "application/xml"})


# --- keys ------------------------------------------------------------------------------------------


def kind_of(key: bytes) -> Kind:
    """Return what the document of a key is."""
    if len(key) == KEY_BYTES:
        return "page"
    return "comment" if key[KEY_BYTES : KEY_BYTES + 1] == _COMMENT else "file"


def key_of_comment(row: bytes) -> bytes:
    """Return the key of the comment in the row ``row``.  Raises ValueError if it is no row of a comment."""
    parse_comment_row(row)
    return row[:KEY_BYTES] + _COMMENT + row[KEY_BYTES:]


def row_of_comment(key: bytes) -> bytes:
    return comment_row(key[:KEY_BYTES], int(key[KEY_BYTES + 1 :]))


def key_of_file(page_key: bytes, name: str) -> bytes:
    digest = hashlib.md5(name.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()
    return page_key + _FILE + digest[:_DIGEST_CHARS].encode()


def page_of_file(key: bytes) -> bytes:
    """Return the key of the page that has the file."""
    return key[:KEY_BYTES]


def files_of_page(page_key: bytes) -> tuple[bytes, bytes]:
    """Return start and stop of the keys of a page's files."""
    return page_key + _FILE, page_key + b"g"


# --- words -----------------------------------------------------------------------------------------


def comment_in(row: bytes, cells: Cells) -> Comment | None:
    """Return the comment of a row if everybody who may read comments sees it, else None."""
    if OP not in cells:
        return None
    comment = comment_of(parse_comment_row(row)[1], cells)
    return comment if comment.is_visible else None


def text_of_comment(comment: Comment) -> str:
    if comment.markup == PLAIN:
        return comment.text
    plain = page_text(comment.text, markup=comment.markup)
    return f"{plain.headings}\n{plain.text}"


def postings_of_comment(row: bytes, cells: Cells) -> Postings:
    comment = comment_in(row, cells)
    return {} if comment is None else of_parts("", "", text_of_comment(comment))


def postings_of_file(client: Connection, name: str, current: CurrentFile | None) -> Postings:
    """Return the postings of a file; none if it is not there.  Reads one chunk of a text."""
    if current is None or not current.is_there:
        return {}
    return of_parts(title_text(name), current.alt, file_text(client, current))


def file_text(client: Connection, current: CurrentFile) -> str:
    """Return the beginning of the text of a file, "" if it is no text or its content is missing."""
    known = BY_MEDIA_TYPE.get(current.media_type)
    if known is None or not known.text or not current.sha256:
        return ""
    cell = client.table(BLOBS).row(current.sha256.encode(), columns=[BLOB_STATE]).get(BLOB_STATE, b"")
    try:
        state = parse_blob_state(cell)
    except ValueError:
        return ""
    if state.life == "gone":
        return ""
    found: Mapping[bytes, bytes] = client.table(CHUNKS).row(chunk_row(state.place, 0), columns=[CHUNK])
    read = text_of(found.get(CHUNK, b"")[: min(current.size_bytes, FILE_TEXT_BYTES)])
    if read is None:
        return ""
    return _TAG.sub(" ", read[0]) if current.media_type in _OF_MARKUP else read[0]
