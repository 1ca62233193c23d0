"""``wikka file``: add, list, get, remove and restore the files of pages, for the operator of the wiki."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, Final

import click

from wikka_port.commands.store_options import StoreOptions, store_options
from wikka_port.exchange.whole_file import whole_file
from wikka_port.feeds import iso_time
from wikka_port.files.chunks import CHUNK_BYTES
from wikka_port.files.content_types import ALL, NotAccepted
from wikka_port.files.file_names import InvalidFileName
from wikka_port.files.file_rows import CurrentFile, FileVersion, lookup_key
from wikka_port.files.refusals import FileConflict, FileRefused, MissingContent, NoSuchFile
from wikka_port.names import InvalidName
from wikka_port.pages import Wiki
from wikka_port.rights.adoption import Adoption
from wikka_port.rights.erasing import GuardedErasure
from wikka_port.rights.guarded import GuardedWiki
from wikka_port.rights.guarded_files import GuardedFiles
from wikka_port.visitors import COMMAND, OPERATOR

_USERS: Final = 20  # pages that a removal names
_USES_MAX: Final = 100_000  # pages in a list
_JSON: Final = click.option("--json", "as_json", is_flag=True, help="The answer for programs.")
_NOTE: Final = click.option("--note", "--reason", default="", help="Is kept with the version.")
_REFUSALS: Final = (FileRefused, NotAccepted, InvalidFileName, InvalidName)


@contextmanager
def _opened(store: StoreOptions) -> Iterator[Wiki]:
    """Open the wiki; a refusal ends the command with one line."""
    with store.open_wiki(pool=4) as wiki:
        wiki.prepare()
        try:
            yield wiki
        except _REFUSALS as refused:
            raise click.ClickException(str(refused)) from None
        except MissingContent as missing:
            raise click.ClickException(f"{missing}: it is damaged; wikka check says what is missing") from None


def _files(wiki: Wiki, page: str) -> GuardedFiles:
    return GuardedWiki(wiki, OPERATOR).files(page)


@click.group("file")
def file() -> None:
    """Files and pictures of pages: add, list, get, remove, restore, erase, sweep.

    \b
      wikka file add "Some page" photo.jpg plan.pdf --note "from Ada"
      wikka file list "Some page"
      wikka file get "Some page" photo.jpg -o copy.jpg
    """


@file.command()
@click.argument("page")
@click.argument("paths", nargs=-1, required=True, metavar="FILE...", type=click.Path(exists=True, dir_okay=False))
@click.option("--name", default="", help="Its name in the wiki, of a single file.")
@_NOTE
@click.option("--alt", default="", help="What a picture shows, for people who do not see it.")
@click.option("--keep-metadata", is_flag=True, help="Keep the place, camera and owner in a photograph.")
@click.option("--replace", is_flag=True, help="A file of the same name gets a new version.")
@click.option("--any-type", is_flag=True, help="Also types that the wiki does not take by default, such as HEIC.")
@click.option("--bytes-max", type=click.IntRange(1), help="The largest file.  [default: 100,000,000, as in a browser]")
@_JSON
@store_options
def add(
    page: str,
    paths: tuple[str, ...],
    name: str,
    note: str,
    alt: str,
    keep_metadata: bool,
    replace: bool,
    any_type: bool,
    bytes_max: int | None,
    as_json: bool,
    store: StoreOptions,
) -> None:
    """Add files to the page PAGE.

    The content decides on the type, and the name gets the ending that agrees with it. A photograph loses the place
    where it was taken, unless told otherwise.

    \b
      wikka file add "Some page" photo.jpg --alt "The minster, seen from below"
      wikka file add Plans new-plan.pdf --name plan.pdf --replace --note "second floor"
    """
    if name and len(paths) > 1:
        raise click.UsageError("--name is for a single file")
    with _opened(store) as wiki:
        _set_bounds(wiki, any_type, bytes_max)
        files = _files(wiki, page)
        for path in paths:
            try:
                version = _added(files, Path(path), name, note, alt, keep_metadata, replace)
            except FileConflict as conflict:
                hint = "; --replace makes it a new version" if conflict.current is not None else ""
                raise click.ClickException(f"{page} has a file {conflict.name} already{hint}") from None
            except (NotAccepted, InvalidFileName) as refused:
                raise click.ClickException(f"{path}: {refused}") from None
            _say(as_json, _data(version, page), f"{version.name}: version {version.number}, {_size(version)}")


def _set_bounds(wiki: Wiki, any_type: bool, bytes_max: int | None) -> None:
    config = wiki.files.config
    types = frozenset({ALL}) if any_type else config.types
    wiki.files.set_config(replace(config, types=types, bytes_max=bytes_max or config.bytes_max))


def _added(
    files: GuardedFiles, path: Path, name: str, note: str, alt: str, keep_metadata: bool, replace: bool
) -> FileVersion:
    upload = files.begin(name or path.name, COMMAND, path.stat().st_size)
    try:
        writer = files.writer(upload)
        with path.open("rb") as source:
            while piece := source.read(CHUNK_BYTES):
                writer.write_piece(piece)
        upload = files.settle(writer.finish_part(), keep_metadata=keep_metadata)
        replaces = _token(files, upload.name) if replace else ""
        return files.commit(upload, note=note, alt=alt, replaces=replaces)
    except (*_REFUSALS, OSError, KeyboardInterrupt):
        files.abandon(upload)
        raise


def _token(files: GuardedFiles, name: str) -> str:
    """Return the token of a file's newest version, or "" if there is no such file."""
    wanted = lookup_key(name)
    return next((one.token for own, one in files.current().items() if lookup_key(own) == wanted and one.is_there), "")


