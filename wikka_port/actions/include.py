"""``{{include page="Other" name="value"}}``: another page's text in this one, as a template.

``{{{name}}}`` and ``{{{name|else}}}`` in the other page stand for what the call gives.  A page that includes itself,
over whatever others, is refused, and so is what goes over a bound of ``limits``.  A page that redirects, as a renamed
one does, stands for the page that it leads to.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from wikka_port.actions.call import ActionCall
from wikka_port.limits import INCLUDE_CHARS_MAX, INCLUDE_DEPTH_MAX
from wikka_port.markup.links import redirect_target
from wikka_port.markup.targets import decode_references
from wikka_port.names import normalise
from wikka_port.page_rows import Page
from wikka_port.texts import _, figure

_PARAMETER: Final = re.compile(r"\{\{\{\s*([A-Za-z][\w\-]{0,40})\s*(?:\|([^{}\n]{0,400}))?\}\}\}")
_ANCHOR: Final = re.compile(r' <a class="anchor" [^>]*>#</a>')
_ID: Final = re.compile(r' id="[^"]*"')


def run(call: ActionCall) -> str:
    wanted = call.arguments.get("page", "").strip()
    if not wanted:
        raise ValueError(_("{given} should be the name of a page", given='page="..."'))
    name = normalise(decode_references(wanted))  # as of a link: a quotation mark is written so
    if len(call.within) >= INCLUDE_DEPTH_MAX:
        raise ValueError(_("pages are included {most} deep at most", most=INCLUDE_DEPTH_MAX))
    page = _page(call, name)
    led = redirect_target(page.body, markup=page.markup) if "redirect" in page.body.lower() else None
    if led is not None:
        page = _page(call, led)
    if len(page.body) > INCLUDE_CHARS_MAX:
        most = figure(INCLUDE_CHARS_MAX)
        raise ValueError(_("the page {name} is longer than {most} characters", name=page.name, most=most))
    shown = call.render(page, filled(page.body, call.arguments))
    return _ID.sub("", _ANCHOR.sub("", shown))  # ids are of the page that includes


def _page(call: ActionCall, name: str) -> Page:
    if name in (call.page, *call.within):
        raise ValueError(_("the page {name} would include itself", name=name))
    page = call.site.wiki.page(name)
    if page is None:
        raise ValueError(_("there is no page {name}", name=name))
    return page


def filled(text: str, given: Mapping[str, str]) -> str:
    """``text`` with what a call gives.  Raises ValueError with a sentence for its author."""
    if "{{{" not in text:
        return text
    left = INCLUDE_CHARS_MAX

    def value(found: re.Match[str]) -> str:
        nonlocal left
        said = given.get(found[1].lower(), found[2] or "")
        left -= len(said)
        if left < 0:
            most = figure(INCLUDE_CHARS_MAX)
            raise ValueError(_("the page is longer than {most} characters with what the call gives", most=most))
        return said

    return _PARAMETER.sub(value, text)
