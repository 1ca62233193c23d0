"""An export for git: its bytes as they were kept, a real git that takes it and gives it back, and damage."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import pytest

from tests.support.drawn_records import drawn_source
from tests.support.golden import hold_to
from tests.support.recorded_pages import FIXED, WITH_DELETED, MemoryPage, MemorySource, digests_of
from tests.support.seeds import seed
from wikka_port.exchange.export_file import piped
from wikka_port.exchange.git_reader import GitStream
from wikka_port.exchange.git_stream import write_git
from wikka_port.exchange.records import ExportError, PageRecord, RecordSource, RevisionRecord, SiteRecord

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
    rights = repository / ".wikka" / "pages.jsonl"
    rights.write_bytes(rights.read_bytes().replace(b'"read":"+"', b'"read":"*"'))
    identity = ("-c", "user.name=Eve", "-c", "user.email=eve@example.org")
    git(repository, *identity, "commit", "-q", "-a", "-m", "an edit")
    with opened(git(repository, "fast-export", "--all")) as stream:
        assert digests_of(stream).as_lines() == digests_of(FIXED).as_lines()
        assert stream.remarks == ["1 commits are none of the wiki's: they are left out"]


SHIP = MemoryPage(
    PageRecord("Ship", "Ada", {"read": "Ada"}),
    (
        RevisionRecord(1, 1_700_000_000_000, "Ada", "one\n"),
        RevisionRecord(2, 1_700_000_009_000, "Ada", "one\n", note="the same text"),
    ),
)
COMMIT = b"commit refs/heads/main\n"


def as_git_writes(source: MemorySource, between: bytes) -> bytes:
    """Return the stream of two revisions, the second without a change, with other commands before the second."""
    head, first, second, last = written(source).split(COMMIT)
    second = re.sub(rb"M [^\n]*\n", b"", second)
    return b"".join((head, COMMIT, b"mark :100\n", first, between, COMMIT, second, COMMIT, last))


def of_person(branch: bytes, *lines: bytes) -> bytes:
    who = (b"author Eve <> 1 +0000", b"committer Eve <> 1 +0000")
    about = (b"commit refs/heads/" + branch, *who, b"data 7", b"an edit")
    return b"blob\nmark :90\ndata 7\ntheirs\n\n" + b"\n".join((*about, *lines, b"", b""))


def test_what_people_did_on_another_branch_is_no_text_of_the_wiki_and_no_right() -> None:
    source = MemorySource((SHIP,), SiteRecord({"": {"write": "+"}}))
    theirs = of_person(b"work", b"from :100", b"M 100644 :90 Ship.wikka", b"M 100644 :90 .wikka/pages.jsonl")
    with opened(as_git_writes(source, theirs)) as stream:
        assert stream.site() == source.site()
        assert digests_of(stream).as_lines() == digests_of(source).as_lines()
        assert stream.remarks == ["1 commits are none of the wiki's: they are left out"]
    back = b"reset refs/heads/main\nfrom :100\n\n"
    with opened(as_git_writes(source, of_person(b"main", b"M 100644 :90 Ship.wikka") + back)) as stream:
        assert digests_of(stream).as_lines() == digests_of(source).as_lines()


def test_a_branch_begins_where_a_reset_says() -> None:
    source = MemorySource((SHIP,), SiteRecord())
    theirs = of_person(b"main", b"M 100644 :90 Ship.wikka")
    kept = b"reset refs/heads/kept\nfrom :100\n\n" + theirs + b"reset refs/heads/main\nfrom refs/heads/kept\n\n"
    with opened(as_git_writes(source, kept)) as stream:
        assert digests_of(stream).as_lines() == digests_of(source).as_lines()
    anew = as_git_writes(source, theirs + b"reset refs/heads/main\n\n")  # without a commit before it, and a text
    with opened(anew) as stream, pytest.raises(ExportError, match="no blob"):
        digests_of(stream)


def test_a_revision_that_git_put_upon_a_persons_commit_keeps_its_text() -> None:
    second = replace(SHIP.of_page[1], body="theirs\n")
    source = MemorySource((replace(SHIP, of_page=(SHIP.of_page[0], second)),), SiteRecord())
    with opened(as_git_writes(source, of_person(b"main", b"M 100644 :90 Ship.wikka"))) as stream:
        assert digests_of(stream).as_lines() == digests_of(source).as_lines()


def of_another_type(data: bytes) -> bytes:
    record = re.compile(rb"Wikka-Revision: (\{[^\n]*\})")
    return record.sub(lambda one: b"Wikka-Revision: 5" + b" " * (len(one[1]) - 1), data, count=1)


DAMAGES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "without its end": (lambda data: data.removesuffix(b"done\n"), "it was cut off"),
    "cut off in a blob": (lambda data: data[: data.index(b"# Zwei")], "it ends within a blob"),
    "another command": (lambda data: data.replace(b"blob\n", b"blub\n", 1), "an unknown command"),
    "no size": (lambda data: data.replace(b"data 9\n", b"data x\n", 1), "data with a size"),
    "no JSON": (lambda data: data.replace(b'Wikka-Revision: {"', b"Wikka-Revision: {{", 1), "is no JSON"),
    "a record of another type": (of_another_type, "the trailer Wikka-Revision is no record"),
    "without its rights": (lambda data: data[: data.rindex(COMMIT)] + b"done\n", "has no commit “Rights and comments"),
    "rights that are no JSON": (
        lambda data: data.replace(b'{"kind":"page","name":"\xe6', b'["kind":"page","name":"\xe6', 1),
        "pages.jsonl: a line is no JSON",
    ),
    "no text": (lambda data: data.replace(b"M 100644 :5 ", b"M 100644 :99 ", 1), "no blob :99"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_named(name: str) -> None:
    change, said = DAMAGES[name]
    damaged = change(written(FIXED))
    assert damaged != written(FIXED)
    with opened(damaged) as stream, pytest.raises(ExportError, match=re.escape(said)):
        digests_of(stream)
