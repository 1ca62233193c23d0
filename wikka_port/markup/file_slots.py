"""(pure) Files and pictures in a text: the names that may mean files, and the slots in their places.

    [[Picture.png]]  [[Picture.png | words]]  [[Picture.png words]]     a file, else a link to the page of that name
    [[file:Other Page/Picture.png | words]]                             a file of another page
    {{image src="Picture.png" page="Other Page"}}                       a picture; ``page`` may be left out
    {{files download="Paper.pdf" text="words"}}                         a link to a file

A name may mean a file if it has an ending and no slash.  A file of the page itself may have any ending; elsewhere files
are only searched for names with a known one (``is_wide``), so that a link to the page "Version 2.0" costs nothing.

A picture from another site becomes a ForeignSlot, because the site's policy is not known here.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import urlsplit

from wikka_port.files.content_types import BY_ENDING
from wikka_port.files.file_names import ending_of
from wikka_port.markup.fragments import FileChoice, FileReference, FileSlot, ForeignSlot, PageSlot, Piece, escape
from wikka_port.markup.targets import FORBIDDEN, decode_references, may_be_file, page_link, safe_picture
from wikka_port.markup.tokens import ActionCall, Image, PageLink, Token
from wikka_port.texts import N_, _

SIDE_MAX: Final = 5_000  # pixels, as typed
NO_NAME: Final = N_("{name} cannot be the name of a file")
BAD_SIDE: Final = N_("its width and height should be numbers from 1 to {most}")
_WITH_WORDS: Final = re.compile(r"([^/]{1,200}?\.[A-Za-z0-9]{1,10}) (\S.*)", re.DOTALL)
_IMG: Final = re.compile(r'<img(?: [a-z]+="[^"]*")*>')
_ATTRIBUTE: Final = re.compile(r'(src|alt)="([^"]*)"')


def is_wide(name: str) -> bool:
    """Return whether a file of this name is searched on other pages than the one with the link."""
    return ending_of(name) in BY_ENDING


def names_file(name: str) -> bool:
    """Return whether a link of this name is written for a file: its ending is that of pictures, documents, archives.

    Endings of texts are left out, since "Node.js" may well be a page.
    """
    known = BY_ENDING.get(ending_of(name))
    return known is not None and not known.text and may_be_file(name)


def slot_of_link(link: PageLink, slot: PageSlot) -> PageSlot | FileSlot:
    """Return ``slot``, the link to a page, or the slot of the file that may be meant instead."""
    label = "" if link.label in (link.name, link.file) else link.label
    words = slot.label_html if label else ""
    if link.file:
        return FileSlot((FileChoice(FileReference(link.name, link.file), label, words),), link.shows)
    if link.redirect or link.place:
        return slot
    choices = [FileChoice(FileReference("", link.name), label, words)] if may_be_file(link.name) else []
    if not label and link.shows:
        parts = _WITH_WORDS.fullmatch(link.name)
        if parts and may_be_file(parts[1]) and is_wide(parts[1]):
            choices.append(FileChoice(FileReference("", parts[1]), parts[2], escape(parts[2])))
    return FileSlot(tuple(choices), link.shows, otherwise=slot) if choices else slot


def slots_of_files(read: Iterable[Token]) -> Iterator[FileSlot]:
    """Yield the slots of files in a text with these tokens, as the compiler makes them."""
    for token in read:
        slot: PageSlot | FileSlot | None = None
        if isinstance(token, PageLink) and (token.file or "." in token.name):
            slot = slot_of_link(token, PageSlot(token.name, ""))
        elif isinstance(token, Image) and token.file:
            slot = slot_of_image(token)
        elif isinstance(token, ActionCall):
            with contextlib.suppress(ValueError):  # the page shows its author why
                slot = slot_of_call(token)
        if isinstance(slot, FileSlot):
            yield slot


def slot_of_image(image: Image) -> FileSlot:
    given = (("link", image.link), ("width", str(image.width) if image.width else ""))
    choice = FileChoice(FileReference("", image.file), image.alt, escape(image.alt))
    return FileSlot((choice,), options=tuple((key, value) for key, value in given if value))


def slot_of_call(call: ActionCall) -> FileSlot | None:
    """Return the slot of a call of ``image`` or ``files`` that names a file, or None for any other call.

    Raises ValueError with the reason, for the page's author.
    """
    if call.name not in ("image", "files", "attachments"):
        return None
    given = dict(call.arguments)
    shows = call.name == "image"
    typed = given.get("url", "") or given.get("src", "") if shows else given.get("download", "")
    name = decode_references(typed).strip()
    link = page_link(given["page"]) if given.get("page", "").strip() else None
    if not name or (shows and not may_be_file(name)):
        return None
    if FORBIDDEN.search(name):
        raise ValueError(_(NO_NAME, name=name))
    if any(given.get(side, "").strip() and not _is_side(given[side]) for side in ("width", "height")):
        raise ValueError(_(BAD_SIDE, most=SIDE_MAX))
    label = given.get("alt", "") or given.get("title", "") if shows else given.get("text", "")
    label = decode_references(label).strip()
    options = tuple((key, given[key]) for key in ("title", "class", "width", "height", "link") if given.get(key))
    choice = FileChoice(FileReference(link.name if link else "", name), label, escape(label))
    return FileSlot((choice,), shows, options if shows else ())


def _is_side(typed: str) -> bool:
    text = typed.strip()
    return text.isascii() and text.isdigit() and len(text) <= 4 and 1 <= int(text) <= SIDE_MAX


# --- pictures from elsewhere ----------------------------------------------------------------------


def host_of(url: str) -> str:
    """Return the host of an address in lower case, with its port if one is written; "" for an address of this site."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "?"  # no host has this name, so none that is listed
    return f"{parts.hostname}{port}" if parts.hostname else "?" if parts.netloc or parts.scheme else ""


