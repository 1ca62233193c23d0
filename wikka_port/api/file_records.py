"""(pure) The types of parameters and bodies of the API's operations on files (``records``)."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from wikka_port.api.records import PageName, Parameters, Record, Sure, Why
from wikka_port.names import MAX_NAME_BYTES

FileName = Annotated[str, Meta(min_length=1, max_length=MAX_NAME_BYTES, description="The name of a file of the page.")]


# --- parameters --------------------------------------------------------------------------------


class OfFile(Parameters, frozen=True):
    page: PageName
    name: FileName


class VersionOfFile(Parameters, frozen=True):
    page: PageName
    name: FileName
    version: Annotated[int, Meta(ge=1, le=10**9, description="An older version; the newest without it.")] | None = None


class StoredFile(Parameters, frozen=True):
    page: PageName
    name: FileName
    note: Annotated[str, Meta(max_length=500, description="What was changed.")] = ""
    alt: Annotated[str, Meta(max_length=500, description="What a picture shows, for who cannot see it.")] = ""
    metadata: Annotated[Literal["strip", "keep"], Meta(description="Place and camera of a photograph.")] = "strip"


class RemovedFile(Parameters, frozen=True):
    page: PageName
    name: FileName
    note: Annotated[str, Meta(max_length=500, description="Why it is removed.")] = ""


class ErasedVersion(Parameters, frozen=True):
    page: PageName
    name: FileName
    version: Annotated[int, Meta(ge=1, le=10**9, description="The number of the version.")]
    sure: Sure = False
    reason: Why = ""


# --- answers -----------------------------------------------------------------------------------


class FileRecord(Record, frozen=True):
    page: str
    name: str
    version: int
    type: str
    size: int
    sha256: str
    width: int
    height: int
    alt: str
    etag: str


class Files(Record, frozen=True):
    files: list[FileRecord]


class RemovalRecord(Record, frozen=True):
    page: str
    name: str
    used_on: Annotated[list[str], Meta(description="Pages that used the file, as far as the caller may read them.")]
    more: Annotated[bool, Meta(description="Whether further pages used it: GET /page/backlinks with `file` has all.")]


class ErasureRecord(Record, frozen=True):
    page: str
    name: str
    version: int
    size: Annotated[int, Meta(description="Bytes that left the store; 0 if others have the same.")]
    others: Annotated[int, Meta(description="Versions, here and on other pages, that keep the same bytes.")]
