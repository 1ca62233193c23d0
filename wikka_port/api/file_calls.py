"""Operations on the files of a page.  Contents stream both ways; an ``ETag`` is that of the content."""

from __future__ import annotations

import contextlib
from typing import Final

from werkzeug.exceptions import ClientDisconnected
from werkzeug.wrappers import Response

from wikka_port.api.call import Call, Rejected, answer, missing
from wikka_port.api.file_records import (
    ErasedVersion,
    ErasureRecord,
    FileRecord,
    Files,
    OfFile,
    RemovalRecord,
    RemovedFile,
    StoredFile,
    VersionOfFile,
)
from wikka_port.api.page_calls import check_sure, existing_page, precondition_of
from wikka_port.api.preconditions import Precondition
from wikka_port.api.records import OfPage
from wikka_port.editing.edit_forms import owner_to_keep
from wikka_port.files.conditional import etag_of, is_matched
from wikka_port.files.file_rows import CurrentFile, FileVersion, Upload
from wikka_port.files.refusals import FileRefused, NoSavedPage
from wikka_port.files.upload_form import READ_BYTES
from wikka_port.forms import take_upload
from wikka_port.handlers.download import send_version
from wikka_port.handlers.file_upload import check_words, make_file
from wikka_port.request_queues import run_as_transfer
from wikka_port.rights.erasing import GuardedErasure
from wikka_port.rights.guarded_files import GuardedFiles
from wikka_port.store import StoreUnavailable
from wikka_port.texts import _

USERS_NAMED: Final = 50  # pages that used a removed file, in the answer


def _record(page: str, name: str, one: CurrentFile | FileVersion) -> FileRecord:
    return FileRecord(
        page=page,
        name=name,
        version=one.number,
        type=one.media_type,
        size=one.size_bytes,
        sha256=one.sha256,
        width=one.width,
        height=one.height,
        alt=one.alt,
        etag=etag_of(one.sha256),
    )


def list_files(call: Call) -> Response:
    given: OfPage = call.parameters
    page = existing_page(call.site, given.name)
    found = [_record(page.name, name, one) for name, one in sorted(page.files.items()) if one.is_there]
    return answer(Files(files=found))


def _found(call: Call, page: str = "") -> tuple[GuardedFiles, str, CurrentFile | None]:
    """Return the page's files, and the own name and newest version of the file (None: there is none).

    ``page`` takes the place of the page in the parameters.  Raises Rejected (404) without the page, NotAllowed.
    """
    given: OfFile = call.parameters
    files = call.site.wiki.files(page or given.page)
    try:
        own, current = files.find(given.name)
    except NoSavedPage:
        raise missing() from None
    return files, own, current if current is not None and current.is_there else None


def _existing(call: Call) -> tuple[GuardedFiles, str, CurrentFile]:
    files, own, current = _found(call)
    if current is None:
        raise Rejected(404, _("{page} has no file {name}.", page=files.page, name=call.parameters.name[:200]))
    return files, own, current


def read_file(call: Call) -> Response:
    files, own, current = _existing(call)
    return answer(_record(files.page, own, current))


def read_content(call: Call) -> Response:
    """Send a file's content, with ranges; ``version`` selects an older one."""
    given: VersionOfFile = call.parameters
    files, own, current = _existing(call)
    one: CurrentFile | FileVersion | None = current
    if given.version is not None and given.version != current.number:
        one = files.numbered(own, given.version)
    if one is None or not one.sha256:
        raise Rejected(404, _("The file has no such version."))
    return send_version(call.request, files, own, one)


def write_content(call: Call) -> Response:
    """Store a file, or a new version of one; the body is its content.

    A page that redirects passes it on to its target, whose file the precondition and the answer are about.
    """
    given: StoredFile = call.parameters
    files, own, current = _found(call, call.site.wiki.files(given.page).page_to_fill())
    files.require_write()
    _check(precondition_of(call, takes_new=True), current)
    run_as_transfer(call.request.environ)  # before the upload is counted: the handler starts again
    take_upload(call.site, call.request)
    _check_words(call, "" if current else own)
    owner, _cookie = owner_to_keep(call.site, call.request)
    upload = files.begin(own, owner)
    try:
        writer = files.writer(upload)
        while piece := call.request.stream.read(READ_BYTES):
            writer.write_piece(piece)
        upload = writer.finish_part()
    except ClientDisconnected:
        _abandon(files, upload)
        raise Rejected(400, _("The upload broke off. Send the file again.")) from None
    except BaseException:
        _abandon(files, upload)
        raise
    replaces = current.token if current is not None else ""
    fields = {"note": given.note, "alt": given.alt, "keep-metadata": "yes" if given.metadata == "keep" else "no"}
    version = make_file(call.site, files, upload, {**fields, "replaces": replaces})
    return answer(_record(files.page, version.name, version), 200 if current else 201, etag_of(version.sha256))


def _abandon(files: GuardedFiles, upload: Upload) -> None:
    with contextlib.suppress(StoreUnavailable):
        files.abandon(upload)


def _check(before: Precondition, current: CurrentFile | None) -> None:
    """Raise Rejected (412) unless the file is as the precondition has it."""
    if before.is_for_new:
        if current is not None:
            raise Rejected(412, _("The page has a file of this name already."))
    elif current is None:
        raise Rejected(412, _("The page has no file of this name."))
    elif not before.is_for_any and not is_matched(before.match, etag_of(current.sha256)):
        raise Rejected(412, _("The file was changed meanwhile."))


def _check_words(call: Call, new_name: str = "") -> None:
    """Raise Rejected (422) if antispam does not take the note, the description or the name of a new file."""
    given = call.parameters
    try:
        check_words(call.site, call.request, {"note": given.note, "alt": getattr(given, "alt", "")}, new_name)
    except FileRefused as refused:
        raise Rejected(422, str(refused)) from None


def remove_file(call: Call) -> Response:
    """Remove a file; its versions stay, and it can be brought back in a browser.  The answer names who used it."""
    given: RemovedFile = call.parameters
    files, own, current = _existing(call)
    _check(precondition_of(call, takes_new=False), current)
    files.require_write()
    # before the removal is counted: the request may start again for it
    named, onward = files.used_on_part(own, current, limit=USERS_NAMED)
    take_upload(call.site, call.request)
    _check_words(call)
    files.remove(own, current.token, note=given.note)
    return answer(RemovalRecord(page=files.page, name=own, used_on=named, more=bool(onward)))


def erase_version(call: Call) -> Response:
    """Erase a version for good, for administrators; a second call changes nothing."""
    given: ErasedVersion = call.parameters
    page = existing_page(call.site, given.page).name
    check_sure(call, is_sure=given.sure)
    take_upload(call.site, call.request)
    moves = call.site.wiki.moves
    erased = GuardedErasure(moves).erase_file(page, given.name, given.version, reason=given.reason)
    size, others = erased.size_bytes, erased.others
    return answer(ErasureRecord(page=page, name=erased.name, version=erased.number, size=size, others=others))
