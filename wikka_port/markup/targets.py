"""(pure) The target of a link: a page, an address outside, or nothing; and calls of actions.

A target is read as the first of these that fits: URL, mail address, ``#place`` on this page, ``/path`` on this
site, ``Prefix:Page`` of another wiki, and else the name of a page, or of a heading or file of one (``split_target``).
A numeric reference such as ``&#58;`` is a character without its special meaning.  So ``http&#58;//x`` links to a page
with the name ``http://x``; ``writing.forced_link`` writes such links.

Only the schemes in SCHEMES are safe.  ``javascript:..`` is therefore no URL but an odd page name,
which is harmless: a page's URL is always a path that the wiki makes from the name.
"""

from __future__ import annotations

import html
import re
from typing import Final
from urllib.parse import unquote

from wikka_port.files.file_names import ending_of
from wikka_port.markup import interwiki
from wikka_port.markup.tokens import ActionCall, Image, Outside, PageLink
from wikka_port.names import InvalidName, normalise

SCHEMES: Final = frozenset({"http", "https", "ftp", "mailto"})
MAX_URL: Final = 2000  # characters; every browser accepts so many

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]{0,30}+:")
_URL: Final = re.compile(r"(?:https?|ftp)://[^\s/]", re.IGNORECASE)
_MAIL: Final = re.compile(r"[\w.+\-]{1,64}+@[A-Za-z0-9\-]{1,63}+(?:\.[A-Za-z0-9\-]{1,63}+){1,8}+")
_PREFIXED: Final = re.compile(r"([A-Za-z][A-Za-z0-9]{0,19}+):(\S.*)", re.DOTALL)
_REFERENCE: Final = re.compile(r"&#(?:[0-9]{1,7}|[xX][0-9A-Fa-f]{1,6});")
_NOT_IN_URL: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\\\\]")
FORBIDDEN: Final = re.compile(r"[/:?#<>\"|*\x00-\x1f]")  # in names of files
_BEFORE_PLACE: Final = re.compile(r"(?<=[^\s&])#(?=\S)")  # not the sign of a reference
_SIZE: Final = re.compile(r"([1-9][0-9]{0,3})(?:x[0-9]{1,4})?")
_NOT_WORD: Final = re.compile(r"\W+")
_ACTION: Final = re.compile(
    r"\s*+([A-Za-z][A-Za-z0-9]*+)((?:\s++[A-Za-z0-9][\w\-]*+\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+'))*+)\s*+"
)
_ARGUMENT: Final = re.compile(r"([A-Za-z0-9][\w\-]*+)\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)')")
# A parameter of a page that others include (``includes``).
PARAMETER: Final = re.compile(r"\{\{\{\s*([A-Za-z0-9][\w\-]{0,40})\s*(?:\|([^{}\n]{0,400}))?\}\}\}")
_NO: Final = frozenset({"", "0", "no", "false", "off"})
INCLUDING: Final = frozenset({"attachments", "files", "gallery", "image", "include"})  # their ``page`` is linked to
IMAGE_ENDINGS: Final = (".gif", ".jpg", ".jpeg", ".png", ".svg", ".webp")


def decode_references(text: str) -> str:
    """Decode numeric references (``&#58;`` -> ``:``), and no named ones: a page may have the name "AT&amp;T"."""
    return _REFERENCE.sub(lambda ref: html.unescape(ref.group()), text) if "&#" in text else text


def safe_url(raw: str) -> str | None:
    """Return ``raw`` for an href or src, still to be escaped; None if it is unsafe or too long.

    It accepts the SCHEMES and relative addresses (a path, a query, a place), but not ``//host``, and no control
    characters.
    """
    url = raw.strip()
    if not url or len(url) > MAX_URL or _NOT_IN_URL.search(url) or url.startswith("//"):
        return None
    scheme = _SCHEME.match(url)
    if scheme and scheme.group()[:-1].lower() not in SCHEMES:
        return None
    if not scheme and ":" in url.split("/", 1)[0].split("?", 1)[0].split("#", 1)[0]:
        return None  # a browser might read the text before the colon as a scheme
    return "%20".join(url.split())


def safe_picture(raw: str) -> str | None:
    """Return a picture's address as ``safe_url`` does, but by https only, since the site's policy refuses http."""
    url = safe_url(raw)
    if url is None or not (scheme := _SCHEME.match(url)):
        return url
    is_web = scheme.group().lower() in ("http:", "https:")
    return "https:" + url[scheme.end() :] if is_web else None


def is_url(text: str) -> bool:
    return _URL.match(text) is not None


def place_id(text: str) -> str:
    """Return the id of a heading with this text, before it is made unique."""
    return "s-" + (_NOT_WORD.sub("-", text.lower()).strip("-")[:80] or "section")


def page_link(name: str, label: str = "", *, redirect: bool = False) -> PageLink | None:
    try:
        normal = normalise(decode_references(name))
    except InvalidName:
        return None
    return PageLink(normal, label or normal, redirect)


def read_link(body: str) -> PageLink | Outside | None:
    """Return the link of the text inside ``[[..]]``, or None if it is no link and must be shown as typed."""
    target, bar, label = body.partition("|")
    target, label = target.strip(), decode_references(label).strip()
    if not bar and target:
        first = target.split(None, 1)[0]
        if len(first) < len(target) and (
            is_url(first) or first.lower().startswith("mailto:") or _MAIL.fullmatch(first)
        ):
            label, target = target[len(first) :].strip(), first  # the old form: [[address words]]
    if not target:
        return None
    return _outside(target, label) or _link_of(target, label)


