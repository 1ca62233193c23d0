"""The rows of the catalogue and the files of the folder, as docs/formats/folder.md describes them."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path

import pytest

from columnar.errors import FolderInUse, HostError
from columnar.master.catalogue import Catalogue
from columnar.model.mutation import Delete, Put, RowMutation
from columnar.model.schema import Family, make_table
from columnar.standalone import DataFolder
from tests.support.golden import hold_to


def recorded(*, drop: bool) -> dict[str, str]:
    written: list[RowMutation] = []

    async def write(mutations: list[RowMutation]) -> None:
        written.extend(mutations)

    async def main() -> None:
        catalogue = Catalogue(list, write)
        families = [Family("meta", max_versions=3, ttl_s=60, compression="lz4"), Family("body")]
        await catalogue.create(make_table("wiki", families, {"DELETE_MARKERS": "1000"}), [b"", b"m\x00"])
        await catalogue.set_enabled("wiki", False)
        if drop:
            written.clear()
            await catalogue.forget_dropped(await catalogue.drop("wiki"))

    asyncio.run(main())
    found = {}
    for n, mutation in enumerate(written):
        for operation in mutation.operations:
            what = operation.value if isinstance(operation, Put) else b"deleted"
            assert isinstance(operation, Put | Delete)
            column = f"{operation.family.decode()}:{(operation.qualifier or b'').decode()}"
            found[f"{n} {mutation.row!r} {column}"] = repr(what)[2:-1]
    return found


def test_rows_of_a_table() -> None:
    hold_to("catalogue.txt", recorded(drop=False))


def test_rows_of_a_drop() -> None:
    hold_to("catalogue-drop.txt", recorded(drop=True))


def test_the_folder(tmp_path: Path) -> None:
    folder = DataFolder(str(tmp_path / "data"))
    hold_to("folder.txt", {"FORMAT": (tmp_path / "data" / "FORMAT").read_text().replace("\n", "\\n")})
    assert str(uuid.UUID(folder.cluster_id)) == folder.cluster_id
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == ["FORMAT", "LOCK", "cluster-id", "regions"]
    with pytest.raises(FolderInUse, match="stop that one first"):
        DataFolder(str(tmp_path / "data"))
    folder.close()
    again = DataFolder(str(tmp_path / "data"))
    assert again.cluster_id == folder.cluster_id
    again.close()


@pytest.mark.parametrize(
    ("text", "said"), [("columnar-data 2", "upgrade"), ("something else", "no data folder of ours")]
)
def test_a_folder_of_another_format_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "FORMAT").write_text(text + "\n")
    with pytest.raises(HostError, match=said):
        DataFolder(str(tmp_path))
