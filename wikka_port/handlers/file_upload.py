"""A form with files, stored as it arrives: no file is whole in memory, and none lies on disk before the store has it.

The fields that decide stand before the files (``files.upload_form``): the token, whether a file of the same name is
replaced, the note, the description.  So somebody who may not upload gets the answer before his file is read.

A form may have several files.  Each is stored, checked and committed before the next one is read; a refused file does
not stop the others, and the answer names both kinds.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from werkzeug.exceptions import ClientDisconnected, RequestEntityTooLarge
from werkzeug.wrappers import Request

from wikka_port.accounts.signing_in import Refused
from wikka_port.antispam.submissions import words_refusal
from wikka_port.files.content_types import NotAccepted
from wikka_port.files.file_names import InvalidFileName
from wikka_port.files.file_rows import ALT_CHARS_MAX, FileVersion, Upload
from wikka_port.files.refusals import FileRefused, NoSavedPage
from wikka_port.files.upload_form import (
    READ_BYTES,
    BadForm,
    FileBegins,
    FileEnds,
    FilePiece,
    UploadForm,
)
from wikka_port.files.uploading import UploadWriter
from wikka_port.forms import STALE_FORM, is_genuine
from wikka_port.limits import FORM_FILES_MAX
from wikka_port.refusals import name_refusal
from wikka_port.request_queues import run_as_transfer
from wikka_port.rights.guarded_files import GuardedFiles
from wikka_port.rights.judging import NotAllowed
from wikka_port.site import Site, wait_before_s
from wikka_port.store import StoreUnavailable
from wikka_port.texts import N_, _

log = logging.getLogger(__name__)

_TAKEN: Final = N_("The page has a file of this name. Tick the box to replace it, or give the new one another name.")
_BROKEN_OFF: Final = N_("The upload broke off. Files that were whole by then are there; send the others again.")


def check_words(site: Site, request: Request, fields: Mapping[str, str], new_name: str = "") -> None:
    """Raise FileRefused if antispam does not take the note or the description of a file, or the name of a new one.

    Raises StoreUnavailable.
    """
    name = new_name.rpartition(".")[0] or new_name  # its ending would end the name of a site
    why = words_refusal(site, request, fields.get("note", ""), fields.get("alt", ""), name=name)
    if why and name:
        raise FileRefused(_("Change the name, the note or the description of the file. {why}", why=why))
    if why:
        raise FileRefused(_("Change the note or the description of the file. {why}", why=why))


def new_page_refusal(site: Site, name: str) -> str:
    """Return why no page can be made under the name, "" if one can, or if there is one."""
    return "" if site.wiki.access.is_there(name) else name_refusal(site, name)


class NameTaken(FileRefused):
    """The page has a file of the name, and the form does not say that it is to be replaced."""

    def __init__(self) -> None:
        super().__init__(_(_TAKEN))


@dataclass(frozen=True, slots=True)
class Received:
    """The outcome of a form with files."""

    added: Sequence[FileVersion] = ()
    refused: Sequence[tuple[str, str]] = ()  # names as given, and why
    fields: Mapping[str, str] = field(default_factory=dict)
    status: int = 200
    problem: str = ""  # of the form itself, "" if there is none


def receive(site: Site, request: Request, name: str, owner: str) -> Received:
    """Store the files of a form for ``owner``; of a page that is not saved yet they wait for it.

    Raises NotAllowed, StoreUnavailable; the files before that are stored.
    """
    if request.mimetype == "application/x-www-form-urlencoded":  # a form without files
        problem = Refused(_("No file was chosen."), 400) if is_genuine(site, request) else Refused(_(STALE_FORM), 403)
        return Received(fields=request.form, status=problem.status, problem=str(problem))
    site.wiki.files(name).require_write()  # before a byte of the body is read
    run_as_transfer(request.environ)
    try:
        form = UploadForm(request.headers.get("Content-Type", ""))
        receiver = _Receiver(site, request, name, owner, form)
    except BadForm as bad:
        return Received(status=400, problem=_bad_form(bad))
    status, problem_text = 200, ""
    with contextlib.closing(receiver):
        try:
            while piece := request.stream.read(READ_BYTES):
                receiver.feed(piece)
            receiver.finish()
        except BadForm as bad:
            status, problem_text = 400, _bad_form(bad)
        except ClientDisconnected:
            status, problem_text = 400, _(_BROKEN_OFF)
        except RequestEntityTooLarge:
            status = 413
            problem_text = _("These are more bytes than one form may bring. Send fewer files at once.")
        except Refused as refused:
            status, problem_text = refused.status, str(refused)
    status = 400 if status == 200 and receiver.refused else status
    return Received(receiver.added, receiver.refused, receiver.fields, status, problem_text)


def _bad_form(bad: BadForm) -> str:
    return f"{_('This was no form of the wiki, or not a whole one.')} ({bad})"


class _Receiver:
    """Stores one form's files, one after the other."""

    def __init__(self, site: Site, request: Request, name: str, owner: str, form: UploadForm) -> None:
        self._site, self._request, self._name, self._owner, self._form = site, request, name, owner, form
        self._files: GuardedFiles | None = None  # None: no file has begun, so nothing is checked yet
        self._given = ""  # the name of the file that is being read
        self._fields: dict[str, str] = {}
        self._writer: UploadWriter | None = None  # None: no file is being read, or it is refused already
        self._upload: Upload | None = None  # given up unless it is committed
        self.added: list[FileVersion] = []
        self.refused: list[tuple[str, str]] = []

    @property
    def fields(self) -> Mapping[str, str]:
        """The fields so far."""
        return self._form.fields

    def feed(self, piece: bytes) -> None:
        for event in self._form.feed(piece):
            match event:
                case FileBegins():
                    self._begin(event)
                case FilePiece(content) if self._writer is not None:
                    self._write(self._writer, content)
                case FileEnds() if self._writer is not None and self._files is not None:
                    self._commit(self._files, self._writer)
                case _:
                    pass  # of a file that is refused: its bytes are passed over

    def finish(self) -> None:
        """Raises BadForm, Refused, NotAllowed."""
        self._form.finish()
        if self._files is None:
            self._check(self._form.fields)
        if not self.added and not self.refused:
            raise Refused(_("No file was chosen."), 400)

    def close(self) -> None:
        """Give up the file that is being read, if any; the sweep takes what cannot be removed now."""
        self._writer = None
        upload, self._upload = self._upload, None
        if upload is not None and self._files is not None:
            with contextlib.suppress(StoreUnavailable):
                self._files.abandon(upload)

    def _check(self, fields: dict[str, str]) -> GuardedFiles:
        """Return the page's files.  Raises Refused, NotAllowed."""
        if not is_genuine(self._site, self._request, fields.get("csrf", "")):
            raise Refused(_(STALE_FORM), 403)
        files = self._site.wiki.files(self._name, [self._owner])
        files.require_write()
        return files

    def _begin(self, begins: FileBegins) -> None:
        self._given, self._fields = begins.name, begins.fields
        if self._files is None:
            self._files = self._check(begins.fields)
        if not begins.name:
            return  # an input for files in which none was chosen
        if len(self.added) + len(self.refused) >= FORM_FILES_MAX:
            raise Refused(_("A form takes {most} files at once.", most=FORM_FILES_MAX), 400)
        wait_s = wait_before_s(self._site.pace.uploads, self._site, self._request)
        if wait_s:
            self._refuse(_("Too many files came at once. The next one can come in {wait_s} s.", wait_s=wait_s))
            return
        try:
            if why := new_page_refusal(self._site, self._name):
                raise FileRefused(why)
            replaced = replaced_version(self._files, self._fields, begins.name)
            check_words(self._site, self._request, self._fields, "" if replaced else begins.name)
            self._upload = self._files.begin(begins.name, self._owner)
            self._writer = self._files.writer(self._upload)
        except (InvalidFileName, FileRefused) as refused:
            self._refuse(str(refused))

    def _write(self, writer: UploadWriter, content: bytes) -> None:
        try:
            writer.write_piece(content)
        except FileRefused as refused:
            self._refuse(str(refused))

    def _commit(self, files: GuardedFiles, writer: UploadWriter) -> None:
        try:
            version = make_file(self._site, files, writer.finish_part(), self._fields)
        except (NotAccepted, InvalidFileName, FileRefused) as refused:
            self._refuse(str(refused))
        else:
            self._writer = self._upload = None
            self.added.append(version)

    def _refuse(self, why: str) -> None:
        self.refused.append((self._given, why))
        self.close()


