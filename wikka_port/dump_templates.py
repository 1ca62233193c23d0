"""The simple templates of a dump and the titles of its pages, collected before these are converted: one more pass.

The templates' texts are for calls that are expanded (``mediawiki_expansion``), and what pages get of them in the wiki's
own form for calls that become includes (``mediawiki_includes``).  The titles are for ``{{#ifexist:}}``.

A dump has its pages in any order, so templates may stand behind the pages that call them.  A dump that can be read only
once (the standard input) has no such pass: ``import_pages`` then collects templates as they come, for the pages behind
them, and nobody knows which titles are there.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import BinaryIO

from wikka_port.dump import WIKITEXT, DumpError, DumpReader, DumpSite, PageEnd, PageStart, Revision
from wikka_port.limits import DUMP_TEMPLATES_CHARS, DUMP_TEMPLATES_MAX, DUMP_TITLES_MAX
from wikka_port.markup.mediawiki_expansion import TEMPLATE, simple_body
from wikka_port.markup.mediawiki_includes import template_body
from wikka_port.markup.mediawiki_titles import Dialect
from wikka_port.names import InvalidName, normalise


class Titles:
    """The titles of a dump's pages: whether there is a page.

    Each is kept as 8 bytes of its digest, so of 2,000,000 titles one in 9,000,000,000,000 that are not there counts as
    one that is.  Over DUMP_TITLES_MAX none is known.
    """

    def __init__(self) -> None:
        self._keys = array("Q")
        self._is_whole = False

    def add(self, title: str) -> None:
        if len(self._keys) <= DUMP_TITLES_MAX:
            self._keys.append(_key(title))

    def finish(self) -> None:
        """Let the titles count, once all have been added."""
        self._is_whole = len(self._keys) <= DUMP_TITLES_MAX
        self._keys = array("Q", sorted(self._keys) if self._is_whole else ())

    def has(self, title: str) -> bool | None:
        """Return whether the dump has a page, or None if that is not known.  O(log titles)."""
        if not self._is_whole:
            return None
        key = _key(title)
        place = bisect_left(self._keys, key)
        return place < len(self._keys) and self._keys[place] == key


def _key(title: str) -> int:
    return int.from_bytes(blake2b(title.encode(errors="replace"), digest_size=8).digest(), "big")


class Templates:
    """Collects the newest text of each simple template; ``bodies`` has them by title.

    With ``includes``, ``own`` has what pages get of those whose pages have the wiki's own form.
    Bounds: DUMP_TEMPLATES_MAX templates of DUMP_TEMPLATES_CHARS characters together; calls of further ones are those of
    unknown templates.
    """

    def __init__(self, *, includes: bool = False) -> None:
        self._includes = includes
        self._own: dict[str, str] = {}
        self._bodies: dict[str, str] = {}
        self._chars = 0
        self._aliases: dict[str, str] = {}  # redirects whose target has not come yet
        self._page: PageStart | None = None
        self._newest: Revision | None = None
        self.titles = Titles()

    @property
    def bodies(self) -> Mapping[str, str]:
        return self._bodies

    @property
    def own(self) -> Mapping[str, str]:
        return self._own

    def begin(self, page: PageStart) -> None:
        self.titles.add(page.title)
        self._page = page if page.namespace == TEMPLATE else None
        self._newest = None

    def read(self, revision: Revision) -> None:
        if self._page is not None and (self._newest is None or revision.timestamp_ms >= self._newest.timestamp_ms):
            self._newest = revision

    def end(self, dialect: Dialect) -> None:
        page, newest = self._page, self._newest
        self._page = self._newest = None
        if page is None or newest is None or newest.text is None or newest.model != WIKITEXT:
            return
        if page.redirect_target:
            target = dialect.title(page.redirect_target)
            if target in self._bodies:
                self._keep_alias(page.title, target)
            elif len(self._aliases) < DUMP_TEMPLATES_MAX:
                self._aliases[page.title] = target
            return
        body = simple_body(newest.text, dialect.language)
        if body is not None and self._keep(page.title, body) and self._includes and is_name(page.title):
            own = template_body(newest.text, dialect, page.title)
            if own is not None:
                self._own[page.title] = own

    def finish(self) -> None:
        """Let redirects stand for targets that came after them."""
        for title, target in self._aliases.items():
            if target in self._bodies:
                self._keep_alias(title, target)
        self._aliases.clear()

    def _keep_alias(self, title: str, target: str) -> None:
        """Let a redirect stand for its target: an include follows it, too."""
        if self._keep(title, self._bodies[target]) and target in self._own and is_name(title):
            self._own[title] = self._own[target]

    def _keep(self, title: str, body: str) -> bool:
        """Keep a text, and return whether it is within the bounds."""
        if len(self._bodies) >= DUMP_TEMPLATES_MAX or self._chars + len(body) > DUMP_TEMPLATES_CHARS:
            return False
        self._bodies[title] = body
        self._chars += len(body)
        return True


def read_templates(
    stream: BinaryIO, progress: Callable[[int, int], None], *, includes: bool = False
) -> Templates | None:
    """Read the templates from the position of ``stream``, and go back there; None if the stream cannot go back.

    Damage ends the reading: the import finds it again, behind the pages before it.  The titles are not known then.
    """
    if not stream.seekable():
        return None
    begin = stream.tell()
    templates, dialect = Templates(includes=includes), Dialect.of({})
    reader = DumpReader(stream)
    try:
        for event in reader:
            if isinstance(event, DumpSite):
                dialect = Dialect.of(
                    event.namespaces,
                    capitalised=event.capitalised,
                    aliases=event.aliases,
                    language=event.language,
                )
            elif isinstance(event, PageStart):
                templates.begin(event)
            elif isinstance(event, Revision):
                templates.read(event)
            elif isinstance(event, PageEnd):
                templates.end(dialect)
                progress(reader.bytes_consumed, 0)
        templates.titles.finish()
    except DumpError:
        pass
    finally:
        stream.seek(begin)
    templates.finish()
    return templates


def is_name(title: str) -> bool:
    """Return whether a page may have the title here."""
    try:
        return bool(normalise(title))
    except InvalidName:
        return False
