"""The bytes of an upload on their way into the store: chunks as they arrive, then one pass that finds what they are.

``UploadWriter`` is step 2 of the protocol (``file_rows``) and ``settled`` is step 3.  The pass reads the stored chunks,
whether they came in one request or in many: a digest cannot be continued in another process.  A picture's metadata is
removed on the way into a second place; if nothing had to be removed, the first place stays.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from wikka_port.config import FileConfig
from wikka_port.files.chunks import CHUNK_BYTES, Chunker
from wikka_port.files.content_types import SNIFFED_BYTES, NotAccepted, check_accepted, fitting_name, type_of
from wikka_port.files.contents import Contents
from wikka_port.files.file_rows import SURPLUS, FoundContent, Upload
from wikka_port.files.picture_metadata import REMOVABLE, DamagedPicture, MetadataRemover
from wikka_port.files.refusals import TooLarge, UploadGone
from wikka_port.texts import _

NOTED_CHUNKS: Final = 16  # chunks between two writes of ``u:stored``; after a crash a client sends these again
Place = Callable[[], bytes]


class UploadWriter:
    """Writes the pieces of one upload, one call for a chunk.  Used by one thread; less than a chunk is in memory."""

    def __init__(
        self,
        contents: Contents,
        upload: Upload,
        most_bytes: int,
        clock_ms: Callable[[], int],
        is_ours: Callable[[], bool] = lambda: True,
    ) -> None:
        """``is_ours`` says before each chunk whether no later request has taken the upload."""
        self.upload = upload
        self._contents = contents
        self._most = min(most_bytes, upload.length_bytes or most_bytes)
        self._clock = clock_ms
        self._is_ours = is_ours
        self._received = upload.stored_bytes
        self._chunker: Chunker | None = None

    def write_piece(self, piece: bytes) -> None:
        """Take the next bytes.  Raises TooLarge and UploadGone; the caller then abandons the upload."""
        self._received += len(piece)
        if self._received > self._most:
            raise TooLarge(self._most)
        for number, chunk in self._opened().feed(piece):
            self._put(number, chunk)
            if number % NOTED_CHUNKS == NOTED_CHUNKS - 1:
                self._note((number + 1) * CHUNK_BYTES)

    def finish_part(self) -> Upload:
        """Write the rest of the bytes, and return the upload with all that is stored."""
        for number, chunk in self._opened().finish():
            self._put(number, chunk)
        self._chunker = None
        self._note(self._received)
        return self.upload

    def _opened(self) -> Chunker:
        if self._chunker is None:
            number, size_bytes = divmod(self.upload.stored_bytes, CHUNK_BYTES)
            rest = self._contents.read_chunk(self.upload.place, number, size_bytes) if size_bytes else b""
            self._chunker = Chunker(number, rest)
        return self._chunker

    def _put(self, number: int, chunk: bytes) -> None:
        if not self._is_ours():
            raise UploadGone
        self._contents.put_chunk(self.upload.place, number, chunk)

    def _note(self, stored_bytes: int) -> None:
        self.upload = replace(self.upload, stored_bytes=stored_bytes, time_ms=self._clock())
        self._contents.note_progress(self.upload)


def settled(contents: Contents, upload: Upload, config: FileConfig, place: Place, *, keep_metadata: bool) -> Upload:
    """Run step 3 up to the record of the upload, which the caller puts.

    The returned upload has a different place if metadata was removed.  Raises NotAccepted, InvalidFileName, UploadGone.
    """
    pieces = contents.read_place(upload.place, upload.stored_bytes)
    first = next(pieces, b"")
    found = type_of(first[:SNIFFED_BYTES], upload.name)
    name = fitting_name(upload.name, found)
    check_accepted(name, found, config.types)
    whole = replace(upload, state="whole", name=name)
    stream = itertools.chain([first] if first else [], pieces)
    if found.media_type in REMOVABLE:
        return _settled_picture(contents, whole, found.media_type, stream, place, keep_metadata=keep_metadata)
    digest, size_bytes = hashlib.sha256(), 0
    for piece in stream:
        digest.update(piece)
        size_bytes += len(piece)
    if size_bytes != upload.stored_bytes:
        raise UploadGone
    return replace(whole, sha256=digest.hexdigest(), found=FoundContent(found.media_type).pack())


def _settled_picture(
    contents: Contents, upload: Upload, media_type: str, stream: Iterator[bytes], place: Place, *, keep_metadata: bool
) -> Upload:
    remover, second = MetadataRemover(media_type), _SecondPlace(contents, upload, place, is_unused=keep_metadata)
    digest, size_bytes, is_damaged = hashlib.sha256(), 0, False
    for piece in stream:
        digest.update(piece)
        size_bytes += len(piece)
        try:
            second.write_piece(b"" if is_damaged else remover.feed(piece))
        except DamagedPicture as damage:
            is_damaged = _passed(damage, second, keep_metadata)
    if size_bytes != upload.stored_bytes:
        second.erase_chunks()
        raise UploadGone
    try:
        second.finish_part(b"" if is_damaged else remover.finish())
    except DamagedPicture as damage:
        is_damaged = _passed(damage, second, keep_metadata)
    width, height = (0, 0) if is_damaged else remover.size
    if keep_metadata or second.digest.digest() == digest.digest():
        second.erase_chunks()
        kept = "kept" if keep_metadata and remover.removed_bytes else ""
        found = FoundContent(media_type, width, height, kept)
        return replace(upload, sha256=digest.hexdigest(), found=found.pack())
    found = FoundContent(media_type, width, height, "removed")
    return replace(
        upload,
        place=second.place,
        stored_bytes=second.size_bytes,
        sha256=second.digest.hexdigest(),
        found=found.pack(),
    )


def _passed(damage: DamagedPicture, second: _SecondPlace, keep_metadata: bool) -> bool:
    """Return True if a damaged picture is stored as it is.  Raises NotAccepted."""
    if keep_metadata:
        return True
    second.erase_chunks()
    said = _("The picture is damaged, so its metadata cannot be removed: {why}.", why=_(str(damage)))
    raise NotAccepted(said) from damage


class _SecondPlace:
    """The place of a picture without its metadata; begun with its first chunk."""

    def __init__(self, contents: Contents, upload: Upload, place: Place, *, is_unused: bool) -> None:
        self.digest = hashlib.sha256()
        self.size_bytes = 0
        self.place = b""
        self._contents = contents
        self._upload = upload
        self._new_place = place
        self._is_unused = is_unused
        self._chunker = Chunker()

    def write_piece(self, piece: bytes) -> None:
        if self._is_unused:
            return
        self.digest.update(piece)
        self.size_bytes += len(piece)
        for number, chunk in self._chunker.feed(piece):
            self._put(number, chunk)

    def finish_part(self, last: bytes) -> None:
        self.write_piece(last)
        for number, chunk in self._chunker.finish():
            self._put(number, chunk)

    def _put(self, number: int, chunk: bytes) -> None:
        if not self.place:
            self.place = self._new_place()
            self._contents.put_upload(replace(self._upload, place=self.place, state=SURPLUS, sha256=""))
        self._contents.put_chunk(self.place, number, chunk)

    def erase_chunks(self) -> None:
        if self.place:
            self._contents.erase_place(self.place)
