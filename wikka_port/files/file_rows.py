"""(pure) Rows of files: tables, keys, records, and the order of writes of an upload, a sweep and a purge.

    table      row                                                       families   serves
    pages      (there)  cell ``file:NAME``                               file       the files of a page, with its row
    deleted    (there)  the same                                         file
    files      history key, 00, name, 00, inverted number, ":", token    v          versions of a file, newest first
    blobs      sha256 (64 hexadecimal digits)                            b          the place of a content
    blob_refs  sha256                                                    r          versions with a content
    uploads    place (16 hexadecimal digits)                             u          uploads under way, surplus places
               "page:", md5 of a page, owner                             u          uploads that wait for its first save
    chunks     place, number (``chunks``)                                c          bytes

A file belongs to a page's history, as its revisions do.  So a page that is renamed, deleted or undeleted takes its
files along without a step of their own: ``moving`` copies the cells of the row, and the versions stay under the history
key.

    file:NAME   ``CurrentFile``   "N:TOKEN:SHA256:SIZE:TYPE:WxH:ALT"; SHA256 is empty if the file was removed
    v:...       ``FileVersion``   never changed once written, but by ``erasing``, and by ``edit_signatures`` at the end
                                  of the author's account
    v:erased    "TOKEN" of a version whose content was erased, "TOKEN:SHA256" until it has left; "TOKEN:author" of a
                version that is whole, and whose author has a neutral name by now
    b:state     ``BlobState``     "STATE:PLACE:SIZE:MARK"
    r:ROW       the row in ``files``, as the qualifier; the value is the time in ms
    u:...       ``Upload``; ``u:time`` is 0 once the sweep has taken the upload.  In the row SWEPT_ROW it is the time
                of the last sweep: whoever changes it sweeps
    u:PLACE     in a row "page:...": the upload at that place waits; the value is the time in ms
    u:save:HEAD in such a row: the owner saves this revision of the page (``pages``); the value is "TIME NETWORK"

The protocol of an upload (one call of the store each; U marks the place of the new chunks):
    1. begin    uploads[U] is put                                          state open
    2. chunks   chunks[U...] are put, then u:stored and u:time of uploads[U]
    3. settle   type, digest and picture are known; metadata is removed     state whole, with its digest
    4. refer    blob_refs[sha] r:ROW is put
    5. blob     blobs[sha]: absent or "gone" -> "live:U"; "live:P" stays; "sweeping:P" -> "live:P"     one checkAndPut
    6. stage    files[ROW] is put
    7. commit   pages[md5] file:NAME from its former value to the new one.  On Columnar a further condition is that
                ``acl:revision`` and ``meta:versioncount`` are as they were read.  On a plain HBase it is one
                ``checkAndPut``, after which ``meta:versioncount`` is read again: if a move has marked the page, the
                commit is repeated at its new row
    8. end      chunks[U...] are deleted if the blob has another place; then uploads[U]
The cell of step 7 decides.  A crash before it leaves rows that no reader finds, a crash after it a whole file.

An upload that is thrown away (by its owner, for another file of its name, or with its account) becomes surplus by one
change of u:state and u:writer.  Its chunks go at once if nobody had it, that is if u:writer was empty; else they are
left to the sweep, since the request that has it may be about to claim them in step 5.

A page that is not saved yet has no row for step 7.  Its upload waits after step 3 (``waiting``): u:PLACE is put, then
the state becomes "waiting", for WAITING_MS.  Once the page is saved, its author's uploads go on with step 4.  u:PLACE
is deleted before the upload's own row, so it names no upload that is not there.

A save of the page by an owner with a row "page:..." puts u:save:HEAD there before it stages its revision, with the
number, token and history of that revision.  If nothing follows the commit, this proves afterwards whose the page is
(``rights.adoption``).  The cell goes with the last upload of the row, or with its age.

The sweep of a content that no row of ``blob_refs`` names:
    a. mark     blobs[sha]: "live:P" -> "sweeping:P:MARK"                  one checkAndPut; MARK is the sweep's own
    b. read     blob_refs[sha]: if it has a cell, "sweeping:P:MARK" -> "live:P", and the sweep ends
    c. list     uploads[P] is put                                          state surplus
    d. drop     "sweeping:P:MARK" -> "gone"                                one checkAndPut; an upload may have won
    e. delete   chunks[P...], then uploads[P]

Invariants:
    F1. A committed version's digest has a blob that is not gone, and all its chunks.  An upload puts its reference (4)
        before it reads the state (5); a sweep changes the state (a) before it reads the references (b).  So at least
        one of the two sees the other: the sweep gives up, or the upload makes the blob live again, or (d) came first
        and the upload's own chunks, which it has until step 8, become the blob.
    F2. Each place in ``chunks`` has a row in ``uploads`` or a blob that names it; each row of ``files`` has its
        reference.  So nothing is orphaned: the sweep of ``uploads`` finds what a crash left.
    F3. Equal contents are compared byte by byte before the upload's own chunks are given up (5).  If they differ, the
        blob is damaged, or somebody wrote to chunks after their digest was taken: "live:P" -> "live:U", and uploads[P]
        is put as surplus before.  So nobody can put other bytes into another person's upload by a digest.
    F4. An upload has one writer at a time: ``u:writer``, taken by ``checkAndPut`` by each part and by step 3, and read
        before each chunk.
    F5. Places are never used twice, so a late delete of step e or 8 deletes nothing of a later upload.

The sweep of ``uploads`` takes rows whose last chunk is older than GRACE_MS (of a waiting upload: WAITING_MS), by a
``checkAndPut`` of ``u:time``, which also gives an upload that has waited its new time.  It deletes the chunks unless
the blob of the row's digest names their place and is not gone; then it deletes the row.  A reference whose row of
``files`` is missing is removed once it is older than GRACE_MS.  An upload that takes longer than COMMIT_MS from step 3
to step 7 begins again at step 3, with a new time; so only a process that stands still for a day between two calls could
commit a version without chunks, and it reads the blob once more before it answers.  Readers ignore "sweeping": its
chunks are there.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from wikka_port import schema
from wikka_port.files.chunks import is_place
from wikka_port.schema import KEY_BYTES, TOKEN_CHARS, TableSpec, folded

FILES: Final = b"files"
BLOBS: Final = b"blobs"
BLOB_REFS: Final = b"blob_refs"
UPLOADS: Final = b"uploads"
CHUNKS: Final = b"chunks"
_ONE: Final = {"max_versions": 1}
TABLES: Final = (
    TableSpec(FILES, {"v": _ONE}, {}),
    TableSpec(BLOBS, {"b": _ONE}, {}),
    TableSpec(BLOB_REFS, {"r": _ONE}, {}),
    TableSpec(UPLOADS, {"u": _ONE}, {}),
    TableSpec(CHUNKS, {"c": _ONE}, {}),
)
FILE_FAMILY: Final = b"file"
FILE: Final = b"file:"  # in ``pages`` and ``deleted``
BLOB_STATE: Final = b"b:state"
REFERENCE: Final = b"r:"
CHUNK: Final = b"c:data"
AUTHOR: Final = b"v:author"
SIGNED: Final = b"v:signed"
ERASED: Final = b"v:erased"
_RENAMED: Final = "author"  # in the place of a digest
SWEPT_ROW: Final = b"~swept"  # in ``uploads``
_OF_PAGE: Final = b"page:"  # in ``uploads``: no place
_SAVE: Final = b"u:save:"
UPLOAD_STATE: Final = b"u:state"
UPLOAD_WRITER: Final = b"u:writer"
UPLOAD_STORED: Final = b"u:stored"
UPLOAD_TIME: Final = b"u:time"
UPLOAD_FIELDS: Final = b"u:fields"
GRACE_MS: Final = 24 * 3600 * 1000
SURPLUS: Final = "surplus"  # state of an upload: chunks for the sweep, unless a content has them by then
WAITING: Final = "waiting"  # state of an upload of a page that is not saved yet
WAITING_MS: Final = 30 * 24 * 3600 * 1000  # as long as the draft of such a page is kept
WAITING_MAX: Final = 100  # files of one owner that wait for one page
SAVES_MAX: Final = 8  # noted saves of one owner of one page; one more displaces the oldest
NOT_SAVED: Final = 0  # the number of a file that waits, in the place of its first version's
COMMIT_MS: Final = 10 * 60 * 1000
ALT_CHARS_MAX: Final = 500  # a description of a picture; it is in the page's row
SHA256_CHARS: Final = 64

_NUMBER_CHARS: Final = 10
_NUMBER_MAX: Final = 10**_NUMBER_CHARS - 1
_SHA256: Final = re.compile(f"[0-9a-f]{{{SHA256_CHARS}}}")
_CURRENT: Final = re.compile(
    rb"([0-9]{1,%d}):([0-9a-f]{%d}):([0-9a-f]{%d}|):([0-9]{1,15}):([a-z0-9.+/-]{0,100}):([0-9]{1,9})x([0-9]{1,9}):(.*)"
    % (_NUMBER_CHARS, TOKEN_CHARS, SHA256_CHARS),
    re.DOTALL,
)


# --- versions ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FileVersion:
    """A version of a file; without a digest it says that the file was removed, or that this version was erased."""

    name: Annotated[str, b"v:name"]
    number: Annotated[int, b"v:number"]
    previous: Annotated[str, b"v:previous"]  # token of the version before, "" for the first
    sha256: Annotated[str, b"v:sha256"]
    size_bytes: Annotated[int, b"v:size"]
    media_type: Annotated[str, b"v:type"]
    time_ms: Annotated[int, b"v:time"]
    author: Annotated[str, AUTHOR]
    signed: Annotated[str, SIGNED]  # the kind of the author's name, as of a revision
    note: Annotated[str, b"v:note"] = ""
    alt: Annotated[str, b"v:alt"] = ""
    width: Annotated[int, b"v:width"] = 0  # of a picture, as it is seen; 0: unknown
    height: Annotated[int, b"v:height"] = 0
    metadata: Annotated[str, b"v:metadata"] = ""  # "removed", "kept" because the author chose so, or "" if it has none
    kept: Annotated[str, ERASED] = ""  # the token that it had before another field was changed, and what was

    @property
    def token(self) -> str:
        """A digest of all fields as they were first, so that an upload that is sent twice writes one row."""
        if self.kept:
            return self.kept.partition(":")[0]
        digest = hashlib.sha1(usedforsecurity=False)
        for value in version_cells(self).values():
            digest.update(b"%d:%s" % (len(value), value))
        return digest.hexdigest()[:TOKEN_CHARS]

    @property
    def is_erased(self) -> bool:
        return bool(self.kept) and self.kept.partition(":")[2] != _RENAMED

    @property
    def leaving_sha256(self) -> str:
        """The digest of the content whose erasure has begun and not ended, or ""."""
        return self.kept.partition(":")[2] if self.is_erased else ""


def version_cells(version: FileVersion) -> dict[bytes, bytes]:
    """Return the cells of a version's row."""
    return {column: cell for column, cell in schema.cells_of(version).items() if cell or column != ERASED}


