"""(pure) The form of a folder that is imported, guessed from the names in it.

A reader of a further form adds its name to FORMS and its sign to ``form_of_folder``.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

MARKDOWN: Final = "markdown"
DOKUWIKI: Final = "dokuwiki"
FORMS: Final = {  # the words of messages
    MARKDOWN: "a folder of Markdown files",
    DOKUWIKI: "the data folder of a DokuWiki",
}
PAGE_ENDINGS: Final = (".md", ".markdown", ".mdown", ".mkd", ".mkdn")


def form_of_folder(paths: Collection[str]) -> str | None:
    """Return the form of a folder, or None if it is of no known form.

    ``paths`` are its files and, with a slash behind them, its folders, relative to it: at least those of two levels.
    """
    folders = {path.rstrip("/") for path in paths if path.endswith("/")}
    if {"pages", "meta"} <= folders or {"data/pages", "data/meta"} <= folders:
        return DOKUWIKI
    if any(path.lower().endswith(PAGE_ENDINGS) for path in paths):
        return MARKDOWN
    return None
