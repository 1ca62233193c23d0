"""The function of the trigger ``wiki-pictures``: a content that becomes live gets its smaller versions.

    blobs[sha256] becomes live     the rows of ``thumbs`` are made from the chunks at its place
    blobs[sha256] is gone          they are deleted

A content is decoded once, not with each page that gets it: a change from "sweeping" back to "live" makes nothing.
Without Pillow nothing is made; ``wikka check --repair`` makes what is missing once it is installed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from columnar.client import Connection
from columnar.triggers.api import Change, Delete, Effect, Put
from wikka_port.files.chunks import chunk_row, slices
from wikka_port.files.content_types import SNIFFED_BYTES, recognised
from wikka_port.files.file_rows import BLOB_STATE, CHUNK, CHUNKS, BlobState, parse_blob_state
from wikka_port.files.thumbnails import BYTES_MAX, CAN_MAKE, FAMILY, PIXELS_MAX, THUMBS, all_rows, rows_of

FAMILIES: Final = (b"b",)


def pictures(change: Change, client: Connection) -> Iterator[Effect]:
    """Yield the smaller versions of a content, each as it is made."""
    sha256 = change.row.decode("ascii", "replace")
    now, before = _state(change.now), _state(change.before)
    if now is None:
        yield from (Delete(THUMBS, row, [FAMILY]) for row in all_rows(sha256))
    elif CAN_MAKE and (before is None or change.attempt > 1 or now.place != before.place):
        found = _picture(client, now)
        if found is not None:
            yield from (Put(THUMBS, row, cells) for row, cells in rows_of(sha256, *found))


def _state(cells: Mapping[bytes, bytes]) -> BlobState | None:
    """Return the state of a content that is not gone, or None."""
    try:
        state = parse_blob_state(cells[BLOB_STATE]) if BLOB_STATE in cells else None
    except ValueError:
        return None
    return None if state is None or state.life == "gone" else state


def _picture(client: Connection, state: BlobState) -> tuple[bytes, str] | None:
    """Return content and type of a picture of which smaller versions can be made; of others read one chunk."""
    if state.size_bytes > BYTES_MAX:
        return None
    table = client.table(CHUNKS)
    content, media_type = bytearray(), ""
    for one in slices(0, state.size_bytes):
        content += table.row(chunk_row(state.place, one.number)).get(CHUNK, b"")[: one.stop]
        if one.number == 0:
            known = recognised(bytes(content[:SNIFFED_BYTES]))
            media_type = known.media_type if known else ""
            if media_type not in PIXELS_MAX:
                return None
    return (bytes(content), media_type) if content else None
