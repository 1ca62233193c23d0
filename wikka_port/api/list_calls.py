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
from wikka_port.rights.readable_lists import CHANGES
from wikka_port.search.query import parse
from wikka_port.texts import _

FIRST_MS: Final = 24 * 3600 * 1000  # before now, of a first call
# A save writes its entry some time after its own time, longest while the store moves a region.
LATE_MS: Final = 60 * 1000


def list_pages(call: Call) -> Response:
    given: SomeNames = call.parameters
    names, following = call.site.wiki.names_part(start=given.start, prefix=given.prefix, limit=given.limit)
    return answer(PageNames(names=names, next=following or None))


def list_backlinks(call: Call) -> Response:
    given: SomeBacklinks = call.parameters
    if call.site.wiki.page(given.name) is None:
        raise missing()
    if given.file:
        files = call.site.wiki.files(given.name)
        own, current = files.find(given.file)
        if current is None:
            raise Rejected(404, _("{page} has no file {name}.", page=files.page, name=given.file))
        names, following = files.used_on_part(own, current, after=given.after, limit=given.limit)
    else:
        names, following = call.site.wiki.backlinks_part(given.name, after=given.after, limit=given.limit)
    return answer(PageNames(names=names, next=following or None))


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

    The token never passes the last LATE_MS, in which entries with earlier times may still come, nor the time since
    which the triggers are late; an answer that cannot lead further says that there is no more.  The token is sealed if
    it may be the place of a change that the caller may not read.
    """
    given: Since = call.parameters
    site, now = call.site, site_ms(call)
    opened = site.wiki.places.opened(CHANGES, given.since)
    since = given.since if opened is None else opened
    try:
        start = schema.change_place(now - FIRST_MS) if not given.since else schema.parse_change_place(since)
    except ValueError:
        raise Rejected(422, _("This is no token of changes: take “next” of the preceding answer.")) from None
    is_settled = site.wiki.settle("", site.config.settle_s)
    settled = schema.change_place(now - LATE_MS - (0 if is_settled else site.wiki.followed.lag_ms()))
    found = site.wiki.followed.since(start, limit=given.limit, decided_ms=now - LATE_MS)
    following = min(start, max(found.place, settled) if found.more else settled)  # the larger place is the earlier one
    known = {settled, *([found.place] if found.is_visible else []), *([start] if opened is None else [])}
    token = following.decode() if following in known else site.wiki.places.sealed(CHANGES, following.decode())
    records = [ChangeRecord.of(one) for one in found.changes]
    return answer(Changes(changes=records, next=token, more=found.more and following < start))


def site_ms(call: Call) -> int:
    return call.site.accounts.clock_ms()


def read_me(call: Call) -> Response:
    """Return whom the key belongs to; without a key, the name is null."""
    assert isinstance(call.parameters, NoParameters)
    visitor = call.site.visitor
    return answer(Me(name=visitor.name, scopes=sorted(call.scopes), administrator=visitor.administers))