@file.command("list")
@click.argument("page", required=False)
@click.option("--all-versions", is_flag=True, help="With all versions, and files that were removed.")
@_JSON
@store_options
def list_files(page: str | None, all_versions: bool, as_json: bool, store: StoreOptions) -> None:
    """List the files of the page PAGE; without PAGE, those of all pages."""
    if all_versions and page is None:
        raise click.UsageError("--all-versions needs a page")
    with _opened(store) as wiki:
        pages = [(page, _files(wiki, page).current())] if page is not None else wiki.files.all_files()
        found: list[dict[str, Any]] = []
        for name, files in pages:
            for own, current in sorted(files.items()):
                if all_versions:
                    found += [_data(one, name) for one in _files(wiki, name).versions(own, limit=None)]
                elif current.is_there:
                    found.append(_data(current, name, own))
                if not as_json:
                    _print(found, with_page=page is None)
                    found = []
    if as_json:
        click.echo(json.dumps(found, indent=1))


def _print(found: list[dict[str, Any]], *, with_page: bool) -> None:
    for one in found:
        where = f"{one['page']}: " if with_page else ""
        said = f"{one['size']:,} bytes, {one['type']}" if one["sha256"] else "removed"
        by = f", {one['time']} by {one['author']}" if "author" in one else ""
        click.echo(f"{where}{one['name']}  version {one['version']}, {said}{by}")


@file.command()
@click.argument("page")
@click.argument("name")
@click.option("-o", "--output", default="", metavar="FILE", help="Where to; - is the standard output.  [default: NAME]")
@click.option("--version", "number", type=click.IntRange(1), help="An older version.")
@store_options
def get(page: str, name: str, output: str, number: int | None, store: StoreOptions) -> None:
    """Write the file NAME of the page PAGE to the disk.

    \b
      wikka file get "Some page" photo.jpg
      wikka file get Plans plan.pdf --version 1 -o - | pdftotext - -
    """
    with _opened(store) as wiki:
        files = _files(wiki, page)
        version = _version(files, name, number)
        if not version.sha256:
            raise NoSuchFile(page, name)
        pieces = files.content(version)
        target = output or version.name
        if target == "-":
            for piece in pieces:
                sys.stdout.buffer.write(piece)
            return
        with _opened_target(Path(target)) as out:
            for piece in pieces:
                out.write(piece)
    click.echo(f"{target}: {_size(version)}")


def _opened_target(path: Path) -> AbstractContextManager[BinaryIO]:
    """Open what is written to: a file such that it is whole or as it was, a pipe or a device as it is."""
    is_pipe = path.exists() and not path.is_file()
    return path.open("wb") if is_pipe else whole_file(path.resolve())


def _version(files: GuardedFiles, name: str, number: int | None) -> FileVersion:
    newest = files.versions(name, limit=1)[0]
    found = newest if number is None else files.numbered(name, number)
    if found is None:
        raise click.ClickException(f"{name} has no version {number}; the newest is {newest.number}")
    return found


@file.command()
@click.argument("page")
@click.argument("name")
@_NOTE
@_JSON
@store_options
def remove(page: str, name: str, note: str, as_json: bool, store: StoreOptions) -> None:
    """Remove the file NAME of the page PAGE; wikka file restore brings it back.

    \b
      wikka file remove "Some page" photo.jpg --reason "asked for by its author"
    """
    with _opened(store) as wiki:
        files = _files(wiki, page)
        version = _version(files, name, None)
        if not version.sha256:
            raise NoSuchFile(page, name)
        removed = files.remove(version.name, version.token, note=note)
        users = files.used_on_part(removed.name, CurrentFile.of(removed), limit=_USERS + 1)[0]
    said = f"{removed.name} is removed; wikka file restore brings it back."
    more = " and more" if len(users) > _USERS else ""
    named = f"\nIt is still named on: {', '.join(users[:_USERS])}{more}" if users else ""
    _say(as_json, _data(removed, page) | {"used_on": users[:_USERS]}, said + named)


