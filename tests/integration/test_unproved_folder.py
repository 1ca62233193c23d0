"""A folder on a file system that nobody has measured: no node starts there before a probe between two mounts passed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from columnar.storage.probe_record import PROBED
from tests.support.many_nodes import WAIT_S, many_nodes
from tests.support.shell import Shell
from tests.support.stalling_mount import STRICT, missing, mounted

pytestmark = pytest.mark.skipif(missing() is not None, reason=f"NOT TESTED: a FUSE mount needs {missing()}")
SHELL = Shell("127.0.0.1:1")


@contextmanager
def two_mounts(folder: Path, *options: str) -> Iterator[tuple[str, str]]:
    (folder / "real").mkdir(exist_ok=True)
    with ExitStack() as undo:
        one, other = (undo.enter_context(mounted(folder / "real", folder / f"mount{n}", *options)).path for n in (1, 2))
        yield str(one), str(other)
    for n in (1, 2):
        (folder / f"mount{n}").rmdir()


def refused(data: str, *flags: str) -> str:
    """Start a node that cannot start, and return what it says."""
    words = ["node", "--data", data, "--coordination", "etcd://127.0.0.1:1/columnar", "--port", "0", "--web-port", "-1"]
    words += ["--peer-port", "0", *flags]
    done = subprocess.run(
        [sys.executable, "-m", "columnar", *words], capture_output=True, text=True, timeout=WAIT_S, check=False
    )
    assert done.returncode == 2, done
    return done.stderr


def test_a_caching_mount_stays_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("columnar.storage.probe_root.STALE_S", 0.1)  # its locks keep nobody out, ever
    with two_mounts(tmp_path) as (one, other):
        assert f"Run 'columnar probe-root {one} --listen' on this machine" in refused(one)
        result = SHELL("probe-root", one, "--also", other)
        assert result.exit_code == 1
        assert "FAULT\tremoved names" in result.stdout
        assert "nobody has measured" in refused(one)
        assert "nobody has measured" not in refused(one, "--folder-unprobed")


def test_a_node_starts_once_the_probe_has_passed(tmp_path: Path) -> None:
    with two_mounts(tmp_path, *STRICT) as (one, other):
        assert "no probe between two machines has passed" in refused(one)
        lines = SHELL.out("probe-root", one, "--also", other).splitlines()
        assert lines[-1] == "suitable"
        assert lines[-2].startswith(f"ok\trecord\t{PROBED} notes that fuse has passed")
        (tmp_path / "logs").mkdir()
        with many_nodes(tmp_path / "logs", count=2, data=[Path(one), Path(other)]) as cluster:
            with cluster.nodes[0].connection() as client:
                client.create_table(b"pages", {"text": {}})
                client.table(b"pages").put(b"a", {b"text:a": b"1"})
            with cluster.nodes[1].connection() as client:
                assert client.table(b"pages").row(b"a") == {b"text:a": b"1"}
            cluster.stop()
        SHELL.out("probe-root", one, "--also", other)  # beside the files of a store
