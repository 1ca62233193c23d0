"""(pure) Writing Markdown: text, links and spans that are parsed back as exactly what was meant."""

from __future__ import annotations

import re
from typing import Final

from wikka_port.markup.targets import PARAMETER
from wikka_port.markup.token_buffer import CAMEL_CASE
from wikka_port.markup.tokens import ActionCall, CodeBlock, Image, Outside, PageLink
from wikka_port.names import is_camel_case

_SPECIAL: Final = re.compile(
    r"[\\`*\[\]<|]|(?<![^\W_])_|_(?![^\W_])|~(?=~)|(?<=~)~|\{(?=\{)|(?<=\{)\{|!(?=\Z)|=(?==)|&(?=#?\w+;)|\$(?=\S)"
)
_PARAMETER_OR_SPECIAL: Final = re.compile(rf"(?P<parameter>{PARAMETER.pattern})|{_SPECIAL.pattern}")
_LINE_START: Final = re.compile(r"(#{1,6}(?=\s|\Z)|>|[+\-](?=\s|\Z)|[=\-](?=[=\-]*\s*\Z)|~(?=~))")
_NUMBERED: Final = re.compile(r"([0-9]{1,9})([.)])(?=\s|\Z)")
_IN_TARGET: Final = re.compile(r"[\[\]|&:@#/]")
_IN_LABEL: Final = re.compile(r"[\[\]|&]")
_TICKS: Final = re.compile("`+")
_ADDRESS_COLON: Final = re.compile(r"(?<=[A-Za-z0-9]):(?=\S)")


def text(words: str, *, autolink: bool, line_start: bool = False) -> str:
    """Return one line of Markdown that shows ``words`` without emphasis, links, lists or CamelCase.

    Parameters of a template stay what they are (``includes``).
    """
    out = _PARAMETER_OR_SPECIAL.sub(lambda found: found[0] if found["parameter"] else "\\" + found[0], words)
    out = _ADDRESS_COLON.sub("\\:", out)
    if autolink:
        out = CAMEL_CASE.sub(lambda found: f"&#{ord(found[0][0])};{found[0][1:]}", out)
    if line_start:
        out = out.lstrip()
        out = _LINE_START.sub(r"\\\1", out, count=1) if _LINE_START.match(out) else _numbered(out)
    return out


def _numbered(line: str) -> str:
    found = _NUMBERED.match(line)
    return f"{found[1]}\\{line[found.end(1) :]}" if found else line


def _references(found: re.Match[str]) -> str:
    return f"&#{ord(found[0])};"


def page_link(link: PageLink, *, bare: bool) -> str:
    """Return a link to a page; with ``bare`` only the word, if it is CamelCase and so a link by itself."""
    if link.redirect:
        return action(ActionCall("redirect", (("target", link.name),)))
    if bare and link.label == link.name and is_camel_case(link.name):
        return link.name
    target = _IN_TARGET.sub(_references, link.name)
    if link.file:
        target = f"file:{target}/{link.file}"
    elif link.place:
        target = f"{target}#{link.place}"
    shown = _IN_LABEL.sub(_references, " ".join(link.label.split()))
    if shown and link.label != (link.file or link.name):
        return f"[[{target}|{shown}]]"
    return f"[[{target}]]" if target == link.name or link.file else f"[[{target}|]]"


def outside(link: Outside) -> str:
    if link.kind == "external" and link.label == link.url and " " not in link.url:
        return f"<{link.url}>"
    if link.kind == "mail" and link.url == f"mailto:{link.label}":
        return f"<{link.label}>"
    return f"[{text(' '.join(link.label.split()), autolink=False)}]({_destination(link.url)})"


def image(picture: Image) -> str:
    name = picture.alt or picture.url.rsplit("/", 1)[-1]
    return f"![{text(name, autolink=False)}]({_destination(picture.url)})"


def _destination(url: str) -> str:
    return f"<{url.replace('<', '%3C').replace('>', '%3E')}>" if re.search(r"[()\s<>]", url) else url


def action(call: ActionCall) -> str:
    given = "".join(f" {name}='{value}'" if '"' in value else f' {name}="{value}"' for name, value in call.arguments)
    return f"{{{{{call.name}{given}}}}}"


def code_span(words: str) -> str:
    words = " ".join(words.split("\n"))
    ticks = "`" * (1 + max((len(run) for run in _TICKS.findall(words)), default=0))
    pad = (
        " "
        if words.startswith("`") or words.endswith("`") or (words[:1] == words[-1:] == " " and words.strip())
        else ""
    )
    return f"{ticks}{pad}{words}{pad}{ticks}"


def fence(code: CodeBlock) -> list[str]:
    """Return the lines of a block of code."""
    body = code.body.strip("\n").rstrip()
    ticks = "`" * max(3, 1 + max((len(run) for run in _TICKS.findall(body)), default=0))
    return [f"{ticks}{code.language.replace(' ', '-').replace('`', '')}", *body.split("\n"), ticks]
