"""Folders of every older format, whose store was killed: this version has all their rows, and a check finds nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from columnar.cli import main
from columnar.storage.data_folder import FORMAT_VERSIONS, NODES_SINCE, OF_ONE_PROCESS
from tests.support.older_folder import (
    ARCHIVE_OF_FORMATS,
    FORMATS,
    HAS_VIEW,
    TABLE,
    VIEW,
    contents,
    found,
    kind_of,
    unpack,
)
from tests.support.standalone_store import StoreProcess

BEGAN_BY_NOBODY = {2}  # a folder of format 1 became one of format 2 with its first batch of several regions


def number_of(data: Path) -> int:
    return int((data / "FORMAT").read_text().split()[1])


def test_every_older_format_has_a_folder() -> None:
    assert set(FORMATS) == set(FORMAT_VERSIONS) - BEGAN_BY_NOBODY - {NODES_SINCE}, "of nodes: test_folder_of_nodes"


@pytest.mark.parametrize("number", FORMATS)
def test_a_killed_store_of_an_older_version_has_all_its_rows(number: int, tmp_path: Path) -> None:
    data = tmp_path / "data"
    unpack(kind_of(number), data, ARCHIVE_OF_FORMATS)
    assert number_of(data) == number
    with StoreProcess(data) as store:
        with store.connection() as connection:
            assert found(connection) == contents()
            if number == HAS_VIEW:
                assert connection.views.wait(VIEW.name, timeout_ms=30_000)
                (values, _) = contents()
                groups = {group.key: group.count for group in connection.view(VIEW.name).groups(limit=100)}
                assert groups == {versions[0]: 1 for versions in values.values()}
            connection.table(TABLE).put(b"new", {b"f:q": b"of this version"})
        store.stop()
        assert number_of(data) == max(number, OF_ONE_PROCESS)
        store.start()
        with store.connection() as connection:
            assert connection.table(TABLE).row(b"new") == {b"f:q": b"of this version"}
            connection.table(TABLE).delete(b"new")
            assert found(connection) == contents()
        store.stop()
    checked = CliRunner().invoke(main, ["check", "--data", str(data)])
    assert checked.exit_code == 0, checked.output
