"""The fields of all records of a wiki, as ``wiki_round_trip`` compares them: exactly, or as a WikkaWiki can hold them.

A field is a text under a key of its kind; two wikis are equal if they have the same keys with the same texts.  The
texts of pages and the contents of files are there as their SHA-256.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from wikka_port.comments.comment_rows import REMOVED, VISIBLE
from wikka_port.exchange.records import LISTS, CommentRecord, RecordedFile, RecordedPage, RevisionRecord, SiteRecord
from wikka_port.markup.formats import MARKDOWN
from wikka_port.rights.rules import DEFAULT_LIST
from wikka_port.schema import folded
from wikka_port.wikkawiki.stored_text import with_bars

KINDS: Final = ("text", "time", "author", "note", "marks", "rights", "files", "comments", "deletions")
NOTE_CHARS: Final = 100
Key = tuple[str, ...]


@dataclass
class Fields:
    """The fields of one wiki by kind, and what was left out or cut of it, with its count."""

    of: dict[str, dict[Key, str]] = field(default_factory=lambda: {kind: {} for kind in KINDS})
    losses: Counter[str] = field(default_factory=Counter)
    revisions: int = 0
    pages: int = 0

    def put(self, kind: str, key: Key, *values: object) -> None:
        assert key not in self.of[kind], f"two records of one key: {key}"
        self.of[kind][key] = repr(values)

    def leave_out(self, names: set[str], what: str, kinds: Collection[str] = KINDS) -> None:
        """Leave out the pages for which the form has no place, or fields of some kinds, by the pages' names."""
        self.losses[what] += len(names)
        for kind in kinds:
            self.of[kind] = {key: value for key, value in self.of[kind].items() if key[0] not in names}

    def differences(self, other: Fields) -> dict[str, list[Key]]:
        """Return by kind the keys whose fields are not on both sides, or not the same."""
        found = {}
        for kind in KINDS:
            ours, theirs = self.of[kind], other.of[kind]
            found[kind] = [key for key in sorted(ours.keys() | theirs.keys()) if ours.get(key) != theirs.get(key)]
        return found


def exact_fields(pages: Iterable[RecordedPage], site: SiteRecord | None) -> Fields:
    made = Fields()
    for prefix, lists in (site.lists if site is not None else {}).items():
        made.put("rights", ("(site)", prefix), sorted(lists.items()))
    for page in pages:
        record = page.record
        made.pages += 1
        name = record.identity
        if record.is_deleted:
            made.put("deletions", (name,), record.deleted_by, record.reason)
        made.put("rights", (name,), folded(record.owner), sorted(record.lists.items()))
        for place, one in enumerate(page.revisions(), 1):
            key = (name, f"{place}")
            made.revisions += 1
            made.put("text", key, _digest(one.body), None if one.source is None else _digest(one.source), one.origin)
            made.put("time", key, one.time_ms)
            made.put("author", key, one.author, one.signed)
            made.put("note", key, one.note)
            marks = (one.markup, one.language in ("", "en"), one.language or "en", one.autolink, one.attribution)
            made.put("marks", key, *marks, one.minor, one.hidden)
        _put_files(made, name, page.files())
        times: dict[int, int] = {}
        for comment in page.comments():
            times[comment.number] = comment.time_ms
            made.put("comments", (name, f"{comment.number}"), comment, times.get(comment.parent, 0))
    return made


def _put_files(made: Fields, page: str, files: Iterable[RecordedFile]) -> None:
    """Add all versions; the bytes of each content are read and compared with the digest of their record."""
    seen: set[str] = set()
    for file in files:
        one = file.record
        if file.content is not None:
            seen.add(_digest(b"".join(file.content)))
        has_content = not one.sha256 or one.sha256 in seen
        made.put("files", (page, one.name, f"{one.number}"), one, has_content or "its content is missing or damaged")


def _digest(data: str | bytes) -> str:
    return sha256(data.encode("utf-8", "replace") if isinstance(data, str) else data).hexdigest()


