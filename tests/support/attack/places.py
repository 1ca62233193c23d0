"""(pure) The places of a text where a payload can stand: in each construct of the markup, in each part of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Final

WIKKA: Final[dict[str, Callable[[str], str]]] = {
    "as it is": lambda x: x,
    "embedded": lambda x: f'""{x}""',
    "in marks": lambda x: f"**{x}** //{x}// ##{x}##",
    "in a heading": lambda x: f"====={x}=====",
    "in an embedded heading": lambda x: f'==""{x}""==',
    "in a list": lambda x: f"~-{x}\n~~1){x}",
    "in a cell": lambda x: f"||{x}||{x}||",
    "split over cells": lambda x: f'||""{x[: len(x) // 2]}||{x[len(x) // 2 :]}""||',
    "as attributes of a cell": lambda x: f"||(t:{x};c:{x};l:{x};a:{x};s:{x})a||",
    "as a colour of a cell": lambda x: f"||{{color:{x}}}a||",
    "in a caption": lambda x: f"|?|(t:{x}){x}||\n|=|(o:{x})b||",
    "as a target": lambda x: f"[[{x} | words]]",
    "as the words of a link": lambda x: f"[[Some page | {x}]]",
    "in a link": lambda x: f"[[{x}]]",
    "in an address": lambda x: f"[[https://evil.example/{x} | words]]",
    "as a bare address": lambda x: f"https://evil.example/{x}",
    "in another wiki": lambda x: f"[[WikiPedia:{x} | words]]",
    "as an anchor": lambda x: f"[[#{x} | words]]",
    "in code": lambda x: f"%%{x}%%",
    "in code of a language": lambda x: f"%%(html;1;{x})\n{x}\n%%",
    "as a language": lambda x: f"%%({x})\ntext\n%%",
    "in a note": lambda x: f"words[^{x}^]",
    "in a mind map": lambda x: f'<map><node TEXT="{x}" LINK="{x}"></node></map>',
    "in a box": lambda x: f"<<{x}<< ::c::",
    "as an action": lambda x: f"{{{{{x}}}}}",
    "in the table of contents": lambda x: f"{{{{toc title='{x}'}}}}",
    "as a file": lambda x: f"[[{x}.png | {x}]] [[Picture.png {x}]] [[file:{x}/{x}.png]]",
    "as a picture": lambda x: (
        f"{{{{image src='Picture.png' alt='{x}' title='{x}' class='{x}' link='{x}' page='{x}'}}}}"
    ),
    "as a download": lambda x: f"{{{{files download='{x}' text='{x}'}}}}",
    "as a heading of a page": lambda x: f"[[Some page#{x} | words]]",
    "as an alternative": lambda x: f"{{{{{{name|{x}}}}}}}",
}
# Of texts in another format than Wikka markup.
OTHER: Final[dict[str, Callable[[str], str]]] = {
    "as it is": lambda x: x,
    "in marks": lambda x: f"**{x}** _{x}_ `{x}`",
    "in a heading": lambda x: f"## {x}",
    "in a list": lambda x: f"- {x}\n  1. {x}",
    "in a task": lambda x: f"- [ ] {x}",
    "in a cell": lambda x: f"| {x} | b |\n|---|---|\n| {x} | {x} |",
    "in a quotation": lambda x: f"> {x}",
    "as a target": lambda x: f"[words]({x})",
    "as a target in brackets": lambda x: f"[words](<{x}>)",
    "as a title": lambda x: f"[words](https://evil.example '{x}')",
    "as the words of a link": lambda x: f"[{x}](https://evil.example)",
    "as a picture": lambda x: f"![{x}](https://evil.example/{x})",
    "as a file": lambda x: f"![{x}]({x}.png) ![[{x}.png|{x}]] [{x}]({x}.pdf)",
    "as a picture in HTML": lambda x: f'<img src="{x}.png" alt="{x}" width="{x}">',
    "in front matter": lambda x: f"---\n{x}: {x}\nkey: {x}\n---\n",
    "in a fold": lambda x: f"<details>\n<summary>{x}</summary>\n\n{x}\n\n</details>",
    "in an alert": lambda x: f"> [!NOTE]\n> {x}",
    "in elements": lambda x: f"<kbd>{x}</kbd> =={x}== <!-- {x} -->",
    "by reference": lambda x: f"[words][r]\n\n[r]: {x} '{x}'",
    "in code": lambda x: f"```{x}\n{x}\n```",
    "in a note": lambda x: f"words[^a]\n\n[^a]: {x}",
    "as an address": lambda x: f"<https://evil.example/{x}>",
    "as a page": lambda x: f"[[{x}|{x}]]",
    "as an action": lambda x: f"{{{{image url='{x}' alt='{x}'}}}}",
}


def action_calls(names: Sequence[str], attributes: Sequence[str], payload: str, at: int) -> str:
    """Return a call of an action with the payload in all attributes; ``at`` chooses the action."""
    quotes = "'" if '"' in payload else '"'
    given = " ".join(f"{key}={quotes}{payload}{quotes}" for key in attributes)
    return f"{{{{{names[at % len(names)]} {given}}}}}"


def bodies(
    payloads: Sequence[str], places: dict[str, Callable[[str], str]], *, each: int, per_page: int, seed: int
) -> Iterator[str]:
    """Yield texts that have each payload in ``each`` of the places (in all, if there are fewer)."""
    rng = Random(seed)
    ways = list(places.values())
    written = [way(payload) for payload in payloads for way in rng.sample(ways, min(each, len(ways)))]
    rng.shuffle(written)  # what one leaves open must not always be closed by the same other
    for begin in range(0, len(written), per_page):
        yield "\n\n".join(written[begin : begin + per_page])
