"""The format of an edited text: what a form offers, and what becomes of the text when another one is chosen.

A form says in which format its text is written and which one was chosen.  Nothing is saved if the two differ: the
text comes back as the new format has it, beside the difference and what could not be said in it; the next save saves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from wikka_port.diffs import Row, rows
from wikka_port.drafts import FormDraft
from wikka_port.markup.converting import to_markdown
from wikka_port.markup.formats import FORMATS, MARKDOWN, WIKKA
from wikka_port.texts import N_, _

BY_HAND = N_(
    "Markdown is not converted to Wikka markup: the text is as it was. Change it by hand and look at the preview."
)
OF_THE_PAGE = N_("The format is that of a whole page. Open the editor of the page, not of a section, to change it.")


@dataclass(frozen=True, slots=True)
class Turned:
    """A text whose format was changed; not saved."""

    draft: FormDraft
    rows: list[Row]  # the difference; [] where the text is as it was
    lost: tuple[str, ...]
    problem: str  # why it was not converted; "": it was

    @property
    def name(self) -> str:
        return _(FORMATS[self.draft.markup])


def turned(draft: FormDraft, *, autolink: bool) -> Turned | None:
    """None if the text is in the format that was chosen.  The text of a new page is in it already."""
    if not draft.markup or not draft.written or draft.written == draft.markup:
        return None
    if draft.section:
        return Turned(replace(draft, markup=draft.written), [], (), _(OF_THE_PAGE))
    if (draft.written, draft.markup) != (WIKKA, MARKDOWN):
        return Turned(replace(draft, written=draft.markup), [], (), _(BY_HAND))
    text, lost = to_markdown(draft.body, autolink=autolink)
    return Turned(replace(draft, body=text, written=MARKDOWN), rows(draft.body, text), lost, "")