def split_target(target: str) -> tuple[str, str, str]:
    """Return the page that a link's target names, its file and its heading, as typed; "" where there is none.

    ``file:Page/Name.png`` is a file of a page, ``Page#Heading`` a heading on it.  A blank beside ``#`` makes it part of
    the name, as in the pages "C# language" and "Issue #7".
    """
    if target[:5].lower() == "file:" and "/" in target:
        page, _, file = target[5:].rpartition("/")
        return page, file, ""
    found = _BEFORE_PLACE.search(target)
    return (target[: found.start()], "", target[found.end() :]) if found else (target, "", "")


def _link_of(target: str, label: str) -> PageLink | None:
    """Return the link to a page, to a heading on it, or to its file."""
    page, file, place = split_target(target)
    name = " ".join(decode_references(file).split())
    if file and not name:
        return None
    shown = label or name or (" ".join(decode_references(target).split()) if place else "")
    link = page_link(page, shown)
    if link is None or not (name or place):
        return link
    return PageLink(link.name, link.label, place=heading_id(decode_references(place)) if place else "", file=name)


def heading_id(typed: str) -> str:
    """Return the id of a heading that a link names by its words or by its id."""
    return typed if typed.startswith("s-") else place_id(typed)


def _outside(target: str, label: str) -> Outside | None:
    if is_url(target):
        url = safe_url(target)
        return Outside(url, label or target, "external") if url else None
    if target[:7].lower() == "mailto:":
        url = safe_url(target)
        return Outside(url, label or target[7:], "mail") if url else None
    if "@" in target and _MAIL.fullmatch(target):
        return Outside("mailto:" + target, label or target, "mail")
    if target[0] == "#" and len(target) > 1:
        return Outside("#" + place_id(target[1:]), label or target[1:].strip(), "local")
    if target[0] == "/" and len(target) > 1:
        url = safe_url(target)
        return Outside(url, label or target, "local") if url else None
    if ":" in target:
        prefixed = _PREFIXED.fullmatch(target)
        url = interwiki.address(prefixed[1], decode_references(prefixed[2])) if prefixed else None
        if url:
            return Outside(url, label or target, "interwiki")
    return None


def read_picture(body: str) -> PageLink | Image | None:
    """Return the picture of the text inside ``![[..]]``, or None if it can be no file."""
    target, _, label = body.partition("|")
    target = decode_references(target).strip()
    if split_target(target)[1]:
        return _link_of(target, label)
    alt, width = width_in(decode_references(label).strip())
    return Image("", alt, file=target, width=width) if may_be_file(target) else None


def picture_at(address: str, alt: str) -> Image | None:
    """Return the picture at an address of Markdown or HTML, or None if it may not be loaded.

    A relative address, ``../images/a.png``, means the page's file of its last name: files of a page have no folders.
    Words may end with a width, ``words|300``, as Obsidian writes it.
    """
    address = address.strip()
    is_relative = not address.startswith("/") and not _SCHEME.match(address)
    name = unquote(address.rpartition("/")[2]).strip() if is_relative else ""
    if may_be_file(name):
        alt, width = width_in(alt)
        return Image("", alt, file=name, width=width)
    is_local = address.startswith("/") and not address.startswith("//")
    url = safe_url(address) if is_url(address) or is_local else None
    return Image(url, alt) if url else None


def may_be_file(name: str) -> bool:
    """Return whether ``name`` may be that of a file: it has an ending and no slash."""
    return bool(ending_of(name)) and not FORBIDDEN.search(name)


def width_in(label: str) -> tuple[str, int]:
    """Return the words of a picture and its width in pixels, written ``words|300`` or ``300``; 0: none is given."""
    words, _, last = label.rpartition("|")
    size = _SIZE.fullmatch(last.strip())
    return (words.strip(), int(size[1])) if size else (label, 0)


def trimmed(address: str) -> int:
    """Return the length of ``address`` without a full stop, a quote or a closing toggle at its end."""
    end = len(address)
    surplus = address.count(")") - address.count("(")
    while end:
        last = address[end - 1]
        if last in ".,;:!?'*":
            end -= 1
        elif last == ")" and surplus > 0:
            end -= 1
            surplus -= 1
        elif last in "/_#+@" and address[end - 2 : end - 1] == last:
            end -= 2
        else:
            break
    return max(end, 0)


def included_page(action: ActionCall) -> str | None:
    """Return the normalised name of the page that a call includes, or whose files it shows; None for other calls."""
    page = dict(action.arguments).get("page", "") if action.name in INCLUDING else ""
    link = page_link(page) if page else None
    return None if link is None else link.name


def redirect_link(action: ActionCall) -> PageLink | None:
    """Return the link of ``{{redirect target="Page"}}``, which counts and is shown like any other link, or None."""
    if action.name != "redirect":
        return None
    arguments = dict(action.arguments)
    target = arguments.get("target") or arguments.get("to") or arguments.get("page") or ""
    link = read_link(target) if "|" not in target else None
    return page_link(link.name, redirect=True) if isinstance(link, PageLink) else None


# --- calls of actions: ``{{name attribute="value"}}``, the same in every format -------------------


def is_set(value: str) -> bool:
    """Return whether the value of an on-or-off attribute means on."""
    return value.strip().lower() not in _NO


def read_action(text: str, start: int, end: int) -> ActionCall | PageLink | None:
    """Return the call in ``{{..}}``, a link for a redirect, or None if it is no call but a parameter, or nothing."""
    if start >= 3 and text.startswith("}}}", end) and PARAMETER.fullmatch(text, start - 3, end + 3):
        return None
    call = _ACTION.fullmatch(text, start, end)
    if not call:
        return None
    arguments = tuple((a[1].lower(), a[2] if a[2] is not None else a[3]) for a in _ARGUMENT.finditer(call[2]))
    action = ActionCall(call[1].lower(), arguments)
    return redirect_link(action) or action
