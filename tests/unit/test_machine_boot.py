"""The identity of a machine's start."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from columnar.runtime import machine_boot


def test_a_machine_without_proc_is_known_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    boot = tmp_path / "boot_id"
    boot.write_text("5fa9ee2d\n")
    monkeypatch.setattr(machine_boot, "_BOOT_ID", str(boot))
    assert machine_boot.boot_id.__wrapped__() == "5fa9ee2d"
    boot.unlink()
    assert machine_boot.boot_id.__wrapped__() == platform.node()
