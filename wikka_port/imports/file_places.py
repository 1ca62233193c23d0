"""The pages to which the files of a folder belong, and the names that they get there; shared by all folders.

A file that one page shows or links to belongs to that page.  A file of several pages belongs to the one in whose folder
it lies, or to the first by name.  A file that nobody names belongs to the page of its folder.

Files of one name on a page have their folders before their names, so that a further one renames none of them.  A name
becomes what the wiki would make of it: signs with a meaning become ``-``, a wrong ending is corrected by the content,
of which the beginning is read.

Pages and files are given by paths with slashes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping

from wikka_port.files.content_types import SNIFFED_BYTES, NotAccepted, fitting_name, type_of
from wikka_port.files.file_names import InvalidFileName, clean_file_name
from wikka_port.imports.source_folder import SourceFolder


def owners(
    names: Mapping[str, str],
    files: Iterable[str],
    used: Mapping[str, Collection[str]],
    folder_page: Callable[[str], str | None],
) -> dict[str, str]:
    """Return the page of each file, both as paths.

    ``names`` has the names of pages, ``used`` the pages that name a file, and ``folder_page`` returns the page of the
    folder of a file.
    """
    found: dict[str, str] = {}
    for path in files:
        pages = sorted(used.get(path, ()), key=lambda one: names[one])
        if len(pages) > 1:
            place = path.rpartition("/")[0]
            page = next((one for one in pages if one.rpartition("/")[0] == place), pages[0])
        else:
            page = pages[0] if pages else folder_page(path) or ""
        if page:
            found[path] = page
    return found


def final_names(folder: SourceFolder, owned: Mapping[str, str], refused: list[str]) -> dict[str, tuple[str, str]]:
    """Return page and name of each file that this wiki takes; ``refused`` gets a line for each other one."""
    same: dict[tuple[str, str], list[str]] = defaultdict(list)
    for path, page in owned.items():
        same[page, path.rpartition("/")[2].lower()].append(path)
    found: dict[str, tuple[str, str]] = {}
    for (page, _), paths in sorted(same.items()):
        for path in paths:
            typed = path if len(paths) > 1 else path.rpartition("/")[2]
            try:
                name = clean_file_name(typed.replace("/", "-"))
                head = folder.read_bytes(path, SNIFFED_BYTES)
                found[path] = (page, fitting_name(name, type_of(head, name)))
            except (InvalidFileName, NotAccepted, OSError) as problem:
                refused.append(f"{path!a}: {problem}")
    return found
