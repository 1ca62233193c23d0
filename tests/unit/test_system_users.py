"""``packaging/systemd``: the user and the folders of the store, as systemd makes them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

PACKAGING = Path(__file__).parents[2] / "packaging"


@pytest.mark.skipif(shutil.which("systemd-tmpfiles") is None, reason="no systemd-tmpfiles")
def test_systemd_makes_the_user_and_the_folder(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    for program, name in (
        ("systemd-sysusers", "columnar.sysusers.conf"),
        ("systemd-tmpfiles", "columnar.tmpfiles.conf"),
    ):
        words = [program, f"--root={tmp_path}", *(["--create"] if "tmpfiles" in program else [])]
        made = subprocess.run([*words, PACKAGING / "systemd" / name], capture_output=True, text=True, check=False)
        assert made.returncode == 0, made.stderr
    assert "columnar:x:951:" in (tmp_path / "etc/passwd").read_text()
    assert (tmp_path / "etc/columnar").stat().st_mode & 0o777 == 0o755
