"""The texts of the scripts of a page, as a script of its own: ``static/texts.js`` with those of a language (pure)."""

from __future__ import annotations

import json
import re
from typing import Final

from wikka_port.texts.catalogue import SOURCE_LANGUAGE, Catalogue, UnreadableTexts

NAME: Final = "texts.js"
_SAID: Final = "const wikkaSaid = new Map([]);"
_PLURAL: Final = "const wikkaPlural = (n) => Number(n !== 1);"
_RULE: Final = re.compile(
    r"[n0-9 ()?:<>=!&|%]+"
)  # the language of Plural-Forms is C's, of which scripts have this much


def name_of(code: str) -> str:
    return NAME if code == SOURCE_LANGUAGE else f"texts.{code}.js"


def language_of(name: str) -> str:
    """Return the code in the name of such a script; "" for another name."""
    found = re.fullmatch(r"texts\.([A-Za-z0-9-]+)\.js", name)
    return found.group(1) if found else ""


def script_of(source: str, catalogue: Catalogue) -> str:
    """``source``: of ``static/texts.js``.  Raises UnreadableTexts."""
    if not _RULE.fullmatch(catalogue.plural):
        raise UnreadableTexts(f"The rule of plurals of {catalogue.code} is none: {catalogue.plural!r}")
    said = json.dumps(sorted(catalogue.of_scripts.items()), ensure_ascii=False).replace("\u2028", " ")
    made = source.replace(_SAID, f"const wikkaSaid = new Map({said});")
    return made.replace(_PLURAL, f"const wikkaPlural = (n) => Number({catalogue.plural});")
