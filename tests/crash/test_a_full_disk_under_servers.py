"""A full disk under a store with several servers: all commands say why nothing moves, and it ends with the cause."""

from __future__ import annotations

import urllib.request
from pathlib import Path

import pytest

from tests.support.cluster_process import ClusterProcess
from tests.support.failing_disk import FULL, FailingStore, library
from tests.support.readme_blocks import await_that
from tests.support.shell import Shell
from tests.support.standalone_store import WAIT_S

SAID = "the catalogue could not be written: the disk refused to sync: the disk is full"

pytestmark = pytest.mark.skipif(library() is None, reason="no C compiler: the disk cannot be made to fail")


class FailingCluster(FailingStore, ClusterProcess):
    """A cluster whose supervisor and servers have the same failing disk."""


def test_a_catalogue_on_a_full_disk(tmp_path: Path) -> None:
    with FailingCluster(tmp_path / "data", 2, "--web-port", "0") as store:
        shell = Shell(f"127.0.0.1:{store.port}")
        shell.out("create", "pages", "text")
        shell.out("put", "pages", "x", "text:a=1")
        at = ("--data", str(tmp_path / "data"))

        def writable() -> str:
            with urllib.request.urlopen(f"{store.web}metrics") as page:
                lines = page.read().decode().splitlines()
            (line,) = [line for line in lines if line.startswith("columnar_catalogue_writable ")]
            return str(line.split()[1])

        assert writable() == "1.0"
        store.fail(FULL)
        assert SAID in shell.error("drain", "s1", *at)
        for words in (["drain", "s1"], ["undrain", "s1"], ["balancer", "off"], ["move", "{}"]):
            region = shell.json("regions", "pages", *at)[0]["encoded_name"]
            error = shell.error(*(word.format(region) for word in words), *at)
            assert "nothing was done: for " in error
            assert SAID in error
        assert SAID in shell.json("servers")["remarks"][0]
        assert SAID in shell("transitions").stderr
        assert SAID in shell.json("where", "pages", "x")["remarks"][-1]
        assert writable() == "0.0"
        assert shell.out("get", "pages", "x") == "x\ttext:a\t1\n"

        store.mend()
        await_that(lambda: writable() == "1.0", WAIT_S, store.log.read_text)
        assert shell.json("servers")["remarks"] == []
        assert shell.json("drain", "s1", "--wait")["regions_left"] == 0
        assert shell.out("get", "pages", "x") == "x\ttext:a\t1\n"
