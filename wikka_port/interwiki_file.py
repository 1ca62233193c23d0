"""A wiki's own prefixes of other wikis, from a file in the form of WikkaWiki's ``interwiki.conf``.

    # a comment
    Prefix http://wiki.example.org/

The web processes and the store's trigger worker must know the same prefixes: ``WikiPedia:Page`` is a link to another
wiki if the prefix is known, and else a page of this wiki.  So the environment names the file (WIKKA_INTERWIKI): child
processes inherit it, and ``wikka run --interwiki FILE`` sets it.  Each process reads the file once, at its start, whole
or not at all.  After a change of the file, restart the web processes and the store; ``wikka check --repair`` then
updates the lists of links.
"""

from __future__ import annotations

import html
import logging
import os
import re
from pathlib import Path
from typing import Final

from wikka_port.markup import interwiki
from wikka_port.markup.targets import is_url, safe_url

ENVIRONMENT: Final = "WIKKA_INTERWIKI"
SITES_MAX: Final = 1_000
_PREFIX: Final = re.compile("[A-Za-z][A-Za-z0-9]{0,19}")
_KEPT: Final = frozenset({"http", "https", "ftp", "mailto"})

log = logging.getLogger(__name__)


class BadInterwiki(ValueError):
    """The file has a fault; ``str()`` says in which line, and what to do."""


def read_sites(text: str) -> dict[str, str]:
    """Return the addresses by prefix.  Raises BadInterwiki."""
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = [] if line.lstrip().startswith("#") else line.split()
        if not words:
            continue
        if len(words) != 2 or not _PREFIX.fullmatch(words[0]):
            raise BadInterwiki(f"line {number} should be a prefix of up to 20 letters and digits, and an address")
        if words[0].lower() in _KEPT:
            raise BadInterwiki(f"line {number}: {words[0]} begins addresses already; choose another prefix")
        typed = html.unescape(words[1])  # WikkaWiki's own file has &amp;
        url = safe_url(typed) if is_url(typed) else None
        if url is None:
            raise BadInterwiki(f"line {number} should have an address that begins with http:// or https://")
        found[words[0]] = url
    if len(found) > SITES_MAX:
        raise BadInterwiki(f"it has {len(found):,} prefixes and {SITES_MAX:,} are the most")
    return found


def load(path: str) -> int:
    """Use the file's prefixes in this process; return their number.  Raises BadInterwiki."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise BadInterwiki(f"{path} cannot be read: {problem}") from problem
    try:
        sites = read_sites(text)
    except BadInterwiki as problem:
        raise BadInterwiki(f"{path}: {problem}") from None
    interwiki.use(sites)
    return len(sites)


def load_from_environment() -> None:
    """Load the file that WIKKA_INTERWIKI names, if any.

    Raises BadInterwiki: a process with different prefixes would index different links.
    """
    path = os.environ.get(ENVIRONMENT, "")
    if path:
        log.info("%d prefixes of other wikis from %s", load(path), path)
