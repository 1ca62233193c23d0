"""(pure, fuzzed) Classes of blocks in Markdown, as Wiki.js, Pandoc and kramdown read them.  This wiki has none.

    > Mind the tide.          a quotation of one of Wiki.js' four kinds becomes the alert that looks most like it
    {.is-warning}

    * a list                  any other line of classes alone goes, if it stands directly below something
    {.grid-list}

    ## Heading {.tabset}      and so do those behind a heading, a link or a picture
    ![a](a.png){.align-center}

Code stays as it is.  Cost: linear.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_ALERTS: Final = {"is-info": "NOTE", "is-success": "TIP", "is-warning": "WARNING", "is-danger": "CAUTION"}
_CLASSES: Final = r"\{:?[ ]{0,3}\.[\w-]+(?:[ ]{1,3}\.[\w-]+)*[ ]{0,3}\}"
_ALONE: Final = re.compile(rf"([ ]*)({_CLASSES})[ \t]*")
_TRAILING: Final = re.compile(rf"`+[^`\n]+`+|(?<=\))({_CLASSES})")
_OF_HEADING: Final = re.compile(rf"([ ]{{0,3}}\#{{1,6}}[ \t].*\S)[ \t]+({_CLASSES})[ \t]*")
_FENCE: Final = re.compile(r"[ ]{0,3}(`{3,}|~{3,})")
_QUOTED: Final = re.compile(r"([ ]*)>")
_ALERT: Final = re.compile(r"[ ]*>\s*\[!")
_ITEM: Final = re.compile(r"[ ]*(?:[-*+]|[0-9]{1,9}[.)])(?:[ ]{1,4}(?=\S)|[ ]|\Z)")
_NAME: Final = re.compile(r"\.[\w-]+")


def without_classes(text: str) -> str:
    """Return a text without its classes."""
    return "\n".join(_lines(text, [])) if _may_have(text) else text


def classes_in(text: str) -> list[str]:
    """Return the classes that ``without_classes`` drops, each once, but for those that become alerts."""
    dropped: list[str] = []
    if _may_have(text):
        _lines(text, dropped)
    return sorted(set(dropped))


def _may_have(text: str) -> bool:
    return "{." in text or "{:" in text or "{ ." in text


def _lines(text: str, dropped: list[str]) -> list[str]:
    """Return the lines that stay; ``dropped`` gets the classes that go."""
    lines: list[str] = []
    fence, quotation = "", -1  # the place of the first line of the quotation that ends with the last line
    item = 0  # the indent of the text of the list item in which the line is
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if fence:
            lines.append(line)
            fence = "" if mark is not None and mark[1].startswith(fence) else fence
            continue
        alone = _ALONE.fullmatch(line)
        if alone is not None and len(alone[1]) <= item + 3 and lines and lines[-1].strip():
            names = _NAME.findall(alone[2])
            alert = next((_ALERTS[one[1:]] for one in names if one[1:] in _ALERTS), "")
            if alert and quotation >= 0:
                first = lines[quotation]
                if _ALERT.match(first) is None:
                    lines[quotation] = f"{first[: first.index('>')]}> [!{alert}]\n{first}"
                names = [one for one in names if one[1:] not in _ALERTS]
            dropped += names
            quotation = -1
            continue
        fence = mark[1] if mark is not None else ""
        item = _item(line, item)
        quoted = _QUOTED.match(line)
        is_quoted = quoted is not None and len(quoted[1]) <= item + 3
        quotation = -1 if not is_quoted else (quotation if quotation >= 0 else len(lines))
        lines.append(line if fence else _without(line, dropped))
    return lines


def _item(line: str, before: int) -> int:
    """Return the indent of the text of the list item in which a line is; ``before`` is that of the line before it."""
    indent = len(line) - len(line.lstrip(" "))
    found = _ITEM.match(line) if indent <= before + 3 else None
    if found is not None:
        return found.end()
    return min(before, indent) if line.strip() else before


def _without(line: str, dropped: list[str]) -> str:
    heading = _OF_HEADING.fullmatch(line)
    if heading is not None:
        dropped += _NAME.findall(heading[2])
        line = heading[1]
    dropped += [name for found in _found(line) for name in _NAME.findall(found)]
    return _TRAILING.sub(lambda found: found[0] if found[1] is None else "", line)


def _found(line: str) -> Iterator[str]:
    return (found[1] for found in _TRAILING.finditer(line) if found[1] is not None)
