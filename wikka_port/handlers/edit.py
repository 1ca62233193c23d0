"""The editor: the form, the preview, the save, and the answer when somebody else saved first.

If a save fails, the answer is a page with the text as it was typed, ready to be sent again:

    403  the form was too old, or came from a different site        409  somebody saved meanwhile
         or it was made for a different user than the one signed in now; then the page also has a sign-in
         or the visitor may not edit the page (any more)
    400, 413  the text or a field cannot be saved                   429  too many edits from one address
    503  the store is unavailable
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final
from urllib.parse import quote

from werkzeug.exceptions import MethodNotAllowed, RequestEntityTooLarge
from werkzeug.wrappers import Request, Response

from wikka_port.accounts.sign_in_form import enter
from wikka_port.accounts.signing_in import Refused
from wikka_port.antispam.submissions import note_accepted, words_refusal
from wikka_port.diffs import Row, rows
from wikka_port.drafts import FormDraft, complaint, draft_of
from wikka_port.editing.edit_forms import of_section, opened, owners_of
from wikka_port.editing.suggestions import EDIT
from wikka_port.forms import form_json, is_genuine
from wikka_port.handlers.conflict import choose, conflict_page
from wikka_port.handlers.draft import TOO_LARGE
from wikka_port.handlers.editor_page import (
    NOT_SIGNED,
    STALE,
    edit_form,
    is_of_new_page,
    later,
    other_person,
    refused_edit,
)
from wikka_port.handlers.judgement import JudgedEdit, judged_edit, supersede
from wikka_port.handlers.saving import Unmerged, forget_draft, note_network_of, save_edit, settle
from wikka_port.handlers.waiting_files import adopt, waiting_of
from wikka_port.limits import TEMPLATES_MAX
from wikka_port.markup.bounds import is_expensive
from wikka_port.markup.converting import to_markdown
from wikka_port.markup.formats import FORMATS, MARKDOWN, WIKKA
from wikka_port.markup.links import redirect_target
from wikka_port.names import normalise
from wikka_port.page_languages import ENGLISH, known
from wikka_port.page_rows import reverted_language
from wikka_port.pages import Page, PageTooBig, StoreUnavailable
from wikka_port.refusals import missing_page, sentence
from wikka_port.rendering import preview_html
from wikka_port.request_queues import run_in_slow_lane
from wikka_port.rights.judging import NotAllowed
from wikka_port.rights.rules import Privilege
from wikka_port.schema import folded
from wikka_port.site import Site, number, redirect, unindexed, wait_before_s
from wikka_port.texts import N_, _, _w
from wikka_port.urls import page_path, page_url

BY_HAND = N_(
    "Markdown is not converted to Wikka markup: the text is as it was. Change it by hand and look at the preview."
)
OF_THE_PAGE = N_("The format is that of a whole page. Open the editor of the page, not of a section, to change it.")
_TEMPLATES: Final = "Template/"


def handle_edit(site: Site, request: Request, name: str) -> Response:
    if request.method == "POST":
        return _posted(site, request, name)
    page = site.wiki.page(name)
    site.wiki.access.require(name, Privilege.WRITE)
    draft = _first_draft(site, request, page)
    if page is not None and request.args.get("section"):
        draft = of_section(site, page, draft, request.args["section"])
    begun = opened(site, request, name, page, draft)
    draft = begun.draft
    draft = replace(draft, written=(draft.markup or (page.markup if page else "")) if draft.body.strip() else "")
    draft = replace(_with_language(site, page, draft), minor=request.args.get("minor") == "1")
    offers: dict[str, Any] = {}
    if page is not None:
        offers["waiting"] = len(site.wiki.suggestions(name).of(name))
    else:
        offers["waiting_files"] = list(waiting_of(site, request, name))
        offers["templates"] = () if draft.body else _templates(site)
    return edit_form(site, request, name, draft, **offers, **begun.values)


def _posted(site: Site, request: Request, name: str) -> Response:
    draft = draft_of(request.form)
    if "choose" in request.form and is_genuine(site, request):
        chosen = choose(site, request, name)
        if isinstance(chosen, Response):
            return chosen
        draft = chosen
    elif "preview" in request.form and is_genuine(site, request):
        return _previewed(site, request, name, draft)
    if site.config.edit_notes == 2:
        draft = replace(draft, note="")
    return submit(site, request, name, draft)


def _first_draft(site: Site, request: Request, page: Page | None) -> FormDraft:
    """Return the form of a page as it is, or as an older revision was.

    A new page begins empty, or with the text of a different page.
    """
    if page is None:
        like = request.args.get("like", "")
        model = site.wiki.page(normalise(like)) if like else None
        if model is None:
            return FormDraft("")
        note = "" if _is_template(model.name) else _w("Copy of {name}", name=model.name)[: site.config.max_note_chars]
        return FormDraft(model.body, note, markup=model.markup, language=model.language)
    wanted = number(request, "revision")
    old = None if wanted is None else site.wiki.revision(page.name, wanted)
    if old is not None and old.body is not None:
        note = _w("From revision {number}", number=wanted)
        language = reverted_language(page, old)
        draft = FormDraft(old.body, note, base=page.number, base_token=page.token, markup=old.markup)
        return replace(draft, language=language)
    return FormDraft(page.body, base=page.number, base_token=page.token, markup=page.markup)


def _with_language(site: Site, page: Page | None, draft: FormDraft) -> FormDraft:
    """Fill in the page's language, or else the one in which a save would store it."""
    was = page.language if page else ""
    usual = was or known(site.config.language) or ENGLISH
    return replace(draft, language=draft.language or usual, language_was=was or (ENGLISH if usual == ENGLISH else ""))


