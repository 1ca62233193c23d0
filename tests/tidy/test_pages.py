"""Pages name files, folders and modules that are there and link to headings that are there.

So a module that moves, or is renamed, takes its pages along.
"""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "ARCHITECTURE.md",
    ROOT / "COMPATIBILITY.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
ARCHITECTURE_BYTES = 16 * 1024  # a module's docstring has its invariants, docs/decisions.md the reasons
EXAMPLES = {"my_triggers.py", "hello.py"}  # no file of ours: the reader writes it, or shows it on a page of the wiki
# names in lines of the log, and of files, no modules
LOGGERS = {"columnar.log", "columnar.settings", "columnar.slow", "columnar.tls", "columnar.toml"}

_BLOCK = re.compile(r"^```.*?^```$", re.S | re.M)
_FILE = re.compile(r"(?<![\w/.-])((?:\w[\w-]*/)*\w[\w-]*\.(?:py|md|thrift))\b")
_FOLDER = re.compile(r"`((?:columnar|benchmarks|wikka_port|wikibench|gauge|tests|docs)(?:/\w[\w-]*)*/?)`")
_DOTTED = re.compile(r"(?<![\w./-])((?:columnar|benchmarks|wikka_port|wikibench|gauge|tests)(?:\.\w+)+)(?![\w/])")
_LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(#[^)\s]+)?\)")


def ids(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def files() -> frozenset[str]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return frozenset(name for name in listed.stdout.splitlines() if (ROOT / name).is_file())


@cache
def ends_of(there: frozenset[str]) -> set[str]:
    return {"/".join(parts[begin:]) for parts in (name.split("/") for name in there) for begin in range(len(parts))}


def missing_files(text: str, there: frozenset[str]) -> list[str]:
    """Files that ``text`` names, by their path or its end, and that are not there."""
    named = _FILE.findall(_BLOCK.sub("", _LINK.sub("", text)))
    return sorted(set(named) - ends_of(there) - EXAMPLES)


def anchors(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", _BLOCK.sub("", text), re.M)
    return {"#" + re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(text: str, page: Path) -> list[str]:
    broken = []
    for target, anchor in _LINK.findall(_BLOCK.sub("", text)):
        path = page.parent / target if target else page
        if not path.exists() or (anchor and anchor not in anchors(path.read_text())):
            broken.append(target + anchor)
    return broken


def missing_folders(text: str, there: frozenset[str]) -> list[str]:
    """Paths of folders in backticks that are not there."""
    folders = {"/".join(parts[:end]) for parts in (name.split("/") for name in there) for end in range(1, len(parts))}
    return sorted({name for name in _FOLDER.findall(text) if name.rstrip("/") not in folders})


def missing_dotted(text: str, there: frozenset[str]) -> list[str]:
    """Dotted names, also those in blocks, that are no module, no name that their module has, and no file."""
    missing = {name for name in _DOTTED.findall(text) if not is_there(name.split("."), there)}
    return sorted(missing - LOGGERS - ends_of(there))


def is_there(parts: list[str], there: frozenset[str]) -> bool:
    for end in range(len(parts), 1, -1):
        path, rest = "/".join(parts[:end]), parts[end:]
        module = next((name for name in (f"{path}.py", f"{path}/__init__.py") if name in there), None)
        if module is not None:
            return set(rest) <= set(re.findall(r"\w+", (ROOT / module).read_text()))
        if not rest and any(name.startswith(f"{path}/") for name in there):
            return True
    return False


def missing_modules(text: str, there: frozenset[str]) -> list[str]:
    """Bare names in backticks that are no module, and folders that are not there."""
    parts = {part for name in there for part in name.removesuffix(".py").split("/")}
    named = re.findall(r"`((?:\w+/)+|[a-z_0-9]+)`", _BLOCK.sub("", text))
    return sorted({name for name in named if not set(name.strip("/").split("/")) <= parts})


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_a_page_names_files_that_are_there(page: Path) -> None:
    assert missing_files(page.read_text(), files()) == []


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_a_page_names_folders_and_modules_that_are_there(page: Path) -> None:
    text = page.read_text()
    assert missing_folders(text, files()) + missing_dotted(text, files()) == []


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_a_page_links_to_what_is_there(page: Path) -> None:
    assert broken_links(page.read_text(), page) == []


def test_the_architecture_is_short_and_names_modules_that_are_there() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    assert len(text.encode()) <= ARCHITECTURE_BYTES, "keep what many ask; the rest belongs in docstrings"
    reading = text[text.index("## Reading order") : text.index("## Layers")]
    assert missing_modules(reading, files()) == []


def test_missing_modules_are_found() -> None:
    there = frozenset({"columnar/wire/detect.py", "columnar/cli.py"})
    text = "`columnar/wire/`: `detect`, `told` and `Told`; `wire/gone/`"
    assert missing_modules(text, there) == ["told", "wire/gone/"]


def test_missing_folders_and_names_are_found() -> None:
    there = frozenset(
        {"columnar/wire/detect.py", "columnar/runtime/faults.py", "tests/proofs/views.py", "etc/columnar.service"}
    )
    text = "`columnar/wire/` and `columnar/routing/`; columnar.runtime.faults.FAULTS, columnar.runtime.faults.GONE,"
    assert missing_folders(text, there) == ["columnar/routing/"]
    named = missing_dotted(
        f"{text} columnar.service, columnar.faults; python -m tests.proofs.views, or tests.proofs.gone", there
    )
    assert named == ["columnar.faults", "columnar.runtime.faults.GONE", "tests.proofs.gone"]


def test_missing_files_and_broken_links_are_found() -> None:
    there = frozenset({"columnar/wire/detect.py", "docs/faults.md"})
    text = "`wire/detect.py`, `detect.py` and `columnar/wire/gone.py`; (docs/gone.md)\n\n```\nlater.py\n```\n`tect.py`"
    assert missing_files(text, there) == ["columnar/wire/gone.py", "docs/gone.md", "tect.py"]
    page = ROOT / "docs" / "security.md"
    linked = (
        "[a](faults.md) [b](faults.md#faults) [c](faults.md#gone) [d](gone.md) [e](#web-pages) [f](https://x.org/y)"
    )
    assert broken_links(linked, page) == ["faults.md#gone", "gone.md"]
