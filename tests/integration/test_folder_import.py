"""``wikka import FOLDER`` against a real store, as an operator types it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.support.markdown_vault import make_hostile, make_vault, png, write
from tests.support.store_thread import StoreThread
from wikka_port.cli import main
from wikka_port.first_pages import write_first_pages
from wikka_port.pages import Wiki

Import = Callable[..., Result]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreThread]:
    with StoreThread(tmp_path_factory.mktemp("moved")) as running:
        yield running


@pytest.fixture(scope="module")
def wiki(store: StoreThread) -> Iterator[Wiki]:
    made = Wiki("127.0.0.1", store.port, indexes="application")
    made.prepare()
    write_first_pages(made)
    yield made
    made.store.close()


@pytest.fixture
def imported(wiki: Wiki) -> Import:
    def run(*words: str) -> Result:
        return CliRunner().invoke(main, ["import", "--store", wiki.store.address, "--indexes=application", *words])

    return run


def body(wiki: Wiki, name: str) -> str:
    page = wiki.page(name)
    assert page is not None, name
    return page.body


def test_a_folder_comes_with_its_pictures_and_a_second_run_changes_nothing(
    wiki: Wiki, imported: Import, tmp_path: Path
) -> None:
    make_vault(tmp_path)
    first = imported(str(tmp_path), "--author", "Bea")
    assert first.exit_code == 0, first.output
    assert re.search(r"^revisions: 3 there, 3 here, equal: [0-9a-f]{64}$", first.output, re.M)
    assert re.search(r"^files: 4 there, 4 here, equal: [0-9a-f]{64}$", first.output, re.M)
    for said in ("'Long.md': larger than", "'docs/program.exe'", "docs/unused.png", "'Work/old.md'"):
        assert said in first.output
    home, plan = wiki.page("HomePage"), wiki.page("Work/Plan")
    assert home is not None
    assert home.body == "# Our notes\n\n[[Work/Plan|Plan]] ![](logo.png) [paper](paper.pdf)\n"
    assert [revision.author for revision in wiki.revisions("HomePage", limit=9)] == ["WikiSetup", "WikiSetup", "Bea"]
    assert plan is not None
    assert (plan.author, plan.time_ms, plan.markup) == ("Ada", 1_588_291_200_000, "markdown")
    assert plan.body.endswith("![floor|300](floor.png)\n![[file:HomePage/logo.png]]\n")
    assert body(wiki, "Work/old") == "café `![x](pics/floor.png)`\n"
    assert set(wiki.files.files_of("HomePage")) == {"logo.png", "paper.pdf", "unused.png"}
    assert set(wiki.files.files_of("Work/Plan")) == {"floor.png"}
    again = imported(str(tmp_path), "--author", "Bea")
    assert again.exit_code == 0, again.output
    assert "3  revisions that were here" in again.output
    assert "4  files that were here" in again.output
    assert "stored" not in again.output
    write(tmp_path, "Work/old.md", "cafe\n", 1_600_000_500)
    write(tmp_path, "Home.md", "# New ![](pics/logo.png)\n", 1_900_000_000)
    write(tmp_path, "Work/pics/floor.png", png(9))
    later = imported(str(tmp_path), "--author", "Bea")
    assert later.exit_code == 0, later.output
    assert "2  revisions stored" in later.output
    assert "1  files stored" in later.output
    assert (body(wiki, "Work/old"), body(wiki, "HomePage")) == ("cafe\n", "# New ![](logo.png)\n")
    assert wiki.files.files_of("Work/Plan")["floor.png"].number == 2


def test_a_folder_below_a_page_and_hostile_files(wiki: Wiki, imported: Import, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    make_vault(vault)
    make_hostile(vault, tmp_path / "secret.md")
    done = imported(str(vault), "--prefix", "Archive/Notes")
    assert done.exit_code == 0, done.output
    assert body(wiki, "Archive/Notes").startswith("# Our notes\n\n[[Archive/Notes/Work/Plan|Plan]]")
    for said in ("link.md': a link to another place", "loop': a link", "pipe.md': no regular file"):
        assert said in done.output
    assert "bell\\x07.md'" in done.output
    assert wiki.page("Archive/Notes/link") is None
    assert "secret" not in "".join(wiki.page(name).body for name in wiki.names() if wiki.page(name) is not None)  # type: ignore[union-attr]


def test_a_dry_run_stores_nothing_and_names_what_differs(imported: Import, tmp_path: Path) -> None:
    write(tmp_path, "a.md", "[x](gone.md) <video>d</video> ![[b#part]]\n\n```mermaid\ngraph\n```\n")
    write(tmp_path, "b.md", "fine")
    done = CliRunner().invoke(main, ["import", str(tmp_path), "--dry-run", "--store", "127.0.0.1:1"])
    assert done.exit_code == 0, done.output
    assert "a: links that lead to no file of the folder: gone.md" in done.output
    assert "a: HTML that is shown as text: <video>" in done.output
    assert "a: drawings that are shown as code: mermaid" in done.output
    assert "1 of 2 pages will look different" in done.output


def test_a_root_page_that_somebody_wrote_stays(wiki: Wiki, imported: Import, tmp_path: Path) -> None:
    wiki.save("FrontDoor", "ours", author="Ann", base=0)
    write(tmp_path, "README.md", "theirs")
    done = imported(str(tmp_path), "--root-page", "FrontDoor")
    assert done.exit_code == 0, done.output
    assert (body(wiki, "FrontDoor"), body(wiki, "README")) == ("ours", "theirs")
    assert "wikka serve --root-page README" in done.output


def test_a_move_that_fell_goes_on(
    wiki: Wiki, imported: Import, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(40):
        write(tmp_path, f"fallen/Page {number:02}.md", f"text {number} ![](p{number}.png)")
        write(tmp_path, f"fallen/p{number}.png", png(number))
    begin, calls = wiki.files.begin.__func__, []  # type: ignore[attr-defined]

    def falls(self: object, *given: object, **named: object) -> object:
        calls.append(given)
        if len(calls) == 7:
            raise KeyboardInterrupt
        return begin(self, *given, **named)

    with monkeypatch.context() as patched:
        patched.setattr("wikka_port.files.stored_files.StoredFiles.begin", falls)
        assert imported(str(tmp_path)).exit_code == 1
    assert len(calls) == 7
    done = imported(str(tmp_path))
    assert done.exit_code == 0, done.output
    assert "40  revisions that were here" in done.output
    assert "6  files that were here" in done.output
    assert "files: 40 there, 40 here, equal" in done.output
