"""The history of files in git: times, authors, notes, renames; and clones that were made to harm."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.markdown_vault import write
from wikka_port.imports.git_history import GitHistory, NoHistory, wiki_address
from wikka_port.imports.markdown_folder import FileTexts, PageText
from wikka_port.imports.source_folder import FolderReport, SourceFolder

NOW_MS = 1_800_000_000_000
BEGIN_S = 1_600_000_000


class Clone:
    """A repository whose commits are a minute apart."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._time_s = BEGIN_S
        folder.mkdir(exist_ok=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *words: str, author: str = "Ada") -> None:
        date = f"{self._time_s} +0000"
        given = {"GIT_AUTHOR_NAME": author, "GIT_AUTHOR_EMAIL": "a@b.example", "GIT_AUTHOR_DATE": date}
        given |= {"GIT_COMMITTER_NAME": "C", "GIT_COMMITTER_EMAIL": "c@b.example", "GIT_COMMITTER_DATE": date}
        config = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
        subprocess.run(["git", "-C", str(self.folder), *words], check=True, env={**os.environ, **given, **config})

    def commit(self, note: str, author: str = "Ada") -> None:
        self._time_s += 60
        self.git("add", "-A", author=author)
        self.git("commit", "-q", "-m", note, author=author)

    def revisions(self, path: str) -> list[PageText]:
        folder = SourceFolder(self.folder)
        files = {one.path: one for one in folder.files(FolderReport())}
        with GitHistory.read(self.folder, FileTexts(folder, files, NOW_MS, "me"), list(files)) as history:
            return list(history.revisions_of(path))


def short(texts: list[PageText]) -> list[tuple[int, str, str, bytes]]:
    return [((one.time_ms - BEGIN_S * 1000) // 60_000, one.author, one.note, one.data) for one in texts]


def test_each_commit_of_a_file_is_a_revision_over_renames(tmp_path: Path) -> None:
    clone = Clone(tmp_path / "wiki")
    text = "a line of the page\n" * 20
    write(clone.folder, "old name.md", text)
    clone.commit("first")
    write(clone.folder, "other.md", "other")
    clone.commit("beside")
    write(clone.folder, "old name.md", f"{text}more\n")
    clone.commit("second\n\nwith a body", "Bea")
    (clone.folder / "sub").mkdir()
    clone.git("mv", "old name.md", "sub/näw.md")
    clone.commit("moved")
    write(clone.folder, "sub/näw.md", "quite another text\n")
    clone.commit("third")
    assert short(clone.revisions("sub/näw.md")) == [
        (1, "Ada", "first", text.encode()),
        (3, "Bea", "second", f"{text}more\n".encode()),
        (5, "Ada", "third", b"quite another text\n"),
    ]
    assert short(clone.revisions("other.md")) == [(2, "Ada", "beside", b"other")]


def test_a_file_that_was_deleted_and_came_back_keeps_its_earlier_life(tmp_path: Path) -> None:
    clone = Clone(tmp_path / "wiki")
    write(clone.folder, "a.md", "one")
    clone.commit("first")
    (clone.folder / "a.md").unlink()
    write(clone.folder, "gone.md", "x")
    clone.commit("away")
    (clone.folder / "gone.md").unlink()
    write(clone.folder, "a.md", "two is another text")
    clone.commit("again")
    assert [one[2] for one in short(clone.revisions("a.md"))] == ["first", "again"]


def test_a_merge_that_changed_the_file_and_a_change_without_a_commit_come_last(tmp_path: Path) -> None:
    clone = Clone(tmp_path / "wiki")
    write(clone.folder, "a.md", "base\n")
    clone.commit("base")
    clone.git("checkout", "-q", "-b", "side")
    write(clone.folder, "a.md", "side, longer\n")
    clone.commit("side", "Bea")
    clone.git("checkout", "-q", "main")
    write(clone.folder, "a.md", "main, longest of all\n")
    clone.commit("main")
    clone.git("merge", "-q", "--no-commit", "-s", "ours", "side")
    write(clone.folder, "a.md", "both of them\n")
    clone.commit("merged")
    write(clone.folder, "a.md", "---\nauthor: Eve\n---\n", BEGIN_S + 6_000)
    found = short(clone.revisions("a.md"))
    assert sorted(one[3] for one in found[1:3]) == [b"main, longest of all\n", b"side, longer\n"]
    assert found[-2] == (4, "Ada", "merged", b"both of them\n")
    assert found[-1] == (100, "Eve", "", b"---\nauthor: Eve\n---\n")
    assert [one[0] for one in found] == sorted(one[0] for one in found)


def test_a_clone_that_was_made_to_harm_runs_nothing(tmp_path: Path) -> None:
    clone = Clone(tmp_path / "wiki")
    write(clone.folder, "a.md", "text")
    clone.commit("first")
    harm = tmp_path / "harm.sh"
    harm.write_text(f"#!/bin/sh\ntouch {tmp_path}/harmed\ncat\n")
    harm.chmod(0o755)
    for key in ("core.fsmonitor", "diff.external", "gpg.program", "core.pager", "core.sshCommand", "diff.x.textconv"):
        clone.git("config", key, str(harm))
    clone.git("config", "log.showSignature", "true")
    (clone.folder / ".gitattributes").write_text("*.md diff=x filter=x\n")
    clone.git("config", "filter.x.smudge", str(harm))
    clone.git("config", "remote.origin.url", f"ext::{harm}")
    clone.git("config", "remote.origin.promisor", "true")
    assert [one.note for one in clone.revisions("a.md")] == ["first"]
    assert not (tmp_path / "harmed").exists()


@pytest.mark.parametrize(
    ("remote", "address"),
    [
        ("https://github.com/o/r.wiki.git", "https://github.com/o/r/wiki/"),
        ("https://ada:secret@GitHub.com/o/r.wiki.git/", "https://github.com/o/r/wiki/"),
        ("git@gitlab.example.org:group/sub/r.wiki.git", "https://gitlab.example.org/group/sub/r/-/wikis/"),
        ("ssh://git@codeberg.org:22/o/r.wiki.git", "https://codeberg.org/o/r/wiki/"),
        ("https://github.com/o/r.git", ""), ("/srv/r.wiki.git", ""), ("ext::sh -c x.wiki", ""), ("", ""),
    ],
)  # fmt: skip
def test_the_address_of_a_wiki_is_known_by_its_remote(tmp_path: Path, remote: str, address: str) -> None:
    clone = Clone(tmp_path)
    if remote:
        clone.git("config", "remote.origin.url", remote)
    assert wiki_address(clone.folder) == address
    assert wiki_address(tmp_path / "nowhere") == ""


def test_a_folder_without_a_history_says_why(tmp_path: Path) -> None:
    folder = SourceFolder(tmp_path)
    with pytest.raises(NoHistory):
        GitHistory.read(tmp_path, FileTexts(folder, {}, NOW_MS, "me"), [])
    clone = Clone(tmp_path / "empty")
    with pytest.raises(NoHistory):
        clone.revisions("a.md")
