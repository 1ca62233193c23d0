"""The pages that a new wiki begins with: the files of ``default_pages``, named as their pages."""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from wikka_port import schema
from wikka_port.pages import Conflict, Wiki

AUTHOR: Final = "WikiSetup"
_SUFFIX: Final = ".txt"


def first_pages() -> dict[str, str]:
    """Name to text."""
    folder = files("wikka_port") / "default_pages"
    found = sorted(file.name for file in folder.iterdir() if file.name.endswith(_SUFFIX))
    return {name.removesuffix(_SUFFIX): (folder / name).read_text(encoding="utf-8") for name in found}


def write_first_pages(wiki: Wiki) -> int:
    """How many were written: none where the wiki has a page."""
    if wiki.store.run(
        lambda c: next(iter(c.table(schema.PAGES).scan(columns=[schema.VERSIONCOUNT], limit=1, batch_size=1)), None)
    ):
        return 0
    written = 0
    for name, text in first_pages().items():
        try:
            wiki.save(name, text, author=AUTHOR, note="a page to begin with", base=0, signed="wiki")
            written += 1
        except Conflict:
            continue  # somebody was quicker, and wrote something better
    return written
