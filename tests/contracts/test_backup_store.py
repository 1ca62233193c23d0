"""The contract of backup stores, over a folder, an S3 service and the memory store of other tests."""

from __future__ import annotations

import base64
import hashlib
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from columnar.backup.backup_store import PIECE_BYTES, BackupStore, ObjectMissing
from columnar.backup.folder_store import FolderStore
from columnar.backup.s3_store import S3Store
from columnar.errors import HostError
from tests.support.memory_backup_store import MemoryBackupStore
from tests.support.s3_service import ENVIRONMENT, bucket_client, s3_service

PART = 5 * 1024 * 1024  # the least that S3 takes
LARGE = b"0123456789abcdef" * (2 * PART // 16) + b"the last part"
_prefixes = itertools.count()


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch, s3_service() as url:
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        yield bucket_client(url, "bucket")


@pytest.fixture(params=["memory", "folder", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> BackupStore:
    if request.param == "folder":
        return FolderStore(str(tmp_path / "folder"))
    if request.param == "memory":
        return MemoryBackupStore()
    return S3Store(request.getfixturevalue("client"), "bucket", f"p{next(_prefixes)}", PART)


def pieces_of(data: bytes) -> Iterator[bytes]:
    return (data[at : at + PIECE_BYTES] for at in range(0, len(data), PIECE_BYTES))


def content(store: BackupStore, name: str) -> bytes:
    return b"".join(store.read_pieces(name))


def names(store: BackupStore, folder: str = "") -> set[str]:
    return {facts.name for facts in store.list_objects(folder)}


def test_an_empty_store_has_nothing(store: BackupStore) -> None:
    assert names(store) == set()
    assert store.read_bytes("FORMAT") is None
    with pytest.raises(ObjectMissing, match="files/a is missing"):
        content(store, "files/a")
    store.remove_objects(["files/a"])
    store.remove_unfinished()


def test_objects_come_back_and_are_replaced(store: BackupStore) -> None:
    store.put_bytes("FORMAT", b"one")
    store.put_bytes("FORMAT", b"two")
    store.put_pieces("files/empty", iter(()), 0)
    store.put_pieces("files/large", pieces_of(LARGE), len(LARGE))
    store.sync_objects()
    assert store.read_bytes("FORMAT") == b"two"
    assert content(store, "files/empty") == b""
    assert content(store, "files/large") == LARGE
    assert max(map(len, store.read_pieces("files/large"))) <= PIECE_BYTES
    found = {facts.name: facts.size_bytes for facts in store.list_objects("files")}
    assert found == {"files/empty": 0, "files/large": len(LARGE)}
    assert names(store) == {"FORMAT", "files/empty", "files/large"}


def test_a_folder_is_no_prefix_of_a_name(store: BackupStore) -> None:
    store.put_bytes("files2/a", b"")
    store.put_bytes("files/a", b"")
    assert names(store, "files") == {"files/a"}


def test_an_interrupted_put_leaves_no_object_and_the_old_one_as_it_was(store: BackupStore) -> None:
    def broken() -> Iterator[bytes]:
        yield from pieces_of(LARGE)
        raise OSError("the disk cannot be read")

    store.put_bytes("files/old", b"old")
    for name in ("files/new", "files/old"):
        with pytest.raises((OSError, HostError), match="the disk cannot be read"):
            store.put_pieces(name, broken(), len(LARGE) + 1)
    assert names(store) == {"files/old"}
    assert store.read_bytes("files/old") == b"old"
    store.remove_unfinished()
    assert names(store) == {"files/old"}


def test_removed_objects_are_gone_and_others_stay(store: BackupStore) -> None:
    for name in ("files/a", "files/b", "files/c"):
        store.put_bytes(name, name.encode())
    store.remove_objects(["files/a", "files/missing", "files/c"])
    assert names(store) == {"files/b"}


def test_times_are_those_of_the_store_and_rise(store: BackupStore) -> None:
    store.put_bytes("locks/a", b"")
    store.put_bytes("locks/b", b"")
    times = {facts.name: facts.modified_ms for facts in store.list_objects("locks")}
    assert times["locks/a"] <= times["locks/b"] < times["locks/a"] + 60_000


# --- S3 alone --------------------------------------------------------------------------------------------------------


def test_parts_of_a_killed_upload_are_no_object_and_are_removed(client: Any) -> None:
    store = S3Store(client, "bucket", "killed", PART)
    client.create_multipart_upload(Bucket="bucket", Key="killed/files/half")
    client.create_multipart_upload(Bucket="bucket", Key="stranger/files/half")
    assert names(store) == set()
    store.remove_unfinished()
    left = client.list_multipart_uploads(Bucket="bucket").get("Uploads", [])
    assert [one["Key"] for one in left] == ["stranger/files/half"]


def test_an_upload_has_one_part_in_memory(client: Any) -> None:
    asked = []

    def counted() -> Iterator[bytes]:
        for number, piece in enumerate(pieces_of(LARGE)):
            asked.append((number * PIECE_BYTES, sent.total))
            yield piece

    sent = _Counting(client)
    S3Store(sent, "bucket", "parts", PART).put_pieces("files/x", counted(), len(LARGE))
    assert max(read - gone for read, gone in asked) <= PART
    assert sent.total == len(LARGE)


class _Counting:
    def __init__(self, client: Any) -> None:
        self._client = client
        self.total = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def upload_part(self, **words: Any) -> Any:
        self.total += len(words["Body"])
        return self._client.upload_part(**words)


class _Torn:
    """A client whose downloads break off after one piece, ``times`` times."""

    def __init__(self, client: Any, times: int) -> None:
        self._client = client
        self.times = times

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def get_object(self, **words: Any) -> Any:
        answer = self._client.get_object(**words)
        if self.times:
            self.times -= 1
            answer["Body"] = _TornBody(answer["Body"])
        return answer


class _TornBody:
    def __init__(self, body: Any) -> None:
        self._body = body
        self._read = False

    def __enter__(self) -> _TornBody:
        return self

    def __exit__(self, *_error: object) -> None:
        self._body.close()

    def read(self, size: int) -> bytes:
        if self._read:
            raise ConnectionResetError("torn")
        self._read = True
        return self._body.read(size)


def test_a_download_that_breaks_off_goes_on(client: Any) -> None:
    store = S3Store(client, "bucket", "torn", PART)
    store.put_pieces("files/x", pieces_of(LARGE), len(LARGE))
    assert content(S3Store(_Torn(client, 3), "bucket", "torn"), "files/x") == LARGE
    with pytest.raises(HostError, match="broke off"):
        content(S3Store(_Torn(client, 100), "bucket", "torn"), "files/x")


def test_each_body_that_is_put_has_its_checksum_for_the_service(client: Any) -> None:
    seen = []

    def check(request: Any, **_more: Any) -> None:
        body = request.body
        if not isinstance(body, bytes):
            body = request.body.read()
            request.body.seek(0)
        seen.append(request.headers["Content-MD5"] == base64.b64encode(hashlib.md5(body).digest()))

    events = ("before-send.s3.PutObject", "before-send.s3.UploadPart")
    for event in events:
        client.meta.events.register(event, check)
    try:
        store = S3Store(client, "bucket", "checksums", PART)
        store.put_bytes("files/x", b"small")
        store.put_pieces("files/y", pieces_of(LARGE), len(LARGE))
    finally:
        for event in events:
            client.meta.events.unregister(event, check)
    assert seen == [True] * 4


def test_a_missing_bucket_is_named(client: Any) -> None:
    with pytest.raises(HostError, match="s3://nowhere/p: the bucket does not exist; make it first"):
        S3Store(client, "nowhere", "p").read_bytes("FORMAT")
