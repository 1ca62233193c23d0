"""The build that the program says of itself: of a checkout from git's files, of a wheel from its file."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from columnar import version
from columnar.shell.version import describe_program
from columnar.version import Build, full, head_of, is_unchanged, parts_of, read_build

ROOT = Path(__file__).parents[2]
COMMIT = "0123456789abcdef0123456789abcdef01234567"
OTHER = "f" * 40
IDENTITY = {
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
}


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=folder, env=os.environ | IDENTITY, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "checkout"
    (root / "columnar").mkdir(parents=True)
    (root / "columnar" / "one.py").write_text("a = 1\n")
    (root / "setup.py").write_text("")
    (root / "README.md").write_text("x\n")
    git(root, "init", "-q", "-b", "main")
    git(root, "add", "columnar", "setup.py", "README.md")
    git(root, "commit", "-q", "-m", "one")
    return root


def test_the_commit_is_read_as_git_says_it(checkout: Path, tmp_path: Path) -> None:
    head = git(checkout, "rev-parse", "HEAD")
    assert read_build(str(checkout / "columnar")) == Build(head)
    git(checkout, "pack-refs", "--all")
    assert not (checkout / ".git" / "refs" / "heads" / "main").exists()
    assert head_of(str(checkout)) == head, "packed"
    tree = tmp_path / "tree"
    git(checkout, "worktree", "add", "-q", "-b", "topic/one", str(tree))
    (tree / "columnar" / "one.py").write_text("a = 2\n")
    git(tree, "commit", "-q", "-a", "-m", "two")
    assert head_of(str(tree)) == git(tree, "rev-parse", "HEAD") != head
    git(tree, "checkout", "-q", "--detach", head)
    assert head_of(str(tree)) == head, "no branch"


def test_changed_sources_are_told_and_other_files_do_not_count(checkout: Path) -> None:
    head = git(checkout, "rev-parse", "HEAD")
    (checkout / "README.md").write_text("y\n")
    os.utime(checkout / "columnar" / "one.py", (1, 1))  # another date, the same content
    assert is_unchanged(str(checkout), head) is True
    (checkout / "columnar" / "one.py").write_text("a = 2\n")
    assert is_unchanged(str(checkout), head) is False
    git(checkout, "add", "columnar/one.py")
    assert is_unchanged(str(checkout), head) is False
    git(checkout, "commit", "-q", "-m", "two")
    assert is_unchanged(str(checkout), git(checkout, "rev-parse", "HEAD")) is True
    assert is_unchanged(str(checkout), head) is False, "the process that started with it runs other sources"


def test_what_git_cannot_tell_is_unknown(checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_unchanged(str(checkout), OTHER) is None
    assert is_unchanged(str(tmp_path), OTHER) is None
    head = git(checkout, "rev-parse", "HEAD")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "another"))  # as in a hook
    assert is_unchanged(str(checkout), head) is True
    monkeypatch.setenv("PATH", str(tmp_path))
    assert is_unchanged(str(checkout), head) is None


@pytest.mark.parametrize("head", ["", "ref: refs/heads/.invalid", "not a commit", "ref: refs/heads/main\nmore"])
def test_a_head_that_is_not_understood_is_no_build(head: str, checkout: Path) -> None:
    (checkout / ".git" / "HEAD").write_text(head)
    (checkout / ".git" / "refs" / "heads" / "main").unlink()
    assert read_build(str(checkout / "columnar")) == Build()
    assert Build().text == "unknown"


def test_an_installed_package_has_its_file(tmp_path: Path) -> None:
    package = tmp_path / "columnar"
    package.mkdir()
    assert read_build(str(package)) == Build()
    for stated, found, text in (
        (COMMIT, Build(COMMIT, True), "0123456789ab"),
        (f"{COMMIT}-dirty", Build(COMMIT, False), "0123456789ab-dirty"),
        (f"{COMMIT}-unchecked", Build(COMMIT, None), "0123456789ab"),
    ):
        (package / "BUILD").write_text(f"{stated}\n")
        assert read_build(str(package)) == found
        assert (found.stated, found.text) == (stated, text)
    (package / "BUILD").write_text("nonsense\n")
    assert read_build(str(package)) == Build()
    (tmp_path / ".git").mkdir()  # somebody keeps site-packages in git: that is no commit of ours
    (tmp_path / ".git" / "HEAD").write_text(f"{OTHER}\n")
    (package / "BUILD").write_text(f"{COMMIT}\n")
    assert read_build(str(package)) == Build(COMMIT, True)


def test_one_text_has_both() -> None:
    assert full(Build(COMMIT, False)) == f"{version.VERSION}+0123456789ab-dirty"
    assert parts_of(full(Build(COMMIT, False))) == (version.VERSION, "0123456789ab-dirty")
    assert full(Build()) == version.VERSION
    assert parts_of(version.VERSION) == (version.VERSION, "unknown")


def test_the_command_starts_without_git(tmp_path: Path) -> None:
    """``columnar --version`` and the start of a store read files only."""
    marker = tmp_path / "ran"
    stand_in = tmp_path / "git"
    stand_in.write_text(f"#!/bin/sh\ntouch {marker}\n")
    stand_in.chmod(0o755)
    program = "import columnar.cli; from columnar import version; print(version.full(version.at_start()))"
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    for command in (["-m", "columnar", "--version"], ["-c", program]):
        subprocess.run([sys.executable, *command], env=environment, check=True, capture_output=True)
    assert not marker.exists()
    asks = "from columnar import version; version.build()"
    subprocess.run([sys.executable, "-c", asks], env=environment, check=True)
    assert marker.exists() == (ROOT / ".git").exists(), "the stand-in is what would have run"


def test_a_wheel_and_a_source_archive_have_the_commit(checkout: Path, tmp_path: Path) -> None:
    """A wheel of the sources says their commit, and a wheel of a source archive still does."""
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        (checkout / name).write_bytes((ROOT / name).read_bytes())
    package = checkout / "columnar"
    for name in ("__init__.py", "version.py", "runtime/__init__.py", "runtime/compiled.py"):
        (package / name).parent.mkdir(exist_ok=True)
        (package / name).write_bytes((ROOT / "columnar" / name).read_bytes())
    git(checkout, "add", "columnar", "setup.py", "pyproject.toml", "README.md", "LICENSE")
    git(checkout, "commit", "-q", "-m", "all")
    head = git(checkout, "rev-parse", "HEAD")
    assert built(checkout, tmp_path / "clean") == f"{head}\n"
    (package / "one.py").write_text("a = 3\n")
    assert built(checkout, tmp_path / "dirty") == f"{head}-dirty\n"
    assert built(checkout, tmp_path / "image", COLUMNAR_BUILD=OTHER) == f"{OTHER}\n"
    with pytest.raises(subprocess.CalledProcessError):
        built(checkout, tmp_path / "wrong", COLUMNAR_BUILD="v1")
    assert not (package / "BUILD").exists(), "the checkout stays as it was"


def built(source: Path, to: Path, **more: str) -> str:
    """The file BUILD of the wheel that is made of the source archive of ``source``."""
    to.mkdir()
    made = (
        "import sys, os, tarfile; from setuptools import build_meta as b; to = sys.argv[1];"
        "name = b.build_sdist(to); tarfile.open(os.path.join(to, name)).extractall(to, filter='data');"
        "os.chdir(os.path.join(to, name.removesuffix('.tar.gz'))); b.build_wheel(to)"
    )
    environment = {key: value for key, value in os.environ.items() if not key.startswith("COLUMNAR_")}
    environment |= {"COLUMNAR_COMPILED": "no", **more}
    subprocess.run([sys.executable, "-c", made, str(to)], cwd=source, env=environment, check=True, capture_output=True)
    (wheel,) = to.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        return opened.read("columnar/BUILD").decode()


def test_the_program_describes_itself() -> None:
    found = describe_program()
    assert found["version"] == version.VERSION
    assert found["python"] == sys.version.split()[0]
    assert found["libraries"]["rocksdict"] in (ROOT / "constraints.txt").read_text()
    assert found["libraries"]["rocksdb"].count(".") == 2
    assert found["formats"]["folder"]["newest"] >= 9
    assert all(known["oldest"] <= known["newest"] for known in found["formats"].values())
