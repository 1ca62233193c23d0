"""(pure) Writing Wikka markup: text and links that are parsed back as exactly what was meant.

It is for programs that write pages: the importer, the synthetic wiki, a rename that changes links.
Characters with a special meaning are written as numeric references (``&#42;``).
"""

from __future__ import annotations

import re
from typing import Final

from wikka_port.names import is_camel_case, normalise

_PAIRED: Final = re.compile(r"([*/_#'+£¥@\"%`\[\]{}<>|=:])(?=\1)|(?<=#)%|#(?=%)|/(?=\*)|-(?=--)|\[(?=\^)|[&<|:]")
_LINE_START: Final = re.compile(r"(?m)^([ ]*)([~=\-]|\t)|^ {4}")
_CAMEL_CAPITALS: Final = re.compile(r"\b[A-Z]+(?=[a-z]+[A-Z0-9])")
_IN_TARGET: Final = re.compile(r"[\[\]|&:@#/]")
_IN_LABEL: Final = re.compile(r"[\[\]|&]")


def _reference(found: re.Match[str]) -> str:
    return "".join(f"&#{ord(character)};" for character in found.group())


def forced_link(name: str, label: str = "") -> str:
    """Return a link to the page ``name``, whatever characters the name has.  Raises InvalidName."""
    target = _IN_TARGET.sub(_reference, normalise(name))
    shown = _IN_LABEL.sub(_reference, " ".join(label.split()))
    return f"[[{target}|{shown}]]" if shown and shown != target else f"[[{target}|]]"


def literal(text: str, *, autolink: bool = True) -> str:
    """Return markup that shows ``text`` as it is, without toggles, links, lists or CamelCase.  Lines stay lines."""
    quoted = _PAIRED.sub(_reference, text)
    quoted = _LINE_START.sub(_reference, quoted)
    if autolink:
        quoted = _CAMEL_CAPITALS.sub(_reference, quoted)
    return quoted


def link_to(name: str) -> str:
    """Return the shortest link to the page ``name``: the bare word, if CamelCase makes it a link."""
    return name if is_camel_case(name) else forced_link(name)
