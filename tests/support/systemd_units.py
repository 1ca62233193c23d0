"""Units and environment files as systemd reads them (systemd.service(5), "COMMAND LINES"; systemd.exec(5)).

environment file   quotes count at the beginning of a value, and are kept elsewhere; a later setting replaces one
${NAME}            the value, as part of a word
$NAME              as a word of its own: the value, split at blanks; quotes in it keep a word together
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path


def settings(path: Path) -> dict[str, list[str]]:
    """Return the values of each setting of a unit, whatever section it is in."""
    found: dict[str, list[str]] = {}
    for line in path.read_text().replace("\\\n", " ").splitlines():
        if line and line[0] not in "#[":
            name, _, value = line.partition("=")
            found.setdefault(name, []).append(value)
    return found


def environment_in(text: str) -> dict[str, str]:
    """Return the variables of an environment file whose values are on one line each."""
    found = {}
    for line in text.splitlines():
        if line.strip() and line.strip()[0] not in "#;":
            name, _, value = line.partition("=")
            found[name.strip()] = _value(value.strip())
    return found


def _value(text: str) -> str:
    if text[:1] == "'":
        return text[1 : text.index("'", 1)]
    if text[:1] == '"':
        (value,) = shlex.split(text)
        return value
    return re.sub(r"\\(.)", r"\1", text)


def words_of(line: str, variables: Mapping[str, str]) -> list[str]:
    """Return the words of a command line with the variables' values."""
    words: list[str] = []
    for word in shlex.split(line):
        if name := re.fullmatch(r"\$(\w+)", word):
            words += shlex.split(variables[name[1]])
        else:
            words.append(re.sub(r"\$\{(\w+)\}", lambda found: variables[found[1]], word))
    return words
