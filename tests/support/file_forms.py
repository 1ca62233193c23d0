"""Forms with files as browsers send them: the fields first, then the files, in the order of the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from werkzeug.test import TestResponse

from tests.support.wiki_client import WikiClient

BOUNDARY: Final = "a-boundary-of-the-tests"
CONTENT_TYPE: Final = f"multipart/form-data; boundary={BOUNDARY}"
PNG: Final = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    "0000000c4944415408d763f8cfc000000301010018dd8db00000000049454e44ae426082"
)


def multipart(fields: Mapping[str, str], *files: tuple[str, bytes]) -> bytes:
    parts = [f'form-data; name="{key}"\r\n\r\n{value}'.encode() for key, value in fields.items()]
    parts += [f'form-data; name="file"; filename="{name}"\r\n\r\n'.encode() + content for name, content in files]
    begun = f"--{BOUNDARY}\r\nContent-Disposition: ".encode()
    return b"".join(begun + part + b"\r\n" for part in parts) + f"--{BOUNDARY}--\r\n".encode()


def send_files(web: WikiClient, page: str, fields: Mapping[str, str], *files: tuple[str, bytes]) -> TestResponse:
    return web.client.post(page + "/files", data=multipart(fields, *files), content_type=CONTENT_TYPE)


def upload(web: WikiClient, *files: tuple[str, bytes], page: str = "/HomePage", **fields: str) -> TestResponse:
    """Fetch the form of the page's files and send it with ``files``."""
    return send_files(web, page, {"csrf": web.form(page + "/files")["csrf"], **fields}, *files)
