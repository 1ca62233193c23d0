"""``wikka file`` against a real store, as an operator types it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tests.support.stored_wiki import Wikka, stored_wiki, wikka_on
from wikka_port.cli import main
from wikka_port.commands.serving_options import _endings, as_arguments
from wikka_port.files.content_types import DEFAULT_ENDINGS
from wikka_port.files.file_rows import CHUNKS, FILES, GRACE_MS, UPLOADS
from wikka_port.moving.journal import deleted
from wikka_port.moving.mover import By
from wikka_port.pages import Wiki, clock_ms
from wikka_port.rights.rules import PageRights


@pytest.fixture(scope="module")
def wiki(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wiki]:
    with stored_wiki(tmp_path_factory.mktemp("filed")) as made:
        made.save("Plans", "text", author="Ann", base=0)
        yield made


@pytest.fixture
def wikka(wiki: Wiki) -> Wikka:
    return wikka_on(wiki, "file")


def keys(wiki: Wiki, table: bytes) -> int:
    return len(wiki.rows.row_keys(table, b"", b"g", limit=100))


def test_a_file_is_added_listed_replaced_removed_and_restored(wiki: Wiki, wikka: Wikka, tmp_path: Path) -> None:
    plan, other = tmp_path / "plan.txt", tmp_path / "other.bin"
    plan.write_text("first floor")
    first = wikka("add", "Plans", str(plan), "--note", "n", "--alt", "a plan", "--json")
    assert first.exit_code == 0, first.output
    assert {"page": "Plans", "name": "plan.txt", "version": 1, "note": "n", "alt": "a plan"}.items() <= json.loads(
        first.stdout
    ).items()
    plan.write_text("second floor")
    taken = wikka("add", "Plans", str(plan))
    assert (taken.exit_code, "--replace makes it a new version" in taken.stderr) == (1, True)
    assert keys(wiki, UPLOADS) == 0, "nothing is left of it"
    assert wikka("add", "Plans", str(plan), "--replace").stdout.startswith("plan.txt: version 2, 12 bytes")

    assert wikka("list").stdout == "Plans: plan.txt  version 2, 12 bytes, text/plain\n"
    assert wikka("get", "Plans", "plan.txt", "-o", "-").stdout == "second floor"
    assert wikka("get", "Plans", "Plan.txt", "--version", "1", "-o", str(other)).exit_code == 0
    assert other.read_text() == "first floor"
    assert wikka("get", "Plans", "plan.txt", "--version", "7").exit_code == 1

    assert wikka("remove", "Plans", "plan.txt", "--reason", "old").exit_code == 0
    assert wikka("list", "Plans").stdout == ""
    assert wikka("get", "Plans", "plan.txt").exit_code == 1
    assert wikka("remove", "Plans", "plan.txt").exit_code == 1
    assert wikka("restore", "Plans", "plan.txt").stdout.endswith("version 4 has the content of version 2.\n")
    assert wikka("restore", "Plans", "plan.txt", "--version", "1").exit_code == 0
    assert wikka("get", "Plans", "plan.txt", "-o", "-").stdout == "first floor"
    listed = json.loads(wikka("list", "Plans", "--all-versions", "--json").stdout)
    assert [one["version"] for one in listed] == [5, 4, 3, 2, 1]
    assert listed[2]["note"] == "old"


def test_a_file_that_cannot_be_read_whole_leaves_what_was_on_the_disk(wiki: Wiki, wikka: Wikka, tmp_path: Path) -> None:
    source, there, link = tmp_path / "long.txt", tmp_path / "there.txt", tmp_path / "link.txt"
    source.write_bytes(b"a line\n" * 200_000)  # two chunks
    there.write_text("as it was")
    link.symlink_to(there)
    assert wikka("add", "Plans", str(source)).exit_code == 0
    sha256 = wiki.files.files_of("Plans")["long.txt"].sha256
    state = wiki.files.contents.blob_state(sha256)
    assert state is not None
    chunks = [row for row in wiki.rows.row_keys(CHUNKS, b"", b"g", limit=100) if row.startswith(state.place)]
    assert len(chunks) == 2
    lost = wiki.rows.row(CHUNKS, chunks[1])
    wiki.rows.delete_rows(CHUNKS, [chunks[1]])
    ended = wikka("get", "Plans", "long.txt", "-o", str(there))
    assert (ended.exit_code, "is damaged" in ended.stderr) == (1, True), ended.output
    assert there.read_text() == "as it was"
    assert {one.name for one in tmp_path.iterdir()} == {"long.txt", "there.txt", "link.txt"}
    wiki.rows.put(CHUNKS, chunks[1], lost)
    assert wikka("get", "Plans", "long.txt", "-o", str(link)).exit_code == 0
    assert there.read_bytes() == source.read_bytes()
    assert link.is_symlink()
    assert wikka("get", "Plans", "long.txt", "-o", "/dev/null").exit_code == 0
    assert Path("/dev/null").is_char_device()
    assert wikka("remove", "Plans", "long.txt").exit_code == 0


def test_what_is_refused_is_one_line_and_leaves_nothing(wiki: Wiki, wikka: Wikka, tmp_path: Path) -> None:
    lying, large = tmp_path / "lying.png", tmp_path / "large.txt"
    lying.write_text("<html><script>1</script>")
    large.write_text("large")
    for words, said in (
        (("add", "Nowhere", str(large)), "There is no page Nowhere"),
        (("add", "Plans", str(lying)), "its content is text/html"),
        (("add", "Plans", str(large), "--bytes-max", "4"), "4 bytes are the most"),
        (("list", "Nowhere"), "There is no page Nowhere"),
        (("get", "Plans", "none.txt"), "Plans has no file none.txt"),
        (("restore", "Plans", "none.txt"), "Plans has no file none.txt"),
    ):
        ended = wikka(*words)
        assert (ended.exit_code, ended.stderr.count("\n"), said in ended.stderr) == (1, 1, True), ended.output
    for words in (
        ("add", "Plans"),
        ("add", "Plans", str(lying), str(large), "--name", "x"),
        ("list", "--all-versions"),
    ):
        assert wikka(*words).exit_code == 2, words
    assert keys(wiki, UPLOADS) == 0


def test_a_purge_takes_the_files_and_leaves_what_others_have(wiki: Wiki, wikka: Wikka, tmp_path: Path) -> None:
    for page in ("Passing", "Staying"):
        wiki.save(page, "text", author="Ann", base=0)
        (tmp_path / "same.txt").write_text("in both")
        assert wikka("add", page, str(tmp_path / "same.txt")).exit_code == 0
    (tmp_path / "own.txt").write_text("in one")
    assert wikka("add", "Passing", str(tmp_path / "own.txt")).exit_code == 0
    files, chunks = keys(wiki, FILES), keys(wiki, CHUNKS)
    wiki.mover.delete("Passing", By("Ann"))
    wiki.mover.purge("Passing", deleted(wiki.rows, "Passing")[0].row, By("Ann"))
    assert (keys(wiki, FILES), keys(wiki, CHUNKS)) == (files - 2, chunks - 1)
    assert wikka("get", "Staying", "same.txt", "-o", "-").stdout == "in both"
    assert keys(wiki, UPLOADS) == 0


def test_the_sweep_takes_uploads_of_yesterday(wiki: Wiki, wikka: Wikka) -> None:
    def anybody(_name: str, _rights: PageRights) -> None:
        """Allow everything."""

    chunks = keys(wiki, CHUNKS)
    for days in (0, 1):
        old = Wiki("127.0.0.1", wiki.store.port, clock=lambda days=days: clock_ms() - days * (GRACE_MS + 9_000))
        writer = old.files.writer(old.files.begin("Plans", "a.txt", "me", allow=anybody))
        writer.write_piece(b"x")
        writer.finish_part()
        old.store.close()
    swept = wikka("sweep", "--json")
    assert json.loads(swept.stdout) == {"uploads": 1, "contents": 0, "bytes": 0, "adopted": 0}
    assert (keys(wiki, UPLOADS), keys(wiki, CHUNKS)) == (1, chunks + 1)
    assert wiki.files.sweep.run_if_due() is not None
    assert wiki.files.sweep.run_if_due() is None, "another process has swept within the hour"


@pytest.mark.parametrize(
    ("given", "types"),
    [
        ("default", DEFAULT_ENDINGS),
        (".PNG, jpg", {"png", "jpg"}),
        ("default,heic", DEFAULT_ENDINGS | {"heic"}),
        ("all", {"all"}),
    ],
)
def test_the_types_of_a_serving_wiki_are_a_list_of_endings(given: str, types: frozenset[str]) -> None:
    assert _endings(given) == types
    assert as_arguments({"file_types": frozenset({"png", "jpg"})}) == ["--file-types=jpg,png"]
    with pytest.raises(click.BadParameter, match="no ending"):
        _endings(f"{given},exe")


def test_the_check_names_a_file_whose_bytes_differ(wiki: Wiki, wikka: Wikka, tmp_path: Path) -> None:
    (tmp_path / "kept.txt").write_text("as it was")
    assert wikka("add", "Plans", str(tmp_path / "kept.txt")).exit_code == 0
    where = ["--store", wiki.store.address, "--indexes=application", "--json"]
    assert json.loads(CliRunner().invoke(main, ["check", *where, "--contents"]).stdout)["differences"] == []
    sha256 = wiki.files.files_of("Plans")["kept.txt"].sha256
    state = wiki.files.contents.blob_state(sha256)
    assert state is not None
    wiki.files.contents.put_chunk(state.place, 0, b"As it was")  # the same words: their index is as it should be
    assert json.loads(CliRunner().invoke(main, ["check", *where]).stdout)["differences"] == []
    ended = CliRunner().invoke(main, ["check", *where, "--contents"])
    (found,) = json.loads(ended.stdout)["differences"]
    assert (ended.exit_code, found["kind"], found["table"], found["found"]) == (1, "lost", "chunks", sha256)
    assert wikka("add", "Plans", str(tmp_path / "kept.txt"), "--name", "again.txt").exit_code == 0
    assert CliRunner().invoke(main, ["check", *where, "--contents"]).exit_code == 0, (
        "an equal upload has brought it back"
    )
