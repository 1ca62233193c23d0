"""(pure) The content of double square brackets: links, images, categories, other languages.

Knows nothing of the positions of such brackets; :mod:`mediawiki_scan` finds them.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final
from urllib.parse import quote

from wikka_port.markup.mediawiki_inline import URL_CHARS_MAX, inline, plain_label
from wikka_port.markup.mediawiki_pieces import MARK, Draft, Piece, balance_quotes, collapse, escape, mono, unescape
from wikka_port.markup.mediawiki_titles import Dialect, Target, address
from wikka_port.markup.mediawiki_words import Words, folded, words_of
from wikka_port.markup.targets import IMAGE_ENDINGS

_URL: Final = re.compile(r"(?:https?|ftp)://\S+")
_QUOTED: Final = re.compile(r"\s*('''''|'''|'')([^'].*?)\1\s*", re.DOTALL)
_WRAP: Final = {"''": ("//", "//"), "'''": ("**", "**"), "'''''": ("**//", "//**")}
# In a link of Wikka, a numeric reference stands for a character without its special meaning.
_NAME_DANGER: Final = re.compile(r"[\[\]|]|&(?=#)")
_LABEL_DANGER: Final = re.compile(r"[\[\]]|&(?=#)")
_IMAGE_OPTION: Final = re.compile(
    r"(?:thumb|thumbnail|frame|framed|enframed|frameless|border|left|right|center|centre|none|baseline"
    r"|middle|sub|super|sup|top|text-top|bottom|text-bottom|upright(?:[ _][0-9.]{1,6})?"
    r"|[0-9]{0,6}+\s?x?\s?[0-9]{0,6}+\s?px"
    r"|(?:alt|link|page|lang|class|upright|thumb|thumbnail|start|end|thumbtime)\s*=.*)",
    re.IGNORECASE | re.DOTALL,
)
# Options in the words of other languages (``mediawiki_words``), whose letters have this case alone.
_WIDTH: Final = re.compile(r"(?:[0-9]{1,6}+(?:x[0-9]{1,6}+)?|x[0-9]{1,6}+)\s?(\D{1,12})")
_VALUE: Final = re.compile(r"([^\W\d][\w -]{0,30}?)(?:\s?=.*|(?P<size>[ _][0-9.]{1,6}))", re.DOTALL)


def link(draft: Draft, head: str, label: str | None, trail: str) -> Piece | None:
    """Convert ``[[head|label]]trail``; return None if it is no link.  ``label`` may have marks and line breaks."""
    head = unescape(head)
    if _URL.match(head.strip()):
        return _address(draft, head, label, trail)
    head, label = _subpage(draft, head, label)
    target = draft.dialect.target(head)
    if target is None:
        return None
    if target.kind == "file":
        return _image(draft, target, label, trail)
    if target.kind == "category":
        draft.categories.setdefault(target.title, plain_label(draft, target.title.partition(":")[2]))
        draft.converted["category"] += 1
        return Piece(trail, trail, block=trail)
    if target.kind == "language" and draft.dialect.is_talk(draft.title):  # there it is a link like others
        target = replace(target, kind="interwiki")
    if target.kind == "language":
        name = f"{target.prefix}:{target.title}"
        if name not in draft.languages:
            draft.languages[name] = _interwiki_link(draft, target, name)
        draft.unconverted["interlanguage link"] += not draft.languages[name]
        return Piece(trail, trail, block=trail)
    return _labelled(draft, target, head, label, trail)


def without_target(draft: Draft, text: str, trail: str) -> Piece | None:
    """Convert ``[[{{call}}|words]]trail``, where the call is of an unknown template: the words stay, or the call's.

    ``text`` is all that the brackets hold.  Return None if no such call is in the place of the target.
    """
    head, bar, words = text.partition("|")
    unknown = [mark[0] for mark in MARK.finditer(head) if mark[0] in draft.unknown]
    if not unknown or "\n" in head:
        return None
    draft.unconverted["link of a template"] += 1
    for mark in unknown:
        head = head if draft.unknown[mark] else head.replace(mark, "")
    label = collapse(words if bar else head).strip()
    return Piece(balance_quotes(inline(draft, label + trail)), plain_label(draft, label) + trail)


def _subpage(draft: Draft, head: str, label: str | None) -> tuple[str, str | None]:
    """Complete the name in ``[[/sub]]``, a page below this one, if the namespace has subpages.

    The label of ``[[/sub/]]`` has no slashes.
    """
    if not head.lstrip().startswith("/") or not draft.dialect.has_subpages(draft.title):
        return head, label
    name = head.strip()
    bare = name.rstrip("/")
    shown = bare.removeprefix("/") if bare != name else name
    return draft.title + bare, shown if label is None else label


def _address(draft: Draft, head: str, label: str | None, trail: str) -> Piece:
    """Convert ``[[http://x y]]``, an address with one pair of brackets too many."""
    text = "[" + head.strip() + (" " + label if label is not None else "") + "]"
    return Piece(balance_quotes(inline(draft, collapse(text) + trail)), collapse(plain_label(draft, text)) + trail)


def _labelled(draft: Draft, target: Target, head: str, label: str | None, trail: str) -> Piece:
    before = after = ""
    if label is None or not label.strip():
        label = head.strip().removeprefix(":") if label is None else _pipe_trick(head)
    elif quoted := _QUOTED.fullmatch(label):
        before, after = _WRAP[quoted[1]]
        label = quoted[2]
    shown = plain_label(draft, label) + trail
    if target.kind == "page":
        draft.converted["link"] += 1
        section = _NAME_DANGER.sub(_reference, " ".join(target.section.replace("_", " ").split()))
        return Piece(f"{before}{forced_link(draft, target.title, shown, section)}{after}", shown, target.title)
    if target.kind == "here":
        draft.converted["link within the page"] += 1
        section = _NAME_DANGER.sub(_reference, target.section)
        return Piece(f"{before}[[#{section} | {_LABEL_DANGER.sub(_reference, shown)}]]{after}", shown)
    there = _interwiki_link(draft, target, shown) if target.kind == "interwiki" else ""
    if there:
        return Piece(f"{before}{there}{after}", shown)
    draft.unconverted[f"{target.kind} link"] += 1
    return Piece(f"{before}{balance_quotes(escape(shown, cell=True))}{after}", shown)


def _interwiki_link(draft: Draft, target: Target, label: str) -> str:
    """Return a link to a page of another wiki, or "" if its address is unknown."""
    url = address(target.prefix, target.title, target.section, draft.dialect.base)
    if not url or len(url) > URL_CHARS_MAX:
        return ""
    draft.converted[f"{target.kind} link"] += 1
    label = _LABEL_DANGER.sub(_reference, label)
    return f"[[{url} | {label}]]" if label else f"[[{url}]]"


def _pipe_trick(head: str) -> str:
    """Return the label of a link with an empty label: b for ``[[a:b (c)|]]``."""
    name = head.strip().removeprefix(":").partition(":")[2] or head.strip()
    return re.sub(r"\s*\([^()]*\)\s*$", "", name) or head


def forced_link(draft: Draft, title: str, label: str, section: str = "") -> str:
    """Return a link to a page, or to a section of it, in the form with brackets: it can only be read as that."""
    name = link_name(draft.dialect, title)
    name = f"{name}#{section}" if section else name
    label = _LABEL_DANGER.sub(_reference, label)
    return f"[[{name}]]" if label in ("", name) else f"[[{name} | {label}]]"


def link_name(dialect: Dialect, title: str) -> str:
    """Return ``title`` as the target of a Wikka link, written so that it can only be read as the name of a page."""
    name = _NAME_DANGER.sub(_reference, title)
    prefix, colon, rest = name.partition(":")
    if name[0] in "#/" or "@" in name:
        return re.sub("^[#/]|@", _reference, name)
    if colon and rest[:1].strip() and not dialect.is_plain_prefix(prefix):
        return f"{prefix}&#58;{rest}"  # else it may be read as a prefix of another wiki or as an address
    return name


def _reference(found: re.Match[str]) -> str:
    return f"&#{ord(found[0])};"


def picture(dialect: Dialect, name: str, words: str = "") -> str:
    """Return the substitute for the file ``name``: the picture, a link to the picture, or only the name."""
    if not dialect.pictures:
        return mono(f"[image: {name}]")
    url = dialect.pictures + quote(name.replace(" ", "_"), safe="()!,;:@~")
    if dialect.shows_pictures and url.lower().endswith(IMAGE_ENDINGS):
        alt = re.sub(r"[\"'{}]", "", words) or re.sub(r"[\"'{}]", "", name)
        return f'{{{{image url="{url}" alt="{alt}"}}}}'
    return f"[[{url} | picture: {_LABEL_DANGER.sub(_reference, name)}]]"


def _is_option(part: str, words: Words) -> bool:
    """Return whether a part of the link of a picture says how the picture is shown."""
    if _IMAGE_OPTION.fullmatch(part) or folded(part) in words.options:
        return True
    if width := _WIDTH.fullmatch(part):
        return width[1] in words.pixels
    key = _VALUE.fullmatch(part)
    return key is not None and folded(key[1]) in (words.sizes if key["size"] else words.keys)


def _image(draft: Draft, target: Target, label: str | None, trail: str) -> Piece:
    """Convert an image to the picture or a link to it, followed by the caption, since a dump has no files.

    ``trail`` has the letters after the brackets, which are no part of the image.
    """
    draft.unconverted["image"] += 1
    parts = [part.strip() for part in label.split("|")] if label is not None else []
    words = words_of(draft.dialect.language)
    captions = [part for part in parts if part and not _is_option(part, words)]
    caption = captions[-1] if captions else ""
    marker = picture(draft.dialect, target.title, plain_label(draft, caption))
    text = f"{marker} {inline(draft, collapse(caption), cell=True)}".strip() if caption else marker
    text += trail
    return Piece(balance_quotes(text), (plain_label(draft, caption) or target.title) + trail, block=text)
