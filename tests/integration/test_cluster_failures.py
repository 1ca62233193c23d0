"""A region that no server can open: the others serve on, everybody sees why, and a person has it tried again."""

from __future__ import annotations

import json
import os
import urllib.request
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from columnar.wire.idl import hbase
from tests.support.cluster_process import ClusterProcess
from tests.support.readme_blocks import await_that
from tests.support.shell import Shell
from tests.support.standalone_store import WAIT_S

ROWS = (b"apple", b"melon", b"zebra")


def test_a_damaged_region_is_left_closed_and_the_others_go_on(tmp_path: Path) -> None:
    with ClusterProcess(tmp_path / "data", 2, "--web-port", "0") as store:
        shell = Shell(f"127.0.0.1:{store.port}")
        connection = store.connection()
        connection.create_table("pages", {"f": {}}, splits=[b"m", b"n"])
        for row in ROWS:
            connection.table("pages").put(row, {b"f:q": row})
        connection.close()
        encoded = shell.json("where", "pages", "melon")["region"]["encoded_name"]
        assert store.stop() == 0
        (manifest,) = (tmp_path / "data" / "regions" / encoded).glob("MANIFEST-*")
        kept = tmp_path / manifest.name
        os.rename(manifest, kept)

        store.start()

        def found() -> Any:
            return shell.json("where", "pages", "melon")

        await_that(lambda: found()["region"]["state"] == "FAILED_OPEN", WAIT_S, lambda: str(found()))
        (said, *_) = found()["remarks"]
        assert said.startswith("it could not be opened by s")
        assert said.endswith(f"; 'columnar assign {encoded}' tries again")
        states = {one["encoded_name"]: one["state"] for one in shell.json("regions", "pages")}
        assert sorted(states.values()) == ["FAILED_OPEN", "OPEN", "OPEN"]
        (shown,) = shell.json("transitions")
        assert (shown["kind"], shown["region"]) == ("failed", encoded)
        for path in ("transitions", "tables/pages"):
            with urllib.request.urlopen(f"{store.web}{path}") as page:
                assert "FAILED_OPEN" in page.read().decode()
        for rows in store.rows_of_each():
            with rows:
                assert [rows.get(b"pages", row) for row in ROWS[::2]] == [*ROWS[::2]]
                for call in (
                    partial(rows.get, b"pages", b"melon"),
                    partial(rows.put, b"pages", b"melon", b"v"),
                    partial(rows.client.getRows, b"pages", list(ROWS), {}),
                ):
                    with pytest.raises(hbase.IOError, match=f"region {encoded} of pages is not served: it could not"):
                        call()
        assert "is not served: it could not be opened by s" in shell("status").stderr
        assert "could not be opened: " in shell.error("assign", encoded), "it is tried again, and damaged still"
        assert found()["region"]["state"] == "FAILED_OPEN"

        os.rename(kept, manifest)
        assert json.loads(shell.out("assign", encoded, "--json"))["done"]
        with store.rows() as rows:
            assert [rows.get(b"pages", row) for row in ROWS] == [*ROWS]
        assert shell.json("transitions") == []
