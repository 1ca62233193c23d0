"""The files of a page: listed, added, described, replaced, removed and brought back.

    /Name/files             all files and the form that adds some; POST adds them (``file_upload``), begins an upload
                            in parts (``upload``), or does what a form of the list says (``waiting_files``)
    /Name/file?file=...     one file and its versions; POST describes it, removes it, brings a version back, or
                            for administrators erases one

A removed file keeps its versions, so nothing is lost; every change is a version of its own, with author and time.
"""

from __future__ import annotations

import logging
from typing import Final

from werkzeug.wrappers import Request, Response

from wikka_port.accounts.signing_in import Refused
from wikka_port.drafts import number_in
from wikka_port.editing.edit_forms import owner_to_keep, owners_of, remember
from wikka_port.files.content_types import ALL
from wikka_port.files.file_html import is_picture
from wikka_port.files.file_rows import (
    ALT_CHARS_MAX,
    NOT_SAVED,
    WAITING_MS,
    CurrentFile,
    lookup_key,
)
from wikka_port.files.refusals import FileRefused, MissingContent
from wikka_port.files.stored_files import VERSIONS_MAX
from wikka_port.forms import answer_form, form_page, take_upload
from wikka_port.handlers.deletion import SURE_TO_ERASE
from wikka_port.handlers.file_upload import Received, check_words, receive
from wikka_port.handlers.upload import begin_upload
from wikka_port.handlers.waiting_files import (
    DESCRIBED_MAX,
    NOTHING_CHOSEN,
    OF_LIST,
    URLENCODED,
    change_list,
    files_of_owner,
    saved_files,
    typed_words,
)
from wikka_port.refusals import LOST, LOST_STATUS, missing_file, missing_page
from wikka_port.rights.erasing import GuardedErasure
from wikka_port.rights.guarded_files import GuardedFiles
from wikka_port.rights.rules import Privilege
from wikka_port.site import Site, number, redirect
from wikka_port.texts import _, _n, _w
from wikka_port.urls import file_path, page_path

log = logging.getLogger(__name__)

_DAY_MS: Final = 24 * 3600 * 1000
USERS_LISTED: Final = 50  # pages that use a file, on the file's page; a list of its own has all


def handle_files(site: Site, request: Request, name: str) -> Response:
    """List a page's files; on POST add those of the form, or do what the form of the list says.

    A page that is not saved yet has a list for those who may make it: of their own files that wait for it.
    """
    page = site.wiki.page(name)
    if page is None and not site.wiki.access.can(name).write:
        return missing_page(site, name)
    if request.method != "POST":
        return _files_page(site, request, files_of_owner(site, request, name), Received())
    if "Tus-Resumable" in request.headers:
        return begin_upload(site, request, name)
    owner, cookie = owner_to_keep(site, request)
    owners = {owner, *owners_of(site, request)}
    if request.mimetype == URLENCODED and any(one in request.form for one in OF_LIST):
        return _changed_list(site, request, site.wiki.files(name, owners))
    name = site.wiki.files(name).page_to_fill()
    received = receive(site, request, name, owner)
    if received.status != 200:
        response = _files_page(site, request, site.wiki.files(name, owners), received)
    elif len(received.added) == 1 and received.added[0].number != NOT_SAVED:
        response = redirect(page_path(name, "file", file=received.added[0].name))
    else:
        response = redirect(page_path(name, "files", added=len(received.added)))
    remember(request, response, cookie if page is None else "")
    return response


def _changed_list(site: Site, request: Request, files: GuardedFiles) -> Response:
    def form(status: int, problem: str) -> Response:
        return _files_page(site, request, files, Received(status=status, problem=problem))

    def change() -> Response:
        done = change_list(site, request, files)
        return _files_page(site, request, files, Received(), done=done)

    return answer_form(site, request, form, change)


def _files_page(site: Site, request: Request, files: GuardedFiles, received: Received, *, done: str = "") -> Response:
    is_saved, may_write = site.wiki.access.is_there(files.page), site.wiki.access.can(files.page).write
    there = sorted(saved_files(files).items(), key=lambda one: lookup_key(one[0])) if is_saved else []
    waiting = files.waiting.current()
    text, types = request.args.get("added", ""), site.config.files.types
    added = int(text) if text.isascii() and text.isdigit() and len(text) < 4 else 0
    if added and received.status == 200 and not done:
        done = _n("{n} file is added.", "{n} files are added.", added)
    described = [*waiting.items(), *((name, one) for name, one in there if one.is_there and not one.alt)]
    return form_page(
        site,
        request,
        "files.html",
        status=received.status,
        page_name=files.page,
        is_saved=is_saved,
        waiting=waiting,
        waiting_days=WAITING_MS // _DAY_MS,
        undescribed=[(name, one) for name, one in described if is_picture(one)][:DESCRIBED_MAX] if may_write else [],
        typed=typed_words(request) if received.problem else {},
        is_new=bool(added),
        files=[(file, one) for file, one in there if one.is_there],
        removed=[(file, one) for file, one in there if not one.is_there],
        done=done,
        received=received,
        note=received.fields.get("note", ""),
        alt=received.fields.get("alt", ""),
        is_replacing=received.fields.get("replace") == "yes",
        keeps_metadata=received.fields.get("keep-metadata") == "yes",
        file_bytes_max=site.config.files.bytes_max,
        accepted="" if ALL in types else ",".join(f".{ending}" for ending in sorted(types)),
    )


