"""(pure) Code blocks: ``%%(language;first line;file) .. %%`` as HTML, coloured if that is cheap.

Pygments names the classes (``k``, ``nf``, ...); there is no inline style.  Its lexers are made for
people's own code, not for hostile input: 8,000 characters can cost seconds if a lexer's expression
backtracks (measured: 8 s for C#, 2 s for makefiles, which are therefore not in LANGUAGES).  So only
blocks of at most MAX_COLOURED characters with lines of at most MAX_LINE are coloured, and only within
the page's Budget; the rest is plain text.

A language may have a renderer: an address that answers with a picture of the code.  It gets the code as Kroki does,
compressed (zlib) and in the alphabet of RFC 4648, section 5.  The picture is an ``img``, in which no script runs, and
comes from another site only if the wiki shows pictures of that site.  The code stays below it.
"""

from __future__ import annotations

import re
import zlib
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from wikka_port.markup.file_slots import host_of
from wikka_port.markup.fragments import ForeignSlot, escape
from wikka_port.markup.tokens import CodeBlock

if TYPE_CHECKING:
    from pygments.lexer import Lexer

MAX_COLOURED: Final = 4_000  # characters of one block; code that people write costs about 1 ms for 1,000
MAX_COLOURED_PAGE: Final = 12_000  # characters of one page
MAX_COLOURED_JAVA: Final = 1_500  # its lexer's time grows with the square: 0.4 s for 4,000 hostile characters
MAX_LINE: Final = 200  # characters; most of the backtracking is within a line

# The name that people write -> Pygments' own alias.
LANGUAGES: Final[dict[str, str]] = {
    "bash": "bash", "sh": "bash", "c": "c", "c++": "cpp", "cpp": "cpp",
    "css": "css", "diff": "diff", "go": "go", "html": "html", "html4strict": "html", "html5": "html",
    "ini": "ini", "java": "java", "javascript": "javascript", "js": "javascript", "json": "json",
    "lua": "lua", "perl": "perl", "php": "html+php", "python": "python",
    "py": "python", "ruby": "ruby", "rust": "rust", "sql": "sql", "mysql": "mysql", "toml": "toml",
    "typescript": "typescript", "xml": "xml", "yaml": "yaml",
}  # fmt: skip
DRAWN_URL_MAX: Final = 4_000  # characters: servers take requests of 8,000 with their headers
CODE_PLACE: Final = "{code}"  # in a renderer's address
_RENDERERS: Final[dict[str, str]] = {}  # language -> address
_LANGUAGE: Final = re.compile(r"[a-z0-9+#\-]{1,40}")
_NOT_IN_CLASS: Final = re.compile(r"[^a-z0-9+#\-]+")


class Budget:
    """The number of characters of a page that may still be coloured."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = MAX_COLOURED_PAGE

    def grants(self, body: str, alias: str) -> bool:
        size = len(body)
        most = MAX_COLOURED_JAVA if alias == "java" else MAX_COLOURED
        if size > most or size > self.left or max(map(len, body.split("\n"))) > MAX_LINE:
            return False
        self.left -= size
        return True


@lru_cache(maxsize=64)
def _pygments(alias: str) -> Lexer:
    from pygments.lexers import get_lexer_by_name

    return get_lexer_by_name(alias, stripnl=False, ensurenl=False)


def _coloured(body: str, alias: str) -> str:
    from pygments.token import STANDARD_TYPES

    out: list[str] = []
    for kind, value in _pygments(alias).get_tokens(body):
        css = STANDARD_TYPES.get(kind)
        while css is None:
            kind = kind.parent
            css = STANDARD_TYPES.get(kind)
        # A span never crosses a line, so that lines can be numbered afterwards.
        for line in value.splitlines(keepends=True) if css else ():
            text = line.rstrip("\n")
            out.append(f'<span class="{css}">{escape(text)}</span>' if text.strip() else text)
            out.append(line[len(text) :])
        if not css:
            out.append(escape(value))
    return "".join(out)


def block_html(code: CodeBlock, budget: Budget) -> str:
    """Return the block as ``figure`` and ``pre``, well nested, with all text escaped."""
    body = code.body.strip("\n").rstrip()
    alias = LANGUAGES.get(code.language)
    inner = _coloured(body, alias) if alias and budget.grants(body, alias) else escape(body)
    if code.start is not None:
        inner = "\n".join(
            f'<span class="line" data-line="{number}">{line}</span>'
            for number, line in enumerate(inner.split("\n"), code.start)
        )
    language = _NOT_IN_CLASS.sub("-", code.language)
    css = f' class="language-{escape(language)}"' if language else ""
    pre = f'<pre class="code" tabindex="0"><code{css}>{inner}</code></pre>\n'
    if not code.filename:
        return pre
    return f'<figure class="code"><figcaption>{escape(code.filename)}</figcaption>{pre}</figure>\n'


def inline_html(code: CodeBlock) -> str:
    """Return the block as text within a line, for a heading."""
    return f"<code>{escape(' '.join(code.body.split()))}</code>"


def checked_renderer(given: str) -> tuple[str, str]:
    """Return language and address of ``mermaid=https://kroki.example/mermaid/svg/{code}``.

    The address begins with https, or is a path on this site.  Raises ValueError with a sentence for the operator.
    """
    language, equals, url = (part.strip() for part in given.partition("="))
    is_address = url.startswith("https://") or (url.startswith("/") and not url.startswith("//"))
    if not equals or not _LANGUAGE.fullmatch(language.lower()) or not is_address or url.count(CODE_PLACE) != 1:
        raise ValueError(
            f"'{given}' is no renderer: write LANGUAGE=ADDRESS with {CODE_PLACE} where the code belongs, "
            f"as mermaid=https://kroki.example/mermaid/svg/{CODE_PLACE}"
        )
    return language.lower(), url


def use_renderers(renderers: Mapping[str, str]) -> None:
    """Set this process's renderers, address by language; call it before the process parses any text."""
    _RENDERERS.clear()
    _RENDERERS.update(renderers)


def drawn(code: CodeBlock, budget: Budget) -> ForeignSlot | str:
    """Return the block as a picture with its code below, if its language has a renderer; else as ``block_html``."""
    shown = block_html(code, budget)
    address = _RENDERERS.get(code.language)
    body = code.body.strip("\n").rstrip()
    if address is None or not body:
        return shown
    url = address.replace(CODE_PLACE, urlsafe_b64encode(zlib.compress(body.encode(), 9)).decode())
    if len(url) > DRAWN_URL_MAX:
        return shown
    name = escape(code.filename or code.language)
    image = f'<img src="{escape(url)}" alt="{name}" loading="lazy" decoding="async">'
    below = f"<details><summary>{name}</summary>{shown}</details>"
    return ForeignSlot(host_of(url), f'<figure class="drawing">{image}{below}</figure>\n', shown)