def submit(site: Site, request: Request, name: str, draft: FormDraft, *, was_stored: bool = False) -> Response:
    """Save an edit and redirect to the page; if it cannot be saved, answer with the form and its text.

    ``was_stored`` marks the text of an older revision, which may be over a bound (imported texts are kept whole).
    """
    if "signin" in request.form and is_genuine(site, request):
        return _signed_in(site, request, name, draft, was_stored=was_stored)
    changed = other_person(site, draft)
    if changed:
        return edit_form(site, request, name, draft, status=403, problem=changed, sign_in=draft.signed_as)
    if not is_genuine(site, request):
        return edit_form(site, request, name, draft, status=403, problem=_(STALE))
    if request.form.get("password") and not site.visitor.name and request.form.get("save") != "unsigned":
        problem = _(NOT_SIGNED, name=site.visitor.signature)
        return edit_form(site, request, name, draft, status=400, problem=problem, asked_unsigned=True)
    return _submit(site, request, name, draft, was_stored=was_stored)


def _signed_in(site: Site, request: Request, name: str, draft: FormDraft, *, was_stored: bool) -> Response:
    """Handle a form with a sign-in beside the text: sign in and save; if that fails, return the form with its text."""
    run_in_slow_lane(request.environ)  # it hashes a password
    try:
        entered = enter(site, request)
    except (Refused, StoreUnavailable) as problem:
        return refused_edit(site, request, name, draft, problem, sign_in=request.form.get("user", ""))
    return entered.let_in(request, _submit(entered.site, request, name, draft, was_stored=was_stored))


