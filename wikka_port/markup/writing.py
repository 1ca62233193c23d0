"""Writing markup (pure): text and links that are read back as exactly what was meant.

For programs that make pages: the importer, the synthetic wiki, a rename that repairs links.
Characters that would mean something are written as numeric references (``&#42;``).
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
    """A link to the page ``name``, whatever characters it has.  Raises InvalidName."""
    target = _IN_TARGET.sub(_reference, normalise(name))
    shown = _IN_LABEL.sub(_reference, " ".join(label.split()))
    return f"[[{target}|{shown}]]" if shown and shown != target else f"[[{target}|]]"


def literal(text: str, *, autolink: bool = True) -> str:
    """Markup that shows ``text`` as it is: no toggles, links, lists or CamelCase.  Lines stay lines."""
    quoted = _PAIRED.sub(_reference, text)
    quoted = _LINE_START.sub(_reference, quoted)
    if autolink:
        quoted = _CAMEL_CAPITALS.sub(_reference, quoted)
    return quoted


def link_to(name: str) -> str:
    """Return the shortest link: the bare word where CamelCase makes it one."""
    return name if is_camel_case(name) else forced_link(name)
