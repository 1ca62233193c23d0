"""Forms of the list of files, and files that wait for the first save of their page (``files.waiting``).

    describe     file, seen, alt, each as often as there are pictures: what each of them shows.  ``seen`` is the token
                 that the form was made for; without it only a picture that has no description gets one
    drop         throws away a file that waits
    adopt        makes the visitor's files that wait the page's, which is saved by now

A save of a new page adopts them by itself.  If a crash comes between, or the store does not answer, the loop of the
sweep does it (``rights.adoption``).  If the page has a file of the same name by then, they go on waiting, and the page
of files shows them to their owner with a button.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Final

from werkzeug.datastructures import MultiDict
from werkzeug.wrappers import Request

from wikka_port.accounts.signing_in import Refused
from wikka_port.editing.edit_forms import owners_of
from wikka_port.files.file_html import Files
from wikka_port.files.file_rows import ALT_CHARS_MAX
from wikka_port.files.refusals import FileRefused, NoSavedPage, NoSuchFile
from wikka_port.forms import take_upload
from wikka_port.handlers.file_upload import check_words
from wikka_port.rights.guarded_files import GuardedFiles
from wikka_port.rights.judging import NotAllowed
from wikka_port.site import Site
from wikka_port.store import StoreUnavailable
from wikka_port.texts import N_, _, _n

log = logging.getLogger(__name__)

DESCRIBED_MAX: Final = 20  # pictures of one form
URLENCODED: Final = "application/x-www-form-urlencoded"
OF_LIST: Final = ("describe", "drop", "adopt")
NOTHING_CHOSEN: Final = N_("This form says nothing to do. Go back, and use one of its buttons.")


def files_of_owner(site: Site, request: Request, name: str) -> GuardedFiles:
    """Return the files of a page that may not be saved yet, as the request's visitor has them.  Raises NotAllowed."""
    return site.wiki.files(name, owners_of(site, request))


def saved_files(files: GuardedFiles) -> Files:
    """Return the files of the page itself; none if it is not saved."""
    try:
        return {name: one for name, one in files.current().items() if one.number}
    except NoSavedPage:
        return {}


def waiting_of(site: Site, request: Request, name: str) -> Files:
    """Return the visitor's files that wait for a page; none of a page that he may not read."""
    try:
        return files_of_owner(site, request, name).waiting.current()
    except NotAllowed:
        return {}


def adopt(site: Site, name: str, owners: Collection[str]) -> None:
    """Make what waits for a page its files.  A failure is only logged, since the page is saved: they go on waiting."""
    try:
        refused = site.wiki.files(name, owners).waiting.adopt()
    except (NotAllowed, StoreUnavailable) as problem:
        log.warning("files that wait for %s go on waiting: %s", name, problem)
        return
    for file, why in refused.items():
        log.info("%s, which waits for %s, goes on waiting: %s", file, name, why)


def typed_words(request: Request) -> dict[str, str]:
    """Return what a refused form says of pictures, by name, so that it comes back as it was filled in."""
    if request.mimetype != URLENCODED:  # a form with files is read as it arrives
        return {}
    names, alts = request.form.getlist("file"), request.form.getlist("alt")
    return dict(zip(names, alts, strict=True)) if "describe" in request.form and len(names) == len(alts) else {}


def change_list(site: Site, request: Request, files: GuardedFiles) -> str:
    """Do what a form of the list of files says; return what was done.  Raises Refused, NotAllowed."""
    fields = request.form
    files.require_write()
    take_upload(site, request)
    try:
        if "describe" in fields:
            n = _described(site, request, files, fields)
            return _n("{n} description is saved.", "{n} descriptions are saved.", n)
        if "drop" in fields:
            files.waiting.drop(fields.get("file", ""), fields["drop"])
            return _("{name} is thrown away.", name=fields.get("file", "")[:200])
        if "adopt" in fields:
            return _adopted(files)
    except FileRefused as refused:
        raise Refused(str(refused), 409) from None
    raise Refused(_(NOTHING_CHOSEN), 400)


def _adopted(files: GuardedFiles) -> str:
    refused = files.waiting.adopt()
    if refused:
        raise Refused(" ".join(refused.values()), 409)
    return _("They are files of the page now.")


def _described(site: Site, request: Request, files: GuardedFiles, fields: MultiDict[str, str]) -> int:
    """Describe each picture of the form; return how many were changed.  Raises Refused, naming each that was not."""
    names, tokens, alts = fields.getlist("file"), fields.getlist("seen"), fields.getlist("alt")
    tokens = tokens or [""] * len(names)
    if not names or len(names) > DESCRIBED_MAX or not len(names) == len(tokens) == len(alts):
        raise Refused(_(NOTHING_CHOSEN), 400)
    waiting, saved = files.waiting.current(), saved_files(files)
    changed, problems = 0, []
    for name, token, typed in zip(names, tokens, alts, strict=True):
        alt = " ".join(typed.split())[:ALT_CHARS_MAX]
        try:
            check_words(site, request, {"alt": alt})
            changed += _describe(files, name, token, alt, (waiting, saved))
        except FileRefused as refused:
            problems.append(str(refused))
    if problems:
        raise Refused(" ".join(problems), 409)
    return changed


def _describe(files: GuardedFiles, name: str, token: str, alt: str, held: tuple[Files, Files]) -> bool:
    """Describe a picture that waits, or one of the page; return False if there is nothing to change."""
    waiting, saved = held
    one = waiting.get(name)
    if one is not None and (one.token == token or (not token and name not in saved)):
        if one.alt == alt or (not token and one.alt):
            return False
        files.waiting.describe(name, one.token, alt)
        return True
    current = saved.get(name)
    if current is None or not current.is_there:
        raise NoSuchFile(files.page, name[:200])
    if alt in ("", current.alt) or (not token and current.alt):
        return False
    files.describe(name, token or current.token, alt=alt)
    return True
