"""(pure) The pages and files of a folder: what a path in a text means there, and to which page a file belongs.

A path is relative to its page's folder, or to the top if it begins with a slash.  If nothing is there it is tried from
the top, then without a language before it (``/en/page``), and then by its last part alone, if only one page or file
has that, as Obsidian and GitHub wikis find their pages.  An ending .md may be missing; a folder means its main page.
Case counts only where it makes a difference.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from wikka_port.imports.markdown_links import AddressTarget, FileTarget, PageTarget, Reference, Target
from wikka_port.imports.markdown_names import NameOrigin, is_main_page, stem_of
from wikka_port.imports.source_forms import PAGE_ENDINGS
from wikka_port.markup.targets import heading_id, place_id
from wikka_port.schema import folded

_HEADING: Final = re.compile(r"^ {0,3}#{1,6}[ \t]+(.{1,300}?)[ \t]*#*$", re.MULTILINE)
_LINK: Final = re.compile(r"\[([^\[\]]*)\]\([^()]*\)")
_NOT_IN_SLUG: Final = re.compile(r"[^\w\- ]")
_LANGUAGE: Final = re.compile(r"[a-z]{2}(-[a-z]{2})?/", re.IGNORECASE)


def heading_slugs(text: str) -> dict[str, str]:
    """Return the ids of headings by the names that GitHub gives them, of those that lead elsewhere as they are."""
    found: dict[str, str] = {}
    for heading in _HEADING.finditer(text):
        words = _LINK.sub(r"\1", heading[1]).strip()
        slug = _NOT_IN_SLUG.sub("", words.lower()).replace(" ", "-")
        if heading_id(slug) != place_id(words):
            found.setdefault(slug, place_id(words))
    return found


class FolderMap:
    """Finds pages and files by paths.  Constant after construction."""

    def __init__(self, names: Mapping[str, str], files: Collection[str], origin: NameOrigin) -> None:
        """Take the names of pages by their paths, and the paths of all other files."""
        self.names = names
        self._files = frozenset(files)
        self.origin = origin
        self._mains = {path.rpartition("/")[0]: path for path in sorted(names, reverse=True) if _is_main(path)}
        self._keys: dict[str, list[str]] = defaultdict(list)  # of whole paths
        self._last: dict[str, list[str]] = defaultdict(list)  # of last parts
        for path in (*names, *self._files):
            for one in {path, stem_of(path) or path}:
                self._keys[self._key(one)].append(path)
                self._last[self._key(one.rpartition("/")[2])].append(path)

    def _key(self, path: str) -> str:
        key = folded(path)
        return key.replace("-", " ").replace("_", " ") if self.origin in ("github", "azure") else key

    def find(self, path: str, page: str) -> str | None:
        """Return the path of the page or file that ``path`` means in the text of ``page``, or None."""
        if not path or "\0" in path:
            return None
        folder = page.rpartition("/")[0]
        wanted = path.rstrip("/") if path.strip("/") else "/"
        tried = [_joined("", wanted)] if wanted.startswith("/") else [_joined(folder, wanted), _joined("", wanted)]
        tried += [one[found.end() :] for one in tried[-1:] if one and (found := _LANGUAGE.match(one))]
        for one in tried:
            if one is not None and (found_path := self._at(one)) is not None:
                return found_path
        same = self._last.get(self._key(wanted.rpartition("/")[2]), []) if "/" not in wanted.strip("/") else []
        return self._single(same) if wanted.strip("/") else None

    def _at(self, path: str) -> str | None:
        """Return the page or file at a whole path: the exact one, then one of another case."""
        if path in self.names or path in self._files:
            return path
        for ending in PAGE_ENDINGS:
            if path + ending in self.names:
                return path + ending
        if path in self._mains:
            return self._mains[path]
        return self._single(self._keys.get(self._key(path), []))

    def _single(self, paths: list[str]) -> str | None:
        pages = [path for path in paths if path in self.names]
        if len(pages) == 1:
            return pages[0]
        return paths[0] if len(paths) == 1 else None

    def folder_page(self, path: str) -> str | None:
        """Return the page to which the files of a file's folder belong: of the folder, or of one that it lies in."""
        folder = path.rpartition("/")[0]
        while True:
            found = self._mains.get(folder)
            for ending in PAGE_ENDINGS if found is None else ():
                inner = f"{folder}/{folder.rpartition('/')[2]}{ending}"
                found = next((one for one in (folder + ending, inner) if one in self.names), found)
            if found is not None or not folder:
                return found if found is not None else min(self.names, default=None)
            folder = folder.rpartition("/")[0]


def _is_main(path: str) -> bool:
    stem = stem_of(path)
    return stem is not None and is_main_page(stem)


def _joined(folder: str, path: str) -> str | None:
    """Return a path without ``.`` and ``..``, or None if it leads out of the whole folder."""
    parts = folder.split("/") if folder else []
    for part in path.split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


@dataclass(frozen=True, slots=True)
class Places:
    """The final places of pages and files; resolves the references of texts."""

    folder: FolderMap
    files: Mapping[str, tuple[str, str]]  # path of a file -> path of its page, and its name there
    slugs: Mapping[str, Mapping[str, str]]  # path of a page -> ``heading_slugs``
    base: str = ""  # the address at which the pages were read; "": unknown

    def resolve(self, reference: Reference, page: str) -> Target | None:
        """Return what a reference in the text of ``page`` means, or None if it is nothing of the folder."""
        path = self.folder.find(reference.path, page) if reference.path else page
        if path is None:
            return self._outside(reference, page)
        name = self.folder.names.get(path)
        if name is not None:
            slug = self.slugs.get(path, {}).get(reference.place.lower()) if reference.place else None
            return PageTarget(name if reference.path else "", slug)
        given = self.files.get(path)
        if given is None:
            return None
        owner, file = given
        return FileTarget("" if owner == page else self.folder.names[owner], file)

    def _outside(self, reference: Reference, page: str) -> AddressTarget | None:
        """Return the target of a reference that leads out of the folder, ``../issues/5``, if the address is known.

        All pages of a wiki of GitHub lie in one folder of its site, whatever folders their files are in.
        """
        if not self.base or reference.kind in ("wiki", "embed") or not reference.path.startswith("../"):
            return None
        return AddressTarget(self.base if self.folder.origin == "github" else self.base + quote(page))
