"""A backup store in a bucket of an S3-compatible service, over boto3 (``pip install columnar[s3]``).

    s3://BUCKET/PREFIX      objects are PREFIX/NAME

Credentials, region, profile and endpoint come from where AWS's tools look for them: AWS_ACCESS_KEY_ID and
AWS_SECRET_ACCESS_KEY, AWS_PROFILE, ~/.aws, the machine's role; AWS_REGION; AWS_ENDPOINT_URL.  Endpoints other than
Amazon's are addressed by path, unless the profile says otherwise (``s3 = addressing_style = virtual``).

Objects of up to PART_BYTES are put by one request, larger ones in parts, of which one at a time is in memory.  The
service verifies the MD5 of each request's body, and an object exists when all of its parts do.  The library retries
requests; a download that breaks off goes on from where it was.

Knows nothing of what the objects hold.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final
from urllib.parse import urlsplit

from columnar.backup.backup_store import PIECE_BYTES, ObjectFacts, ObjectMissing
from columnar.errors import CallerError, DamagedData, HostError

SCHEME: Final = "s3://"
PART_BYTES: Final = 16 * 1024 * 1024  # what an upload has in memory
MOST_PARTS: Final = 10_000  # S3's own bound, so an object has 160 GB at most
REPEATED: Final = 6  # times that a request is repeated, with growing pauses
RESUMED: Final = 5  # times that one download goes on after it broke off
CONNECT_S: Final = 10
ANSWER_S: Final = 60
_GONE: Final = frozenset({"NoSuchKey", "404", "NotFound"})
_STEPS: Final = {  # by S3's error code
    "NoSuchBucket": "the bucket does not exist; make it first",
    "AccessDenied": "access is denied: reading needs s3:GetObject and s3:ListBucket, "
    "saving s3:PutObject and s3:AbortMultipartUpload, removing s3:DeleteObject",
    "403": "access is denied: look at the credentials and the rights of their user",
    "InvalidAccessKeyId": "the service does not know the access key; look at AWS_ACCESS_KEY_ID or AWS_PROFILE",
    "SignatureDoesNotMatch": "the secret key is wrong; look at AWS_SECRET_ACCESS_KEY or AWS_PROFILE",
    "ExpiredToken": "the session has expired; sign in again",
    "PermanentRedirect": "the bucket is in another region; set AWS_REGION",
    "AuthorizationHeaderMalformed": "the bucket is in another region; set AWS_REGION",
    "RequestTimeTooSkewed": "this machine's clock is wrong; set it",
    "BadDigest": "an object was changed on its way; try again",
}


def location_of(url: str) -> tuple[str, str]:
    """Return bucket and prefix of ``s3://BUCKET/PREFIX``.  Raises CallerError."""
    parts = urlsplit(url)
    prefix = parts.path.strip("/")
    if parts.scheme != "s3" or not parts.netloc or parts.query or parts.fragment or "//" in prefix:
        raise CallerError(f"'{url}' is no place of an S3 store: write s3://BUCKET or s3://BUCKET/PREFIX")
    if "@" in parts.netloc or ":" in parts.netloc:
        raise CallerError(
            "s3://BUCKET/PREFIX takes no credentials and no port: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or "
            "AWS_PROFILE in the environment, and the service by --endpoint-url"
        )
    return parts.netloc, prefix