def replaced_version(files: GuardedFiles, fields: Mapping[str, str], name: str) -> str:
    """Return the token of the version that a file of this name replaces, "" if it is new.  Raises NameTaken."""
    if fields.get("replaces"):
        return fields["replaces"]
    try:
        _own, current = files.find(name)
    except NoSavedPage:  # nothing waits for it either; the next step says whether it may
        return ""
    if current is None or not current.is_there:
        return ""
    if fields.get("replace") != "yes":
        raise NameTaken
    return current.token


def make_file(site: Site, files: GuardedFiles, upload: Upload, fields: Mapping[str, str]) -> FileVersion:
    """Make a whole upload a file of its page, or let it wait for the page; ``fields`` are those of the form.

    Throws the upload away if it is refused: raises NotAccepted, InvalidFileName, FileRefused, NotAllowed.
    """
    try:
        if upload.state == "open":
            upload = files.settle(upload, keep_metadata=fields.get("keep-metadata") == "yes")
        return files.commit(
            upload,
            note=fields.get("note", "")[: site.config.max_note_chars],
            alt=" ".join(fields.get("alt", "").split())[:ALT_CHARS_MAX],
            replaces=replaced_version(files, fields, upload.name),
        )
    except (NotAccepted, InvalidFileName, FileRefused, NotAllowed):
        with contextlib.suppress(StoreUnavailable):
            files.abandon(upload)
        raise