def foreign_words(url: str, alt: str) -> str:
    """Return the words of a link in the place of a picture, escaped."""
    return escape(_("Picture: {name}", name=alt or url.rsplit("/", 1)[-1] or url))


def image_piece(image: Image) -> Piece:
    """Return a picture within a link, so that a reader can open it if it is not shown."""
    if image.file:
        return slot_of_image(image)
    url, picture = escape(image.url), safe_picture(image.url) or ""
    name = escape(image.alt or image.url.rsplit("/", 1)[-1])
    anchor = f'<a href="{escape(image.link) or url}" class="external" rel="nofollow noopener">'
    side = f' width="{image.width}"' if image.width else ""
    shown = f'{anchor}<img src="{escape(picture)}" alt="{name}"{side} loading="lazy" referrerpolicy="no-referrer"></a>'
    host = host_of(picture)
    return ForeignSlot(host, shown, f"{anchor}{foreign_words(image.url, image.alt)}</a>") if host else shown


def embedded_pieces(html: str) -> list[Piece]:
    """Return safe HTML with the pictures from elsewhere in slots of their own."""
    if "<img" not in html:
        return [html]
    pieces: list[Piece] = []
    done = 0
    for found in _IMG.finditer(html):
        given = dict(_ATTRIBUTE.findall(found[0]))
        host = host_of(given.get("src", "").replace("&amp;", "&"))
        if not host:
            continue
        words = _("Picture: {name}", name=given.get("alt", "") or given["src"].rsplit("/", 1)[-1])
        in_link = html.rfind("<a ", 0, found.start()) > html.rfind("</a>", 0, found.start())
        link = words if in_link else f'<a href="{given["src"]}" class="external" rel="nofollow noopener">{words}</a>'
        pieces += [html[done : found.start()], ForeignSlot(host, found[0], link)]
        done = found.end()
    return [*pieces, html[done:]]
