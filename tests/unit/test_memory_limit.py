"""The memory that control groups grant, read from files of both versions, also as a container sees them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from columnar.runtime.memory_limit import memory_limit

MACHINE = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
NO_LIMIT_1 = "9223372036854771712\n"  # what version 1 says


def limit(tmp_path: Path, groups: str, files: dict[str, str]) -> tuple[int, str]:
    (tmp_path / "groups").write_text(groups)
    root = tmp_path / "root"
    root.mkdir()
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    found = memory_limit(str(root), str(tmp_path / "groups"))
    return found.size_bytes, found.source.replace(f"{root}/", "")


@pytest.mark.parametrize(
    ("groups", "files", "expected"),
    [
        ("", {}, (MACHINE, "this machine")),
        ("0::/\n", {"memory.max": "max\n"}, (MACHINE, "this machine")),
        ("0::/app\n", {"app/memory.max": "1048576\n"}, (1 << 20, "app/memory.max")),
        ("0::/a/b\n", {"a/b/memory.max": "max\n", "a/memory.max": "2097152\n"}, (2 << 20, "a/memory.max")),
        ("0::/a\n", {"a/memory.max": "4194304\n", "a/memory.high": "1048576\n"}, (1 << 20, "a/memory.high")),
        ("0::/elsewhere/in/the/host\n", {"memory.max": "1048576\n"}, (1 << 20, "memory.max")),
        (
            "5:cpu:/x\n4:memory:/x\n0::/\n",
            {"memory/x/memory.limit_in_bytes": "1048576\n", "memory/memory.limit_in_bytes": NO_LIMIT_1},
            (1 << 20, "memory/x/memory.limit_in_bytes"),
        ),
        ("4:memory:/\n", {"memory/memory.limit_in_bytes": NO_LIMIT_1}, (MACHINE, "this machine")),
        ("5:cpu:/x\n", {"cpu/x/memory.limit_in_bytes": "1048576\n"}, (MACHINE, "this machine")),
        ("no line of a group\n", {}, (MACHINE, "this machine")),
        ("0::/a\n", {"a/memory.max": "what\n"}, (MACHINE, "this machine")),
    ],
)
def test_the_least_limit_counts(tmp_path: Path, groups: str, files: dict[str, str], expected: tuple[int, str]) -> None:
    assert limit(tmp_path, groups, files) == expected


def test_a_system_without_groups_grants_the_machine(tmp_path: Path) -> None:
    assert memory_limit(str(tmp_path), str(tmp_path / "none")).size_bytes == MACHINE
