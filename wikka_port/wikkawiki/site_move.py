"""The files beside a WikkaWiki's ``wikka.config.php``: menus, words of the content filter, prefixes of other wikis.

    config/main_menu.inc, main_menu.user.inc, main_menu.admin.inc   a line an entry (``menu_config_path``); until 1.1
                                                                    ``navigation_links`` in the configuration itself
    badwords.txt.php                                                a word a line, in ROT13 (``badwords_path``)
    interwiki.conf                                                  a prefix and an address a line

Entries of menus that are links become the menus of this wiki, unless all of them are those that every WikkaWiki came
with; words and the numbers of links become settings of antispam.  Settings that were made here already stay.  Prefixes
are read by each process from a file, so the command says how to serve with the old one.

All of it is read as text, and nothing is run.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from wikka_port.antispam.policy import BadPolicy, Policy, changed_policy
from wikka_port.antispam.stored_policy import read_policy, write_policy
from wikka_port.interwiki_file import BadInterwiki, read_sites
from wikka_port.kept_settings import SettingsChanged
from wikka_port.limits import ANTISPAM_ENTRIES_MAX, MENU_ITEMS_MAX
from wikka_port.markup import interwiki
from wikka_port.pages import Wiki, clock_ms
from wikka_port.site_settings import KEPT, BadSetting, SiteSettings, changed_settings, set_values
from wikka_port.wikkawiki.php_config import Config
from wikka_port.wikkawiki.stored_text import latin_text, with_bars

FILE_BYTES_MAX: Final = 1_000_000
_BY: Final = "WikkaWiki"
_MENUS: Final = (
    ("menu_visitors", "main_menu.inc", "navigation_links"),
    ("menu_users", "main_menu.user.inc", "logged_in_navigation_links"),
    ("menu_administrators", "main_menu.admin.inc", ""),
)
_CAMEL: Final = re.compile(r"[A-Z]+[a-z]+[A-Z0-9][A-Za-z0-9]*")
_LINK: Final = re.compile(rf"\[\[\s*([^\[\]|]+?)\s*(?:\|\s*([^\[\]|]+?)\s*)?\]\]|({_CAMEL.pattern})")
_ACTION: Final = re.compile(r"\{\{.*?\}\}")
_OF_EVERY_WIKI: Final = frozenset({
    "HomePage", "CategoryCategory", "PageIndex", "RecentChanges", "RecentlyCommented", "UserSettings",
})  # fmt: skip
_NUMBERS: Final = {"max_new_document_urls": "page_links", "max_new_comment_urls": "comment_links"}
_NO_PAGES: Final = ("mailto", "news", "irc")  # addresses that a menu here has no place for
_PLAIN_WORD: Final = re.compile(r"[^\\^$|?*+()\[\]{}]+")  # the file's lines are parts of a regular expression
_NAMED: Final = 5


@dataclass(slots=True)
class OldSite:
    """The settings of a WikkaWiki's site that have a place here, and lines for a person on the others."""

    menus: dict[str, list[str]] = field(default_factory=dict)  # "Words | Target"
    policy: dict[str, Any] = field(default_factory=dict)  # fields of ``Policy``
    notes: list[str] = field(default_factory=list)


def read_site(config: Config, folder: Path) -> OldSite:
    """Read what the ``folder`` of a configuration has.  A file that is not there is none; one that is damaged noted."""
    site = OldSite()
    _read_menus(site, config, folder)
    _read_policy(site, config, folder)
    _read_prefixes(site, folder / "interwiki.conf")
    return site


def _text_of(path: Path, site: OldSite) -> str:
    """Return the text of a file, or "" if there is none."""
    try:
        with path.open("rb") as stream:
            data = stream.read(FILE_BYTES_MAX + 1)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as problem:
        site.notes.append(f"{path}: not read, {problem.strerror or problem}")
        return ""
    if len(data) > FILE_BYTES_MAX:
        site.notes.append(f"{path}: not read, it has more than {FILE_BYTES_MAX:,} bytes")
        return ""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return latin_text(data)


# --- menus ------------------------------------------------------------------------------------------


def _read_menus(site: OldSite, config: Config, folder: Path) -> None:
    folders = [one for one in re.split(r"[:;,]", config.values.get("menu_config_path", "")) if one] + ["config"]
    for key, file, of_config in _MENUS:
        texts = (_text_of(folder / one / file, site) for one in folders)
        text = next((one for one in texts if one.strip()), "")
        if not text:
            text = "\n".join(found[0] for found in _LINK.finditer(config.values.get(of_config, "")))
        entries, left = _entries(text)
        targets = {entry.rpartition(" | ")[2] for entry in entries}
        if targets <= _OF_EVERY_WIKI:
            continue
        if len(entries) > MENU_ITEMS_MAX:
            left += entries[MENU_ITEMS_MAX:]
        site.menus[key] = entries[:MENU_ITEMS_MAX]
        if left:
            site.notes.append(f"{file}: entries that did not come: {', '.join(left)}")


def _entries(text: str) -> tuple[list[str], list[str]]:
    """Return the entries of a menu, and lines that are none.  Lines of actions go: a page has those itself."""
    entries, left = [], []
    for line in map(str.strip, text.splitlines()):
        link = _LINK.fullmatch(with_bars(line, of_pages="words"))
        entry = _entry(link) if link is not None else None
        if entry is not None:
            entries.append(entry)
        elif line and not _ACTION.search(line):
            left.append(line)
    return entries, left