def client_of(endpoint_url: str | None) -> Any:
    """Return a client of the service.  Raises HostError if boto3 is not installed, or its settings are wrong."""
    try:
        import boto3
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError
    except ImportError as error:
        raise HostError("an s3:// place needs the package boto3: pip install columnar[s3]") from error
    if endpoint_url is not None and "@" in endpoint_url:
        raise CallerError("--endpoint-url takes no credentials: set them in the environment (AWS_PROFILE)")
    try:
        session = boto3.session.Session()
        settings = session._session.get_scoped_config()  # boto3 has no other access to the profile's own settings
        elsewhere = endpoint_url or _endpoint_set(settings)
        style = (settings.get("s3") or {}).get("addressing_style") or ("path" if elsewhere else "auto")
        config = Config(
            retries={"mode": "standard", "max_attempts": REPEATED},
            connect_timeout=CONNECT_S,
            read_timeout=ANSWER_S,
            s3={"addressing_style": style},
            # MD5 is what every service verifies; newer checksums are refused by some.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        )
        return session.client("s3", endpoint_url=endpoint_url, config=config)
    except (BotoCoreError, ValueError) as error:
        raise HostError(f"S3 cannot be used: {_one_line(error)}") from error


def _endpoint_set(settings: dict[str, Any]) -> str | None:
    names = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
    return next(filter(None, map(os.environ.get, names)), None) or settings.get("endpoint_url")


class S3Store:
    """Owned by one thread."""

    def __init__(self, client: Any, bucket: str, prefix: str, part_bytes: int = PART_BYTES) -> None:
        """Take boto3's client; S3 itself takes no parts below 5 MiB but for the last."""
        self._client = client
        self._bucket = bucket
        self._prefix = f"{prefix}/" if prefix else ""
        self._part_bytes = part_bytes

    @property
    def address(self) -> str:
        return f"{SCHEME}{self._bucket}/{self._prefix}".rstrip("/")

    def _at(self, name: str) -> dict[str, str]:
        return {"Bucket": self._bucket, "Key": self._prefix + name}

    # --- putting -----------------------------------------------------------------------------------

    def put_bytes(self, name: str, data: bytes) -> None:
        with self._reported():
            self._client.put_object(**self._at(name), Body=data, ContentMD5=_md5(data))

    def put_pieces(self, name: str, pieces: Iterator[bytes], size_bytes: int) -> None:
        if size_bytes > self._part_bytes * MOST_PARTS:
            raise CallerError(f"{name} has {size_bytes} bytes; an object has {self._part_bytes * MOST_PARTS} at most")
        parts = _parts(pieces, self._part_bytes)
        if size_bytes <= self._part_bytes:
            self.put_bytes(name, b"".join(parts))
            return
        with self._reported():
            upload = self._client.create_multipart_upload(**self._at(name))["UploadId"]
        try:
            self._upload_parts(name, upload, parts)
        except BaseException:
            with suppress(HostError):  # the first error counts; ``remove_unfinished`` tries it again
                self._abort(self._prefix + name, upload)
            raise

    def _upload_parts(self, name: str, upload: str, parts: Iterator[bytes]) -> None:
        done = []
        for number, part in enumerate(parts, 1):
            with self._reported():
                answer = self._client.upload_part(
                    **self._at(name), UploadId=upload, PartNumber=number, Body=part, ContentMD5=_md5(part)
                )
            done.append({"PartNumber": number, "ETag": answer["ETag"]})
        with self._reported():
            self._client.complete_multipart_upload(**self._at(name), UploadId=upload, MultipartUpload={"Parts": done})

    def _abort(self, key: str, upload: str) -> None:
        with self._reported(ignoring=frozenset({"NoSuchUpload"})):
            self._client.abort_multipart_upload(Bucket=self._bucket, Key=key, UploadId=upload)

    def sync_objects(self) -> None:
        """Do nothing: an object is durable when its request is answered."""

    # --- reading -----------------------------------------------------------------------------------

    def read_bytes(self, name: str) -> bytes | None:
        try:
            return b"".join(self.read_pieces(name))
        except ObjectMissing:
            return None

    def read_pieces(self, name: str) -> Iterator[bytes]:
        offset, tag, size, broken = 0, "", -1, 0
        while size < 0 or offset < size:
            answer = self._opened(name, offset, tag)
            tag, size = answer["ETag"], offset + answer["ContentLength"]
            with answer["Body"] as body:
                for piece in self._pieces_of(body):
                    offset += len(piece)
                    yield piece
            if offset < size:
                broken += 1
                if broken > RESUMED:
                    raise HostError(f"{self.address}/{name} cannot be read: it broke off {broken} times; try again")

    def _opened(self, name: str, offset: int, tag: str) -> Any:
        """Return the answer with the object's bytes from ``offset`` on; the object must not have changed since."""
        more = {"Range": f"bytes={offset}-", "IfMatch": tag} if offset else {}
        with self._reported(missing=name, ignoring=frozenset()):
            return self._client.get_object(**self._at(name), **more)

    def _pieces_of(self, body: Any) -> Iterator[bytes]:
        """Yield what comes until the end, or until the connection breaks."""
        from botocore.exceptions import HTTPClientError, IncompleteReadError
        from urllib3.exceptions import HTTPError

        with suppress(HTTPClientError, IncompleteReadError, HTTPError, OSError):
            while piece := body.read(PIECE_BYTES):
                yield piece

    def list_objects(self, folder: str) -> Iterator[ObjectFacts]:
        prefix = self._prefix + (f"{folder}/" if folder else "")
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix)
        for one in self._listed(pages, "Contents"):
            modified_ms = round(one["LastModified"].timestamp() * 1_000)
            yield ObjectFacts(one["Key"].removeprefix(self._prefix), one["Size"], modified_ms)

    def _listed(self, pages: Any, key: str) -> Iterator[Any]:
        following = iter(pages)
        while True:
            with self._reported():
                page = next(following, None)
            if page is None:
                return
            yield from page.get(key, ())

    # --- removing ----------------------------------------------------------------------------------

    def remove_objects(self, names: Sequence[str]) -> None:
        for at in range(0, len(names), 1_000):  # S3's own bound
            doomed = {"Objects": [{"Key": self._prefix + name} for name in names[at : at + 1_000]], "Quiet": True}
            with self._reported():
                failed = self._client.delete_objects(Bucket=self._bucket, Delete=doomed).get("Errors")
            if failed:
                first = failed[0]
                why = _STEPS.get(first.get("Code", ""), first.get("Code", "it does not say why"))
                raise HostError(f"{SCHEME}{self._bucket}/{first.get('Key', '')} was not removed: {why}")

    def remove_unfinished(self) -> None:
        pages = self._client.get_paginator("list_multipart_uploads").paginate(Bucket=self._bucket, Prefix=self._prefix)
        for one in self._listed(pages, "Uploads"):
            self._abort(one["Key"], one["UploadId"])

    @contextmanager
    def _reported(self, missing: str = "", ignoring: frozenset[str] = frozenset()) -> Iterator[None]:
        """Turn errors of the library into ours: ObjectMissing for ``missing``, else HostError with what to do."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            yield
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", ""))
            if code in ignoring:
                return
            if missing and code in _GONE:
                raise ObjectMissing(self.address, missing) from None
            if code in ("PreconditionFailed", "412"):
                raise DamagedData(f"{self.address}/{missing} was replaced while it was read") from None
            raise HostError(f"{self.address}: {_STEPS.get(code) or _one_line(error)}") from error
        except BotoCoreError as error:
            raise HostError(f"{self.address}: {_one_line(error)}{_step_of(error)}") from error


def _step_of(error: Exception) -> str:
    steps = {
        "NoCredentialsError": "; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
        "PartialCredentialsError": "; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
        "EndpointConnectionError": "; look at --endpoint-url, or AWS_ENDPOINT_URL",
    }
    return steps.get(type(error).__name__, "")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")


def _md5(data: bytes) -> str:
    return base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()


def _parts(pieces: Iterator[bytes], part_bytes: int) -> Iterator[bytes]:
    """Yield the pieces anew, cut into parts of ``part_bytes``; the last one is shorter."""
    buffered: list[bytes] = []
    size = 0
    for piece in pieces:
        rest = memoryview(piece)
        while len(rest):
            taken = rest[: part_bytes - size]
            buffered.append(bytes(taken))
            size += len(taken)
            rest = rest[len(taken) :]
            if size == part_bytes:
                yield b"".join(buffered)
                buffered, size = [], 0
    if buffered:
        yield b"".join(buffered)