def handle_old_download(site: Site, request: Request, name: str) -> Response:
    """Lead WikkaWiki's address of a file (``/Name/files.xml?action=download&file=...``) to the file's own."""
    site.wiki.access.require(name, Privilege.READ)
    file = request.args.get("file", "").rpartition("/")[2]
    if not file:
        return redirect(page_path(name, "files"), 301)
    is_page = request.args.get("action", "download") != "download"
    return redirect(page_path(name, "file", file=file) if is_page else file_path(name, file), 301)


def handle_file(site: Site, request: Request, name: str) -> Response:
    """Show one file with its versions; on POST describe it, remove it, bring a version back, or erase one."""
    if site.wiki.page(name) is None:
        return missing_page(site, name)
    files = site.wiki.files(name)
    wanted = request.args.get("file", "")
    file, current = files.find(wanted)
    if current is None:
        return missing_file(site, name, wanted)

    def form(status: int, problem: str) -> Response:
        return _file_page(site, request, name, files, file, current, status=status, problem=problem)

    def change() -> Response:
        try:
            if "erase" in request.form:
                return _erase(site, request, name, file)
            _change(site, request, files, file)
        except FileRefused as refused:
            raise Refused(str(refused), 409) from None
        except MissingContent as lost:
            log.error("%s of %s cannot be brought back: %s", file, name, lost)
            raise Refused(_(LOST), LOST_STATUS) from None
        return redirect(page_path(name, "file", file=file))

    return answer_form(site, request, form, change)


def _change(site: Site, request: Request, files: GuardedFiles, file: str) -> None:
    """Do what the pressed button says.  Raises Refused, FileConflict, NotAllowed."""
    take_upload(site, request)
    fields = request.form
    seen = fields.get("seen", "")  # the token of the version that the form was made for
    note = fields.get("note", "")[: site.config.max_note_chars]
    check_words(site, request, fields)
    if "describe" in fields:
        files.describe(file, seen, alt=" ".join(fields.get("alt", "").split())[:ALT_CHARS_MAX], note=note)
    elif "remove" in fields:
        files.remove(file, seen, note=note)
    elif "restore" in fields:
        old = files.numbered(file, number_in(fields, "restore"))
        if old is None or not old.sha256:
            raise Refused(_("The file has no such version."), 404)
        files.restore(file, seen, old, note=note or _w("Version {number} is back", number=old.number))
    else:
        raise Refused(_(NOTHING_CHOSEN), 400)


def _erase(site: Site, request: Request, name: str, file: str) -> Response:
    """Erase a version for good.  Raises Refused, FileRefused, NotAllowed."""
    wanted = number_in(request.form, "version")
    if request.form.get("sure") != "yes":
        site.wiki.moves.require_site()
        raise Refused(_(SURE_TO_ERASE), 409)
    reason = request.form.get("note", "")[: site.config.max_note_chars]
    erased = GuardedErasure(site.wiki.moves).erase_file(name, file, wanted, reason=reason)
    return redirect(page_path(name, "file", file=file, erased=wanted, others=erased.others))


def _said_of_erased(request: Request, files: GuardedFiles, file: str) -> str:
    """Return the sentence that a version was erased, if the address says so and it was, else ""."""
    given = number(request, "erased")
    version = files.numbered(file, given) if given else None
    if version is None or not version.is_erased:
        return ""
    others = request.args.get("others", "0")
    said = _("Version {number} is erased.", number=given)
    if not (others.isascii() and others.isdigit() and len(others) < 7) or others == "0":
        return said
    kept = _n("{n} other version keeps these bytes.", "{n} other versions keep these bytes.", int(others))
    return f"{said} {kept}"


def _file_page(
    site: Site,
    request: Request,
    name: str,
    files: GuardedFiles,
    file: str,
    current: CurrentFile,
    *,
    status: int,
    problem: str,
) -> Response:
    versions = files.versions(file, below=number(request, "below"))
    has_older = len(versions) == VERSIONS_MAX and versions[-1].previous
    users, more = files.used_on_part(file, current, limit=USERS_LISTED)
    return form_page(
        site,
        request,
        "file.html",
        status=status,
        page_name=name,
        file=file,
        current=current,
        versions=versions,
        older=page_path(name, "file", file=file, below=versions[-1].number) if has_older else "",
        users=users,
        onward=page_path(name, "backlinks", file=file) if more else "",
        problem=problem,
        done=_said_of_erased(request, files, file) if status == 200 else "",
        is_erasing="erase" in request.form,
        version=request.form.get("version", ""),
        is_sure=request.form.get("sure") == "yes",
        alt=request.form.get("alt", current.alt) if problem else current.alt,
        note=request.form.get("note", "")[:ALT_CHARS_MAX] if problem else "",
        file_bytes_max=site.config.files.bytes_max,
    )
