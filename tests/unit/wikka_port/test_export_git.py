"""An export for git: its bytes as they were kept, a real git that takes it and gives it back, and damage."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import BinaryIO

import pytest

from tests.support.drawn_records import drawn_source
from tests.support.golden import hold_to
from tests.support.recorded_pages import FIXED, WITH_DELETED, digests_of
from tests.support.seeds import seed
from wikka_port.exchange.export_file import piped
from wikka_port.exchange.git_reader import GitStream
from wikka_port.exchange.git_stream import write_git
from wikka_port.exchange.records import ExportError, RecordSource

SEED = seed(403)


def written(source: RecordSource) -> bytes:
    out = io.BytesIO()
    with piped(out.write) as to:
        write_git(source, to)
    return out.getvalue()


@contextmanager
def opened(data: bytes) -> Iterator[GitStream]:
    def opener() -> BinaryIO:
        return io.BytesIO(data)

    with closing(GitStream(opener)) as stream:
        yield stream


def git(folder: Path, *words: str, given: bytes = b"") -> bytes:
    config = {"PATH": "/usr/bin:/bin", "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(folder)}
    done = subprocess.run(["git", "-C", str(folder), *words], input=given, capture_output=True, check=False, env=config)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    if shutil.which("git") is None:
        pytest.skip("git is not installed: no stream is read by it")
    git(tmp_path, "init", "-q", "-b", "main", "wiki")
    return tmp_path / "wiki"


def test_the_stream_is_as_it_was_kept() -> None:
    lines = written(FIXED).decode().replace("\r", "<CR>").split("\n")
    hold_to("wiki-export-git.txt", {f"{number}": line for number, line in enumerate(lines, 1)})


def test_what_is_read_is_what_was_written() -> None:
    print("seed", SEED)
    for source in (FIXED, WITH_DELETED, drawn_source(SEED)):
        with opened(written(source)) as stream:
            assert stream.site() == source.site()
            assert digests_of(stream).as_lines() == digests_of(source).as_lines()


def test_git_takes_it_and_gives_it_back_without_a_difference(repository: Path) -> None:
    print("seed", SEED)
    for source in (drawn_source(SEED), WITH_DELETED):
        git(repository, "fast-import", "--quiet", "--force", given=written(source))
        git(repository, "fsck", "--strict")
        with opened(git(repository, "fast-export", "--all")) as stream:
            assert stream.site() == source.site()
            assert digests_of(stream).as_lines() == digests_of(source).as_lines()
            assert stream.remarks == []


def test_a_deleted_page_is_not_in_the_tree_and_its_deletion_is_a_commit(repository: Path) -> None:
    git(repository, "fast-import", "--quiet", given=written(WITH_DELETED))
    names = git(repository, "ls-tree", "-r", "--name-only", "main").decode().splitlines()
    assert len(names) == 5
    of_deleted = ("log", "--diff-filter=D", "--grep=Wikka-Deleted", "--format=%an %at %s")
    log = git(repository, *of_deleted).decode().splitlines()
    assert log == ["Ada 1700000002 it was spam", "Ada 1700000000 Harbour/Pier: deleted"]
    there = git(repository, "ls-tree", "-r", "--name-only", "main~4").decode().splitlines()
    assert [name for name in there if name.startswith("Harbour/Pier%~")]


def test_the_tree_is_what_a_person_expects(repository: Path) -> None:
    git(repository, "fast-import", "--quiet", given=written(FIXED))
    names = git(repository, "-c", "core.quotePath=no", "ls-tree", "-r", "--name-only", "main").decode().splitlines()
    assert names == [
        *(".wikka/comments.jsonl", ".wikka/pages.jsonl", ".wikka/source/日本.txt", "Harbour/Pier.md", "日本.wikka")
    ]
    assert git(repository, "show", "main:Harbour/Pier.md") == b"# Zwei\n"
    assert git(repository, "show", "main~1~1:files/Harbour/Pier/pier.txt") == b"a pier\n"
    log = git(repository, "log", "--format=%an %at %s", "main~4", "--", "Harbour").decode().splitlines()
    assert log == ["Eve 1700000001 two lines", "Ada 1700000000 Harbour/Pier: revision 3"]


def test_commits_of_people_are_counted_and_left_out(repository: Path) -> None:
    git(repository, "fast-import", "--quiet", given=written(FIXED))
    git(repository, "checkout", "-q", "main")
    (repository / "Harbour" / "Pier.md").write_text("edited")
    identity = ("-c", "user.name=Eve", "-c", "user.email=eve@example.org")
    git(repository, *identity, "commit", "-q", "-a", "-m", "an edit")
    with opened(git(repository, "fast-export", "--all")) as stream:
        assert digests_of(stream).as_lines() == digests_of(FIXED).as_lines()
        assert stream.remarks == ["1 commits are none of the wiki's: they are left out"]


DAMAGES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "without its end": (lambda data: data.removesuffix(b"done\n"), "it was cut off"),
    "cut off in a blob": (lambda data: data[: data.index(b"# Zwei")], "it ends within a blob"),
    "another command": (lambda data: data.replace(b"blob\n", b"blub\n", 1), "an unknown command"),
    "no size": (lambda data: data.replace(b"data 9\n", b"data x\n", 1), "data with a size"),
    "no JSON": (lambda data: data.replace(b'Wikka-Revision: {"', b"Wikka-Revision: {{", 1), "is no JSON"),
    "no text": (lambda data: data.replace(b"M 100644 :5 ", b"M 100644 :99 ", 1), "no blob :99"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_named(name: str) -> None:
    change, said = DAMAGES[name]
    damaged = change(written(FIXED))
    assert damaged != written(FIXED)
    with opened(damaged) as stream, pytest.raises(ExportError, match=re.escape(said)):
        digests_of(stream)
