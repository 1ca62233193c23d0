"""python -m tests.proofs.wiki_round_trip [DUMP ...]: a wiki out and in again through every form that has a way back.

    1. a wiki gets the dumps of MediaWiki, and pages of a seed: files, rights, comments, hidden and deleted pages
    2. for each form: ``wikka export``, and ``wikka import`` into an empty wiki; git goes through a real repository
    3. all fields of all records of both wikis are compared, and the bytes of all files with their digests

The table has the number of differences of each kind in each form.  In the form wikkawiki the first wiki counts as that
form can hold it (``compared_wikis``): what it cannot hold is counted below the table, and a page may be missing only if
the export has named it.  The exit status is 0 if there is no difference.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

import click
from click.testing import CliRunner, Result
from rich.console import Console
from rich.table import Table

from tests.proofs.compared_wikis import KINDS, Fields, Key, exact_fields, wikkawiki_fields
from tests.support.exported_wiki import NAMES, fill, fill_comments, fill_files
from tests.support.store_thread import StoreThread
from wikka_port.cli import main as wikka
from wikka_port.exchange.page_source import StorePages
from wikka_port.exchange.records import living_pages
from wikka_port.markup.links import redirect_target
from wikka_port.moving.mover import By
from wikka_port.pages import Wiki
from wikka_port.rights.rules import Privilege

WIKKAWIKI: Final = "wikkawiki"
FORMS: Final = ("markdown", "git", "mediawiki", WIKKAWIKI, "json-lines")
NAMED: Final = 5  # differences of each kind, by name
_OF_PAGES: Final = re.compile("(.*): (?:its name is longer than .*|MySQL holds the name equal to .*)")
_OF_FILES: Final = re.compile("(.*): its .* files, since no folder can have its name")
_ADA: Final = By("Ada", "account", "no longer of use")
_SETTING: Final = re.compile(r"'default_\w+_acl' => '(?:[^'\\]|\\.)*'")


@dataclass(frozen=True)
class Trip:
    """The outcome of one form."""

    form: str
    there: Fields
    here: Fields
    seconds: float

    @property
    def differences(self) -> dict[str, list[Key]]:
        return self.there.differences(self.here)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("dumps", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--seed", default=39, show_default=True, help="Of the pages, rights, files, comments and deletions.")
@click.option("--forms", default=",".join(FORMS), show_default=True, help="Only these.")
def main(dumps: tuple[Path, ...], seed: int, forms: str) -> None:
    """Take a wiki with the DUMPS out and in again through each form."""
    with tempfile.TemporaryDirectory() as name:
        trips = take_out_and_in(Path(name), dumps, seed, tuple(forms.split(",")))
    show(trips)
    sys.exit(any(any(trip.differences.values()) for trip in trips))


def take_out_and_in(
    folder: Path, dumps: tuple[Path, ...], seed: int, forms: tuple[str, ...], names: Sequence[str] = NAMES
) -> list[Trip]:
    with wiki_in(folder / "wiki") as wiki:
        for dump in dumps:
            called(wiki, "import", dump)
        decorate(wiki, seed)
        fill(wiki, seed, names, at="Seeded ")
        return [trip_of(wiki, folder / form, form) for form in forms]


def decorate(wiki: Wiki, seed: int) -> None:
    """Give files, comments and rights to pages of the dumps, hide revisions of others, rename some and delete some."""
    draw = Random(seed)
    names = sorted(page.record.name for page in living_pages(StorePages(wiki)) if takes_files(wiki, page.record.name))
    for name in draw.sample(names, min(len(names), 120)):
        what = draw.randrange(6)
        if what == 0:
            fill_files(wiki.files, name, draw)
        elif what == 1:
            fill_comments(wiki.comments, name, draw)
        elif what == 2:
            lists = {Privilege.READ: draw.choice(("+", "Ada\n!*")), Privilege.WRITE: "Ada"}
            wiki.rights.change(name, wiki.rights.of([name])[name], "Ada", lists)
        elif what == 3:
            number = wiki.head(name).number
            wiki.save(name, "a newer text", author="Ada", signed="account", base=number)
            wiki.mover.hide(name, number, hidden=True)
        elif what == 4:
            wiki.mover.rename(name, f"{name} (moved)", _ADA)
        else:
            fill_comments(wiki.comments, name, draw)
            wiki.mover.delete(name, _ADA)


def takes_files(wiki: Wiki, name: str) -> bool:
    """Return whether an upload to the page belongs to it, and not to a page that it redirects to."""
    page = wiki.page(name)
    return page is not None and redirect_target(page.body, markup=page.markup) is None


# --- one form ------------------------------------------------------------------------------------


def trip_of(wiki: Wiki, folder: Path, form: str) -> Trip:
    folder.mkdir()
    begun = time.monotonic()
    with wiki_in(folder / "data") as new:
        if form == WIKKAWIKI:
            said = through_wikkawiki(wiki, new, folder)
            there, here = (wikkawiki_fields(StorePages(one).pages(), StorePages(one).site()) for one in (wiki, new))
            there.leave_out(named_in(said, _OF_PAGES), "pages")
            there.leave_out(named_in(said, _OF_FILES), "pages' files", ("files",))
        else:
            out = folder / "out"
            called(wiki, "export", "--to", form, out)
            if form == "git":
                out = through_git(out, folder / "repository")
            called(new, "import", out)
            there, here = (exact_fields(StorePages(one).pages(), StorePages(one).site()) for one in (wiki, new))
    return Trip(form, there, here, time.monotonic() - begun)


def through_git(stream: Path, repository: Path) -> Path:
    """Let git take the stream into a repository, and write another from there."""
    again = stream.with_name("again")
    subprocess.run(["git", "init", "--quiet", "--bare", repository], check=True)
    with stream.open("rb") as given:
        subprocess.run(["git", "-C", repository, "fast-import", "--quiet"], stdin=given, check=True)
    with again.open("wb") as taken:
        subprocess.run(["git", "-C", repository, "fast-export", "--all"], stdout=taken, check=True)
    return again


def through_wikkawiki(wiki: Wiki, new: Wiki, folder: Path) -> str:
    """Go through SQL and a folder of uploads; return the words of the export."""
    out, uploads, config = folder / "wikka.sql", folder / "uploads", folder / "wikka.config.php"
    said = called(wiki, "export", "--to", WIKKAWIKI, out, "--files", uploads).stderr
    lists = ",\n".join(_SETTING.findall(said[said.index("for its wikka.config.php") :]))
    config.write_text(f"<?php\n$wakkaConfig = array(\n{lists}\n);\n?>\n")
    called(new, "import-wikkawiki", "--dump", out, "--uploads", uploads, "--wikka-config", config)
    return said


def named_in(said: str, reason: re.Pattern[str]) -> set[str]:
    """Return the pages that an export has left out for a reason, by its own words."""
    return {found[1] for line in said.splitlines() if (found := reason.fullmatch(line.strip()))}


@contextmanager
def wiki_in(folder: Path) -> Iterator[Wiki]:
    with StoreThread(folder) as store:
        made = Wiki("127.0.0.1", store.port, indexes="application")
        made.prepare()
        yield made
        made.store.close()


def called(wiki: Wiki, *words: object) -> Result:
    """Call a command of the wiki.  Raises click.ClickException if it fails."""
    store = ["--store", f"127.0.0.1:{wiki.store.port}", "--indexes=application"]
    done = CliRunner().invoke(wikka, [*map(str, words), *store])
    if done.exit_code:
        raise click.ClickException(f"wikka {' '.join(map(str, words))} failed:\n{done.output}")
    return done


# --- the table -----------------------------------------------------------------------------------


def show(trips: list[Trip]) -> None:
    console = Console(highlight=False, soft_wrap=True, width=160)
    table = Table("form", "pages", "revisions", *KINDS, "seconds")
    for trip in trips:
        counts = [f"{len(trip.there.of[kind]):,}: {len(keys)}" for kind, keys in trip.differences.items()]
        table.add_row(trip.form, f"{trip.there.pages:,}", f"{trip.there.revisions:,}", *counts, f"{trip.seconds:.0f}")
    console.print("fields of each kind: differences")
    console.print(table)
    for trip in trips:
        for kind, keys in trip.differences.items():
            for key in keys[:NAMED]:
                there, here = trip.there.of[kind].get(key), trip.here.of[kind].get(key)
                console.print(f"{trip.form}, {kind}, {key}:\n  {there} there\n  {here} here", markup=False)
        lost = ", ".join(f"{number:,} {what}" for what, number in trip.there.losses.items() if number)
        if lost:
            console.print(f"{trip.form} cannot hold: {lost}")


if __name__ == "__main__":
    main()
