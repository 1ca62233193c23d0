"""``columnar assign --all`` and ``--table``: every region that could not be opened, in one command."""

from __future__ import annotations

import os
from pathlib import Path

from columnar.client import ClusterAdmin
from tests.support.cluster_process import ClusterProcess, until
from tests.support.shell import Shell


def test_regions_that_could_not_be_opened_are_assigned_together(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with ClusterProcess(data, 2) as store:
        connection = store.connection()
        for table in ("one", "other"):
            connection.create_table(table, {"f": {}}, splits=[b"h", b"p"])
            for row in (b"a", b"h", b"p"):
                connection.table(table).put(row, {b"f:q": row})
        folders = {
            table: [data / "regions" / one.encoded_name for one in ClusterAdmin(connection).locations(table.encode())]
            for table in ("one", "other")
        }
        connection.close()
        assert store.stop() == 0
        moved = [next(folder.glob("MANIFEST-*")) for folder in (*folders["one"][:2], folders["other"][0])]
        for number, manifest in enumerate(moved):
            os.rename(manifest, tmp_path / f"kept-{number}")
        store.start()

        shell = Shell(f"127.0.0.1:{store.port}")
        until(lambda: [one["kind"] for one in shell.json("transitions")] == ["failed"] * 3)
        assert "say which" in shell.error("assign", status=2)
        assert "say which" in shell.error("assign", "--all", "--table", "one", status=2)
        refused = shell("assign", "--all")
        assert refused.exit_code == 1
        assert refused.stderr.count("could not be opened: ") == 3, "each is named with its cause"
        assert all(str(manifest.parent) in refused.stderr for manifest in moved)

        for number, manifest in enumerate(moved[:2]):
            os.rename(tmp_path / f"kept-{number}", manifest)
        assert shell("assign", "--table", "none").exit_code == 1
        assert shell("assign", "--table", "one", "--dry-run").exit_code == 0
        assert shell.out("assign", "--table", "one").count(" serves on s") == 2
        assert [one["region"] for one in shell.json("transitions")] == [moved[2].parent.name]
        os.rename(tmp_path / "kept-2", moved[2])
        assert shell.json("assign", "--all")["refused"] == []
        assert shell.json("transitions") == []
        assert "no region is closed" in shell.out("assign", "--all")
        connection = store.connection()
        for table in ("one", "other"):
            assert [row for row, _ in connection.table(table).scan()] == [b"a", b"h", b"p"]
        connection.close()
        assert store.stop() == 0
