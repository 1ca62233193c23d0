"""Options that ``wikka serve`` and ``wikka run`` both take: how the wiki serves, whatever its store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from wikka_port.commands.account_options import ACCOUNT_OPTIONS
from wikka_port.config import WikiConfig
from wikka_port.hosts import checked_name
from wikka_port.markup.formats import FORMATS
from wikka_port.texts import speak_as_wiki
from wikka_port.texts.catalogue import Languages, UnreadableTexts

_DEFAULTS: Final = WikiConfig()
F = TypeVar("F", bound=Callable[..., Any])


def _checked_names(given: tuple[str, ...]) -> tuple[str, ...]:
    try:
        return tuple(map(checked_name, given))
    except ValueError as wrong:
        raise click.BadParameter(str(wrong)) from None


languages_option: Final = click.option(
    "--languages",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder with files of other languages, as `wikka texts fr.po` makes them.",
)
_OPTIONS: Final = (
    click.option(
        "--workers", default=_DEFAULTS.workers, show_default=True, type=click.IntRange(1, 64), help="Processes."
    ),
    click.option(
        "--threads", default=_DEFAULTS.threads, show_default=True, type=click.IntRange(1, 64), help="Of each process."
    ),
    click.option("--site-name", default=_DEFAULTS.site_name, show_default=True),
    click.option("--root-page", default=_DEFAULTS.root_page, show_default=True, help="The page at /."),
    click.option(
        "--markup",
        default=_DEFAULTS.markup,
        show_default=True,
        type=click.Choice(list(FORMATS)),
        help="The format of new pages.",
    ),
    click.option(
        "--language",
        default=_DEFAULTS.language,
        show_default=True,
        metavar="CODE",
        help="What the wiki speaks: en, de, or a language of --languages. Users can choose another one.",
    ),
    languages_option,
    click.option(
        "--edit-notes",
        default=_DEFAULTS.edit_notes,
        show_default=True,
        type=click.IntRange(0, 2),
        help="Notes of edits, as in WikkaWiki: 0 may be given, 1 must be, 2 are not asked for.",
    ),
    click.option(
        "--edits-per-minute",
        default=_DEFAULTS.edits_per_minute,
        show_default=True,
        type=click.IntRange(0),
        help="From one address; 0: no limit.",
    ),
    click.option("--proxies", default=0, type=click.IntRange(0, 9), help="Reverse proxies before the wiki."),
    click.option(
        "--allow-host",
        multiple=True,
        metavar="NAME",
        callback=lambda _context, _option, given: _checked_names(given),
        help="Name by which a wiki on loopback answers beside localhost, as a proxy passes it on; repeatable.",
    ),
    click.option(
        "--secret-file",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Keeps what signs the forms, so that open ones outlive a restart; made if it is not there.",
    ),
    *ACCOUNT_OPTIONS,
    click.option("--log-level", default="warning", type=click.Choice(["debug", "info", "warning", "error"])),
)


def serving_options(command: F) -> F:
    """Given on under their names with ``_`` for ``-``."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def as_arguments(given: Mapping[str, Any]) -> list[str]:
    """The same options for a process of ``wikka serve``; those that are None or empty are left out."""
    return [
        f"--{name.replace('_', '-')}={one}"
        for name, value in given.items()
        for one in (value if isinstance(value, tuple) else (value,))
        if one is not None and one != ""
    ]


def speak_the_language(given: Mapping[str, Any]) -> None:
    """The language of the wiki, in this process.  Raises click.ClickException where there is no such one."""
    try:
        languages = Languages.found(given["languages"])
        speak_as_wiki(languages.catalogue(given["language"]))
    except UnreadableTexts as problem:
        raise click.ClickException(str(problem)) from None
    names = languages.names
    if given["language"] not in names:
        known = ", ".join(f"{code} ({name})" for code, name in names.items())
        raise click.ClickException(
            f"--language {given['language']}: there are {known}. Make another one by: wikka texts"
        )
