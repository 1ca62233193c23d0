"""Actions that show pictures and files of a page; calls that name one file are slots of the text (``file_slots``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from zoneinfo import ZoneInfo

from wikka_port.actions.call import Action, ActionCall
from wikka_port.feeds import iso_time
from wikka_port.files.file_html import (
    SIZES_IN_GRID,
    FoundFile,
    address,
    by_key,
    described,
    is_picture,
    linked,
    picture_html,
)
from wikka_port.files.file_rows import FileVersion
from wikka_port.files.file_words import kind_text, size_text
from wikka_port.local_time import local_time
from wikka_port.markup.embedded import user_classes
from wikka_port.markup.file_slots import foreign_words, host_of
from wikka_port.markup.fragments import escape
from wikka_port.markup.targets import decode_references, safe_picture
from wikka_port.names import normalise
from wikka_port.texts import _
from wikka_port.urls import page_url

OF_FILES: Final = frozenset({"attachments", "files", "gallery"})


def image(call: ActionCall) -> str:
    """Show a picture: ``{{image url=".." alt=".." title=".." class=".." link=".." width="200" height="100"}}``.

    ``src`` means the same as ``url``; ``link`` is an address or the name of a page.
    """
    typed = call.arguments
    url = safe_picture(typed.get("url", "") or typed.get("src", ""))
    if url is None:
        raise ValueError(_("{given} should be the address of a picture", given='url="..."'))
    alt = typed.get("alt", "") or typed.get("title", "")
    link = typed.get("link", "").strip()
    if not call.site.pictures.allows(host_of(url)):
        return linked(foreign_words(url, alt), link or url)
    parts = [f'src="{escape(url)}" alt="{escape(alt)}" loading="lazy" referrerpolicy="no-referrer"']
    if typed.get("title"):
        parts.append(f'title="{escape(typed["title"])}"')
    css = user_classes(typed.get("class", ""))
    if css:
        parts.append(f'class="{css}"')
    parts += [f'{side}="{call.number(side, 1, 5_000)}"' for side in ("width", "height") if typed.get(side, "").strip()]
    return linked(f"<img {' '.join(parts)}>", link)


def files(call: ActionCall) -> str:
    """List the files of a page with kind, size, time and author: ``{{files}}``, ``{{files page="Other"}}``.

    Time and author lie in the rows of the versions, so the list costs two calls of the store.
    """
    name, found = _files(call)
    if not found:
        return f'<p class="empty">{_("This page has no files.")} {_all(name)}</p>\n'
    columns = (_("File"), _("Kind"), _("Size"), _("Description"), _("Changed"), _("Author"))
    head = "".join(f'<th scope="col">{said}</th>' for said in columns)
    versions, zone = call.site.wiki.files(name).newest_versions(), call.site.visitor.settings.zone_info
    rows = "".join(_row(one, versions.get(one.name), zone) for one in found)
    return (
        f'<div class="table" tabindex="0"><table class="files"><thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{rows}</tbody></table></div>\n<p>{_all(name)}</p>\n"
    )


def _row(one: FoundFile, version: FileVersion | None, zone: ZoneInfo | None) -> str:
    """Return a row of the list; without ``version``, which another edit has replaced, time and author are empty."""
    kind = kind_text(one.file.media_type)
    if one.file.width and one.file.height:
        kind = f"{kind}, {one.file.width} × {one.file.height}"
    link = f'<a href="{address(one)}" class="file">{escape(one.name)}</a>'
    size = size_text(one.file.size_bytes)
    at = by = ""
    if version is not None:
        at = f'<time datetime="{iso_time(version.time_ms)}">{local_time(version.time_ms, zone)}</time>'
        by = f'<span class="author">{escape(version.author)}</span>'
        by += "" if version.signed else f' <span class="unproved">{_("(no account)")}</span>'
    cells = (link, escape(kind), escape(size), escape(one.file.alt), at, by)
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>\n"


def gallery(call: ActionCall) -> str:
    """Show the pictures of a page in a grid, each a link to the whole: ``{{gallery page="Other"}}``."""
    name, found = _files(call)
    pictures = [one for one in found if is_picture(one.file)]
    if not pictures:
        return f'<p class="empty">{_("This page has no pictures.")} {_all(name)}</p>\n'
    return f'<ul class="gallery">\n{"".join(map(_figure, pictures))}</ul>\n'


def _figure(one: FoundFile) -> str:
    words = described(one) or one.name  # a link needs words, also around a decoration
    shown = picture_html(one, words, sizes=SIZES_IN_GRID)
    return f'<li><figure><a href="{address(one)}">{shown}</a><figcaption>{escape(words)}</figcaption></figure></li>\n'


def _files(call: ActionCall) -> tuple[str, list[FoundFile]]:
    """Return the name of the page that the call means, and its files by name.  Raises NotAllowed."""
    name = normalise(decode_references(call.arguments.get("page", "") or call.page))
    if name == call.page:
        own = call.files
    else:
        page = call.site.wiki.page(name)
        own = {} if page is None else page.files
    return name, [one for _, one in sorted(by_key(name, own).items())]


def _all(name: str) -> str:
    said = _("All files of {page}", page=escape(name))
    return f'<a href="{escape(page_url(name, "files"))}" rel="nofollow">{said}</a>'


ACTIONS: Final[Mapping[str, Action]] = {
    "attachments": Action(files, ("page", "download", "text")),
    "files": Action(files, ("page", "download", "text")),
    "gallery": Action(gallery, ("page",)),
    "image": Action(image, ("url", "src", "alt", "title", "class", "link", "width", "height", "page")),
}
