"""(pure) The settings in ``wikka.config.php``: a PHP array of texts, read as text and never run.

    file    := ... "$wakkaConfig" "=" ("array(" | "[") (entry ",")* (")" | "]") ";" ...
    entry   := text "=>" (text | number | true | false | null)

In single quotes a backslash escapes a quote and itself alone; in double quotes also ``n``, ``t``, ``r`` and ``$``.
A value that is an expression (a constant, a call, a joined text) is left out, and its name is noted.
Comments are passed over.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

CONFIG_BYTES_MAX: Final = 1_000_000
_BEGIN: Final = re.compile(r"\$(?:wakkaConfig|wikkaConfig)\s*=\s*(?:array\s*\(|\[)", re.IGNORECASE)
_BLANK: Final = re.compile(r"(?:\s++|//[^\n]*+|#[^\n]*+|/\*(?:[^*]++|\*(?!/))*+\*/)*+")
_SINGLE: Final = re.compile(r"'((?:[^'\\]++|\\.)*+)'", re.DOTALL)
_DOUBLE: Final = re.compile(r'"((?:[^"\\$]++|\\.)*+)"', re.DOTALL)
_PLAIN: Final = re.compile(r"(-?[0-9]++(?:\.[0-9]++)?|true|false|null)(?![A-Za-z0-9_.(])", re.IGNORECASE)
_DOUBLE_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "$": "$"}


class BadConfig(ValueError):
    """The file is no configuration of WikkaWiki; ``str()`` says where it stops being one."""


@dataclass(slots=True)
class Config:
    values: dict[str, str] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)  # names whose values are expressions

    def listed(self, name: str) -> list[str]:
        """Return the names in a value that is a list with commas."""
        return [one.strip() for one in self.values.get(name, "").split(",") if one.strip()]


def read_config(text: str) -> Config:
    """Read the text of the file.  Raises BadConfig."""
    if len(text) > CONFIG_BYTES_MAX:
        raise BadConfig(f"it has more than {CONFIG_BYTES_MAX:,} characters")
    begin = _BEGIN.search(text)
    if begin is None:
        raise BadConfig("there is no $wakkaConfig = array(...) in it")
    config = Config()
    at = begin.end()
    while True:
        at = _after(_BLANK, text, at)
        if text[at : at + 1] in (")", "]"):
            return config
        name, at = _text(text, at)
        at = _after(_BLANK, text, at)
        if text[at : at + 2] != "=>":
            raise _bad(text, at, "“=>”")
        at = _value(config, name, text, _after(_BLANK, text, at + 2))
        at = _after(_BLANK, text, at)
        if text[at : at + 1] == ",":
            at += 1
        elif text[at : at + 1] not in (")", "]"):
            raise _bad(text, at, "a comma")


def _value(config: Config, name: str, text: str, at: int) -> int:
    """Take a value and return the place after it."""
    begin = at
    if text[at : at + 1] in ("'", '"'):
        try:
            value, at = _text(text, at)
        except BadConfig:
            value = None
    else:
        found = _PLAIN.match(text, at)
        value, at = (None, at) if found is None else (_plain(found[1]), found.end())
    end = _after(_BLANK, text, at)
    if value is not None and text[end : end + 1] in (",", ")", "]"):
        config.values[name] = value
        return end
    config.unread.append(name)
    return _after_expression(text, begin)


def _after_expression(text: str, at: int) -> int:
    depth = 0
    while at < len(text):
        sign = text[at]
        if sign in ",)]" and depth == 0:
            return at
        if sign in "'\"":
            quoted = re.compile(r"%s(?:[^%s\\]++|\\.)*+%s" % ((sign,) * 3), re.DOTALL).match(text, at)
            if quoted is None:
                break
            at = quoted.end()
            continue
        depth += (sign in "([") - (sign in ")]")
        at += 1
    raise _bad(text, at, "an end of the value")


def _plain(word: str) -> str:
    return {"true": "1", "false": "", "null": ""}.get(word.lower(), word)


def _text(text: str, at: int) -> tuple[str, int]:
    """Return the text at ``at`` and the place after it."""
    single = _SINGLE.match(text, at)
    if single is not None:
        return re.sub(r"\\(['\\])", r"\1", single[1]), single.end()
    double = _DOUBLE.match(text, at)
    if double is not None:
        resolved = re.sub(r"\\(.)", lambda one: _DOUBLE_ESCAPES.get(one[1], one[0]), double[1], flags=re.DOTALL)
        return resolved, double.end()
    raise _bad(text, at, "a text in quotes")


def _after(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return at if found is None else found.end()


def _bad(text: str, at: int, expected: str) -> BadConfig:
    line = text.count("\n", 0, at) + 1
    return BadConfig(f"line {line}: {expected} should stand before {text[at : at + 20]!r}")
