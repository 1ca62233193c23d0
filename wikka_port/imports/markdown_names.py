"""(pure) The names of pages that are files in a folder: ``Guide/First-Steps.md`` becomes "Guide/First Steps".

    origin      its sign                                        names
    github      Home.md or _Sidebar.md at the top, no blanks    ``-`` is a blank; pages are found by their last part
    azure       a file .order                                   ``-`` is a blank, and then %2D is ``-``
    notion      most names end with 32 hexadecimal digits       without the digits, if the name is unique without them
    obsidian    the folder .obsidian                            as they are
    plain       none                                            as they are

``%2F`` and the like are decoded in a name of any origin: programs write signs so that file systems refuse.  A slash
that was decoded counts as every slash of a name.  The main page of a folder (README, index, Home) has the folder's
name; at the top it has the name that the caller gives.

Two files of one name: the second gets " (2)" behind its name, in the order of paths; a main page of a folder beside a
page of the folder's name keeps its own name.  Both are reported.  Names that differ in case alone are two pages here.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal
from urllib.parse import unquote

from wikka_port.imports.source_forms import PAGE_ENDINGS
from wikka_port.names import InvalidName, normalise
from wikka_port.schema import folded

NameOrigin = Literal["github", "azure", "notion", "obsidian", "plain"]
ORIGINS: Final = ("github", "azure", "notion", "obsidian", "plain")
MAIN_PAGES: Final = ("readme", "index", "home", "_index")
_FURNITURE: Final = frozenset({"_sidebar", "_footer", "_header"})
_DIGITS: Final = re.compile(r"(?:^|[ _-])([0-9a-f]{32})$")
_ESCAPE: Final = re.compile(r"%[0-9A-Fa-f]{2}")


@dataclass(slots=True)
class NameReport:
    """Findings in the names; each entry is a line for a person."""

    refused: list[str] = field(default_factory=list)
    renamed: list[str] = field(default_factory=list)  # of two files with one name
    alike: list[str] = field(default_factory=list)  # pages whose names differ in case alone


def stem_of(path: str) -> str | None:
    """Return the path of a page without its ending, or None if the file is no page."""
    lower = path.lower()
    ending = next((one for one in PAGE_ENDINGS if lower.endswith(one)), None)
    return path[: -len(ending)] if ending is not None and not lower.endswith("/" + ending) and lower != ending else None


def origin_of(paths: Collection[str], hidden: Collection[str]) -> NameOrigin:
    """Return the program that wrote a folder; ``hidden`` has the names at the top that begin with a dot."""
    stems = [stem.rpartition("/")[2] for path in paths if (stem := stem_of(path)) is not None]
    if ".obsidian" in hidden:
        return "obsidian"
    if ".order" in hidden:
        return "azure"
    if sum(bool(_DIGITS.search(stem)) for stem in stems) * 2 > len(stems):
        return "notion"
    at_top = {path for path in paths if "/" not in path}
    if any(" " in stem for stem in stems):
        return "plain"  # GitHub writes no blanks in names of files
    return "github" if at_top & {"Home.md", "_Sidebar.md", "_Footer.md", "Home.markdown"} else "plain"


def is_main_page(stem: str) -> bool:
    return stem.rpartition("/")[2].lower() in MAIN_PAGES


def page_names(
    paths: Collection[str], origin: NameOrigin, report: NameReport, *, main_page: str, prefix: str = ""
) -> dict[str, str]:
    """Return the name of each page by its path.  O(paths), deterministic.

    ``main_page`` is the whole name of the main page at the top; with "" it has the name of its file.
    """
    stems = {path: stem for path in sorted(paths) if (stem := stem_of(path)) is not None}
    written = _without_digits(stems.values()) if origin == "notion" else {stem: stem for stem in stems.values()}
    names: dict[str, str] = {}
    taken: dict[str, str] = {}  # name -> its path
    mains = _main_pages(stems)
    for path in sorted(stems, key=lambda one: (one in mains, one)):  # pages before the main pages of folders
        stem = stems[path]
        try:
            name = _name_of(written[stem], origin, prefix)
            if path in mains:
                folder = written[stem].rpartition("/")[0]
                own = (main_page or name) if not folder else _name_of(folder, origin, prefix)
                name = own if normalise(own) not in taken else name
            names[path] = _unique(normalise(name), taken, path, report)
        except InvalidName as invalid:
            report.refused.append(f"{path!a}: {invalid}")
    _note_alike(names, report)
    return names


def _main_pages(stems: Mapping[str, str]) -> set[str]:
    """Return the paths of the main pages of folders: the first kind of MAIN_PAGES that a folder has."""
    of_folder: dict[str, tuple[int, str]] = {}
    for path, stem in stems.items():
        folder, _, last = stem.rpartition("/")
        if last.lower() in MAIN_PAGES:
            place = (_main_rank(last.lower(), is_top=not folder), path)
            of_folder[folder] = min(place, of_folder.get(folder, place))
    return {path for _, path in of_folder.values()}


def _main_rank(last: str, *, is_top: bool) -> int:
    """At the top "Home" is the wiki's page, and "README" speaks of the folder; below it "README" comes first."""
    order = ("home", "index", "_index", "readme") if is_top else MAIN_PAGES
    return order.index(last)


def _name_of(stem: str, origin: NameOrigin, prefix: str) -> str:
    parts = [_part(part, origin) for part in stem.split("/")]
    return "/".join([prefix, *parts] if prefix else parts)


def _part(part: str, origin: NameOrigin) -> str:
    if origin in ("github", "azure") and part.lower() not in _FURNITURE:
        part = part.replace("-", " ")
    if not _ESCAPE.search(part):
        return part
    decoded = unquote(part, errors="strict") if _is_utf8(part) else part
    return decoded if decoded.strip() not in ("", ".", "..") else part


def _is_utf8(part: str) -> bool:
    try:
        unquote(part, errors="strict")
    except UnicodeDecodeError:
        return False
    return True


def _without_digits(stems: Collection[str]) -> dict[str, str]:
    """Return each stem without the digits of Notion, in each of its parts, where the rest is unique in its folder."""
    parts = {tuple(stem.split("/")[:depth]) for stem in stems for depth in range(1, stem.count("/") + 2)}
    bare: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for one in parts:
        bare[(*one[:-1], _bare(one[-1]))].add(one[-1])
    found: dict[str, str] = {}
    for stem in stems:
        whole = stem.split("/")
        kept = []
        for depth, part in enumerate(whole):
            is_unique = len(bare[(*whole[:depth], _bare(part))]) == 1
            kept.append(_bare(part) if is_unique else part)
        found[stem] = "/".join(kept)
    return found


def _bare(part: str) -> str:
    return _DIGITS.sub("", part) or part


def _unique(name: str, taken: dict[str, str], path: str, report: NameReport) -> str:
    given, number = name, 1
    while name in taken:
        number += 1
        name = normalise(f"{given} ({number})")
    if name != given:
        report.renamed.append(f"{path!a}: called {name}, since {taken[given]!a} is {given}")
    taken[name] = path
    return name


def _note_alike(names: Mapping[str, str], report: NameReport) -> None:
    alike: dict[str, list[str]] = defaultdict(list)
    for name in names.values():
        alike[folded(name)].append(name)
    report.alike.extend(", ".join(sorted(same)) for same in alike.values() if len(same) > 1)
