"""The content of an edit form (pure): read, checked, never lost.

Knows nothing of HTTP and of the store.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from wikka_port.config import WikiConfig
from wikka_port.editing.kept_drafts import is_id
from wikka_port.markup.formats import is_format
from wikka_port.page_languages import known
from wikka_port.schema import is_token
from wikka_port.texts import _, figure

_CONTROLS: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_SECTION_CHARS: Final = 500  # of an id; a heading's is shorter
_UNWANTED: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")  # no sense in a text, and not allowed in XML


@dataclass(frozen=True, slots=True)
class FormDraft:
    """The fields of an edit form.

    A language that the author left unchanged is no choice: somebody else may have chosen one meanwhile.
    """

    body: str
    note: str = ""
    signed_as: str = ""  # the account that was signed in when the form was made; "": none
    base: int = 0  # the revision that the edit began from; 0: a new page
    base_token: str = ""  # the token of ``base``, unique among all pages that had the name; "": the form has none
    section: str = ""  # id of the heading of the section that ``body`` is; "": the whole page
    markup: str = ""  # the format that was chosen; "": the page's, or the site's for a new page
    written: str = ""  # the format that ``body`` is written in; "": the chosen one
    minor: bool = False  # marked as one that lists of changes may leave out
    language: str = ""  # the language that was chosen (``page_languages``); "": the form does not say
    language_was: str = ""  # the page's when the form was made; "": not chosen
    id: str = ""  # of the form, under which it keeps drafts (``editing.kept_drafts``); "": it keeps none

    @property
    def new_language(self) -> str:
        """The language that the author chose for the page; "" keeps the page's language."""
        return self.language if self.language != self.language_was else ""


def draft_of(form: Mapping[str, str]) -> FormDraft:
    """Return the draft in a form that a browser sent; line ends become ``\\n``."""
    return FormDraft(
        body=_UNWANTED.sub("", form.get("body", "").replace("\r\n", "\n").replace("\r", "\n")),
        note=" ".join(_CONTROLS.sub(" ", form.get("note", "")).split()),
        signed_as=" ".join(_CONTROLS.sub(" ", form.get("as", "")).split()),
        base=number_in(form, "base"),
        base_token=token_in(form, "base_token"),
        section=_CONTROLS.sub("", form.get("section", ""))[:_SECTION_CHARS],
        markup=_format_in(form, "format"),
        minor=form.get("minor", "") == "1",
        written=_format_in(form, "written"),
        language=known(form.get("language", "")),
        language_was=known(form.get("language_was", "")),
        id=draft_id if is_id(draft_id := form.get("draft", "")) else "",
    )


def _format_in(form: Mapping[str, str], field: str) -> str:
    value = form.get(field, "")
    return value if is_format(value) else ""


def number_in(form: Mapping[str, str], field: str) -> int:
    """Return the number in a field of the form, or 0 if the value is no number of a revision."""
    value = form.get(field, "")
    return int(value) if value.isascii() and value.isdigit() and len(value) <= 18 else 0


def token_in(form: Mapping[str, str], field: str) -> str:
    """Return the revision's token in a field of the form, or "" if the value is no token."""
    value = form.get(field, "")
    return value if is_token(value) else ""


def complaint(draft: FormDraft, config: WikiConfig) -> tuple[int, str] | None:
    """Return why the draft cannot be saved as it is (a status and a sentence for its author), or None if it can."""
    size = len(draft.body.encode(errors="replace"))
    if size > config.max_text_bytes:
        shown = {"size": figure(size), "most": figure(config.max_text_bytes)}
        return 413, _("The text is {size} bytes long; {most} are the most for one page.", **shown)
    if len(draft.note) > config.max_note_chars:
        size, most = len(draft.note), config.max_note_chars
        return 400, _("The note is {size} characters long; {most} are the most.", size=size, most=most)
    if config.edit_notes == 1 and not draft.note:
        return 400, _("This wiki asks for a note with each edit: please say in a few words what you changed.")
    if draft.base == 0 and not draft.body.strip():
        return 400, _("There is nothing to save yet: the text is empty.")
    return None
