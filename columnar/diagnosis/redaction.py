r"""(pure) What leaves a support archive out: row keys, values, passwords, keys and tokens.

    keys of regions   a hash with a salt of the archive, so that neighbours can be matched and nothing guessed
    texts             of the log, of remarks and reasons: a word stays if the program's own sources have it, if it names
                      a table, server or the like, or if it is the encoded name of a region.  A number stays beside a
                      word that counts (``12 ms``, ``process 47``), and with a unit of memory (``1.5GiB``).
                      Everything else becomes ``~``, as does what follows ``row``, ``key`` or ``filter``, and
                      everything in quotes
    settings          the settings that this program has, with their values; of others the name, of commands the
                      first word
    attributes        those that act, with their values; of others their number
    last              a part that has a known secret all the same is left out as a whole

A word of the program's sources that is somebody's row key stays in a text, because nothing tells it apart.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from columnar.settings.option_kinds import without_user

MASK: Final = "~"
HASH_DIGITS: Final = 12
LEAST_SECRET_BYTES: Final = 6  # a shorter one is found everywhere
LEFT_OUT: Final = "(left out)"
_WORD: Final = re.compile(r"\w+")
_SIZE: Final = re.compile(r"\d{1,4}(?:\.\d)?(?:KiB|MiB|GiB)")  # as ``readable_bytes`` writes them
_PIECE: Final = re.compile(rf"(?<![\w.]){_SIZE.pattern}\b|{_WORD.pattern}")
_REGION: Final = re.compile(r"[0-9a-f]{32}")
_REGION_NAME: Final = re.compile(r",.*?,(\d+\.[0-9a-f]{32}\.)")
_QUOTED: Final = re.compile(r"""b?(?:'[^']*'|"[^"]*"|`[^`]*`)""")
_KEYED: Final = re.compile(r"\b(row|key|member|prefix|filter|value)(=|:? )(?!s\b)\S+", re.IGNORECASE)
_TRACEBACK: Final = re.compile(r" \| .*", re.S)
_NUMBER: Final = re.compile(r"\d+")
_COUNTS_BEFORE: Final = frozenset({"process", "port", "epoch", "status", "version", "format", "signal", "took"})
_COUNTS_AFTER: Final = frozenset(
    """s ms min h d B KB MB GB KiB MiB GiB bytes regions region rows cells lines servers server changes attempts fsyncs
    requests connections tables seconds milliseconds files times""".split()  # noqa: SIM905 - a list takes a line for each
)
_LOG_HEAD: Final = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} [A-Z]+ (?:\S+ )?[\w.]+: )(.*)", re.S)
_SLOW: Final = ("rows", "cells", "cells_read")
_HIDDEN_SETTINGS: Final = frozenset({"access", "password", "secret", "token", "key"})
_COMMANDS: Final = frozenset({"fence_command"})  # of an operator, whose arguments may be a user and a password
_PROGRAM: Final = re.compile(r"[\w./+-]+")


