"""(pure) Changes the links of a text from one page to another, by a function for each format, in REWRITERS.

The page of ``{{include page="Name"}}``, or of pictures and files, is changed like a link.

Text that looks like a link need not be one: it may be in a block of code, or within another link.  So every candidate
gets a unique name, and the text is parsed like a page.  The candidates whose names come back as links are changed; all
the rest of the text stays unchanged, to the letter.

Knows nothing of the store.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import unquote

from wikka_port.markup.formats import MARKDOWN, WIKKA
from wikka_port.markup.links import links
from wikka_port.markup.targets import INCLUDING, decode_references, split_target
from wikka_port.markup.writing import forced_link, link_to
from wikka_port.names import InvalidName, from_url, is_camel_case, normalise, url_path

Rewriter = Callable[[str, str, str, bool], str]  # text, old name, new name, whether CamelCase is linked

_LINK: Final = re.compile(r"\[\[([^\[\]\n|]+)(\|[^\]\n]*)?\]\]")
_VALUE: Final = r"""(?:"[^"]*"|'[^']*')"""
_REDIRECT: Final = r"\{\{\s*redirect\b[^{}]*?\btarget\s*=\s*"
_INCLUDE: Final = rf"\{{\{{\s*(?:{'|'.join(sorted(INCLUDING))})(?:\s+[a-z0-9][\w\-]*\s*=\s*{_VALUE})*?\s+page\s*=\s*"
_CALL: Final = rf"""({_REDIRECT}|{_INCLUDE})("[^"{{}}]*"|'[^'{{}}]*')((?s:(?!\{{\{{|\}}\}}).)*\}}\}})"""
_EITHER: Final = re.compile(f"(?:{_LINK.pattern})|(?:{_CALL})", re.IGNORECASE)
_ADDRESS: Final = re.compile(r'(\]\()(<[^<>\n]*>|[^()\s<>]+)((?:\s+"[^"\n]*")?\))')  # of a link in Markdown
_IN_MARKDOWN: Final = re.compile(f"{_EITHER.pattern}|(?:{_ADDRESS.pattern})", re.IGNORECASE)
_FOLDERS: Final = re.compile(r"^(?:\.{0,2}/)+|\.md$")  # not part of a page's name (``markup.markdown``)
_MARK: Final = "Zqxlead"  # begins the unique name of a candidate; no page has such a name


def rewritten(text: str, old: str, new: str, autolink: bool = True, *, markup: str = WIKKA) -> str:
    """Return ``text`` with its links to ``old`` changed to ``new``; without a rewriter for ``markup``, as it is."""
    rewriter = REWRITERS.get(markup)
    return text if rewriter is None else rewriter(text, old, new, autolink)


def _wikka(text: str, old: str, new: str, autolink: bool) -> str:
    return _led(text, old, new, autolink, WIKKA)


def _markdown(text: str, old: str, new: str, autolink: bool) -> str:
    return _led(text, old, new, autolink, MARKDOWN)


def _led(text: str, old: str, new: str, autolink: bool, markup: str) -> str:
    mark = _MARK
    while mark in text:
        mark += "x"
    text = _with_led_links(text, old, new, mark, autolink, markup)
    is_word = autolink and is_camel_case(old)
    return _with_led_words(text, old, new, mark, markup) if is_word else text


def _with_led_links(text: str, old: str, new: str, mark: str, autolink: bool, markup: str) -> str:
    """Change explicit links, and actions that redirect to the page or include it."""
    count = 0

    def probe(match: re.Match[str]) -> str:
        nonlocal count
        if not _names(match, old):
            return match.group()
        count += 1
        return _to(match, f"[[{mark}{count} page", f"{mark}{count} page", f"{mark}{count}_page")

    pattern = _IN_MARKDOWN if markup == MARKDOWN else _EITHER
    probed = pattern.sub(probe, text)
    if not count:
        return text
    leads, all_of_them, count = set(links(probed, autolink=autolink, markup=markup)), count, 0
    if not any(f"{mark}{number} page" in leads for number in range(1, all_of_them + 1)):
        return text

    def lead(match: re.Match[str]) -> str:
        nonlocal count
        if not _names(match, old):
            return match.group()
        count += 1
        is_link = f"{mark}{count} page" in leads
        led = _to(match, forced_link(new)[:-3], new, url_path(new), bare="|")
        return led if is_link else match.group()

    return pattern.sub(lead, text)


def _to(match: re.Match[str], begin: str, name: str, address: str, *, bare: str = "") -> str:
    if match.group(1) is not None:
        _, file, place = split_target(match.group(1).strip())
        if file:
            return f"[[file:{begin.removeprefix('[[')}/{file}{match.group(2) or ''}]]"
        if place:
            return f"{begin}#{place}{match.group(2) or ''}]]"
        return f"{begin}{match.group(2) or bare}]]"
    if match.group(3) is not None:
        return f"{match.group(3)}{_attribute(name, match.group(4)[0])}{match.group(5)}"
    place = match.group(7).strip("<>").partition("#")[2]
    return f"{match.group(6)}{address}{f'#{place}' if place else ''}{match.group(8)}"


def _attribute(name: str, quote: str) -> str:
    special = re.compile(f"[{quote}{{}}]")
    return f"{quote}{special.sub(lambda found: f'&#{ord(found.group())};', name)}{quote}"


def _names(match: re.Match[str], old: str) -> bool:
    target = match.group(1) if match.group(1) is not None else match.group(4) and match.group(4)[1:-1]
    try:
        if target is None:
            return from_url(unquote(_FOLDERS.sub("", match.group(7).strip("<>").partition("#")[0]))) == old
        page = split_target(target.strip())[0] if match.group(1) is not None else target.strip()
        return normalise(decode_references(page)) == old
    except InvalidName:
        return False


def _with_led_words(text: str, old: str, new: str, mark: str, markup: str) -> str:
    """Change bare words, which are links if CamelCase is linked."""
    parts = re.split(rf"(?<!\w){re.escape(old)}(?!\w)", text)
    if len(parts) == 1:
        return text
    words = [f"{mark}{_letters(number)}Word" for number in range(len(parts) - 1)]
    probed = "".join(part + word for part, word in zip(parts, [*words, ""], strict=True))
    leads = set(links(probed, autolink=True, markup=markup))
    led = [link_to(new) if word in leads else old for word in words]
    return "".join(part + word for part, word in zip(parts, [*led, ""], strict=True))


def _letters(number: int) -> str:
    return "".join(chr(ord("a") + int(digit)) for digit in str(number))


REWRITERS: Final[Mapping[str, Rewriter]] = {WIKKA: _wikka, MARKDOWN: _markdown}  # imports bring Wikka markup
