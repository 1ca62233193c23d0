"""A wiki on a store inside the test's process, and what tests of it do again and again: files, commands, empty tables.

The kind says who keeps its indexes: ``triggers`` of the store, the ``application``, or the application on a ``plain``
HBase, where one cell can be a condition.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal

from click.testing import CliRunner, Result

from tests.support.store_thread import StoreThread
from wikka_port.accounts.tables import SITE
from wikka_port.cli import main
from wikka_port.files.file_rows import FileVersion
from wikka_port.moving.mover import By
from wikka_port.pages import Wiki
from wikka_port.preparation import TABLES
from wikka_port.rights.rules import PageRights

Kind = Literal["triggers", "application", "plain"]
KINDS: Final[tuple[Kind, ...]] = ("triggers", "application", "plain")
MODULES: Final = ("wikka_port.triggers",)
ADA: Final = By("Ada", "account", "why")
Wikka = Callable[..., Result]  # a command's words, without the options that name the store
_PIECE: Final = 200_003  # bytes of an upload that come at once
_SETTLE_S: Final = 30.0
_JOB_S: Final = 60.0
_ROWS: Final = 500


@contextmanager
def wiki_on(port: int, kind: Kind = "application", **given: Any) -> Iterator[Wiki]:
    """A prepared wiki on the store at ``port``; ``given`` are further arguments of ``Wiki``."""
    made = Wiki("127.0.0.1", port, indexes="triggers" if kind == "triggers" else "application", **given)
    made.prepare()
    made.store._is_columnar = kind != "plain"
    try:
        yield made
    finally:
        made.store.close()


@contextmanager
def stored_wiki(folder: Path, kind: Kind = "application", *, modules: tuple[str, ...] = MODULES) -> Iterator[Wiki]:
    """A prepared wiki on a store of its own; ``modules`` are those of its triggers."""
    with StoreThread(folder, trigger_modules=modules) as store, wiki_on(store.port, kind) as made:
        yield made


def empty(wiki: Wiki) -> None:
    """Take all rows out of all tables, but for what the wiki itself keeps of its folder."""
    for table in TABLES:
        if table.name != SITE:
            while rows := wiki.rows.row_keys(table.name, b"", b"\xff", limit=_ROWS):
                wiki.rows.delete_rows(table.name, rows)


def settle(wiki: Wiki) -> None:
    """Wait until the triggers have delivered all changes."""
    assert wiki.settle("", _SETTLE_S)


def wait_for_jobs() -> None:
    """Wait for the threads of jobs on many pages."""
    for thread in threading.enumerate():
        if thread.name.startswith("job-"):
            thread.join(_JOB_S)


def anybody(_name: str, _rights: PageRights) -> None:
    """Allow everything."""


def save(wiki: Wiki, name: str, body: str, **given: Any) -> None:
    """Save a page, whatever revision it has, and wait for its indexes."""
    held = wiki.page(name)
    wiki.save(name, body, author="Ada", base=held.number if held else 0, **given)
    settle(wiki)


def attach(wiki: Wiki, page: str, name: str, content: bytes = b"a text", **given: Any) -> FileVersion:
    """Upload a file of a page, and wait for its indexes; ``given`` are further arguments of ``commit``."""
    writer = wiki.files.writer(wiki.files.begin(page, name, "me", allow=anybody))
    for start in range(0, len(content), _PIECE):
        writer.write_piece(content[start : start + _PIECE])
    version = wiki.files.commit(wiki.files.settle(writer.finish_part()), ADA, allow=anybody, **given)
    settle(wiki)
    return version


def wikka_on(wiki: Wiki, *command: str) -> Wikka:
    """Return a function that runs ``wikka`` on the wiki's store; ``command`` are words that stand before its own."""
    where = ("--store", wiki.store.address, f"--indexes={wiki.indexes}")
    return lambda *words: CliRunner().invoke(main, [*command, *words, *where])