# --- as a WikkaWiki can hold them ------------------------------------------------------------------


def wikkawiki_fields(pages: Iterable[RecordedPage], site: SiteRecord | None) -> Fields:
    """Return the fields that a WikkaWiki has a place for.  Of a wiki that came from one nothing is lost."""
    made, lists = Fields(), site.lists if site is not None else {}
    for page in pages:
        record = page.record
        if record.is_deleted:
            made.losses["deleted pages"] += 1
            continue
        made.pages += 1
        name = record.name
        shown = []
        for one in page.revisions():
            if one.hidden:
                made.losses["hidden revisions"] += 1
            else:
                shown.append(one)
        _put_shown(made, name, shown)
        made.put("rights", (name,), folded(record.owner), _effective(name, record.lists, lists))
        _put_current_files(made, name, page.files())
        _put_comments(made, name, page.comments())
    return made


def _put_shown(made: Fields, name: str, shown: list[RevisionRecord]) -> None:
    last_ms = -1
    for place, one in enumerate(shown, 1):
        key = (name, f"{place}")
        made.revisions += 1
        seconds_ms = one.time_ms // 1000 * 1000
        last_ms = max(seconds_ms or 1, last_ms + 1)
        made.put("text", key, _digest(with_bars(one.body, of_pages="none")))
        made.put("time", key, last_ms // 1000)
        made.put("author", key, one.author or "(unknown)")
        made.put("note", key, _cut_note(one.note))
        made.losses["times of milliseconds"] += seconds_ms != one.time_ms
        made.losses["notes cut"] += len(html.escape(_line(one.note), quote=False)) > NOTE_CHARS
        made.losses["minor marks"] += one.minor
        made.losses["original texts"] += one.source is not None
        made.losses["attributions"] += bool(one.attribution)
        made.losses["texts in Markdown"] += one.markup == MARKDOWN
        made.losses["languages"] += one.language not in ("", "en")
        made.losses["CamelCase not linked"] += not one.autolink


def _line(text: str) -> str:
    return " ".join(text.split())


def _cut_note(note: str) -> str:
    """Return as much of a note as fits into 100 characters with HTML entities."""
    kept = _line(note)
    while len(html.escape(kept, quote=False).replace('"', "&quot;")) > NOTE_CHARS:
        kept = kept[:-1]
    return kept.rstrip()  # the import takes no blank at the end


def _effective(name: str, own: Mapping[str, str], site: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return the lists that count for a page: its own, else the longest prefix's, else the site's."""
    prefixes = sorted((one for one in site if folded(name).startswith(one)), key=len, reverse=True)
    found = []
    for one in LISTS:
        inherited = [site[prefix][one] for prefix in prefixes if one in site[prefix]]
        found.append(own[one] if one in own else next(iter(inherited), DEFAULT_LIST))
    return found


def _put_current_files(made: Fields, name: str, files: Iterable[RecordedFile]) -> None:
    current: dict[str, str] = {}
    versions = 0
    for file in files:
        if file.content is not None:
            assert _digest(b"".join(file.content)) == file.record.sha256
        current[file.record.name] = file.record.sha256
        versions += 1
    there = {file: digest for file, digest in current.items() if digest}
    made.losses["older versions of files"] += versions - len(there)
    for file, digest in there.items():
        made.put("files", (name, file), digest)


def _put_comments(made: Fields, name: str, comments: Iterable[CommentRecord]) -> None:
    times: dict[int, int] = {}
    place = 0
    for one in comments:
        if one.state not in (VISIBLE, REMOVED):
            made.losses["comments that wait"] += 1
            continue
        place += 1
        times[one.number] = one.time_ms // 1000
        text = one.text.replace("\r\n", "\n").replace("\r", "\n")
        values = (one.time_ms // 1000, one.author.strip() or "(unknown)", text, times.get(one.parent, 0))
        made.put("comments", (name, f"{place}"), *values, one.state == REMOVED)
        made.losses["marks of edited comments"] += bool(one.edited_ms)
