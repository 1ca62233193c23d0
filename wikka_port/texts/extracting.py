"""Every text that the wiki can say, from its own sources: what a language's file has to have.

Templates: the filter ``t`` on a constant, and ``{% trans %}``.  Python: ``_``, ``_n``, ``_w``, ``N_`` on constants.
Scripts: ``_("...")`` and ``_n("...", "...", n)``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Final, NamedTuple

from jinja2 import Environment, nodes
from jinja2.ext import InternationalizationExtension

from wikka_port.texts.folding import FILTER

_CALLS: Final = {"_": 1, "_w": 1, "N_": 1, "_n": 2}  # by name, how many arguments are texts
_SCRIPT_CALL: Final = re.compile(r'(?<![\w.$])_(n?)\(\s*("(?:[^"\\]|\\.)*")(?:\s*,\s*("(?:[^"\\]|\\.)*"))?')


class Text(NamedTuple):
    one: str
    many: str  # "": it has no plural
    place: str  # file and line


def texts() -> list[Text]:
    """In the order of their files; a text is there once for each place."""
    root = resources.files("wikka_port")
    return [found for path, file in _files(root, "") for found in texts_of(path, file.read_text(encoding="utf-8"))]


def _files(folder: Traversable, path: str) -> Iterator[tuple[str, Traversable]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            if not entry.name.startswith(("_", ".")):
                yield from _files(entry, f"{path}{entry.name}/")
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