def _entry(link: re.Match[str]) -> str | None:
    target = link[3] or link[1]
    prefix, colon, page = target.partition(":")
    if colon and not page.startswith("//"):
        target = interwiki.address(prefix, page) or target
        if prefix.lower() in _NO_PAGES:
            return None
    entry = f"{link[2] or link[3] or link[1]} | {target}"
    try:
        changed_settings(SiteSettings(), {"menu_visitors": [entry]})
    except BadSetting:
        return None
    return entry


# --- antispam -----------------------------------------------------------------------------------------


def _read_policy(site: OldSite, config: Config, folder: Path) -> None:
    for name, key in _NUMBERS.items():
        number = config.values.get(name, "").strip()
        try:
            if number and getattr(changed_policy(Policy(), {key: number}), key) != getattr(Policy(), key):
                site.policy[key] = number
        except BadPolicy as bad:
            site.notes.append(f"{name} of the configuration did not come: {bad}")
    path = folder / config.values.get("badwords_path", "badwords.txt.php")
    words = list(_words(_text_of(path, site)))
    if not words:
        return
    if config.values.get("content_filtering", "0") != "1":
        site.notes.append(f"{path.name}: its {len(words):,} words did not come, for content_filtering is off there")
        return
    plain = [one for one in words if _PLAIN_WORD.fullmatch(one)]
    site.policy["words"] = plain[:ANTISPAM_ENTRIES_MAX]
    left = [one for one in words if one not in plain] + plain[ANTISPAM_ENTRIES_MAX:]
    if left:
        more = f" and {len(left) - _NAMED:,} more" if len(left) > _NAMED else ""
        site.notes.append(f"{path.name}: words that did not come: {', '.join(left[:_NAMED])}{more}")


def _words(text: str) -> Iterator[str]:
    for line in dict.fromkeys(" ".join(line.split()) for line in text.splitlines()):
        if line and not line.startswith(("<?", "?>")):
            yield codecs.decode(line, "rot13")


# --- prefixes -----------------------------------------------------------------------------------------


def _read_prefixes(site: OldSite, path: Path) -> None:
    """Note how the prefixes come along: in this wiki each process reads them from a file."""
    found: dict[str, str] = {}
    faults: list[str] = []
    for number, line in enumerate(_text_of(path, site).splitlines(), 1):
        try:
            found |= read_sites(line)
        except BadInterwiki:
            faults.append(f"{number}")
    new = [prefix for prefix in found if prefix.lower() not in interwiki.SITES]
    if not new:
        return
    named = ", ".join(new[:_NAMED]) + (f" and {len(new) - _NAMED:,} more" if len(new) > _NAMED else "")
    todo = f"remove line {', '.join(faults)}, which this wiki cannot read, and start it" if faults else "start the wiki"
    site.notes.append(f"prefixes of other wikis ({named}): {todo} with: wikka run --interwiki {path}")


# --- what comes ---------------------------------------------------------------------------------------


def bring_site(wiki: Wiki, old: OldSite, zone: str) -> list[str]:
    """Set what has not been set here; return lines for a person.  Raises StoreUnavailable.

    ``zone`` is the old wiki's, in which its addresses have times (``?time=``).
    """
    given: dict[str, Any] = {**old.menus, **({} if zone == "UTC" else {"old_zone": zone})}
    return [*_bring_settings(wiki, given), *_bring_policy(wiki, old.policy), *old.notes]


def _bring_settings(wiki: Wiki, given: Mapping[str, Any]) -> list[str]:
    stored = KEPT.read(wiki.rows)
    wanted = changed_settings(stored.value, given)
    set_here = [key for key in given if getattr(stored.value, key) not in ((), "", getattr(wanted, key))]
    settings = replace(wanted, **{key: getattr(stored.value, key) for key in set_here})
    lines = [f"{key} was set here already: it stays" for key in set_here]
    if settings == stored.value:
        return lines
    try:
        KEPT.write(wiki.rows, stored.revision, settings, by=_BY, now_ms=clock_ms())
    except SettingsChanged:
        return ["settings did not come: somebody changes the settings of the site at this moment. Import again"]
    wiki.rights.memory.forget()
    shown = set_values(settings)
    brought = [key for key in given if getattr(settings, key) != getattr(stored.value, key)]
    return [*lines, *(f"{key} is set: {shown[key]}" for key in brought)]


def _bring_policy(wiki: Wiki, given: Mapping[str, Any]) -> list[str]:
    if not given:
        return []
    stored = read_policy(wiki.rows)
    try:
        policy = changed_policy(stored.policy, given)
        if policy == stored.policy:
            return []
        if stored.revision:
            return ["antispam was set here already: words and numbers of the configuration did not come"]
        write_policy(wiki.rows, stored.revision, policy, by=_BY, now_ms=clock_ms())
    except BadPolicy as bad:
        return [f"words and numbers of antispam did not come: {bad}"]
    counts = {**given, "words": f"{len(policy.words):,}"} if "words" in given else given
    return [f"antispam is set: {', '.join(f'{key} {value}' for key, value in counts.items())}"]
