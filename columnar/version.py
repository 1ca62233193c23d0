"""The version and the build of the program: commands, pages, metrics, records and log lines have both from here.

    version   as ``pyproject.toml`` has it
    build     the commit of the sources, with ``-dirty`` if they were changed since it
                  of a checkout    ``.git`` names the commit, and the command git knows whether the sources differ
                  of a wheel       the file ``BUILD`` of the package, which ``setup.py`` writes

    BUILD := COMMIT ["-dirty" | "-unchecked"] "\\n"   COMMIT: 40 or 64 hexadecimal digits; -unchecked: git was missing

    full      VERSION, or VERSION+BUILD if the build is known, as in ``0.1.0+337d94265ee8-dirty``

A process runs the commit that was checked out when it started, whatever the checkout has later.  So ``at_start`` is
called as the process starts; it reads some small files, in 0.1 ms.  git takes 10 ms and more: only ``build`` waits for
it, and ``known`` starts it in a thread when somebody first looks.  A store starts without git.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

VERSION: Final = "0.1.0"
PYTHON: Final = sys.version.split()[0]

BUILD_FILE: Final = "BUILD"
UNKNOWN: Final = "unknown"
TEXT_DIGITS: Final = 12
GIT_S: Final = 10.0  # git reads every source if their dates have changed
_PACKAGE: Final = os.path.dirname(os.path.abspath(__file__))
_SOURCES: Final = ("columnar", "wikka_port", "wikibench", "setup.py", "pyproject.toml")  # what a wheel is made of
_STATED: Final = re.compile(r"([0-9a-f]{40}(?:[0-9a-f]{24})?)(-dirty|-unchecked|)")
_REFERENCE: Final = "ref: "


@dataclass(frozen=True, slots=True)
class Build:
    """The commit of the sources; its text is for people and labels, ``stated`` for the file ``BUILD``."""

    commit: str = ""  # empty: neither a checkout nor a file says it
    is_clean: bool | None = None  # whether the sources are those of the commit; None: unknown, or not yet known

    @property
    def text(self) -> str:
        if not self.commit:
            return UNKNOWN
        return self.commit[:TEXT_DIGITS] + ("-dirty" if self.is_clean is False else "")

    @property
    def stated(self) -> str:
        return self.commit + {True: "", False: "-dirty", None: "-unchecked"}[self.is_clean]

    @classmethod
    def from_stated(cls, text: str) -> Build:
        """Read the content of ``BUILD``.  Raises ValueError."""
        found = _STATED.fullmatch(text.strip())
        if found is None:
            raise ValueError(f"no build: '{text.strip()[:80]}' is no commit, which may end with -dirty or -unchecked")
        return cls(found[1], {"": True, "-dirty": False, "-unchecked": None}[found[2]])


@cache
def at_start() -> Build:
    """Return the build as files tell it: of a checkout without whether it is clean.  Never starts git."""
    return read_build(_PACKAGE)


@cache
def build() -> Build:
    """Return the build.  In a checkout the first call waits for git, GIT_S at most."""
    started = at_start()
    if not started.commit or not is_checkout(_PACKAGE):
        return started
    return replace(started, is_clean=is_unchanged(os.path.dirname(_PACKAGE), started.commit))


def known() -> Build:
    """Return the build as far as it is known, at once; the first call has git asked in a thread, if that is needed."""
    if build.cache_info().currsize:
        return build()
    _begin_comparison()
    return at_start()


def full(found: Build | None = None) -> str:
    """Return version and build in one text; without ``found`` the build as far as it is known, at once."""
    found = known() if found is None else found
    return f"{VERSION}+{found.text}" if found.commit else VERSION


def parts_of(text: str) -> tuple[str, str]:
    """Return the version and the build of a text of ``full``, also of another process."""
    version, _, found = text.partition("+")
    return version, found or UNKNOWN


@cache
def _begin_comparison() -> None:
    import threading

    threading.Thread(target=build, name="build", daemon=True).start()


def read_build(package: str) -> Build:
    """Return the build of a package's folder, without git."""
    if is_checkout(package):
        return Build(head_of(os.path.dirname(package)))
    try:
        return Build.from_stated(_read(os.path.join(package, BUILD_FILE)))
    except (OSError, ValueError):
        return Build()


def is_checkout(package: str) -> bool:
    """Return whether the package is in a source tree of git, and not installed."""
    root = os.path.dirname(package)
    return os.path.exists(os.path.join(root, "setup.py")) and os.path.exists(os.path.join(root, ".git"))


def head_of(root: str) -> str:
    """Return the commit that is checked out, or an empty text if the files of git do not tell it.

    Reads ``.git``, which is a file in a worktree of its own, the branch that HEAD names, and ``packed-refs``.
    """
    try:
        own = os.path.join(root, ".git")
        if os.path.isfile(own):
            own = os.path.join(root, _read(own).removeprefix("gitdir: "))
        head = _read(os.path.join(own, "HEAD"))
        if head.startswith(_REFERENCE):
            head = _commit_of(own, head.removeprefix(_REFERENCE))
        found = _STATED.fullmatch(head)
        return found[1] if found is not None else ""
    except OSError:
        return ""


def _commit_of(own: str, reference: str) -> str:
    """Return the commit of a branch; a branch belongs to the repository, which a worktree's ``commondir`` names."""
    shared = own
    if os.path.exists(os.path.join(own, "commondir")):
        shared = os.path.join(own, _read(os.path.join(own, "commondir")))
    loose = os.path.join(shared, *reference.split("/"))
    if os.path.exists(loose):
        return _read(loose)
    with open(os.path.join(shared, "packed-refs"), encoding="utf-8", errors="replace") as file:
        return next((line.split()[0] for line in file if line.rstrip("\n").endswith(f" {reference}")), "")


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read(4096).strip()


def is_unchanged(root: str, commit: str) -> bool | None:
    """Return whether the sources are those of the commit, or None if git cannot tell.  Blocks for GIT_S at most."""
    import subprocess

    # A hook of git runs commands with variables that name another index or work tree.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "--no-optional-locks", "-C", root, "diff", "--quiet", "--no-ext-diff", commit, "--", *_SOURCES]
    try:
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=GIT_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):  # git is not installed, or the disk is slow
        return None
    return {0: True, 1: False}.get(done.returncode)
