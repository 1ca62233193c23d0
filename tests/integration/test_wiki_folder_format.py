"""The format of the wiki's folder: written by ``prepare``, never lowered, refused where a program does not know it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.older_wiki import unpacked
from tests.support.store_thread import StoreThread
from wikka_port.accounts.tables import SITE
from wikka_port.cli import main
from wikka_port.config import FileConfig, WikiConfig
from wikka_port.folder_format import FIRST, FORMAT, NUMBER, ROW, Folder, NewerFolder
from wikka_port.moving.runner import resume
from wikka_port.pages import Wiki
from wikka_port.serve import _with_picture_sources

REFUSED = f"This wiki's folder is of format {FORMAT + 1}; this program knows up to {FORMAT}: update it"


@pytest.fixture
def wiki(tmp_path: Path) -> Iterator[Wiki]:
    with StoreThread(tmp_path / "data", trigger_modules=("wikka_port.triggers",)) as store:
        made = Wiki("127.0.0.1", store.port)
        made.prepare()
        yield made
        made.store.close()


def newer(wiki: Wiki) -> str:
    """The address of a store whose folder a later program wrote."""
    wiki.rows.put(SITE, ROW, {NUMBER: b"%d" % (FORMAT + 1)})
    return wiki.store.address


def pictures(wiki: Wiki, **given: FileConfig) -> str | None:
    """Return whose pictures are shown, as a worker decides it at its start."""
    config = WikiConfig(store_host=wiki.store.host, store_port=wiki.store.port, **given)
    return _with_picture_sources(config).files.foreign_pictures


def test_prepare_writes_the_number_of_the_program(wiki: Wiki) -> None:
    number = b"%d" % FORMAT
    assert wiki.rows.row(SITE, ROW) == {NUMBER: number, FIRST: number}
    assert wiki.prepare() == []
    assert wiki.folder() == Folder(FORMAT, (), FORMAT)
    assert wiki.folder().advice() == ""
    assert pictures(wiki) == "none"
    chosen = FileConfig(foreign_pictures="all")
    assert pictures(wiki, files=chosen) == "all"


def test_a_newer_folder_is_refused_and_keeps_its_number(wiki: Wiki) -> None:
    newer(wiki)
    for call in (wiki.folder, wiki.prepare, lambda: resume(wiki)):
        with pytest.raises(NewerFolder, match=REFUSED):
            call()
    assert wiki.rows.row(SITE, ROW)[NUMBER] == b"%d" % (FORMAT + 1)


def test_every_command_refuses_a_newer_folder_with_one_line(wiki: Wiki) -> None:
    wiki.save("Page", "text", author="Ann", base=0)
    address = newer(wiki)
    commands = (
        *(["prepare"], ["check"], ["check", "--repair"], ["user", "list"], ["acl", "show", "Page"]),
        *(["delete", "Page"], ["rename", "Page", "New"], ["synth", "--pages", "1"]),
    )
    for command in commands:
        ended = CliRunner().invoke(main, [*command, "--store", address])
        assert (ended.exit_code, ended.output) == (2, f"wikka: {REFUSED}\n"), command
    page = wiki.page("Page")
    assert page is not None


def test_the_server_refuses_a_newer_folder_at_its_start(wiki: Wiki) -> None:
    command = [sys.executable, "-m", "wikka_port", "serve", "--store", newer(wiki), "--port", "0"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert REFUSED in ended.stderr
    assert "Traceback" not in ended.stderr


def test_an_older_folder_is_told_of_and_brought_to_the_number(tmp_path: Path) -> None:
    data, _ = unpacked(tmp_path)
    with StoreThread(data, trigger_modules=("wikka_port.triggers",)) as store:
        wiki = Wiki("127.0.0.1", store.port)
        found = wiki.folder()
        assert found.number == 0
        assert {"drafts", "moves", "deleted", "users"} <= set(found.missing)
        assert "of format 0 and lacks the tables" in found.advice()
        assert found.advice().endswith("run wikka prepare")
        assert wiki.prepare() == []
        assert wiki.folder() == Folder(FORMAT, ())
        assert pictures(wiki) == "all", "its pages showed pictures from anywhere before"
        wiki.store.close()
