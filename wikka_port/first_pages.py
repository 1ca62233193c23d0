"""The first pages of a new wiki: the files of ``default_pages``, named as their pages.

A subfolder, named after a language, has the same pages in that language.
"""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from wikka_port import schema
from wikka_port.page_languages import ENGLISH
from wikka_port.pages import Conflict, Wiki
from wikka_port.texts import _w

AUTHOR: Final = "WikiSetup"
_SUFFIX: Final = ".txt"


def first_pages(language: str = ENGLISH) -> dict[str, str]:
    """Return the texts of the first pages by name, in English if there are none in ``language``."""
    folder = _folder(language)
    found = sorted(file.name for file in folder.iterdir() if file.name.endswith(_SUFFIX))
    return {name.removesuffix(_SUFFIX): (folder / name).read_text(encoding="utf-8") for name in found}


def write_first_pages(wiki: Wiki, language: str = ENGLISH) -> int:
    """Write the first pages unless the wiki has a page; return how many were written."""
    if wiki.store.run(
        lambda c: next(iter(c.table(schema.PAGES).scan(columns=[schema.VERSIONCOUNT], limit=1, batch_size=1)), None)
    ):
        return 0
    written = 0
    written_in = language if _folder(language).name == language else ENGLISH
    for name, text in first_pages(language).items():
        try:
            note = _w("a page to begin with")
            wiki.save(name, text, author=AUTHOR, note=note, base=0, signed="wiki", language=written_in)
            written += 1
        except Conflict:
            continue  # somebody was quicker, and wrote something better
    return written


def _folder(language: str) -> Traversable:
    english = files("wikka_port") / "default_pages"
    own = english / language
    return own if own.is_dir() else english