def cells_of_renamed(row: bytes) -> dict[bytes, bytes]:
    """Return the cells that keep the token of a whole version, of which the author was a part, when he is renamed."""
    return {ERASED: f"{parse_version_row(row)[3]}:{_RENAMED}".encode()}


def _version_prefix(history: bytes, name: str) -> bytes:
    assert len(history) == KEY_BYTES, "a key of a page"
    assert "\x00" not in name, "checked by ``file_names``"
    return history + b"\x00" + name.encode() + b"\x00"


def version_row(history: bytes, version: FileVersion) -> bytes:
    return row_of_version(history, version.name, version.number, version.token)


def row_of_version(history: bytes, name: str, number: int, token: str) -> bytes:
    return _version_prefix(history, name) + b"%0*d:" % (_NUMBER_CHARS, _NUMBER_MAX - number) + token.encode()


def versions_of_file(history: bytes, name: str) -> tuple[bytes, bytes]:
    """Return start and stop of a scan of a file's versions, the newest first."""
    prefix = _version_prefix(history, name)
    return prefix, prefix + b";"  # after every digit


def versions_of_page(history: bytes) -> tuple[bytes, bytes]:
    """Return start and stop of a scan of all versions of all files of a history."""
    return history + b"\x00", history + b"\x01"


def parse_version_row(row: bytes) -> tuple[bytes, str, int, str]:
    """Return history key, name, number and token.  Raises ValueError if ``row`` is no row of a version."""
    end = len(row) - _NUMBER_CHARS - 1 - TOKEN_CHARS
    number, token = row[end : end + _NUMBER_CHARS], row[end + _NUMBER_CHARS + 1 :]
    separators = (
        row[KEY_BYTES : KEY_BYTES + 1] + row[end - 1 : end] + row[end + _NUMBER_CHARS : end + _NUMBER_CHARS + 1]
    )
    if end < KEY_BYTES + 3 or separators != b"\x00\x00:" or not number.isdigit():
        raise ValueError(f"{row[:200]!r} is no row of a file's version")
    return row[:KEY_BYTES], row[KEY_BYTES + 1 : end - 1].decode(), _NUMBER_MAX - int(number), token.decode()


