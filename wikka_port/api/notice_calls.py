"""Operations on the watches and the inbox of the caller's account.

The id of a watch is its target, and that of a notice its place in the inbox (``notices.notice_rows``).  An id of
something that is there no more is no error: a program may send the same request twice.
"""

from __future__ import annotations

from werkzeug.wrappers import Response

from wikka_port.api import records
from wikka_port.api.call import Call, Rejected, answer, no_content
from wikka_port.api.page_calls import existing_page
from wikka_port.api.records import Inbox, NoticeRecord, Watches, WatchRecord
from wikka_port.handlers.watching import FULL
from wikka_port.limits import WATCHES_MAX
from wikka_port.names import normalise
from wikka_port.notices.notice_rows import below_target, page_target, time_of_place
from wikka_port.notices.watching import TooManyWatches
from wikka_port.rights.guarded_notices import history_of
from wikka_port.texts import _


def list_watches(call: Call) -> Response:
    """Return all watches; a page has its present name if the caller may read it."""
    return answer(Watches(watches=[WatchRecord.of(one) for one in call.site.wiki.notices.watches()]))


def watch(call: Call) -> Response:
    """Begin a watch; one that is there already stays as it is."""
    given: records.NewWatch = call.parameters
    notices, settings = call.site.wiki.notices, call.site.visitor.settings
    try:
        if given.below:
            name = normalise(typed) if (typed := given.name.strip("/")) else ""
            target = below_target(name)
            notices.watch_below(name, settings)
        else:
            page = existing_page(call.site, given.name)
            target = page_target(history_of(page))
            notices.watch(page, settings)
    except TooManyWatches:
        raise Rejected(409, _(FULL, most=WATCHES_MAX)) from None
    begun = next((one for one in notices.watches() if one.watch.target == target), None)
    if begun is None:
        raise Rejected(409, _("The watch was ended meanwhile. Please try again."))
    return answer(WatchRecord.of(begun))


def unwatch(call: Call) -> Response:
    """End a watch; one that is not there has ended already."""
    given: records.OneWatch = call.parameters
    call.site.wiki.notices.unwatch(given.id.encode("utf-8", "replace"))
    return no_content()


def read_inbox(call: Call) -> Response:
    """Return notices of pages that the caller may read now."""
    given: records.SomeNotices = call.parameters
    notices, after_ms = call.site.wiki.notices, call.site.visitor.news_after_ms
    found, token = notices.part(after_ms=after_ms, before=given.before or "", limit=given.limit)
    listed = [NoticeRecord.of(one) for one in found]
    return answer(Inbox(notices=listed, next=token or None, unread=notices.unread(after_ms)))


def mark_read(call: Call) -> Response:
    """Mark a notice and all earlier ones as read; a later one stays unread."""
    given: records.ReadUntil = call.body
    call.site.wiki.notices.mark_read(time_of_place(given.until.encode()))
    return no_content()


def clear_inbox(call: Call) -> Response:
    given: records.NoticesUntil = call.parameters
    call.site.wiki.notices.clear(given.until)
    return no_content()


def remove_notice(call: Call) -> Response:
    given: records.OneNotice = call.parameters
    call.site.wiki.notices.remove(given.id)
    return no_content()
