"""Actions that make blocks of a page: a calendar, included pages, forms, licences."""

from __future__ import annotations

import calendar
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from wikka_port.actions.call import Action, ActionCall
from wikka_port.limits import ACTION_CELLS_MAX, INCLUDE_CHARS_MAX, INCLUDE_DEPTH_MAX
from wikka_port.markup import interwiki
from wikka_port.markup.fragments import escape
from wikka_port.markup.includes import filled, included_text
from wikka_port.markup.links import redirect_target
from wikka_port.markup.tables import COLUMNS_MAX, rows_of_call
from wikka_port.markup.targets import decode_references
from wikka_port.markup.tokens import ActionCall as TypedCall
from wikka_port.names import normalise
from wikka_port.page_rows import Page
from wikka_port.search.query import QUERY_CHARS, parse
from wikka_port.texts import N_, _, figure
from wikka_port.urls import page_path, site_path

YEAR_MAX: Final = 9_998  # what Python's calendar can show whole

_MONTHS: Final = (
    N_("January"), N_("February"), N_("March"), N_("April"), N_("May"), N_("June"),
    N_("July"), N_("August"), N_("September"), N_("October"), N_("November"), N_("December"),
)  # fmt: skip
_DAYS: Final = (N_("Mon"), N_("Tue"), N_("Wed"), N_("Thu"), N_("Fri"), N_("Sat"), N_("Sun"))
_ANCHOR: Final = re.compile(r' <a class="anchor" [^>]*>#</a>')
# A text may have a quotation mark as it is, but no ``<``: each of these begins a tag.
_TAG: Final = re.compile(r'<[A-Za-z][^\s"<>/]*(?:\s+[^\s"<>=/]+(?:="[^"]*")?)++\s*/?>')
_ATTRIBUTE: Final = re.compile(r'\s+([^\s"<>=/]+)(?:="([^"]*)")?')
_CREATIVE: Final = "https://creativecommons.org/licenses/{}/4.0/"
_GNU: Final = "https://www.gnu.org/licenses/{}.html"
LICENCES: Final = {
    **{f"CC-{kind}": (f"Creative Commons {kind} 4.0", _CREATIVE.format(kind.lower()))
       for kind in ("BY", "BY-SA", "BY-ND", "BY-NC", "BY-NC-SA", "BY-NC-ND")},
    "CC0": ("Creative Commons Zero", "https://creativecommons.org/publicdomain/zero/1.0/"),
    "PD": (N_("the public domain"), "https://creativecommons.org/publicdomain/mark/1.0/"),
    "GPL": ("GNU General Public License", _GNU.format("gpl-3.0")),
    "GPL2": ("GNU General Public License 2", _GNU.format("old-licenses/gpl-2.0")),
    "LGPL": ("GNU Lesser General Public License", _GNU.format("lgpl-3.0")),
    "AGPL": ("GNU Affero General Public License", _GNU.format("agpl-3.0")),
    "GFDL": ("GNU Free Documentation License", _GNU.format("fdl-1.3")),
}  # fmt: skip


def month_table(call: ActionCall) -> str:
    """Show a month as a table: ``{{calendar year="2026" month="11"}}``.

    A call without year and month shows the present month, or that of the page's address (``?year=2026&month=10``),
    with links to the months before and after it.
    """
    now = datetime.now(UTC)
    year, month = call.number("year", now.year, YEAR_MAX), call.number("month", now.month, 12)
    follows_address = call.query_parameters is not None and not any(
        call.arguments.get(key, "").strip() for key in ("year", "month")
    )
    if follows_address:
        year = call.query_number("year", 1, YEAR_MAX) or year
        month = call.query_number("month", 1, 12) or month
    is_now = (year, month) == (now.year, now.month)
    return call.site.fragment(
        "calendar.html",
        name=_month_name(year, month),
        days=[_(day) for day in _DAYS],
        weeks=calendar.Calendar().monthdayscalendar(year, month),
        today=now.day if is_now else 0,
        before=_month_link(call, year, month - 1) if follows_address else None,
        present=_month_link(call, now.year, now.month) if follows_address and not is_now else None,
        after=_month_link(call, year, month + 1) if follows_address else None,
    )


def _month_name(year: int, month: int) -> str:
    return _("{month} {year}", month=_(_MONTHS[month - 1]), year=year)


def _month_link(call: ActionCall, year: int, month: int) -> tuple[str, str] | None:
    """Return the address and the name of a month, or None beyond the calendar; month 0 or 13 is of the next year."""
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    if not 1 <= year <= YEAR_MAX:
        return None
    return page_path(call.outermost_page, year=year, month=month), _month_name(year, month)


def table(call: ActionCall) -> str:
    """Show a table of texts: ``{{table columns="2" cells="a;b;###;d"}}``, in which ``###`` is an empty cell."""
    call.number("columns", 1, COLUMNS_MAX)
    rows = rows_of_call(TypedCall("table", tuple(call.arguments.items())))
    if not rows:
        raise ValueError(_("{given} should be cells, with semicolons between them", given='cells="..."'))
    if sum(map(len, rows)) > ACTION_CELLS_MAX:
        raise ValueError(_("a table has {most} cells at most", most=figure(ACTION_CELLS_MAX)))
    cells = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
    html = "".join(f"<tr>{row}</tr>\n" for row in cells)
    return f'<div class="table" tabindex="0"><table><tbody>\n{html}</tbody></table></div>\n'