def _submit(site: Site, request: Request, name: str, draft: FormDraft, *, was_stored: bool) -> Response:
    other = _turned(site, request, name, draft)
    if other is not None:
        return other
    refused = complaint(draft, site.config)
    if refused is not None:
        return edit_form(site, request, name, draft, status=refused[0], problem=refused[1])
    wait_s = wait_before_s(site.pace.edits, site, request)
    if wait_s > 0:
        problem = _("These were many edits in a short time. Please wait {wait_s} s, then save again.", wait_s=wait_s)
        return later(edit_form(site, request, name, draft, status=429, problem=problem), wait_s)
    try:
        if was_stored and (why := words_refusal(site, request, draft.note)):
            raise Refused(why, 400)
        edit = JudgedEdit(draft) if was_stored else judged_edit(site, request, name, draft)
        if edit.answer is not None:
            return edit.answer
        owners = owners_of(site, request) if is_of_new_page(request, draft) else []
        saved = save_edit(site, name, edit.draft, was_stored=was_stored, stored=edit.stored, owners=owners)
    except Unmerged as conflict:
        return conflict_page(site, request, name, conflict)
    except (NotAllowed, PageTooBig, Refused, StoreUnavailable) as problem:
        return refused_edit(site, request, name, draft, problem)
    forget_draft(site, request, name, draft)
    supersede(site, request, name, EDIT, draft.id)
    if owners:
        adopt(site, name, owners)
    if saved.saved is not None:
        note_network_of(site, request, name, saved.saved)
        note_accepted(site)
        settle(site, saved.saved)
    return _to_page(name, draft, saved.merged)


def _turned(site: Site, request: Request, name: str, draft: FormDraft) -> Response | None:
    """Return a form with the text converted if a different format was chosen, so that its author sees it before a save.

    Returns None if there is nothing to convert.
    """
    if not draft.written or draft.written == draft.markup or not draft.markup:
        return None
    if is_expensive(draft.body, markup=draft.written):
        run_in_slow_lane(request.environ)
    try:
        page = site.wiki.page(name)
    except (NotAllowed, StoreUnavailable):
        page = None  # the save will report it
    form = turned(draft, autolink=site.autolinks(page, draft.written), after=site.autolinks(page, draft.markup))
    return None if form is None else edit_form(site, request, name, form.draft, turned=form)


def _to_page(name: str, draft: FormDraft, merged: str) -> Response:
    """Redirect to the saved page; ``merged`` makes the page report a merge."""
    shows_itself = "redirect" in draft.body.lower() and redirect_target(draft.body, markup=draft.markup) is not None
    # the editor wants to see what he wrote
    path = page_path(name, redirect="no" if shows_itself else "", merged=merged)
    return redirect(f"{path}#{quote(draft.section)}" if draft.section else path)


def _previewed(site: Site, request: Request, name: str, draft: FormDraft) -> Response:
    try:
        page = site.wiki.page(name)
        site.wiki.access.require(name, Privilege.WRITE)
    except NotAllowed as refused:
        return refused_edit(site, request, name, draft, refused)
    except StoreUnavailable:
        page = None
    other = _turned(site, request, name, draft)
    if other is not None:
        return other
    markup = draft.markup or (page.markup if page else site.settings.markup)
    autolink = site.autolinks(page, markup)
    preview = _preview(site, request, name, draft, autolink=autolink, markup=markup)
    changed = other_person(site, draft)
    values: dict[str, Any] = {"problem": changed, "sign_in": draft.signed_as} if changed else {}
    return edit_form(site, request, name, draft, preview=preview, **values)


def _preview(site: Site, request: Request, name: str, draft: FormDraft, *, autolink: bool, markup: str) -> str:
    whole, waiting = not draft.section, partial(waiting_of, site, request, name)
    return preview_html(site, name, draft.body, autolink=autolink, markup=markup, whole=whole, waiting=waiting)


