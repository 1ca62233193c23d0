"""The argument of every handler: the wiki, its configuration, the visitor, and the kinds of answers.

A Site serves all threads of a process; each of its fields is immutable or thread-safe.  Each request gets a
copy with its visitor (``for_visitor``).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, TypeVar

from werkzeug.wrappers import Request, Response

from wikka_port import limits
from wikka_port.accounts.factory import Accounts, make_accounts
from wikka_port.assets import Asset, load_assets
from wikka_port.caches import DocumentCache, TtlCache
from wikka_port.config import WikiConfig
from wikka_port.counters import Counters
from wikka_port.edit_buckets import EditBuckets
from wikka_port.feeds import Entry, atom, rss
from wikka_port.files.picture_sources import PictureSources
from wikka_port.limits import RATE_TABLE_ADDRESSES
from wikka_port.page_rows import Page
from wikka_port.pages import Wiki
from wikka_port.rights.guarded import GuardedWiki
from wikka_port.security import FormTokens, RateLimiter, new_visitor
from wikka_port.site_settings import SiteSettings, frame_of, latest_settings, present_settings, registration_of
from wikka_port.templating import Templates
from wikka_port.texts import speak_as_wiki, spoken
from wikka_port.texts.catalogue import Catalogue, Languages
from wikka_port.urls import with_query
from wikka_port.visitors import NOBODY, NetworkHashes, Visitor

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class EditingLimits:
    edits: RateLimiter
    drafts: RateLimiter
    new_drafts: RateLimiter  # without an account
    previews: RateLimiter
    uploads: RateLimiter
    comments: RateLimiter
    same_text: RateLimiter  # of everybody together, by the text


def make_editing_limits(config: WikiConfig, buckets: EditBuckets, clock: Callable[[], float]) -> EditingLimits:
    return EditingLimits(
        RateLimiter(config.edits_per_minute, config.edit_burst, buckets, clock),
        RateLimiter(limits.DRAFTS_PER_MINUTE, limits.DRAFT_BURST, buckets, clock, "draft "),
        RateLimiter(limits.NEW_DRAFTS_PER_MINUTE, limits.NEW_DRAFT_BURST, buckets, clock, "new draft "),
        RateLimiter(limits.PREVIEWS_PER_MINUTE, limits.PREVIEW_BURST, buckets, clock, "preview "),
        RateLimiter(limits.UPLOADS_PER_MINUTE, limits.UPLOAD_BURST, buckets, clock, "upload "),
        RateLimiter(limits.COMMENTS_PER_MINUTE, limits.COMMENT_BURST, buckets, clock, "comment "),
        RateLimiter(limits.SAME_TEXT_PER_MINUTE, limits.SAME_TEXT_PAGES, buckets, clock, "same text "),
    )


def wait_before_s(limiter: RateLimiter, site: Site, request: Request) -> int:
    """Count what a request sends, for its network and its account; return how long one of them has to wait, or 0."""
    account = site.visitor.name
    keys = [request.remote_addr or "", *([f"account {account}"] if account else [])]
    return math.ceil(max(limiter.wait_s(key) for key in keys))


@dataclass(frozen=True, slots=True)
class Site:
    wiki: GuardedWiki  # as ``visitor`` may see it
    config: WikiConfig
    templates: Templates
    languages: Languages
    assets: Mapping[str, Asset]
    documents: DocumentCache
    tokens: FormTokens
    pace: EditingLimits
    counters: Counters
    page_count: TtlCache[int]
    rough_page_count: TtlCache[int]  # for rankings
    edit_count: TtlCache[int]
    initials: TtlCache[list[str]]
    most_wanted: TtlCache[list[tuple[str, int]]]
    networks: NetworkHashes
    accounts: Accounts
    visitor: Visitor = NOBODY  # of the request that this copy is for
    browser: str = ""  # the new value of the browser's cookie (``security``); "": unchanged

    def for_visitor(self, visitor: Visitor, before_expensive_read: Callable[[], object] | None = None) -> Site:
        """Return a copy for a visitor; it calls ``before_expensive_read`` before a long read for a list.

        ``GuardedWiki`` makes that call.
        """
        return replace(self, visitor=visitor, wiki=self.wiki.for_visitor(visitor, before_expensive_read))

    def for_new_session(self, visitor: Visitor) -> Site:
        """Return a copy for a visitor who has just signed in or out; forms that were open before are refused."""
        return replace(self.for_visitor(visitor), browser=new_visitor())

    @property
    def settings(self) -> SiteSettings:
        """The settings of the site that count now."""
        return present_settings(self.wiki.rights, self.config)

    @property
    def pictures(self) -> PictureSources:
        return self.config.files.pictures

    def autolinks(self, page: Page | None, markup: str) -> bool:
        """Return whether CamelCase words are links in a text of that format, once it is saved.

        A page keeps what it has, unless the site has switched these links off.
        """
        formats = self.settings.camel_case
        if page is not None and formats != "none":
            return page.autolink
        return formats in ("all", markup)

    def language_of(self, visitor: Visitor) -> Catalogue:
        return self.languages.catalogue(visitor.settings.language or self.config.language)

    def html(
        self, template: str, *, status: int = 200, indexed: bool = False, robots: str = "noindex", **values: Any
    ) -> Response:
        """Return a page in the visitor's language; search engines may index it only with ``indexed``."""
        is_refusal = status >= HTTPStatus.BAD_REQUEST  # it costs no call, and may be that the store is unavailable
        settings = latest_settings(self.wiki.rights, self.config) if is_refusal else self.settings
        text = self.templates.page(template, spoken()).render(
            values,
            site_name=settings.name,
            frame=frame_of(settings, self.visitor),
            robots="" if indexed else robots,
            visitor=self.visitor,
            can=self.wiki.access.can,
            unread=self.wiki.unread(),
        )
        response = Response(text, status=status, mimetype="text/html")
        if not indexed:
            response.headers["X-Robots-Tag"] = robots
        response.headers["Cache-Control"] = "private, no-cache" if self.visitor.name else "no-cache"
        response.headers["Vary"] = "Cookie"
        return response

    def fragment(self, template: str, **values: Any) -> str:
        return self.templates.page(template, spoken()).render(values, visitor=self.visitor)


