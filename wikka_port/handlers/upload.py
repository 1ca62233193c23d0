"""Uploads in parts, which continue after a break: the protocol tus 1.0 (``files.resumable``).

    POST     /Name/files              begins an upload; ``Location`` names its address (``begin_upload``)
    HEAD     /-/upload?page=&id=      how much is stored; all of it, with ``Content-Location``, if it became a file
    PATCH                             the next part; the last one makes the file, which ``Content-Location`` names
    DELETE                            throws the upload away
    OPTIONS                           the versions and bounds of the protocol

``Upload-Metadata`` has the fields of the form at ``/Name/files``, with the file's name as ``filename``.  Every request
that changes something has the form's token in ``X-Form-Token``.  An upload belongs to the account, or else to the
browser, that began it; for everybody else there is none at its address.

The row of an upload goes when it becomes a file, and when the whole file is refused.  So a client that has lost the
last answer cannot tell the two apart by the row: ``HEAD`` looks for the file itself, by the file's name and length, and
the versions that were there when the upload began, all of which its address has (``_made``).  No time is compared: the
processes that begin and end an upload may have different clocks.

    404   no such upload, or it has ended without a file
    409   a part does not begin where the stored part ends
    422   the whole file is not taken: its type, its name; the upload has ended
    423   another request writes to it; after 90 s of silence the next one may
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from werkzeug.exceptions import ClientDisconnected, MethodNotAllowed
from werkzeug.http import http_date
from werkzeug.wrappers import Request, Response

from wikka_port.editing.edit_forms import owner_to_keep, remember
from wikka_port.files.content_types import NotAccepted
from wikka_port.files.file_names import InvalidFileName
from wikka_port.files.file_rows import GRACE_MS, CurrentFile, Upload, lookup_key
from wikka_port.files.refusals import FileRefused, NoSavedPage, UploadGone
from wikka_port.files.resumable import (
    EXTENSIONS,
    VERSION,
    Progress,
    Rejected,
    check_part,
    check_version,
    length_in,
    metadata_in,
)
from wikka_port.files.upload_form import READ_BYTES
from wikka_port.forms import STALE_FORM, is_genuine
from wikka_port.handlers.file_upload import check_words, make_file, new_page_refusal, replaced_version
from wikka_port.handlers.waiting_files import files_of_owner
from wikka_port.names import InvalidName
from wikka_port.refusals import sentence
from wikka_port.request_queues import run_as_transfer
from wikka_port.rights.guarded_files import GuardedFiles
from wikka_port.rights.judging import NotAllowed
from wikka_port.site import Site, number, wait_before_s
from wikka_port.store import StoreUnavailable
from wikka_port.texts import N_, _
from wikka_port.urls import file_path, site_path

TAKEN: Final = ("DELETE", "OPTIONS", "PATCH")  # beside HEAD
FIELDS: Final = frozenset({"note", "alt", "replace", "replaces", "keep-metadata"})
FIELD_CHARS_MAX: Final = 2_000
SEEN_CHARS: Final = 8  # of a token, in the address of an upload
SEEN_MAX: Final = 50
NONE: Final = "none"
MANY: Final = "many"
_ENDED: Final = N_("There is no such upload, or it has ended. Send the file again.")


def begin_upload(site: Site, request: Request, name: str) -> Response:
    """Answer a POST of tus to ``/Name/files``."""
    try:
        check_version(_headers(request))
        _check_token(site, request)
        length = length_in(_headers(request), site.config.files.bytes_max)
        if not length:
            raise Rejected(400, _("The file is empty."))
        fields = metadata_in(_headers(request))
        upload, file, seen, cookie = _begun(site, request, name, length, fields)
    except Rejected as rejected:
        return _rejection(rejected)
    response = _answer(site, 201, upload)
    place: dict[str, str | int] = {"file": file, "bytes": length, "seen": seen, "id": upload.place.decode()}
    response.headers["Location"] = site_path("upload", page=upload.page, **place)
    remember(request, response, cookie)
    return response


def _begun(
    site: Site, request: Request, name: str, length: int, fields: Mapping[str, str]
) -> tuple[Upload, str, str, str]:
    """Begin an upload; return it, its file's name, the versions of such names (``_seen``), and the browser's cookie.

    Raises Rejected, StoreUnavailable.
    """
    kept = {key: value[:FIELD_CHARS_MAX] for key, value in fields.items() if key in FIELDS}
    owner, cookie = owner_to_keep(site, request)
    try:
        name = site.wiki.files(name).page_to_fill()
        files = site.wiki.files(name, [owner])
        files.require_write()
        if why := new_page_refusal(site, name):
            raise Rejected(422, why)
        wait_s = wait_before_s(site.pace.uploads, site, request)
        if wait_s:
            why = _("Too many files came at once. The next one can come in {wait_s} s.", wait_s=wait_s)
            raise Rejected(429, why)
        name_of_file = fields.get("filename", "")
        token = replaced_version(files, kept, name_of_file)
        check_words(site, request, kept, "" if token else name_of_file)
        there = _current(files)
        upload = files.begin(name_of_file, owner, length, fields=json.dumps(kept))
        replaced = (own for own, one in there.items() if token and one.token == token)
        file = next(replaced, upload.name)
        return upload, file, _seen(there, file), cookie
    except NotAllowed as refused:
        raise Rejected(403, sentence(site, refused)) from None
    except (InvalidFileName, FileRefused) as refused:
        raise Rejected(422, str(refused)) from None


def _current(files: GuardedFiles) -> Mapping[str, CurrentFile]:
    try:
        return files.current()
    except NoSavedPage:
        return {}


def _seen(there: Mapping[str, CurrentFile], file: str) -> str:
    """Return the beginnings of the tokens of the files that an upload of the name ``file`` could be taken for.

    Returns NONE if there is none, and MANY if they are more than SEEN_MAX.
    """
    tokens = [one.token[:SEEN_CHARS] for name, one in there.items() if one.is_there and _may_become(file, name)]
    return ",".join(tokens or [NONE]) if len(tokens) <= SEEN_MAX else MANY


def _may_become(file: str, name: str) -> bool:
    """Return whether an upload of the name ``file`` may become a file of ``name``: with the same or another ending."""
    begins, found = lookup_key(file), lookup_key(name)
    stem = begins.rpartition(".")[0] or begins
    return found == begins or found.startswith(f"{stem}.")


def handle_upload(site: Site, request: Request, name: str) -> Response:
    if request.method == "OPTIONS":
        return _options(site)
    if request.method == "GET":
        raise MethodNotAllowed(("HEAD", *TAKEN))
    try:
        check_version(_headers(request))
        if request.method == "HEAD":
            return _state(site, request)
        _check_token(site, request)
        files, upload = _found(site, request)
        if request.method == "DELETE":
            return _cancelled(files, upload)
        return _continue(site, request, files, upload)
    except Rejected as rejected:
        return _rejection(rejected)


def _found(site: Site, request: Request) -> tuple[GuardedFiles, Upload]:
    """Return the upload at the address, with the files of its page.  Raises Rejected (404), StoreUnavailable."""
    with contextlib.suppress(NotAllowed, InvalidName):
        files = files_of_owner(site, request, request.args.get("page", ""))
        for owner in files.waiting.owners:
            with contextlib.suppress(UploadGone):
                upload = files.upload(request.args.get("id", ""), owner)
                if upload.page == files.page and upload.length_bytes:
                    return files, upload
    raise Rejected(404, _(_ENDED))


def _state(site: Site, request: Request) -> Response:
    """Answer how much is stored; all of it, if the upload became a file.  Raises Rejected (404), StoreUnavailable."""
    try:
        _files, upload = _found(site, request)
    except Rejected:
        made, page = _made(site, request), request.args.get("page", "")
        if not made:
            raise
        response = _plain(200)
        response.headers["Upload-Offset"] = response.headers["Upload-Length"] = request.args["bytes"]
        response.headers["Content-Location"] = file_path(page, made)
        return response
    return _answer(site, 200, upload)


def _made(site: Site, request: Request) -> str:
    """Return the name of the file that the upload at the address became, or "" if none is there.

    The file is the upload itself if it waits for its page.  Else it is a newest version by the visitor that was not
    there when the upload began, of the upload's name, which may have another ending by now, and of its length, unless
    metadata was removed.  Another upload of this name and length at the same time may be taken for it.  Nothing is
    found if there were so many such names that the address does not have them all.
    """
    args, length = request.args, number(request, "bytes")
    file, seen = args.get("file", ""), args.get("seen", MANY)
    if length is None or not lookup_key(file):
        return ""
    with contextlib.suppress(NotAllowed, InvalidName):
        files = files_of_owner(site, request, args.get("page", ""))
        waiting = (one.name for one in files.waiting.uploads() if one.place.decode() == args.get("id"))
        return next(waiting, "") or _new_file(site, files, file, length, seen)
    return ""


def _new_file(site: Site, files: GuardedFiles, file: str, length: int, seen: str) -> str:
    if seen == MANY:
        return ""
    known = set(seen.split(","))
    for one in files.newest_versions().values():
        is_new = one.token[:SEEN_CHARS] not in known and _may_become(file, one.name)
        is_own = (one.author, one.signed) == (site.visitor.signature, site.visitor.signed)
        if is_new and is_own and (one.size_bytes == length or one.metadata == "removed"):
            return one.name
    return ""


def _continue(site: Site, request: Request, files: GuardedFiles, upload: Upload) -> Response:
    """Store the next part, and make the file if it is whole.  Raises Rejected, StoreUnavailable."""
    length = request.content_length or 0  # a request without it has no body (the server knows that of chunks)
    check_part(_headers(request), length, _progress(upload))
    run_as_transfer(request.environ)  # before the upload is taken: the handler starts again
    try:
        taken = files.take(upload)
    except UploadGone:
        raise Rejected(423, "another request writes to this upload") from None
    except NotAllowed as refused:
        raise Rejected(403, sentence(site, refused)) from None
    if length:
        taken = _written(request, files, taken)
    if not _progress(taken).is_whole:
        files.release_writer(taken)
        return _answer(site, 204, taken)
    return _completed(site, files, taken)


def _cancelled(files: GuardedFiles, upload: Upload) -> Response:
    """Throw the upload away; a part that is being written stops.  A file that is being made of it stays.

    Raises Rejected (423).
    """
    try:
        files.cancel(upload)
    except UploadGone:
        raise Rejected(423, "another request writes to this upload") from None
    return _plain(204)


def _written(request: Request, files: GuardedFiles, upload: Upload) -> Upload:
    """Store a part; if it breaks off, store what has come.  Raises Rejected, ClientDisconnected, StoreUnavailable."""
    writer = files.writer(upload)
    try:
        while piece := request.stream.read(READ_BYTES):
            writer.write_piece(piece)
        return writer.finish_part()
    except UploadGone:
        raise Rejected(423, "another request writes to this upload by now") from None
    except (ClientDisconnected, StoreUnavailable):
        with contextlib.suppress(UploadGone, StoreUnavailable):
            files.release_writer(writer.finish_part())
        raise


def _completed(site: Site, files: GuardedFiles, upload: Upload) -> Response:
    """Make a whole upload a file of its page.  Raises Rejected, StoreUnavailable."""
    try:
        version = make_file(site, files, upload, json.loads(upload.fields or "{}"))
    except (NotAccepted, InvalidFileName, FileRefused) as refused:
        raise Rejected(422, str(refused)) from None
    except NotAllowed as refused:
        raise Rejected(403, sentence(site, refused)) from None
    response = _plain(204)
    response.headers["Upload-Offset"] = str(upload.length_bytes)
    response.headers["Content-Location"] = file_path(upload.page, version.name)
    return response


def _progress(upload: Upload) -> Progress:
    """Return how much is stored; a picture that is whole may have become shorter by its metadata."""
    stored = upload.length_bytes if upload.state == "whole" else upload.stored_bytes
    return Progress(stored, upload.length_bytes)


def _headers(request: Request) -> dict[str, str]:
    """Return the headers that ``resumable`` reads."""
    names = ("Tus-Resumable", "Upload-Length", "Upload-Metadata", "Upload-Offset", "Content-Type")
    return {name: request.headers.get(name, "") for name in names}


def _check_token(site: Site, request: Request) -> None:
    """Raise Rejected (403) unless a page of the wiki sent the request."""
    if not is_genuine(site, request, request.headers.get("X-Form-Token", "")):
        raise Rejected(403, _(STALE_FORM))


def _plain(status: int, text: str = "") -> Response:
    response = Response(text, status=status, content_type="text/plain; charset=utf-8")
    response.headers["Tus-Resumable"] = VERSION
    response.headers["Cache-Control"] = "no-store"
    return response


def _answer(site: Site, status: int, upload: Upload) -> Response:
    response, progress = _plain(status), _progress(upload)
    response.headers["Upload-Offset"] = str(progress.offset)
    response.headers["Upload-Length"] = str(progress.length_bytes)
    ends = datetime.fromtimestamp((upload.time_ms + GRACE_MS) / 1000, UTC)
    response.headers["Upload-Expires"] = http_date(ends)
    return response


def _rejection(rejected: Rejected) -> Response:
    response = _plain(rejected.status, f"{rejected}\n")
    if rejected.status == 412:
        response.headers["Tus-Version"] = VERSION
    return response


def _options(site: Site) -> Response:
    response = _plain(204)
    response.headers["Tus-Version"] = VERSION
    response.headers["Tus-Extension"] = EXTENSIONS
    response.headers["Tus-Max-Size"] = str(site.config.files.bytes_max)
    return response