# --- the current version, in the page's row ----------------------------------------------------


@dataclass(frozen=True, slots=True)
class CurrentFile:
    """The newest version of a file, as much of it as a page's view needs."""

    number: int
    token: str
    sha256: str  # "": the file was removed; its versions are still there
    size_bytes: int
    media_type: str
    width: int = 0
    height: int = 0
    alt: str = ""

    @classmethod
    def of(cls, version: FileVersion) -> CurrentFile:
        return cls(
            version.number,
            version.token,
            version.sha256,
            version.size_bytes,
            version.media_type,
            version.width,
            version.height,
            version.alt,
        )

    @property
    def is_there(self) -> bool:
        return bool(self.sha256)

    def pack(self) -> bytes:
        head = f"{self.number}:{self.token}:{self.sha256}:{self.size_bytes}:{self.media_type}"
        return f"{head}:{self.width}x{self.height}:{self.alt}".encode("utf-8", "replace")


def parse_current_file(cell: bytes) -> CurrentFile:
    """Return the current file in a cell.  Raises ValueError if ``cell`` is none."""
    found = _CURRENT.fullmatch(cell)
    if found is None:
        raise ValueError(f"{cell[:120]!r} is no file of a page")
    number, token, sha256, size, media_type, width, height, alt = found.groups()
    return CurrentFile(
        int(number),
        token.decode(),
        sha256.decode(),
        int(size),
        media_type.decode(),
        int(width),
        int(height),
        alt.decode(errors="replace"),
    )