def include(call: ActionCall) -> str:
    """Include the text of another page, as a template: ``{{include page="Other" name="value"}}``.

    Values and parts of the included page are those of ``markup.includes``.  An include is
    refused if a page would include itself, also through other pages, or if it exceeds a bound of ``limits``.  In the
    place of a page that redirects, such as a renamed one, the target of the redirect is included.
    """
    wanted = call.arguments.get("page", "").strip()
    if not wanted:
        raise ValueError(_("{given} should be the name of a page", given='page="..."'))
    name = normalise(decode_references(wanted))  # as in a link: references stand for quotation marks
    if len(call.within) >= INCLUDE_DEPTH_MAX:
        raise ValueError(_("pages are included {most} deep at most", most=INCLUDE_DEPTH_MAX))
    page = _included_page(call, name)
    led = redirect_target(page.body, markup=page.markup) if "redirect" in page.body.lower() else None
    if led is not None:
        page = _included_page(call, led)
    if len(page.body) > INCLUDE_CHARS_MAX:
        most = figure(INCLUDE_CHARS_MAX)
        raise ValueError(_("the page {name} is longer than {most} characters", name=page.name, most=most))
    text = filled(included_text(page.body, page.markup), call.arguments, page.markup)
    return _without_places(call.render(page, text), page_path(page.name))


def _without_places(html: str, address: str) -> str:
    """Return the HTML of an included page without ids, which must not repeat; links to them lead to the page itself."""

    def attribute(found: re.Match[str]) -> str:
        if found[1] == "id":
            return ""
        is_place = found[1] == "href" and (found[2] or "").startswith("#")
        return f' href="{escape(address)}{found[2]}"' if is_place else found[0]

    def tag(found: re.Match[str]) -> str:
        return _ATTRIBUTE.sub(attribute, found[0]) if ' id="' in found[0] or ' href="#' in found[0] else found[0]

    return _TAG.sub(tag, _ANCHOR.sub("", html))


def _included_page(call: ActionCall, name: str) -> Page:
    if name in (call.page, *call.within):
        raise ValueError(_("the page {name} would include itself", name=name))
    page = call.site.wiki.page(name)
    if page is None:
        raise ValueError(_("there is no page {name}", name=name))
    return page


def interwikilist(call: ActionCall) -> str:
    """List the prefixes of other wikis, with their addresses: ``{{interwikilist}}``."""
    sites = interwiki.SITES.items()
    rows = "".join(f'<tr><th scope="row">{prefix}</th><td>{escape(url)}</td></tr>\n' for prefix, url in sites)
    return f'<div class="table" tabindex="0"><table><tbody>\n{rows}</tbody></table></div>\n'


def licence(call: ActionCall) -> str:
    """Show the page's licence: ``{{license type="CC-BY-SA"}}``; ``type="C" link="Page"`` reserves all rights."""
    kind = call.arguments.get("type", "").strip().upper() or "CC-BY-SA"
    if kind == "C":
        name = call.arguments.get("link", "").strip()
        words = _("All rights reserved")
        return (
            f'<p class="license"><a rel="license" href="{escape(page_path(normalise(name)))}">{words}</a>.</p>'
            if name
            else f'<p class="license">{words}.</p>'
        )
    if kind not in LICENCES:
        raise ValueError(
            _("{given} should be one of {kinds}", given=f'type="{kind}"', kinds=", ".join(("C", *LICENCES)))
        )
    name, url = LICENCES[kind]
    link = f'<a rel="license noopener" class="external" href="{url}">{escape(_(name))}</a>'
    return f'<p class="license">{_("This page may be used under {licence}.", licence=link)}</p>'


def search(call: ActionCall) -> str:
    """Show a search form: ``{{searchform}}``, ``{{textsearch}}``."""
    return _search_form(call, call.arguments.get("phrase", "")[:300])


def search_expanded(call: ActionCall) -> str:
    """Show a search form with its results and their passages below it, in the page: ``{{textsearchexpanded}}``.

    It searches for ``?phrase=`` of the page's address, or for the argument ``phrase``.
    """
    if call.query_parameters is None:
        return search(call)
    given = call.query_parameters.get("phrase", "") or call.arguments.get("phrase", "")
    phrase = " ".join(given.split())[: QUERY_CHARS + 1]
    form = _search_form(call, phrase[:QUERY_CHARS], here=page_path(call.outermost_page))
    if not phrase:
        return form
    wiki = call.site.wiki
    query = parse(phrase, wiki.languages())
    found = wiki.search(query, pages=call.site.rough_page_count.get())
    more = found.has_more or found.count > len(found.hits)
    onward = site_path("search", q=phrase[:QUERY_CHARS], page=2) if more else ""
    return form + call.site.fragment("found.html", query=query, found=found, page=1, onward=onward)


def newpage(call: ActionCall) -> str:
    """Show a form for a new page: ``{{newpage}}``; ``template`` names the page whose text the new one begins with."""
    return call.site.fragment("newpage.html", begins_with=call.arguments.get("template", "").strip()[:300])


def _search_form(call: ActionCall, phrase: str, here: str = "") -> str:
    """Return a search form; the page ``here`` shows the results, or with "" the wiki's own search page."""
    return call.site.fragment("searchform.html", phrase=phrase, here=here)


ACTIONS: Final[Mapping[str, Action]] = {
    "calendar": Action(month_table, ("year", "month")),
    "include": Action(include, ("page",)),
    "interwikilist": Action(interwikilist),
    "license": Action(licence, ("type", "link")),
    "newpage": Action(newpage, ("template",)),
    "search": Action(search, ("phrase",)),
    "searchform": Action(search, ("phrase",)),
    "table": Action(table, ("columns", "cells")),
    "textsearch": Action(search, ("phrase",)),
    "textsearchexpanded": Action(search_expanded, ("phrase",)),
}
