"""Operations on many pages: names, links, searches, changes; and who calls."""

from __future__ import annotations

from typing import Final

from werkzeug.wrappers import Response

from wikka_port import schema
from wikka_port.api.call import Call, Rejected, answer, missing
from wikka_port.api.records import (
    ChangeRecord,
    Changes,
    Found,
    HitRecord,
    Me,
    NoParameters,
    PageNames,
    Since,
    SomeBacklinks,
    SomeNames,
    Words,
)
from wikka_port.search.query import parse
from wikka_port.texts import _

FIRST_MS: Final = 24 * 3600 * 1000  # before now, of a first call
# A save writes its entry some time after its own time, longest while the store moves a region.
LATE_MS: Final = 60 * 1000


def list_pages(call: Call) -> Response:
    given: SomeNames = call.parameters
    found = call.site.wiki.names(start=given.start, prefix=given.prefix, limit=given.limit + 1)
    return answer(_names(found, given.limit))


def _names(found: list[str], limit: int) -> PageNames:
    return PageNames(names=found[:limit], next=found[limit] if len(found) > limit else None)


def list_backlinks(call: Call) -> Response:
    given: SomeBacklinks = call.parameters
    if call.site.wiki.page(given.name) is None:
        raise missing()
    if given.file:
        files = call.site.wiki.files(given.name)
        own, current = files.find(given.file)
        if current is None:
            raise Rejected(404, _("{page} has no file {name}.", page=files.page, name=given.file))
        found = files.used_on(own, current, after=given.after, limit=given.limit + 1)
    else:
        found = call.site.wiki.backlinks(given.name, after=given.after, limit=given.limit + 1)
    names = found[: given.limit]
    return answer(PageNames(names=names, next=names[-1] if len(found) > given.limit else None))


def search(call: Call) -> Response:
    given: Words = call.parameters
    site = call.site
    query = parse(" ".join(given.q.split()), site.wiki.languages())
    found = site.wiki.search(query, page=given.page, pages=site.rough_page_count.get())
    hits = [
        HitRecord(
            name=one.name,
            time=one.time_ms,
            author=one.author,
            passage="".join(text for text, _marked in one.passage),
            section=one.place.text if one.place is not None else None,
            kind=one.kind,
            comment=one.comment or None,
            file=one.file or None,
        )
        for one in found.hits
    ]
    return answer(Found(hits=hits, count=found.count, more=found.has_more, instead=found.instead))


def list_changes(call: Call) -> Response:
    """Return changes in the order of their times, from a token on; a change may come twice, and none is left out.

    The token never passes the last LATE_MS, in which entries with earlier times may still come.
    """
    given: Since = call.parameters
    site, now = call.site, site_ms(call)
    try:
        start = schema.change_place(now - FIRST_MS) if not given.since else schema.parse_change_place(given.since)
    except ValueError:
        raise Rejected(422, _("This is no token of changes: take “next” of the preceding answer.")) from None
    site.wiki.settle("", site.config.settle_s)
    found, end, more = site.wiki.changes_since(start, limit=given.limit)
    settled = schema.change_place(now - LATE_MS)
    following = max(end, settled) if more else settled  # the larger place is the earlier one
    records = [ChangeRecord.of(one) for one in found]
    return answer(Changes(changes=records, next=min(start, following).decode(), more=more))


def site_ms(call: Call) -> int:
    return call.site.accounts.clock_ms()


def read_me(call: Call) -> Response:
    """Return whom the key belongs to; without a key, the name is null."""
    assert isinstance(call.parameters, NoParameters)
    visitor = call.site.visitor
    return answer(Me(name=visitor.name, scopes=sorted(call.scopes), administrator=visitor.administers))
