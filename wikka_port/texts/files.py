"""The file of a language: made with every text of the wiki, brought up to date, and checked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import polib

from wikka_port.texts.extracting import Text

_PLACE: Final = re.compile(r"%\((\w+)\)s|\{(\w+)[^{}]*\}")
_LINE_CHARS: Final = 120


def up_to_date(old: polib.POFile | None, texts: Iterable[Text], code: str) -> polib.POFile:
    """Return a file with these texts and what ``old`` has for them; texts that are not said any more are left out."""
    made = polib.POFile(wrapwidth=_LINE_CHARS)
    made.metadata = (
        dict(old.metadata)
        if old is not None
        else {
            "Language": code,
            "Language-Name": "",
            "Number-Format": "1,234.5",
            "Content-Type": "text/plain; charset=utf-8",
            "Content-Transfer-Encoding": "8bit",
            "Plural-Forms": "nplurals=2; plural=(n != 1);",
        }
    )
    entries: dict[str, polib.POEntry] = {}
    for text in texts:
        if text.one not in entries:
            entries[text.one] = _entry(text, old.find(text.one) if old is not None else None)
        entry = entries[text.one]
        if text.many and not entry.msgid_plural:
            entry.msgid_plural, entry.msgstr_plural, entry.msgstr = text.many, {0: "", 1: ""}, ""
        place = (text.place.rpartition(":")[0], "")  # without lines: a file does not change with what moves
        if place not in entry.occurrences:
            entry.occurrences.append(place)
    made.extend(entries.values())
    return made


def written(file: polib.POFile) -> str:
    """As a file has it; it begins with the header."""
    return str(file).removeprefix("#\n")


def _entry(text: Text, before: polib.POEntry | None) -> polib.POEntry:
    if before is None or (before.msgid_plural or "") != text.many:
        plural = {"msgid_plural": text.many, "msgstr_plural": {0: "", 1: ""}} if text.many else {}
        return polib.POEntry(msgid=text.one, **plural)
    return polib.POEntry(
        msgid=before.msgid,
        msgid_plural=before.msgid_plural,
        msgstr=before.msgstr,
        msgstr_plural=before.msgstr_plural,
        tcomment=before.tcomment,
        flags=before.flags,
    )


def problems(file: polib.POFile) -> Iterator[str]:
    """Yield a line for each text that is missing or wrong."""
    for entry in file:
        if entry.obsolete:
            continue
        if not entry.translated():
            yield f"{entry.msgid!r} is not translated"
            continue
        allowed = _places(entry.msgid) | _places(entry.msgid_plural or "")
        for said in (entry.msgstr, *entry.msgstr_plural.values()):
            if strange := _places(said) - allowed:
                yield f"{said!r} has {', '.join(sorted(strange))}, which {entry.msgid!r} has not"
        if not entry.msgid_plural and (lost := allowed - _places(entry.msgstr)):
            yield f"{entry.msgstr!r} lacks {', '.join(sorted(lost))}"


def _places(text: str) -> set[str]:
    """Return the places of its values: ``%(name)s`` of templates, ``{name}`` elsewhere."""
    return {one.group() if one.group(1) else "{" + one.group(2) + "}" for one in _PLACE.finditer(text)}


def read(path: Path) -> polib.POFile | None:
    """None: there is none yet.  Raises OSError, and ValueError for what is no such file."""
    if not path.exists():
        return None
    try:
        return polib.pofile(str(path), encoding="utf-8", wrapwidth=_LINE_CHARS)
    except OSError as broken:
        raise ValueError(str(broken)) from None
