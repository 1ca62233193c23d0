"""Watches and the inbox of the visitor's account; without script.

    /Name/watch      watch the page, or the page with all pages below it, or stop
    /-/watches       all watches; end one, watch all pages below a name
    /-/inbox         the notices: mark all as read, delete one or all that the page shows
    /-/inbox.xml     the newest notices as a feed, for a key that may do nothing else
    /-/unsubscribe   end the mails of an account by the link in one of them, without a sign-in

Forms that delete or mark name the newest notice that their page showed, so that a later one stays and stays unread.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from werkzeug.wrappers import Request, Response

from wikka_port.accounts.api_keys import FEED
from wikka_port.accounts.factory import public_address
from wikka_port.accounts.sessions import visitor_of
from wikka_port.accounts.signing_in import Refused
from wikka_port.feeds import Entry
from wikka_port.forms import STALE_FORM, answer_form, form_page, is_same_origin
from wikka_port.limits import NOTICES_LISTED, WATCHES_MAX
from wikka_port.names import normalise
from wikka_port.notice_mail import path_of, sentence_of
from wikka_port.notices.notice_rows import (
    COMMENT,
    MOVED,
    NEW,
    PLACE_CHARS,
    REVIEW,
    below_target,
    is_place,
    page_target,
    time_of_place,
)
from wikka_port.notices.unsubscribing import is_token_of, row_of_token
from wikka_port.notices.watching import TooManyWatches
from wikka_port.page_rows import Page
from wikka_port.refusals import missing_page
from wikka_port.rights.guarded_notices import ListedNotice, history_of
from wikka_port.site import Site, feed_answer, redirect, unindexed
from wikka_port.texts import N_, _, speak, spoken
from wikka_port.urls import page_path, site_path

TARGET_CHARS: Final = 600  # of a watch in a form
NO_FEED: Final = N_("This is the address of no feed: its key is not there, is not one for the feed, or has ended.")
NO_LINK: Final = N_("This link ends no mails: it is not complete, or its account has ended.")
UNSUBSCRIBED: Final = N_("You get no more mails of notices. Your settings can turn them on again.")
FULL: Final = N_("You watch {most} things already, which is the most: end a watch first.")


def handle_watch(site: Site, request: Request, name: str) -> Response:
    page = site.wiki.page(name)
    if page is None:
        return missing_page(site, name)
    if site.visitor.name is None:
        return redirect(site_path("login", next=page_path(page.name, "watch")))

    def form(status: int, problem: str) -> Response:
        return _watch_form(site, request, page, status, problem)

    def change() -> Response:
        notices, settings = site.wiki.notices, site.visitor.settings
        try:
            if request.form.get("end"):
                notices.unwatch(_target(request))
            elif request.form.get("do") == "below":
                notices.watch_below(page.name, settings)
            else:
                notices.watch(page, settings)
        except TooManyWatches:
            raise Refused(_(FULL, most=WATCHES_MAX), 409) from None
        return redirect(page_path(page.name, "watch"))

    return answer_form(site, request, form, change)


def _watch_form(site: Site, request: Request, page: Page, status: int, problem: str) -> Response:
    own, below = page_target(history_of(page)), below_target(page.name)
    watched = site.wiki.notices.watched(page)
    return form_page(
        site,
        request,
        "watch.html",
        status=status,
        page_name=page.name,
        choices=[
            ("page", own.decode(), own in watched, _("This page")),
            ("below", below.decode(), below in watched, _("This page, and all pages below it")),
        ],
        further=bool(watched - {own, below}),
        problem=problem,
    )


def _target(request: Request) -> bytes:
    return request.form.get("end", "")[:TARGET_CHARS].encode("utf-8", "replace")


def handle_watches(site: Site, request: Request, _name: str) -> Response:
    if site.visitor.name is None:
        return redirect(site_path("login", next=site_path("watches")))

    def form(status: int, problem: str) -> Response:
        found = [(one, one.watch.target.decode(errors="replace")) for one in site.wiki.notices.watches()]
        typed = request.form.get("below", "")[:TARGET_CHARS] if problem else ""
        values = {"watches": found, "typed": typed, "problem": problem}
        return form_page(site, request, "watches.html", status=status, **values)

    def change() -> Response:
        if request.form.get("end"):
            site.wiki.notices.unwatch(_target(request))
            return redirect(site_path("watches"))
        typed = request.form.get("below", "").strip().strip("/")
        try:
            site.wiki.notices.watch_below(normalise(typed) if typed else "", site.visitor.settings)
        except TooManyWatches:
            raise Refused(_(FULL, most=WATCHES_MAX), 409) from None
        return redirect(site_path("watches"))

    return answer_form(site, request, form, change)


def handle_inbox(site: Site, request: Request, _name: str) -> Response:
    if site.visitor.name is None:
        return redirect(site_path("login", next=site_path("inbox")))

    def form(status: int, problem: str) -> Response:
        after_ms, before = site.visitor.news_after_ms, request.args.get("before", "")[:PLACE_CHARS]
        found, token = site.wiki.notices.part(after_ms=after_ms, before=before, limit=NOTICES_LISTED)
        values = {
            "notices": [(one, _sentence(one), path_of(one)) for one in found],
            "kinds": {"new": NEW, "comment": COMMENT},
            "newest": found[0].place if found and not before else "",
            "onward": site_path("inbox", before=token) if token else "",
            "problem": problem,
        }
        return form_page(site, request, "inbox.html", status=status, **values)

    def change() -> Response:
        what, place, notices = request.form.get("do", ""), request.form.get("at", ""), site.wiki.notices
        if what not in ("read", "clear", "remove") or not is_place(place.encode(errors="replace")):
            raise Refused(_("Choose what to change."), 400)
        if what == "read":
            notices.mark_read(time_of_place(place.encode()))
        elif what == "clear":
            notices.clear(place)
        else:
            notices.remove(place)
        return redirect(site_path("inbox"))

    return answer_form(site, request, form, change)


def handle_inbox_feed(site: Site, request: Request, _name: str) -> Response:
    """Answer with the newest notices of the account whose key the address has; a session counts for nothing here.

    The feed's own address is in it without the key, since readers show it and pass it on.
    """
    token = request.args.get("key", "")
    caller = site.accounts.keys.caller(token, site.visitor.network_hash) if token else None
    if caller is None or FEED not in caller.scopes:
        return unindexed(_(NO_FEED), "text/plain", status=403, cache="private, no-store")
    own = site.for_visitor(caller.visitor)
    speak(site.language_of(caller.visitor))
    found, _onward = own.wiki.notices.part(after_ms=-1, limit=NOTICES_LISTED)
    base = public_address(site.config)
    entries = [
        Entry(sentence_of(spoken(), one), base + _feed_path(one), one.time_ms, one.change.author, one.beginning)
        for one in found
    ]
    title = _("{site}: inbox of {name}", site=site.settings.name, name=caller.visitor.signature)
    path = site_path("inbox.xml", of=caller.visitor.signature)
    response = feed_answer(request, base, title, path, site_path("inbox"), entries)
    response.headers["Cache-Control"] = "private, no-cache"
    return response


def _sentence(one: ListedNotice) -> str:
    """Return the words of a notice of moves or of a decision, "" of the others, whose words the template has."""
    return sentence_of(spoken(), one) if one.notice.kind in (MOVED, REVIEW) else ""


def _feed_path(one: ListedNotice) -> str:
    """Return where an entry leads; readers tell entries apart by it, so those of one page need different ones."""
    return f"{path_of(one)}#{one.place}" if one.notice.kind == MOVED else path_of(one)


def handle_unsubscribe(site: Site, request: Request, _name: str) -> Response:
    """Show a page with one button, and end the mails by a POST, which mail programs send by themselves (RFC 8058).

    The token of the link takes the place of the form's token.  A page of another site is refused all the same.
    """
    token = request.args.get("token", "")
    directory = site.accounts.directory
    row = row_of_token(token)
    account = directory.at(row) if row else None
    if account is None or not is_token_of(token, directory.secret, row, account.id):
        return site.html("unsubscribe.html", status=404, token="", done="", problem=_(NO_LINK))
    if request.method != "POST":
        return site.html("unsubscribe.html", token=token, done="", problem="")
    if not is_same_origin(site, request, request.headers.get("Origin", "")):
        return site.html("unsubscribe.html", status=403, token=token, done="", problem=_(STALE_FORM))
    settings = replace(account.settings, mail="")
    directory.set_settings(account, settings)
    site.for_visitor(visitor_of(account, "")).wiki.notices.take_settings(settings)
    return site.html("unsubscribe.html", token="", done=_(UNSUBSCRIBED), problem="")
