"""The page with the edit form: its messages, and always the text as it was typed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from werkzeug.wrappers import Request, Response

from wikka_port.accounts.signing_in import Refused
from wikka_port.antispam.submissions import guard_fields
from wikka_port.drafts import FormDraft
from wikka_port.editing.edit_forms import NOTHING, with_id
from wikka_port.forms import form_page
from wikka_port.markup.formats import FORMATS, WIKKA
from wikka_port.next_revision import PageTooBig
from wikka_port.page_languages import NAMES
from wikka_port.refusals import sentence, unavailable
from wikka_port.rights.judging import NotAllowed
from wikka_port.site import Site
from wikka_port.store import StoreUnavailable
from wikka_port.texts import N_, _

SAFE: Final = N_("Your text is safe in this form: please try again shortly.")
STALE: Final = N_(
    "This form could not be checked: it was open for very long, or cookies are off. "
    "Your text is below: please look it over and save again."
)
SIGNED_OUT: Final = N_("You are not signed in any more. Your text is below: sign in here to save it under your name.")
NOT_SIGNED: Final = N_(
    "Nothing is saved yet. You typed a password, but the button saves the text as {name}: sign in and save, or press "
    "it again."
)
SIGNED_IN: Final = N_("You are signed in as {name} by now. Your text is below: save again to sign it with that name.")
KEPT: Final = N_("Your text is below, for you to keep.")


def edit_form(
    site: Site, request: Request, name: str, draft: FormDraft, *, status: int = 200, problem: str = "", **values: Any
) -> Response:
    shown = {
        **NOTHING,
        "preview": None,
        "conflict": False,
        "sign_in": _offered(site, request),
        "asked_unsigned": False,
        "turned": None,
        "templates": (),
        "waiting": 0,
        "waiting_files": (),
        "is_of_new_page": is_of_new_page(request, draft),
        **guard_fields(site, request),
        **values,
    }
    return form_page(
        site,
        request,
        "edit.html",
        status=status,
        page_name=name,
        draft=with_id(replace(draft, markup=draft.markup or draft.written or _usual(site, draft))),
        formats={markup: _(called) for markup, called in FORMATS.items()},
        page_languages=NAMES,
        problem=problem,
        **shown,
    )


def is_of_new_page(request: Request, draft: FormDraft) -> bool:
    """Return whether the form was begun for a page that was not saved; after a conflict it has a revision to edit."""
    return request.form.get("new") == "1" or draft.base == 0


def _offered(site: Site, request: Request) -> str | None:
    """Return the name in the sign-in beside the text, or None if the form has no sign-in.

    The sign-in stays beside the text until somebody uses it.
    """
    return None if site.visitor.name else request.form.get("user")


def _usual(site: Site, draft: FormDraft) -> str:
    """Return the format of a form without one: a form from before formats existed, or of a new page."""
    return WIKKA if draft.base else site.settings.markup


def later(response: Response, seconds: int) -> Response:
    response.headers["Retry-After"] = str(seconds)
    return response


def unavailable_text(error: StoreUnavailable) -> str:
    """Return a sentence on why nothing was saved or kept."""
    return f"{unavailable(error)} {_(SAFE)}"


def other_person(site: Site, draft: FormDraft) -> str:
    """Return a sentence if the form was made for one user and is sent by a different one, else ""."""
    if draft.signed_as == (site.visitor.name or ""):
        return ""
    return _(SIGNED_IN, name=site.visitor.name) if site.visitor.name else _(SIGNED_OUT)


def refused_edit(
    site: Site, request: Request, name: str, draft: FormDraft, problem: Exception, **values: Any
) -> Response:
    """Return the form with the typed text, and why it was not saved.  Raises ``problem`` if that is no refusal."""
    if isinstance(problem, NotAllowed):
        return edit_form(site, request, name, draft, status=403, problem=f"{sentence(site, problem)} {_(KEPT)}")
    if isinstance(problem, StoreUnavailable):
        return later(edit_form(site, request, name, draft, status=503, problem=unavailable_text(problem)), 5)
    if not isinstance(problem, Refused | PageTooBig):
        raise problem
    status = problem.status if isinstance(problem, Refused) else 413
    return edit_form(site, request, name, draft, status=status, problem=str(problem), **values)
