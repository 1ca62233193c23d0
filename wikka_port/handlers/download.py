"""A file of a page, as it is: ``/Name/files/Plan.pdf``, ``?v=`` an older version.

The answer streams from the store, so memory has one chunk of it.  A file is never read by a browser as a page, script
or style of the wiki: it has a policy of its own, and only types that run nothing are shown (``files.content_types``).

    200, 206, 304, 416   RFC 9110, sections 13 and 14 (``files.conditional``)
    403                  the visitor may not read the page; the answer does not depend on its files
                         (of a page that is not saved yet, a visitor has his own files that wait for it)
    404                  no such file or version, or it was removed
    503                  the store has lost the content: ``wikka check`` names the file.  A chunk behind the first
                         one is missed when it is sent: the answer breaks off, and the log has the digest
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from werkzeug.wrappers import Request, Response

from wikka_port.files.conditional import ByteRange, NotSatisfiable, etag_of, is_range_current, is_unmodified, ranges_in
from wikka_port.files.content_types import BY_MEDIA_TYPE, OPAQUE, SANDBOX
from wikka_port.files.file_names import content_disposition
from wikka_port.files.file_rows import CurrentFile, FileVersion
from wikka_port.files.refusals import MissingContent, NoSavedPage, UploadGone
from wikka_port.limits import TRANSFER_FROM_BYTES
from wikka_port.refusals import missing_page
from wikka_port.request_queues import run_as_transfer
from wikka_port.rights.guarded_files import GuardedFiles
from wikka_port.rights.rules import Privilege
from wikka_port.security import POLICY
from wikka_port.site import Site, number, redirect
from wikka_port.texts import _
from wikka_port.urls import file_path, page_path

log = logging.getLogger(__name__)

_YEAR: Final = "private, max-age=31536000, immutable"  # a version never changes
_FRESH: Final = "private, no-cache"  # rights and versions may change


def handle_download(site: Site, request: Request, name: str, file: str, owners: Collection[str] = ()) -> Response:
    """Send a file; of a page that is not saved yet, one of ``owners`` that waits for it."""
    files = site.wiki.files(name, owners)
    try:
        stored_name, current = files.find(file)
    except NoSavedPage:
        return missing_page(site, name)
    if current is None:
        return _missing(site, name, file)
    wanted = number(request, "v")
    if stored_name != file:  # a different case, or "_" for a blank
        return redirect(file_path(name, stored_name, v="" if wanted is None else wanted), 302)
    one = current if wanted is None or wanted == current.number else files.numbered(stored_name, wanted)
    if one is None or not one.sha256:
        return _missing(site, name, file)
    small = _smaller(request, files, one)
    try:
        response = send_version(request, files, stored_name, one) if small is None else _named(small, stored_name, one)
    except UploadGone:  # it waited for the page, and has ended meanwhile
        return _missing(site, name, file)
    # version 0 waits for its page: another file may take its name, and ``access`` may take the page for one that exists
    is_public = bool(wanted) and site.wiki.access.everybody_may(name, Privilege.READ)
    is_whole_for_now = small is None and "w" in request.args  # the smaller version comes later
    response.headers["Cache-Control"] = _YEAR if is_public and not is_whole_for_now else _FRESH
    return response


def _smaller(request: Request, files: GuardedFiles, one: CurrentFile | FileVersion) -> Response | None:
    """Return the smaller version of a picture, or None if none is wanted or made: the whole is sent in its place."""
    width = number(request, "w")
    small = files.thumbnail(one, width) if width is not None else None
    if small is None:
        return None
    etag = etag_of(one.sha256, str(width))
    is_there = is_unmodified(request.headers.get("If-None-Match", ""), etag)
    response = _headed(Response(b"" if is_there else small.content, status=304 if is_there else 200), one, etag)
    response.headers["Content-Type"] = small.media_type
    return response


def send_version(request: Request, files: GuardedFiles, name: str, one: CurrentFile | FileVersion) -> Response:
    """Return a version's content, or the part or the 304 that the request's headers want."""
    return _named(_content(request, files, one), name, one)


def _named(response: Response, name: str, one: CurrentFile | FileVersion) -> Response:
    known = BY_MEDIA_TYPE.get(one.media_type)
    response.headers["Content-Disposition"] = content_disposition(name, inline=known is not None and known.inline)
    return response


def _content(request: Request, files: GuardedFiles, one: CurrentFile | FileVersion) -> Response:
    etag, size = etag_of(one.sha256), one.size_bytes
    if is_unmodified(request.headers.get("If-None-Match", ""), etag):
        return _headed(Response(status=304), one, etag)
    wanted = (ByteRange(0, size),)
    status = 200
    if is_range_current(request.headers.get("If-Range", ""), etag):
        try:
            ranges = ranges_in(request.headers.get("Range", ""), size)
        except NotSatisfiable as beyond:
            response = _headed(Response(status=416), one, etag)
            response.headers["Content-Range"] = beyond.content_range
            return response
        if len(ranges) == 1:  # several ranges would need multipart/byteranges, which nobody reads
            wanted, status = ranges, 206
    part = wanted[0]
    length = part.stop - part.start
    is_sent = request.method != "HEAD"
    if is_sent and length > TRANSFER_FROM_BYTES:
        run_as_transfer(request.environ)
    content = files.content(one, part.start, part.stop)  # for HEAD, too: its answer is that of GET
    response = _headed(Response(_logged(content, one) if is_sent else (), status=status), one, etag)
    response.headers["Content-Length"] = str(length)
    if status == 206:
        response.headers["Content-Range"] = part.content_range(size)
    return response


def _logged(content: Iterable[bytes], one: CurrentFile | FileVersion) -> Iterator[bytes]:
    """Yield the content; log its digest if a chunk of it is lost.  Raises MissingContent, so that the answer ends."""
    try:
        yield from content
    except MissingContent:
        log.error("the store has lost a chunk of the content %s: the answer broke off", one.sha256)
        raise


def _headed(response: Response, one: CurrentFile | FileVersion, etag: str) -> Response:
    known = BY_MEDIA_TYPE.get(one.media_type)
    response.headers["Content-Type"] = known.sent_type() if known else OPAQUE
    response.headers[POLICY] = SANDBOX
    response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
    response.headers["Accept-Ranges"] = "bytes"
    response.headers["ETag"] = etag
    response.headers["X-Robots-Tag"] = "noindex"
    return response


def _missing(site: Site, name: str, file: str) -> Response:
    message = _("The page has no file {file}, or it was removed.", file=file[:200])
    back = page_path(name, "files")
    return site.html("error.html", status=404, title=_("No such file"), message=message, back=back)