@file.command()
@click.argument("page")
@click.argument("name")
@_JSON
@store_options
def uses(page: str, name: str, as_json: bool, store: StoreOptions) -> None:
    """List the pages that use the file NAME of the page PAGE.

    \b
      wikka file uses "Some page" photo.jpg
    """
    with _opened(store) as wiki:
        files = _files(wiki, page)
        own, current = files.find(name)
        if current is None:
            raise NoSuchFile(page, name)
        users = files.used_on_part(own, current, limit=_USES_MAX)[0]
    _say(as_json, {"page": page, "name": own, "used_on": users}, "\n".join(users) or "No page uses this file.")


@file.command()
@click.argument("page")
@click.argument("name")
@click.option("--version", "number", type=click.IntRange(1), help="The one to restore.  [default: the last content]")
@_NOTE
@_JSON
@store_options
def restore(page: str, name: str, number: int | None, note: str, as_json: bool, store: StoreOptions) -> None:
    """Make an older version of the file NAME the newest, or bring back a file that was removed.

    \b
      wikka file restore "Some page" photo.jpg
      wikka file restore Plans plan.pdf --version 2
    """
    with _opened(store) as wiki:
        files = _files(wiki, page)
        newest = _version(files, name, None)
        with_content = (one for one in files.versions(name, limit=None) if one.sha256)
        old = _version(files, name, number) if number else next(with_content, newest)
        restored = files.restore(newest.name, newest.token, old, note=note)
    said = f"{restored.name}: version {restored.number} has the content of version {old.number}."
    _say(as_json, _data(restored, page), said)


@file.command()
@click.argument("page")
@click.argument("name")
@click.option("--version", "number", type=click.IntRange(1), required=True, help="The version whose bytes leave.")
@_NOTE
@click.option("--yes", is_flag=True, help="Do not ask.")
@_JSON
@store_options
def erase(page: str, name: str, number: int, note: str, yes: bool, as_json: bool, store: StoreOptions) -> None:
    """Erase one version of the file NAME for good; the audit keeps a line.

    Its bytes leave the store, unless another version has the same. The newest version is removed before.

    \b
      wikka file erase "Some page" photo.jpg --version 2 --reason "a letter of somebody else"
    """
    with _opened(store) as wiki:
        own = _version(_files(wiki, page), name, number).name
        if not yes:
            click.confirm(f"{page}, {own}, version {number}: erase for good?", abort=True, err=True)
        erased = GuardedErasure(GuardedWiki(wiki, OPERATOR).moves).erase_file(page, own, number, reason=note)
    data = {"page": page, "name": own, "version": number, "bytes": erased.size_bytes, "others": erased.others}
    stay = f"; {erased.others} other versions have the same bytes, which stay" if erased.others else ""
    _say(as_json, data, f"{own}: version {number} is erased, {erased.size_bytes:,} bytes are gone{stay}.")


@file.command()
@_JSON
@store_options
def sweep(as_json: bool, store: StoreOptions) -> None:
    """Remove contents that no version has any more, and uploads that broke off more than a day ago.

    Files that wait for a page which their owner has saved become its files. A wiki that serves does both each hour.
    """
    with _opened(store) as wiki:
        adopted, swept = Adoption(wiki).run(), wiki.files.sweep.run()
    data = {"uploads": swept.uploads, "contents": swept.contents, "bytes": swept.size_bytes, "adopted": adopted}
    said = f"{swept.uploads:,} uploads and {swept.contents:,} contents of {swept.size_bytes:,} bytes removed"
    said += f", {adopted:,} files given to the pages for which they waited" if adopted else ""
    _say(as_json, data, said)


def _say(as_json: bool, data: dict[str, Any], said: str) -> None:
    click.echo(json.dumps(data) if as_json else said)


def _size(version: FileVersion) -> str:
    picture = f", {version.width} x {version.height}" if version.width else ""
    without = ", its metadata was removed" if version.metadata == "removed" else ""
    return f"{version.size_bytes:,} bytes, {version.media_type}{picture}{without}"


def _data(one: FileVersion | CurrentFile, page: str, name: str = "") -> dict[str, Any]:
    data: dict[str, Any] = {"page": page, "name": name}
    data |= {"version": one.number, "token": one.token, "sha256": one.sha256, "size": one.size_bytes}
    data |= {"type": one.media_type, "alt": one.alt, "width": one.width, "height": one.height}
    if isinstance(one, FileVersion):
        data |= {"name": one.name, "time": iso_time(one.time_ms), "author": one.author, "note": one.note}
        data |= {"metadata": one.metadata}
    return data
