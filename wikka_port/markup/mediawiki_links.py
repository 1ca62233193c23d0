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
from wikka_port.markup.targets import IMAGE_ENDINGS

_URL: Final = re.compile(r"(?:https?|ftp)://\S+")
_QUOTED: Final = re.compile(r"\s*('''''|'''|'')([^'].*?)\1\s*", re.DOTALL)
_WRAP: Final = {"''": ("//", "//"), "'''": ("**", "**"), "'''''": ("**//", "//**")}
# In a link of Wikka, a numeric reference stands for a character without its special meaning.
_NAME_DANGER: Final = re.compile(r"[\[\]|]|&(?=#)")
_LABEL_DANGER: Final = re.compile(r"[\[\]]|&(?=#)")
_IMAGE_OPTION: Final = re.compile(
    r"(?:thumb|thumbnail|mini|miniatur|frame|framed|enframed|frameless|border|left|right|center|centre|none|baseline"
    r"|middle|sub|super|sup|top|text-top|bottom|text-bottom|upright(?:[ _][0-9.]{1,6})?"
    r"|[0-9]{0,6}+\s?x?\s?[0-9]{0,6}+\s?px|(?:[0-9]{1,6}+(?:x[0-9]{1,6}+)?|x[0-9]{1,6}+)\s?(?:пкс|п|pk|بك|ピクセル|像素)"
    r"|(?:alt|link|page|lang|class|upright|thumb|thumbnail|start|end|thumbtime)\s*=.*)",
    re.IGNORECASE | re.DOTALL,
)
# Words of other languages for the same, as MediaWiki has them: in this case of letters alone.
_FOREIGN_WORDS: Final = (
    # German, French, Spanish
    "miniatur mini rechts links ohne zentriert gerahmt rahmenlos hochkant rand grundlinie tiefgestellt tief "
    "hochgestellt hoch oben text-oben mitte unten text-unten "
    "vignette droite gauche néant neant centré cadre encadré encadre sans_cadre non_encadré non_encadre redresse "
    "bordure ligne_de_base indice ind exposant exp haut haut-texte haut-txt milieu bas bas-texte bas-txt "
    "miniaturadeimagen miniatura derecha dcha der izquierda izda izq ninguna ninguno nada no centro centrado centrada "
    "centrar marco enmarcado enmarcada sinmarco sin_enmarcar sinenmarcar borde "
    # Portuguese, Italian, Dutch, Polish, Swedish
    "miniaturadaimagem direita esquerda nenhum commoldura comborda semmoldura semborda superiordireito borda "
    "linhadebase acima destra sinistra nessuno bordo "
    "miniatuur geen gecentreerd omkaderd kaderloos rechtop grondlijn boven tekst-boven midden beneden tekst-beneden "
    "mały prawo lewo brak centruj ramka bezramki bez_ramki tło góra środek dół skala skaluj "
    "miniatyr höger vänster ingen centrerad inramad ram ramlös stående kantlinje baslinje ned upp topp text-topp "
    "mitten botten text-botten "
    # Russian, Ukrainian, Bulgarian
    "мини миниатюра справа слева без центр обрамить рамка безрамки сверхусправа граница основание под над сверху "
    "текст-сверху посередине снизу текст-снизу міні мініатюра праворуч ліворуч обрамити зверхуправоруч межа границя "
    "основа вдясно дясно д вляво ляво л н център ц врамка безрамка ръб контур "
    # Japanese, Chinese, Vietnamese, Arabic
    "サムネイル 右 左 なし 無し 中央 フレーム フレームなし 右上 境界 ボーダー 下線 ベースライン 下付き 上付き "
    "上端 文上端 中心 下端 文下端 缩略图 无 居中 有框 无框 边框 基线 nhỏ phải trái không giữa khung đứng "
    "تصغير يمين يسار بدون بلا مركز إطار لاإطار معدول حد حدود"
)
_FOREIGN_OPTIONS: Final = frozenset(_FOREIGN_WORDS.split())
# Options with a value: ``verweis=Seite``, ``redresse 1.2``.
_VALUE_WORDS: Final = (
    "alternativtext verweis seite lien enlace vínculo vinculo página pagina taal koppeling verwijzing klasse strona "
    "länk sida страница ссылка альт сторінка リンク 代替文 代替画像 ページ 链接 替代 替代文本 页数 语言 类 liên_kết "
    "trang صفحة"
)
_FOREIGN_KEYS: Final = _FOREIGN_OPTIONS | frozenset(_VALUE_WORDS.split())
_VALUE: Final = re.compile(r"([^\W\d][\w-]{0,30}?)(?:\s?=.*|(?P<size>[ _][0-9.]{1,6}))", re.DOTALL)
_SIZE_WORDS: Final = (
    "hochkant redresse rechtop stående сверхусправа зверхуправоруч skala skaluj superiordireito 右上 đứng معدول"
)
_SIZES: Final = frozenset(_SIZE_WORDS.split())


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


def _is_option(part: str) -> bool:
    """Return whether a part of the link of a picture says how the picture is shown."""
    if _IMAGE_OPTION.fullmatch(part):
        return True
    key = _VALUE.fullmatch(part)
    if key is None:
        return part.replace(" ", "_") in _FOREIGN_OPTIONS
    return key[1] in (_SIZES if key["size"] else _FOREIGN_KEYS)


def _image(draft: Draft, target: Target, label: str | None, trail: str) -> Piece:
    """Convert an image to the picture or a link to it, followed by the caption, since a dump has no files.

    ``trail`` has the letters after the brackets, which are no part of the image.
    """
    draft.unconverted["image"] += 1
    parts = [part.strip() for part in label.split("|")] if label is not None else []
    captions = [part for part in parts if part and not _is_option(part)]
    caption = captions[-1] if captions else ""
    marker = picture(draft.dialect, target.title, plain_label(draft, caption))
    text = f"{marker} {inline(draft, collapse(caption), cell=True)}".strip() if caption else marker
    text += trail
    return Piece(balance_quotes(text), (plain_label(draft, caption) or target.title) + trail, block=text)
