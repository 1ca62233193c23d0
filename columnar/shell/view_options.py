"""The options that define a view; options after ``--join`` define the second source.

    --from T --by KEY --where C --sum N=COL --avg N=COL --order COL[:desc] --include COL --families F
    --join T --by KEY ...

``--by`` and similar options may be given for both sources; after ``--join`` click sees them under separate names
(``SidedCommand``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import click

from columnar.errors import IllegalArgument
from columnar.model.view_definition import Source, View
from columnar.shell.completion import completing

_OF_SOURCE: Final = ("by", "where", "sum", "avg", "order", "include", "families")
_OTHER: Final = "join-"  # before the names of the other side's options
_DIRECTION: Final = re.compile(r"(.+?)(?::(asc|desc))?", re.S)


class SidedCommand(click.Command):
    """A command whose source options apply to the second source after ``--join``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, sided(args))


def sided(args: Sequence[str]) -> list[str]:
    """Return the words, with source options after ``--join`` renamed to the second source's options."""
    found: list[str] = []
    is_joined = False
    for word in args:
        if word == "--":
            break
        name, equals, value = word.partition("=")
        if is_joined and name.startswith("--") and name[2:] in _OF_SOURCE:
            word = f"--{_OTHER}{name[2:]}{equals}{value}"
        is_joined = is_joined or name == "--join"
        found.append(word)
    return found + list(args[len(found) :])


def definition_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a definition; the command gets them as ``definition``, a mapping for ``view_of``."""
    for option in reversed((*_source_options(""), *_join_option(), *_source_options(_OTHER), _SPREAD)):
        command = option(command)
    return command


_SPREAD: Final = click.option(
    "--spread", type=click.IntRange(1, 256), metavar="N", help="Cut each group into N rows, for groups that are hot."
)


def _join_option() -> tuple[Callable[[Any], Any], ...]:
    return (
        click.option(
            "--join", "join_table", metavar="T", shell_complete=completing("table"),
            help="A second source; options behind it are its own, and its --by has as many parts.",
        ),
    )  # fmt: skip


def _source_options(side: str) -> tuple[Callable[[Any], Any], ...]:
    """Return the options of a source; ``side`` is the prefix of their names, which is empty for the first source."""

    def option(name: str, metavar: str, about: str, **more: Any) -> Callable[[Any], Any]:
        return click.option(f"--{side}{name}", metavar=metavar, help=about, hidden=bool(side), **more)

    table = click.option(
        "--from", "from_table", metavar="T", help="The table that the view follows.", shell_complete=completing("table")
    )  # fmt: skip
    return (
        *(() if side else (table,)),
        option("by", "KEY", "What rows are grouped by: family:qualifier, row[0:8], each family:, day(f:q); again: a "
               "further part of the key.", multiple=True),
        option("where", "C", "Which rows count: f:q=VALUE, f:q exists, 'number(f:q)>=10'; again: and.", multiple=True),
        option("sum", "N=COL", "A total N, the sum of the numbers in COL.", multiple=True),
        option("avg", "N=COL", "An average N of the numbers in COL.", multiple=True),
        option("order", "COL[:desc]", "What members are ordered by, for top; text(COL) by bytes."),
        option("include", "COL", "A column that members carry.", multiple=True),
        option("families", "F", "A row with cells in F is there, where no other option names a column.", multiple=True),
    )  # fmt: skip


def view_of(name: str, options: Mapping[str, Any], current: View | None = None) -> View:
    """Return the view that the options define; ``current`` if no option says anything.

    Raises IllegalArgument if the definition is incomplete.
    """
    spread = options["spread"]
    if options["from_table"] is None:
        if any(value for value in options.values()):
            raise IllegalArgument("say what the view follows: --from TABLE --by KEY")
        if current is None:
            raise IllegalArgument("say what the view follows: --from TABLE --by KEY")
        return current
    source = _source(options["from_table"], options, "")
    other = options["join_table"]
    return View(name, source, None if other is None else _source(other, options, "join_"), spread or 1)


def _source(table: str, options: Mapping[str, Any], side: str) -> Source:
    def side_option(name: str) -> Any:
        return options[side + name]

    if not side_option("by"):
        raise IllegalArgument(f"say by what rows of {table} are grouped: --by family:qualifier")
    return Source(
        table,
        key=tuple(side_option("by")),
        where=tuple(side_option("where")),
        sums=_named("--sum", side_option("sum")),
        averages=_named("--avg", side_option("avg")),
        order=_order(side_option("order")),
        include=tuple(side_option("include")),
        families=tuple(side_option("families")),
    )


def _named(option: str, texts: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        name, equals, column = text.partition("=")
        if not (name and equals and column):
            raise IllegalArgument(
                f"{option} {text}: write NAME=family:qualifier, for example {option} bytes=meta:bytes"
            )
        if name in found:
            raise IllegalArgument(f"{option} {name} stands twice; give one of them another name")
        found[name] = column
    return found


def _order(text: str | None) -> str:
    """Return ``meta:score:desc`` as ``meta:score desc``."""
    if not text:
        return ""
    match = _DIRECTION.fullmatch(text)
    assert match is not None, "any text matches"
    return f"{match[1]} {match[2]}" if match[2] else text
