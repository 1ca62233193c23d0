"""(pure) A commented settings file, made of the options' own help, with every default."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterator
from typing import Any, Final, TypeAlias

import click

from columnar.settings.option_kinds import Kind, is_path, key_of, kind_of, toml_text, variable_of
from columnar.settings.settings_file import SYSTEM, Program

_WIDTH: Final = 118
_HEAD: Final = """\
Settings of {name}.  A setting without '#' before it has effect; those here are the defaults, or examples where a
setting has none.

A flag has precedence over its environment variable, and that over this file.  '{name} config show' says where each
value comes from.  The file is found by --config FILE or the variable {variable}, else as {file} in the user's
folder of settings, else as {system}/{name}/{file}.  Paths begin at this file's folder.
"""


TableText: TypeAlias = tuple[str, str, Collection[click.Option]]  # of a table: its name, a sentence, its options


def written(program: Program, tables: Collection[TableText], live: frozenset[str]) -> str:
    """Return the text of a file.

    ``live``: keys of settings that a serving process takes at SIGHUP.
    """
    head = _HEAD.format(name=program.name, variable=program.variable, file=program.file_name, system=SYSTEM)
    lines = [*_comment(head)]
    for name, about, options in tables:
        lines += ["", "", f"[{name}]", *_comment(about)]
        for option in options:
            lines += ["", *_setting(program, option, is_live=key_of(option) in live)]
    return "\n".join(lines) + "\n"


def _setting(program: Program, option: click.Option, *, is_live: bool) -> Iterator[str]:
    kind = kind_of(option)
    flag = f"--{key_of(option)}"
    names = f"{flag if kind is Kind.FLAG or not option.metavar else f'{flag} {option.metavar}'}"
    facts = [names, variable_of(program.name, option)]
    if values := _values(option):
        facts.append(values)
    if option.required:
        facts.append("needed")
    if is_live:
        facts.append("taken at SIGHUP")
    yield from _comment(option.help or "")
    yield from _comment("; ".join(facts))
    yield f"#{key_of(option)} = {toml_text(_default(option, kind))}"


def _values(option: click.Option) -> str:
    if isinstance(option.type, click.Choice):
        return f"one of {', '.join(map(str, option.type.choices))}"
    if isinstance(option.type, click.IntRange | click.FloatRange):
        low, high = option.type.min, option.type.max
        return f"from {low}" + (f" to {high}" if high is not None else "")
    return ""


def _default(option: click.Option, kind: Kind) -> Any:
    """Return the default, or an example."""
    if kind is Kind.FLAG:
        return option.default is True
    if kind is Kind.LIST:
        return list(option.default) if isinstance(option.default, tuple | list) else []
    if isinstance(option.default, str | int | float):
        return option.default
    return option.metavar or ("PATH" if is_path(option) else key_of(option).upper())


def _comment(text: str) -> Iterator[str]:
    for number, paragraph in enumerate(text.strip().split("\n\n")):
        if number:
            yield "#"
        words = " ".join(paragraph.split())
        yield from textwrap.wrap(
            words, _WIDTH, initial_indent="# ", subsequent_indent="# ", break_long_words=False, break_on_hyphens=False
        )