def file_column(name: str) -> bytes:
    return FILE + name.encode()


def files_in(cells: Mapping[bytes, bytes]) -> dict[str, CurrentFile]:
    """Return the files of a page by name, from its row.  Damaged cells are left out: ``wikka check`` names them."""
    found = {}
    for column, cell in cells.items():
        if column.startswith(FILE):
            try:
                found[column[len(FILE) :].decode()] = parse_current_file(cell)
            except ValueError:
                continue
    return found


def lookup_key(name: str) -> str:
    """Return the form in which a page's files have unique names: as in links, ``_`` is a blank and case is nothing."""
    return folded(name.replace("_", " "))


# --- blobs, references, uploads ------------------------------------------------------------------

Life = Literal["live", "sweeping", "gone"]
_LIVES: Final[Mapping[bytes, Life]] = {b"live": "live", b"sweeping": "sweeping", b"gone": "gone"}


@dataclass(frozen=True, slots=True)
class BlobState:
    """The state of a content; all its changes are ``checkAndPut`` from one packed value to another."""

    life: Life
    place: bytes
    size_bytes: int
    mark: bytes = b""  # of the sweep that set ``sweeping`` or ``gone``: no two sweeps write the same value

    def pack(self) -> bytes:
        return b"%s:%s:%d:%s" % (self.life.encode(), self.place, self.size_bytes, self.mark)


def parse_blob_state(cell: bytes) -> BlobState:
    """Return the state in a cell.  Raises ValueError if ``cell`` is none."""
    life, place, size, mark = (*cell.split(b":"), b"", b"", b"")[:4]
    known = _LIVES.get(life)
    if cell.count(b":") != 3 or known is None or not is_place(place) or not size.isdigit():
        raise ValueError(f"{cell[:120]!r} is no state of a blob")
    return BlobState(known, place, int(size), mark)


def state_after_upload(
    before: BlobState | None, place: bytes, size_bytes: int, *, is_damaged: bool = False
) -> BlobState:
    """Return the state of step 5, if the upload has its chunks at ``place``; if it is ``before``, nothing is put.

    ``is_damaged``: the chunks of ``before`` are not those of the upload, though their digest should be the same.
    """
    if before is None or before.life == "gone" or is_damaged or before.size_bytes != size_bytes:
        return BlobState("live", place, size_bytes)
    return BlobState("live", before.place, before.size_bytes)


def state_of_sweep(before: BlobState, mark: bytes, step: Literal["mark", "give up", "drop"]) -> BlobState | None:
    """Return the state after a step of the sweep ``mark``, or None if the blob is not in a state for it."""
    if step == "mark":  # also if an earlier sweep crashed after its mark
        return None if before.life == "gone" else BlobState("sweeping", before.place, before.size_bytes, mark)
    if (before.life, before.mark) != ("sweeping", mark):
        return None
    if step == "give up":
        return BlobState("live", before.place, before.size_bytes)
    return BlobState("gone", before.place, before.size_bytes, mark)


