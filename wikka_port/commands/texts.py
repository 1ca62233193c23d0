"""``wikka texts``: make or update the file of a language."""

from __future__ import annotations

from pathlib import Path

import click

from wikka_port.texts import files
from wikka_port.texts.catalogue import UnreadableTexts, is_language, read_catalogue

_MAX_LISTED = 20


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--check", is_flag=True, help="Change nothing; status 1 where a text is missing or wrong.")
def texts(file: Path, *, check: bool) -> None:
    """Make FILE, named after its language (fr.po), or bring it up to date.

    The file gets every text that the wiki says, and keeps what it has for them. Any editor for gettext's files
    translates it. With a Language-Name in its header, the wiki takes it from a folder: wikka serve --languages FOLDER.
    """
    code = file.name.removesuffix(".po")
    if file.suffix != ".po" or not is_language(code):
        raise click.ClickException(f"{file.name}: name the file after its language's code, like fr.po or pt-BR.po.")
    try:
        made = files.up_to_date(files.read(file), files.texts(), code)
        read_catalogue(code, files.written(made))
    except (ValueError, OSError, UnreadableTexts) as problem:
        raise click.ClickException(f"{file} cannot be read: {problem}") from None
    found = list(files.problems(made))
    if not check:
        file.write_text(files.written(made), encoding="utf-8")
    for line in found[:_MAX_LISTED]:
        click.echo(line, err=True)
    if len(found) > _MAX_LISTED:
        click.echo(f"... and {len(found) - _MAX_LISTED} more", err=True)
    click.echo(f"{len(made)} texts, {len(found)} to be looked at")
    if check and found:
        raise SystemExit(1)
