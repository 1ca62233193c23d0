"""Extraction of all texts from the wiki's sources; and creation, update and check of a language's file.

Templates: the filter ``t`` on a constant, and ``{% trans %}``.  Python: ``_``, ``_n``, ``_w``, ``N_`` on constants.
Scripts: ``_("...")`` and ``_n("...", "...", n)``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final, NamedTuple

import polib
from jinja2 import Environment, nodes
from jinja2.ext import InternationalizationExtension

from wikka_port.texts.folding import FILTER

_CALLS: Final = {"_": 1, "_w": 1, "N_": 1, "_n": 2}  # name of a function -> number of arguments that are texts
_SCRIPT_CALL: Final = re.compile(r'(?<![\w.$])_(n?)\(\s*("(?:[^"\\]|\\.)*")(?:\s*,\s*("(?:[^"\\]|\\.)*"))?')
_PLACE: Final = re.compile(r"%\((\w+)\)s|\{(\w+)[^{}]*\}")
_LINE_CHARS: Final = 120


class Text(NamedTuple):
    one: str
    many: str  # "": it has no plural
    place: str  # file and line


def texts() -> list[Text]:
    """Return all texts of the wiki in the order of their files; a text occurs once for each place."""
    root = resources.files("wikka_port")
    return [found for path, file in _sources(root, "") for found in texts_of(path, file.read_text(encoding="utf-8"))]


def _sources(folder: Traversable, path: str) -> Iterator[tuple[str, Traversable]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            if not entry.name.startswith(("_", ".")):
                yield from _sources(entry, f"{path}{entry.name}/")
        elif entry.name.endswith((".py", ".html", ".js")):
            yield f"{path}{entry.name}", entry


def texts_of(path: str, content: str) -> Iterator[Text]:
    if path.endswith(".py"):
        yield from _of_python(path, content)
    elif path.endswith(".html"):
        yield from _of_template(path, content)
    else:
        yield from _of_script(path, content)


def _of_python(path: str, content: str) -> Iterator[Text]:
    for node in ast.walk(ast.parse(content)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _CALLS:
            said = [one.value for one in node.args[: _CALLS[node.func.id]] if isinstance(one, ast.Constant)]
            if said and all(isinstance(one, str) for one in said):
                one, *many = map(str, said)
                yield Text(one, "".join(many), f"{path}:{node.lineno}")


def _of_template(path: str, content: str) -> Iterator[Text]:
    environment = Environment(
        autoescape=True, extensions=[InternationalizationExtension], trim_blocks=True, lstrip_blocks=True
    )
    environment.policies["ext.i18n.trimmed"] = True
    environment.newstyle_gettext = True  # type: ignore[attr-defined]
    tree = environment.parse(content)
    for one in tree.find_all(nodes.Filter):
        if one.name == FILTER and isinstance(one.node, nodes.Const):
            yield Text(str(one.node.value), "", f"{path}:{one.lineno}")
    for call in tree.find_all(nodes.Call):
        if isinstance(call.node, nodes.Name) and call.node.name in ("gettext", "ngettext"):
            said = [arg.value for arg in call.args if isinstance(arg, nodes.Const)]
            yield Text(str(said[0]), str(said[1]) if call.node.name == "ngettext" else "", f"{path}:{call.lineno}")


def _of_script(path: str, content: str) -> Iterator[Text]:
    for call in _SCRIPT_CALL.finditer(content):
        line = content.count("\n", 0, call.start()) + 1
        many = ast.literal_eval(call.group(3)) if call.group(1) and call.group(3) else ""
        yield Text(ast.literal_eval(call.group(2)), many, f"{path}:{line}")


def up_to_date(old: polib.POFile | None, texts: Iterable[Text], code: str) -> polib.POFile:
    """Return a file with these texts and their translations from ``old``, without texts that are not used any more."""
    made = polib.POFile(wrapwidth=_LINE_CHARS)
    made.metadata.update(
        old.metadata
        if old is not None
        else {
            "Language": code,
            "Language-Name": "",
            "Number-Format": "1,234.5",
            "Content-Type": "text/plain; charset=utf-8",
            "Content-Transfer-Encoding": "8bit",
            "Plural-Forms": "nplurals=2; plural=(n != 1);",
        }
    )
    entries: dict[str, polib.POEntry] = {}
    for text in texts:
        if text.one not in entries:
            entries[text.one] = _entry(text, old.find(text.one) if old is not None else None)
        entry = entries[text.one]
        if text.many and not entry.msgid_plural:
            entry.msgid_plural, entry.msgstr_plural, entry.msgstr = text.many, {0: "", 1: ""}, ""
        place = (text.place.rpartition(":")[0], "")  # no line numbers: a text that moves changes no file
        if place not in entry.occurrences:
            entry.occurrences.append(place)
    made.extend(entries.values())
    return made


def written(file: polib.POFile) -> str:
    """Return the content of the file, which begins with the header."""
    return str(file).removeprefix("#\n")


def _entry(text: Text, before: polib.POEntry | None) -> polib.POEntry:
    if before is None or (before.msgid_plural or "") != text.many:
        plural = {"msgid_plural": text.many, "msgstr_plural": {0: "", 1: ""}} if text.many else {}
        return polib.POEntry(msgid=text.one, **plural)
    return polib.POEntry(
        msgid=before.msgid,
        msgid_plural=before.msgid_plural,
        msgstr=before.msgstr,
        msgstr_plural=before.msgstr_plural,
        tcomment=before.tcomment,
        flags=before.flags,
    )


def problems(file: polib.POFile) -> Iterator[str]:
    """Yield a line for each text that is missing or wrong."""
    for entry in file:
        if entry.obsolete:
            continue
        if not entry.translated():
            yield f"{entry.msgid!r} is not translated"
            continue
        allowed = _places(entry.msgid) | _places(entry.msgid_plural or "")
        for said in (entry.msgstr, *entry.msgstr_plural.values()):
            if strange := _places(said) - allowed:
                yield f"{said!r} has {', '.join(sorted(strange))}, which {entry.msgid!r} has not"
        if not entry.msgid_plural and (lost := allowed - _places(entry.msgstr)):
            yield f"{entry.msgstr!r} lacks {', '.join(sorted(lost))}"


def _places(text: str) -> set[str]:
    """Return the placeholders in a text: ``%(name)s`` in templates, ``{name}`` elsewhere."""
    return {one.group() if one.group(1) else "{" + one.group(2) + "}" for one in _PLACE.finditer(text)}


def read(path: Path) -> polib.POFile | None:
    """Read a language's file; return None if it does not exist.  Raises OSError, or ValueError if it is damaged."""
    if not path.exists():
        return None
    try:
        return polib.pofile(str(path), encoding="utf-8", wrapwidth=_LINE_CHARS)
    except OSError as broken:
        raise ValueError(str(broken)) from None
