"""The content of double square brackets (pure): links, images, categories, other languages.

Knows nothing of where such brackets begin and end; :mod:`mediawiki_scan` does.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote

from wikka_port.markup.mediawiki_inline import URL_CHARS_MAX, inline, plain_label
from wikka_port.markup.mediawiki_pieces import Draft, Piece, balance_quotes, collapse, escape, mono, unescape
from wikka_port.markup.mediawiki_titles import Dialect, Target, address
from wikka_port.markup.targets import IMAGE_ENDINGS

_URL: Final = re.compile(r"(?:https?|ftp)://\S+")
_QUOTED: Final = re.compile(r"\s*('''''|'''|'')([^'].*?)\1\s*", re.DOTALL)
_WRAP: Final = {"''": ("//", "//"), "'''": ("**", "**"), "'''''": ("**//", "//**")}
# Numeric references are our form of a character without its meaning in a link.
_NAME_DANGER: Final = re.compile(r"[\[\]|]|&(?=#)")
_LABEL_DANGER: Final = re.compile(r"[\[\]]|&(?=#)")
# Options of an image, in English; what other languages call them is found by their shape.
_IMAGE_OPTION: Final = re.compile(
    r"(?:thumb|thumbnail|mini|miniatur|frame|framed|frameless|border|left|right|center|centre|none|baseline|middle|"
    r"sub|super|top|text-top|bottom|text-bottom|upright|[0-9]{0,6}+\s?x?\s?[0-9]{0,6}+\s?px"
    r"|(?:alt|link|page|lang|class|upright|thumb|thumbnail|start|end|thumbtime)\s*=.*)",
    re.IGNORECASE | re.DOTALL,
)


def link(draft: Draft, head: str, label: str | None, trail: str) -> Piece | None:
    """Return the link ``[[head|label]]trail``; None if it is none.  ``label`` may have marks and line breaks."""
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
    if target.kind == "language":
        name = f"{target.prefix}:{target.title}"
        if name not in draft.languages:
            draft.languages[name] = _interwiki_link(draft, target, name)
        draft.unconverted["interlanguage link"] += not draft.languages[name]
        return Piece(trail, trail, block=trail)
    return _labelled(draft, target, head, label, trail)


def _subpage(draft: Draft, head: str, label: str | None) -> tuple[str, str | None]:
    """``[[/sub]]`` names a page below this one, where MediaWiki has subpages; ``[[/sub/]]`` shows no strokes."""
    if not head.lstrip().startswith("/") or not draft.dialect.has_subpages(draft.title):
        return head, label
    name = head.strip()
    bare = name.rstrip("/")
    shown = bare.removeprefix("/") if bare != name else name
    return draft.title + bare, shown if label is None else label


def _address(draft: Draft, head: str, label: str | None, trail: str) -> Piece:
    """``[[http://x y]]``: an address in one pair of brackets too many."""
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
        if target.section:
            draft.unconverted["section of a link"] += 1
        return Piece(f"{before}{forced_link(draft, target.title, shown)}{after}", shown, target.title)
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
    """Our link to a page of another wiki; "": unknown address."""
    url = address(target.prefix, target.title, target.section, draft.dialect.base)
    if not url or len(url) > URL_CHARS_MAX:
        return ""
    draft.converted[f"{target.kind} link"] += 1
    label = _LABEL_DANGER.sub(_reference, label)
    return f"[[{url} | {label}]]" if label else f"[[{url}]]"


def _pipe_trick(head: str) -> str:
    """Return the label of ``[[a:b (c)|]]``: b."""
    name = head.strip().removeprefix(":").partition(":")[2] or head.strip()
    return re.sub(r"\s*\([^()]*\)\s*$", "", name) or head


def forced_link(draft: Draft, title: str, label: str) -> str:
    """Our link to a page, in the form that can be nothing else."""
    name = link_name(draft.dialect, title)
    label = _LABEL_DANGER.sub(_reference, label)
    return f"[[{name}]]" if label in ("", name) else f"[[{name} | {label}]]"


def link_name(dialect: Dialect, title: str) -> str:
    """``title`` as the target of a link of ours: it can be taken for nothing but a page's name."""
    name = _NAME_DANGER.sub(_reference, title)
    prefix, colon, rest = name.partition(":")
    if name[0] in "#/" or "@" in name:
        return re.sub("^[#/]|@", _reference, name)
    if colon and rest[:1].strip() and not dialect.is_plain_prefix(prefix):
        return f"{prefix}&#58;{rest}"  # else it may be read as another wiki's or as an address
    return name


def _reference(found: re.Match[str]) -> str:
    return f"&#{ord(found[0])};"


def picture(dialect: Dialect, name: str, words: str = "") -> str:
    """Return the substitute for the file ``name``: the picture, a link to where it is, or its name alone."""
    if not dialect.pictures:
        return mono(f"[image: {name}]")
    url = dialect.pictures + quote(name.replace(" ", "_"), safe="()!,;:@~")
    if dialect.shows_pictures and url.lower().endswith(IMAGE_ENDINGS):
        alt = re.sub(r"[\"'{}]", "", words) or re.sub(r"[\"'{}]", "", name)
        return f'{{{{image url="{url}" alt="{alt}"}}}}'
    return f"[[{url} | picture: {_LABEL_DANGER.sub(_reference, name)}]]"


def _image(draft: Draft, target: Target, label: str | None, trail: str) -> Piece:
    """An image is its caption after a link to the picture, or after the picture: a dump has no files.

    ``trail``: the letters after it, which are no part of it.
    """
    draft.unconverted["image"] += 1
    parts = [part.strip() for part in label.split("|")] if label is not None else []
    captions = [part for part in parts if part and not _IMAGE_OPTION.fullmatch(part)]
    caption = captions[-1] if captions else ""
    marker = picture(draft.dialect, target.title, plain_label(draft, caption))
    text = f"{marker} {inline(draft, collapse(caption), cell=True)}".strip() if caption else marker
    text += trail
    return Piece(balance_quotes(text), (plain_label(draft, caption) or target.title) + trail, block=text)