class Redactor:
    """The rules with what is known of one store."""

    def __init__(
        self, salt: bytes, words: Collection[str], names: Iterable[str], keys: Iterable[bytes], secrets: Iterable[bytes]
    ) -> None:
        """Pass the program's own ``words``, ``names`` of the store, ``keys`` of regions, and ``secrets``."""
        self._salt = salt
        self._words = words
        self._names = frozenset(word for name in names for word in _WORD.findall(name))
        self._keys = sorted({text for key in keys for text in _forms_of(key)}, key=len, reverse=True)
        known = {secret for secret in secrets if len(secret) >= LEAST_SECRET_BYTES}
        self._secrets = tuple({form for secret in known for form in _written_forms(secret)})

    def hash_key(self, key: bytes) -> str:
        """Return the hash of a row key; the empty key, which bounds nothing, stays empty."""
        if not key:
            return ""
        return hashlib.sha256(self._salt + key).hexdigest()[:HASH_DIGITS]

    def redact_text(self, text: str) -> str:
        """Return one line of free text without what may be data."""
        text = _TRACEBACK.sub(f" | {MASK}", text)
        text = _REGION_NAME.sub(rf",{MASK},\1", text)
        for key in self._keys:
            text = text.replace(key, MASK)
        text = _QUOTED.sub(MASK, text)
        text = _KEYED.sub(rf"\1\2{MASK}", text)
        return self._redact_words(text)

    def _redact_words(self, text: str) -> str:
        found = list(_PIECE.finditer(text))
        pieces, at = [], 0
        for number, match in enumerate(found):
            before = found[number - 1][0] if number else ""
            after = found[number + 1][0] if number + 1 < len(found) else ""
            pieces += [text[at : match.start()], match[0] if self._stays(match[0], before, after) else MASK]
            at = match.end()
        return re.sub(rf"{MASK}(?:[^\w\s]*{MASK})+", MASK, "".join([*pieces, text[at:]]))

    def _stays(self, word: str, before: str, after: str) -> bool:
        if word in self._names:
            return True
        if _NUMBER.fullmatch(word):
            return after in _COUNTS_AFTER or before in _COUNTS_BEFORE
        if before.isdigit() and word in _COUNTS_AFTER:
            return True
        return word.lower() in self._words or (_REGION.fullmatch(word) or _SIZE.fullmatch(word)) is not None

    def redact_log(self, line: str) -> str:
        """Return a line of the log; of a line without the log's own head nothing but its length."""
        found = _LOG_HEAD.fullmatch(line)
        if found is None:
            return f"({len(line)} characters left out)"
        return found[1] + self.redact_text(found[2])

    def redact_slow(self, about: str) -> dict[str, Any]:
        """Return what a slow request's line says of its table, region and counts."""
        head = about.partition(" row=")[0].partition(" filter=")[0]
        named = dict(one.partition("=")[::2] for one in head.split() if "=" in one)
        found: dict[str, Any] = {}
        if named.get("table", "") and self.redact_text(named["table"]) == named["table"]:
            found["table"] = named["table"]
        if _REGION.fullmatch(named.get("region", "")):
            found["region"] = named["region"]
        for name in _SLOW:
            counts = re.findall(rf"(?:^| ){name}=(\d{{1,9}})(?= |;|$)", about)
            if counts:
                found[name] = int(counts[-1])
        return found

    def names_secret(self, data: bytes) -> bool:
        """Tell whether a known secret is in the bytes."""
        return any(secret in data for secret in self._secrets)


def _written_forms(secret: bytes) -> set[bytes]:
    """Return the bytes by which parts would have a secret: as it is, and as JSON has it, which escapes characters."""
    forms = {secret}
    for errors in ("surrogateescape", "replace"):  # of arguments and variables, and of files and the store's answers
        text = secret.decode("utf-8", errors)
        forms.add(json.dumps(text)[1:-1].encode())
        forms.add(json.dumps(text, ensure_ascii=False)[1:-1].encode("utf-8", "surrogateescape"))
    return forms


def _forms_of(key: bytes) -> set[str]:
    """Return the texts by which messages name a row key; none of a key so short that it is found everywhere."""
    if len(key) < 3:
        return set()
    text = key.decode("utf-8", "backslashreplace")
    return {text, repr(key)[2:-1]}


def redact_settings(settings: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """Return the settings; ``known`` has the names of which the value may be told.

    Within a known setting numbers may be told too, whatever their names.
    """
    found: dict[str, Any] = {}
    for name, value in settings.items():
        if name in _HIDDEN_SETTINGS or name not in known:
            found[name] = LEFT_OUT
        elif isinstance(value, Mapping):
            numbers = {one for one, inner in value.items() if isinstance(inner, int | float | None)}
            found[name] = redact_settings(value, {*known, *numbers})
        elif isinstance(value, str):
            found[name] = program_in(value) if name in _COMMANDS else without_user(value)
        else:
            found[name] = value
    return found


def program_in(command: str) -> str:
    """Return the first word of a command of the shell, if it is plainly a program's name; the rest may be secrets."""
    first, *others = command.split(maxsplit=1) or ("",)
    if first and not _PROGRAM.fullmatch(first):  # a variable with its value, quotes, two commands in one word
        return LEFT_OUT
    return f"{first} {LEFT_OUT}" if others else first


def redact_environment(variables: Mapping[str, str], plain: Collection[str]) -> dict[str, str]:
    """Return our own variables: the values of those in ``plain``, of the others only that they are set."""
    return {
        name: value if name in plain else LEFT_OUT
        for name, value in sorted(variables.items())
        if name.startswith("COLUMNAR_") or name in plain
    }


def redact_attributes(attributes: Mapping[str, str], known: Collection[str]) -> dict[str, Any]:
    """Return the attributes that act, with values, and the number of the others."""
    kept = {name: value for name, value in attributes.items() if name in known}
    others = len(attributes) - len(kept)
    return {**kept, "others_left_out": others} if others else kept