def make_site(
    wiki: Wiki,
    config: WikiConfig,
    clock: Callable[[], float],
    buckets: EditBuckets | None = None,
    counters: Counters | None = None,
) -> Site:
    """Make the Site of a process; without ``buckets`` and ``counters``, which processes share, it has its own."""
    counters = counters or Counters.of_process()
    assets = load_assets()
    languages = Languages.found(config.languages)
    speak_as_wiki(languages.catalogue(config.language))
    public = GuardedWiki(wiki, NOBODY)  # pages that everybody may see, for answers that are kept for all visitors

    def public_memory(find: Callable[[], T], age_s: float = 0.0, *, times: float = 0.0) -> TtlCache[T]:
        return TtlCache(find, age_s, clock, times=times, of=public.rights.rules, counters=counters)

    buckets = EditBuckets.opened(RATE_TABLE_ADDRESSES) if buckets is None else buckets
    return Site(
        wiki=public,
        config=config,
        templates=Templates(config, assets),
        languages=languages,
        assets=assets,
        documents=DocumentCache(limits.DOCUMENT_CACHE_CHARS, counters),
        tokens=FormTokens(config.secret, clock, config.token_max_age_s),
        pace=make_editing_limits(config, buckets, clock),
        counters=counters,
        page_count=public_memory(public.count_pages, config.count_age_s),
        rough_page_count=public_memory(public.count_pages_roughly, config.count_age_s, times=limits.MEMORY_TIMES),
        edit_count=public_memory(public.count_changes, config.count_age_s, times=limits.MEMORY_TIMES),
        initials=public_memory(public.initials, times=limits.MEMORY_TIMES),
        most_wanted=public_memory(lambda: public.most_wanted(limit=limits.WANTED_MAX), times=limits.MEMORY_TIMES),
        networks=NetworkHashes(config.secret, clock),
        accounts=make_accounts(
            wiki.rows,
            config,
            clock,
            buckets,
            languages,
            policy_of=lambda: registration_of(present_settings(wiki.rights, config)),
            site_name_of=lambda: latest_settings(wiki.rights, config).name,
        ),
    )


def redirect(path: str, status: int = 303) -> Response:
    """Redirect to a ``path`` of this wiki, which begins with one slash and is ASCII."""
    response = Response(status=status)
    response.autocorrect_location_header = False
    response.headers["Location"] = path
    response.headers["Cache-Control"] = "no-cache"
    return response


def unindexed(
    content: str | bytes | Iterable[str], mimetype: str, *, status: int = 200, cache: str = "no-cache"
) -> Response:
    """Return an answer that is no page of the wiki and that search engines must not index."""
    charset = "" if mimetype == "application/json" else "; charset=utf-8"
    response = Response(content, status=status, content_type=mimetype + charset)
    response.headers["X-Robots-Tag"] = "noindex"
    response.headers["Cache-Control"] = cache
    return response


def conditional(request: Request, response: Response) -> Response:
    """Return ``response``, or a 304 if the browser has this very answer already."""
    tag = hashlib.blake2b(response.get_data(), digest_size=10).hexdigest()
    response.set_etag(tag)
    return response.make_conditional(request)


def number(request: Request, key: str) -> int | None:
    """Return the revision number in a parameter, or None if it is absent or no number."""
    text = request.args.get(key, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


def feed_answer(
    request: Request, base: str, title: str, path: str, home_path: str, entries: Sequence[Entry]
) -> Response:
    """Return a feed at ``path`` as Atom or RSS; URLs of ``entries`` begin with ``base``, the wiki's public address."""
    is_rss = request.args.get("format") == "rss"
    url = base + (with_query(path, {"format": "rss"}) if is_rss else path)
    body = (rss if is_rss else atom)(title, url, base + home_path, entries)
    kind = "rss" if is_rss else "atom"
    return conditional(request, unindexed(body, f"application/{kind}+xml"))