def is_sha256(value: str) -> bool:
    return _SHA256.fullmatch(value) is not None


def reference_column(version_row: bytes) -> bytes:
    return REFERENCE + version_row


@dataclass(frozen=True, slots=True)
class Upload:
    """An upload under way, or a place whose chunks are surplus."""

    place: bytes
    state: Annotated[str, UPLOAD_STATE]  # open, whole, waiting, surplus
    writer: Annotated[str, UPLOAD_WRITER]  # the request that writes its chunks, "" if none
    owner: Annotated[str, b"u:owner"]  # whose upload it is, as of a draft
    page: Annotated[str, b"u:page"]
    name: Annotated[str, b"u:name"]
    length_bytes: Annotated[int, b"u:length"]  # as announced; 0: unknown (a form without script)
    stored_bytes: Annotated[int, UPLOAD_STORED]  # written after the chunks that have them
    time_ms: Annotated[int, UPLOAD_TIME]  # of the last chunk; a day later the upload is swept
    sha256: Annotated[str, b"u:sha256"] = ""
    fields: Annotated[str, UPLOAD_FIELDS] = ""  # note, alt text and choices of the form, as JSON
    history: Annotated[bytes, b"u:history"] = b""  # the page's, which the page keeps when it is renamed
    found: Annotated[str, b"u:found"] = ""  # ``FoundContent`` of a whole upload

    @property
    def ends_ms(self) -> int:
        """The time after which the sweep takes it."""
        return self.time_ms + (WAITING_MS if self.state == WAITING else GRACE_MS)


def waiting_row(page: bytes, owner: str) -> bytes:
    """Return the row that names the uploads of ``owner`` that wait for the first save of a page, by its key."""
    return _OF_PAGE + page + owner.encode()


def waiting_column(place: bytes) -> bytes:
    return b"u:" + place


def is_waiting_row(row: bytes) -> bool:
    return row.startswith(_OF_PAGE)


def waiting_rows_begin() -> bytes:
    return _OF_PAGE


def parse_waiting_row(row: bytes) -> tuple[bytes, str]:
    """Return the key of the page and the owner of ``waiting_row``."""
    end = len(_OF_PAGE) + KEY_BYTES
    return row[len(_OF_PAGE) : end], row[end:].decode(errors="replace")


@dataclass(frozen=True, slots=True)
class NotedSave:
    """A save of the page by the owner of a row of waiting uploads, which had not been committed then."""

    head: schema.Head  # with the key of the history, whatever it is
    time_ms: int
    network: str  # of the owner; blocks are judged by it
    column: bytes


def noted_save(head: schema.Head, key: bytes, time_ms: int, network: str) -> dict[bytes, bytes]:
    """Return the cell of a save of the revision ``head`` of the page ``key``."""
    named = schema.Head(head.number, head.token, head.place(key))
    return {_SAVE + named.pack(): b"%d %s" % (time_ms, network.encode("utf-8", "replace"))}


def saves_in(cells: Mapping[bytes, bytes]) -> list[NotedSave]:
    """Return the saves that a row of waiting uploads names, the newest first.  Damaged cells are left out."""
    found = []
    for column, value in cells.items():
        if column.startswith(_SAVE):
            time_ms, _blank, network = value.decode(errors="replace").partition(" ")
            try:
                head = schema.parse_head(column[len(_SAVE) :])
                found.append(NotedSave(head, int(time_ms), network, column))
            except ValueError:
                continue
    return sorted(found, key=lambda one: -one.time_ms)


def places_in(cells: Mapping[bytes, bytes]) -> list[bytes]:
    """Return the places that a row of waiting uploads names."""
    return [column[2:] for column in cells if column[:2] == b"u:" and is_place(column[2:])]


@dataclass(frozen=True, slots=True)
class FoundContent:
    """The facts about a whole content: "TYPE:WxH:METADATA"."""

    media_type: str
    width: int = 0
    height: int = 0
    metadata: str = ""

    def pack(self) -> str:
        return f"{self.media_type}:{self.width}x{self.height}:{self.metadata}"


def parse_found(value: str) -> FoundContent:
    """Return the facts in ``value``.  Raises ValueError if it has none."""
    media_type, size, metadata = value.split(":")
    width, height = size.split("x")
    return FoundContent(media_type, int(width), int(height), metadata)