def handle_preview(site: Site, request: Request, name: str) -> Response:
    """Answer with the HTML that a page of this text would have, for the editor's script (``docs/wiki-editor.md``)."""
    if request.method != "POST":
        raise MethodNotAllowed(["POST"])
    try:
        form = request.form
    except RequestEntityTooLarge:
        return form_json(site, request, {"error": _(TOO_LARGE)}, status=413, fresh=False)
    if not is_genuine(site, request):
        return form_json(site, request, {"error": _(STALE)}, status=403, fresh=True)
    wait_s = wait_before_s(site.pace.previews, site, request)
    if wait_s:
        problem = _("Previews came very often. The next one is there in {wait_s} s.", wait_s=wait_s)
        values = {"error": problem, "retry": wait_s}
        return later(form_json(site, request, values, status=429, fresh=False), wait_s)
    draft = draft_of(form)
    refused = complaint(draft, site.config)
    if refused is not None and refused[0] == 413:
        return form_json(site, request, {"error": refused[1]}, status=413, fresh=False)
    if is_expensive(draft.body, markup=draft.written or draft.markup):
        run_in_slow_lane(request.environ)
    return _preview_answer(site, request, normalise(form.get("name", "")), draft)


def _preview_answer(site: Site, request: Request, name: str, draft: FormDraft) -> Response:
    """Return the preview to a visitor who may edit the page or suggest a change, else a refusal.

    While the store is unavailable no right is checked, and the site's defaults replace the page's settings.
    """
    try:
        page = site.wiki.page(name)
        if not site.wiki.access.can(name).suggest:
            site.wiki.access.require(name, Privilege.WRITE)
    except NotAllowed as not_allowed:
        return form_json(site, request, {"error": sentence(site, not_allowed)}, status=403, fresh=False)
    except StoreUnavailable:
        page = None
    markup = draft.written or draft.markup or (page.markup if page else site.settings.markup)
    autolink = site.autolinks(page, markup)
    html = _preview(site, request, name, draft, autolink=autolink, markup=markup)
    return unindexed(html, "text/html", cache="no-store")


def handle_clone(site: Site, request: Request, name: str) -> Response:
    """Redirect to the editor of ``?name=New page`` with the text of this page; without a name, show a form for it."""
    wanted = request.args.get("name", "").strip()
    if not wanted:
        page = site.wiki.page(name)
        return missing_page(site, name) if page is None else site.html("clone.html", page_name=name, page=page)
    return redirect(page_path(normalise(wanted), "edit", like=name), status=302)


def handle_new_page(site: Site, request: Request, name: str) -> Response:
    """Redirect to the page ``?name=`` if it exists, else to its editor, with the text of the page ``?template=``."""
    new = normalise(request.args.get("name", ""))
    template = request.args.get("template", "").strip()
    like = normalise(template) if template else ""
    path = page_url(new) if site.wiki.existing([new]) else page_path(new, "edit", like=like)
    return redirect(path, status=302)


@dataclass(frozen=True, slots=True)
class Turned:
    """A text whose format was changed, and which is not saved yet."""

    draft: FormDraft
    rows: list[Row]  # the difference; [] if the text is unchanged
    lost: tuple[str, ...]
    problem: str  # why the text was not converted; "": it was converted

    @property
    def name(self) -> str:
        return _(FORMATS[self.draft.markup])


def turned(draft: FormDraft, *, autolink: bool, after: bool) -> Turned | None:
    """Convert the text to the chosen format; return None if it has that format, as the text of a new page has.

    ``autolink`` tells whether CamelCase words are links in the text, ``after`` whether they will be.
    """
    if not draft.markup or not draft.written or draft.written == draft.markup:
        return None
    if draft.section:
        return Turned(replace(draft, markup=draft.written), [], (), _(OF_THE_PAGE))
    if (draft.written, draft.markup) != (WIKKA, MARKDOWN):
        return Turned(replace(draft, written=draft.markup), [], (), _(BY_HAND))
    text, lost = to_markdown(draft.body, autolink=autolink, after=after)
    return Turned(replace(draft, body=text, written=MARKDOWN), rows(draft.body, text), lost, "")


def _is_template(name: str) -> bool:
    return folded(name).startswith(folded(_TEMPLATES))


def _templates(site: Site) -> list[str]:
    """Return the names of the templates that the visitor may read, up to TEMPLATES_MAX.  Raises StoreUnavailable."""
    return site.wiki.names(prefix=_TEMPLATES, limit=TEMPLATES_MAX)
