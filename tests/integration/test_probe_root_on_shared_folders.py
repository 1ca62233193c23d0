"""``columnar probe-root`` on real shared file systems: CephFS passes, GlusterFS only as a cluster needs it mounted."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from columnar.storage.quick_probe import UnsuitableFolder, probe_quickly
from tests.support.deep import IS_DEEP
from tests.support.many_machines import missing
from tests.support.many_machines.ceph import ceph
from tests.support.many_machines.daemons import SharedFolder
from tests.support.many_machines.gluster import gluster

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(not IS_DEEP, reason="it brings up whole file systems: make test-deep runs it"),
]


@contextmanager
def running(case: str) -> Iterator[SharedFolder]:
    kind, _, form = case.partition(" ")
    if lacking := missing(kind):
        pytest.skip(f"{kind} DID NOT RUN: {', '.join(lacking)} is missing")
    folder = Path(tempfile.mkdtemp(prefix="mm-"))  # short: paths of sockets are
    try:
        with ceph(folder / "fs") if kind == "ceph" else gluster(folder / "fs", is_strict=form == "strict") as shared:
            yield shared
    finally:
        shutil.rmtree(folder)


def probed(*words: str) -> tuple[int, dict[str, Any]]:
    command = [sys.executable, "-m", "columnar", "probe-root", *words, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    return done.returncode, json.loads(done.stdout)


def test_ceph_passes_and_a_mount_that_hangs_is_named() -> None:
    with running("ceph") as shared:
        one, other = map(str, shared.mounts)
        status, report = probed(one, "--also", other)
        assert (status, report["suitable"]) == (0, True), report
        assert [finding for finding in report["findings"] if finding["outcome"] == "fault"] == []
        assert probe_quickly(f"{one}/data") == ()
        shared.daemons["mount1"].freeze()
        status, report = probed(one, "--also", other, "--limit", "2")
        shared.daemons["mount1"].thaw()
        assert status == 1
        (fault,) = [finding for finding in report["findings"] if finding["outcome"] == "fault"]
        assert fault["text"] == f"{other} has not answered for 2 s"


def test_gluster_passes_if_it_caches_nothing() -> None:
    with running("gluster strict") as shared:
        one, other = map(str, shared.mounts)
        status, report = probed(one, "--also", other)
        assert (status, report["suitable"]) == (0, True), report
        assert any("not maintained" in remark for remark in probe_quickly(f"{one}/data"))


def test_gluster_as_it_mounts_by_default_is_refused_with_its_options() -> None:
    with running("gluster default") as shared:
        one, other = map(str, shared.mounts)
        with pytest.raises(UnsuitableFolder) as refused:
            probe_quickly(f"{one}/data")
        for option in ("attribute-timeout=0", "auto-invalidation=on", "performance.quick-read off"):
            assert option in refused.value.text
        status, report = probed(one, "--also", other)
        faults = {finding["name"] for finding in report["findings"] if finding["outcome"] == "fault"}
        assert status == 1
        assert {"file system", "bytes", "renamed folders"} <= faults
