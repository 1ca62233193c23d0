"""(pure) Files in pages: which file a name means, and its HTML.

A name without a page means a file of the page that has the link, else of the pages above it (A/B/C: A/B, then A), else
of the site's page of shared files.  Case, ``_`` and blanks do not count (``file_rows.lookup_key``).  The files of other
pages are read with one call for all names of a page, and only if the page itself lacks a name.

A picture is ``img`` with its size from the record, so that the text below it does not move when it loads.  Any other
file is a link with its kind and size.  Words in the place of a picture are, in this order, those of the link, those of
the file's own description, and its name.  The description "decorative" gives an empty one: programs that read a page
aloud then leave out the picture.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from wikka_port.files.content_types import BY_MEDIA_TYPE
from wikka_port.files.file_rows import CurrentFile, lookup_key
from wikka_port.files.file_words import kind_text, size_text
from wikka_port.files.thumbnails import widths_of
from wikka_port.limits import FILE_PAGES_MAX
from wikka_port.markup.embedded import user_classes
from wikka_port.markup.file_slots import is_wide
from wikka_port.markup.fragments import FileReference, FileSlot, escape
from wikka_port.markup.targets import is_url, safe_url
from wikka_port.names import InvalidName, normalise, pages_above
from wikka_port.urls import file_path, page_path, page_url

Files = Mapping[str, CurrentFile]  # of a page, by name
NO_FILES: Final[Files] = {}
DECORATIVE: Final = frozenset({"decorative", "dekorativ"})
_SIZES: Final = "(max-width: 48rem) 100vw, 48rem"  # of a picture on the page, of which a browser chooses a width
SIZES_IN_GRID: Final = "22rem"  # the widest that a picture of a gallery gets


class FoundFile(NamedTuple):
    page: str
    name: str
    file: CurrentFile


# --- which file is meant --------------------------------------------------------------------------


def by_key(page: str, files: Files) -> dict[str, FoundFile]:
    """Return the files of a page that are not removed, by ``lookup_key``."""
    return {lookup_key(name): FoundFile(page, name, file) for name, file in files.items() if file.is_there}


def find_files(
    references: Collection[FileReference],
    page: str,
    own: Files,
    shared_page: str,
    read: Callable[[Sequence[str]], Mapping[str, Files]],
) -> dict[FileReference, FoundFile]:
    """Return the files that are meant, by reference; references to no file are left out.

    ``read`` returns the files of those pages that there are and that may be read; it is called once at most, with up to
    FILE_PAGES_MAX names.
    """
    indexes = {page: by_key(page, own)}
    keys = {reference: lookup_key(reference.name) for reference in references}
    elsewhere = [*dict.fromkeys(one for one in (*reversed(pages_above(page)), shared_page) if one and one != page)]
    wanted: dict[str, None] = {}
    for reference, key in keys.items():
        if reference.page:
            wanted[reference.page] = None
        elif key not in indexes[page] and is_wide(reference.name):
            wanted.update(dict.fromkeys(elsewhere))
    wanted.pop(page, None)
    for name, files in (read([*wanted][:FILE_PAGES_MAX]) if wanted else {}).items():
        indexes[name] = by_key(name, files)
    found: dict[FileReference, FoundFile] = {}
    for reference, key in keys.items():
        for name in (reference.page,) if reference.page else (page, *elsewhere):
            file = indexes.get(name, {}).get(key)
            if file is not None:
                found[reference] = file
                break
    return found


# --- HTML -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FilesFound:
    """The files of one page in one view."""

    page: str
    found: Mapping[FileReference, FoundFile]

    def slot_html(self, slot: FileSlot) -> str | None:
        """Return the HTML of the file that is meant; without one, a link to where it is added, or None (``render``)."""
        for reference, label, label_html in slot.choices:
            one = self.found.get(reference)
            if one is None:
                continue
            if slot.shows and is_picture(one.file):
                return picture_html(one, label, slot.options)
            return link_html(one, label_html)
        if slot.otherwise is not None:
            return None
        (page, name), label, _ = slot.choices[0]
        url = escape(page_url(page or self.page, "files"))
        return f'<a href="{url}" class="missing" rel="nofollow">{escape(label or name)}</a>'


def is_picture(file: CurrentFile) -> bool:
    known = BY_MEDIA_TYPE.get(file.media_type)
    return known is not None and known.picture


def described(one: FoundFile, given: str = "") -> str:
    """Return the words that stand for a picture; "" for a decoration."""
    words = given or one.file.alt.strip() or one.name
    return "" if words.casefold() in DECORATIVE else words


def address(one: FoundFile, **query: int) -> str:
    """Return the path of a file's version, escaped for HTML."""
    return escape(file_path(one.page, one.name, v=one.file.number, **query))


def link_html(one: FoundFile, label_html: str = "") -> str:
    """Return a link to a file, with its kind and size."""
    kind = f"{kind_text(one.file.media_type)}, {size_text(one.file.size_bytes)}"
    words = label_html or escape(one.name)
    return f'<a href="{address(one)}" class="file">{words}</a> <span class="file-kind">({escape(kind)})</span>'


def picture_html(
    one: FoundFile,
    label: str = "",
    options: Sequence[tuple[str, str]] = (),
    sizes: str = _SIZES,
) -> str:
    """Return a picture.  ``options`` are the arguments of ``{{image}}`` that are given."""
    given = dict(options)
    parts = [f'src="{address(one)}"', *_widths(one, sizes)]
    width, height = _sides(one.file, given)
    parts += [f'{side}="{pixels}"' for side, pixels in (("width", width), ("height", height)) if pixels]
    parts.append(f'alt="{escape(described(one, label))}" loading="lazy" decoding="async"')
    if given.get("title"):
        parts.append(f'title="{escape(given["title"])}"')
    css = user_classes(given.get("class", ""))
    if css:
        parts.append(f'class="{css}"')
    return linked(f"<img {' '.join(parts)}>", given.get("link", ""))


def linked(html: str, link: str) -> str:
    """Return a picture within a link to an address or a page, if ``link`` is one."""
    link = link.strip()
    if not link:
        return html
    if is_url(link):
        url = safe_url(link)
        return f'<a href="{escape(url)}" class="external" rel="nofollow noopener">{html}</a>' if url else html
    if link.startswith(("/", "#")):
        url = safe_url(link)
        return f'<a href="{escape(url)}">{html}</a>' if url else html
    try:
        return f'<a href="{escape(page_path(normalise(link)))}">{html}</a>'
    except InvalidName:
        return html


def _widths(one: FoundFile, sizes: str) -> list[str]:
    """Return ``srcset`` and ``sizes`` of a picture that has smaller versions."""
    smaller = widths_of(one.file)
    if not smaller:
        return []
    each = [f"{address(one, w=width)} {width}w" for width in smaller]
    return [f'srcset="{", ".join([*each, f"{address(one)} {one.file.width}w"])}"', f'sizes="{sizes}"']


def _sides(file: CurrentFile, given: Mapping[str, str]) -> tuple[int, int]:
    """Return width and height: those given; if one is given, the other in proportion; 0: unknown."""
    width, height = (_pixels(given.get(side, "")) for side in ("width", "height"))
    if not file.width or not file.height:
        return width, height
    if width and not height:
        return width, max(1, round(file.height * width / file.width))
    if height and not width:
        return max(1, round(file.width * height / file.height)), height
    return width or file.width, height or file.height


def _pixels(typed: str) -> int:
    text = typed.strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 4 else 0
