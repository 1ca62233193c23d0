"""The texts of a language, from a ``.po`` file of gettext, and the list of languages.

A file's name is the code of its language (``de.po``).  Its header has ``Language-Name``, the language's own name, and
``Number-Format``, the form in which the language writes 1,234.5.  The files of ``wikka_port/languages`` belong to the
wiki.  A folder of the operator may have further files; a file of the same code replaces the wiki's.  A file is read
when its language is first needed.
"""

from __future__ import annotations

import gettext
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

SOURCE_LANGUAGE: Final = "en"
_RIGHT_TO_LEFT: Final = frozenset({"ar", "arc", "ckb", "dv", "fa", "he", "ks", "ku-arab", "ps", "sd", "ug", "ur", "yi"})
_CODE: Final = re.compile(r"[a-z]{2,3}(?:-[A-Za-z0-9]{2,8}){0,2}")  # the part of BCP 47 that wikis need
_NAME: Final = re.compile(r'^"Language-Name: (.*?)(?:\\n)?"$', re.MULTILINE)
_PLURAL: Final = re.compile(r"plural\s*=\s*([^;]+)")
_HEADERS: Final = ("Content-Type", "Plural-Forms")  # without these gettext guesses
_NUMBER: Final = re.compile(r"1(\D?)234(\D)5")
_HEADER_CHARS: Final = 4_000


class UnreadableTexts(Exception):
    """A file of texts cannot be used; the message says why."""


def is_language(code: str) -> bool:
    """Return whether ``code`` can name a language: de, pt-BR, zh-Hant."""
    return _CODE.fullmatch(code) is not None


def direction(code: str) -> str:
    """Return the direction of texts in a language, ``ltr`` or ``rtl``."""
    return "rtl" if code.lower() in _RIGHT_TO_LEFT or code.partition("-")[0] in _RIGHT_TO_LEFT else "ltr"


@dataclass(frozen=True, slots=True, eq=False)
class Catalogue:
    code: str
    name: str  # the language's own
    texts: gettext.NullTranslations = field(repr=False)
    of_scripts: Mapping[str, Sequence[str]] = field(default_factory=dict, repr=False)  # English -> its forms
    plural: str = "n != 1"  # the rule of plurals, as an expression of C
    thousands: str = ","
    point: str = "."

    @property
    def direction(self) -> str:
        return direction(self.code)

    def gettext(self, text: str) -> str:
        return self.texts.gettext(text) if text else ""  # gettext has the header of the file for it

    def figure(self, value: float, form: str = ",") -> str:
        """Format ``value`` as the language writes it; ``form`` is a format of Python's ``format``."""
        said = format(value, form)
        return said.translate({ord(","): self.thousands, ord("."): self.point})

    def ngettext(self, one: str, many: str, n: int) -> str:
        return self.texts.ngettext(one, many, n)


ENGLISH: Final = Catalogue(SOURCE_LANGUAGE, "English", gettext.NullTranslations())


def read_catalogue(code: str, content: str) -> Catalogue:
    """Read the texts of a language.  Raises UnreadableTexts."""
    import polib

    try:
        entries = polib.pofile(content)
        if missing := [name for name in _HEADERS if name not in entries.metadata]:
            raise ValueError(f"its header has no {' and no '.join(missing)}")
        texts = gettext.GNUTranslations(io.BytesIO(entries.to_binary()))
    except (OSError, ValueError, LookupError) as broken:
        raise UnreadableTexts(f"The texts of {code} cannot be read: {broken}") from None
    scripts = {
        entry.msgid: [form for _, form in sorted(entry.msgstr_plural.items())] or [entry.msgstr]
        for entry in entries.translated_entries()
        if any(place.endswith(".js") for place, _line in entry.occurrences)
    }
    rule = _PLURAL.search(entries.metadata["Plural-Forms"])
    number = _NUMBER.fullmatch(entries.metadata.get("Number-Format", "1,234.5"))
    if rule is None or number is None:
        raise UnreadableTexts(f"The texts of {code} cannot be read: its Plural-Forms or its Number-Format is none.")
    return Catalogue(code, _own_name(content) or code, texts, scripts, rule.group(1), *number.groups())


def _own_name(content: str) -> str:
    found = _NAME.search(content[:_HEADER_CHARS])
    return found.group(1) if found else ""


class Languages:
    """The languages of this wiki; the texts of each are read once."""

    def __init__(self, files: Mapping[str, Traversable], names: Mapping[str, str]) -> None:
        self.names = names  # by code
        self._files = files
        self.catalogue = lru_cache(maxsize=None)(self._catalogue)

    @classmethod
    def found(cls, folder: Path | None = None) -> Languages:
        """Find the wiki's languages, and those in the operator's ``folder``.  Raises UnreadableTexts."""
        files = _files(resources.files("wikka_port") / "languages")
        if folder is not None:
            files |= _files(folder)
        names = {SOURCE_LANGUAGE: ENGLISH.name}
        return cls(files, names | {code: _named(file) or code for code, file in files.items()})

    def _catalogue(self, code: str) -> Catalogue:
        """Return the texts of a language, or English if there is no such language.  Raises UnreadableTexts."""
        file = self._files.get(code)
        return read_catalogue(code, _content(file)) if file is not None else ENGLISH


def _files(place: Traversable) -> dict[str, Traversable]:
    try:
        found = {one.name.removesuffix(".po"): one for one in place.iterdir() if one.name.endswith(".po")}
    except OSError as broken:
        raise UnreadableTexts(f"The texts in {place} cannot be read: {broken}") from None
    for code, file in found.items():
        if not is_language(code):
            raise UnreadableTexts(f"{file} is named after no language: name it after its code, like fr.po")
    return dict(sorted(found.items()))


def _content(file: Traversable) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as broken:
        raise UnreadableTexts(f"The texts in {file} cannot be read: {broken}") from None


def _named(file: Traversable) -> str:
    return _own_name(_content(file))
