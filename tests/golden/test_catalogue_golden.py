"""The rows of the catalogue and the files of the folder, as docs/formats/folder.md describes them."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from columnar.errors import FolderInUse, HostError
from columnar.master.catalogue import Catalogue
from columnar.model.attributes import TableChange, altered
from columnar.model.mutation import Delete, Put, RowMutation
from columnar.model.schema import Family, make_table
from columnar.model.trigger_registration import Registration
from columnar.roles.standalone import DataFolder
from tests.support.golden import hold_to

Work = Callable[[Catalogue, list[RowMutation]], Awaitable[None]]


def recorded(work: Work) -> dict[str, str]:
    written: list[RowMutation] = []

    async def write(mutations: list[RowMutation]) -> None:
        written.extend(mutations)

    async def main() -> None:
        catalogue = Catalogue([], write)
        families = [Family("meta", max_versions=3, ttl_s=60, compression="lz4"), Family("body")]
        regions = await catalogue.reserve("wiki", [(b"", b"m\x00"), (b"m\x00", b"")])
        await catalogue.adopt(make_table("wiki", families, {"DELETE_MARKERS": "1000"}), regions)
        await catalogue.set_enabled("wiki", False)
        await work(catalogue, written)

    asyncio.run(main())
    found = {}
    for n, mutation in enumerate(written):
        for operation in mutation.operations:
            what = operation.value if isinstance(operation, Put) else b"deleted"
            assert isinstance(operation, Put | Delete)
            column = f"{operation.family.decode()}:{(operation.qualifier or b'').decode()}"
            found[f"{n} {mutation.row!r} {column}"] = repr(what)[2:-1]
    return found


async def nothing_more(_catalogue: Catalogue, _written: list[RowMutation]) -> None:
    pass


async def drop(catalogue: Catalogue, written: list[RowMutation]) -> None:
    written.clear()
    await catalogue.forget_dropped(await catalogue.drop("wiki", catalogue.derivations.triggers))


async def administration(catalogue: Catalogue, written: list[RowMutation]) -> None:
    written.clear()
    table = replace(catalogue.tables["wiki"].schema, attributes={})
    every = {name: text for name, text in EVERY.items() if name != "BLOCKCACHE"}
    change = TableChange(add=(Family("new"),), drop=frozenset({"body"}), change={"meta": every})
    await catalogue.alter(altered(table, change))
    await catalogue.adopt(catalogue.tables["wiki"].schema, await catalogue.reserve("wiki", [(b"", b"")]))
    await catalogue.namespaces.create_namespace("team")
    await catalogue.namespaces.drop_namespace("team")
    await catalogue.ownership.raise_epoch()


async def configured(catalogue: Catalogue, written: list[RowMutation]) -> None:
    """Attributes that change nothing, and namespaces with a configuration."""
    written.clear()
    inert = {"DATA_BLOCK_ENCODING": "FAST_DIFF", "hbase.hstore.blockingStoreFiles": "20", "METADATA.own": "v"}
    change = TableChange(change={"body": inert}, attributes={"DELETE_MARKERS": "", "OWNER": "anna"})
    await catalogue.alter(altered(catalogue.tables["wiki"].schema, change))
    await catalogue.namespaces.create_namespace("team", {"owner": "anna", "hbase.namespace.quota.maxtables": "5"})
    await catalogue.namespaces.configure_namespace("team", {"owner": "bob"})
    await catalogue.namespaces.configure_namespace("team", {})
    await catalogue.namespaces.configure_namespace("default", {"owner": "bob"})


async def triggers(catalogue: Catalogue, written: list[RowMutation]) -> None:
    await catalogue.set_enabled("wiki", True)
    written.clear()
    links = Registration("links", "wiki", "wiki.triggers:links", ("meta", "body"), True, "beginning", 5_000, 3)
    stored = catalogue.derivations
    for n, registration in enumerate((links, replace(links, name="more", from_where="now"))):
        await stored.write_derivations(stored.triggers.adding(registration))
        await stored.write_derivations(stored.triggers.with_state(registration.name, ("running", "paused")[n]))
    await stored.write_derivations(stored.triggers.with_replay("more", 1_700_000_000_000))
    await stored.write_derivations(stored.triggers.without(["links"]))
    await catalogue.drop("wiki", stored.triggers.without(["more"]))


EVERY = {
    "MIN_VERSIONS": "2",
    "BLOCKSIZE": "65536",
    "DURABILITY": "ASYNC_WAL",
    "IN_MEMORY": "true",
    "BLOCKCACHE": "false",
    "BLOOMFILTER": "NONE",
}


def test_rows_of_a_table() -> None:
    hold_to("catalogue.txt", recorded(nothing_more))


def test_rows_of_a_drop() -> None:
    hold_to("catalogue-drop.txt", recorded(drop))


def test_rows_of_alter_truncate_and_namespaces() -> None:
    hold_to("catalogue-administration.txt", recorded(administration))


def test_rows_of_configurations() -> None:
    hold_to("catalogue-configured.txt", recorded(configured))


def test_rows_of_triggers() -> None:
    hold_to("catalogue-triggers.txt", recorded(triggers))


def test_the_folder(tmp_path: Path) -> None:
    folder = DataFolder.locked(str(tmp_path / "data"))
    hold_to("folder.txt", {"FORMAT": (tmp_path / "data" / "FORMAT").read_text().replace("\n", "\\n")})
    assert str(uuid.UUID(folder.cluster_id)) == folder.cluster_id
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == ["FORMAT", "LOCK", "cluster-id", "regions"]
    with pytest.raises(FolderInUse, match="stop that one first"):
        DataFolder.locked(str(tmp_path / "data"))
    folder.close()
    again = DataFolder.locked(str(tmp_path / "data"))
    assert again.cluster_id == folder.cluster_id
    again.close()


@pytest.mark.parametrize(
    ("text", "said"), [("columnar-data 10", "upgrade"), ("something else", "no data folder of ours")]
)
def test_a_folder_of_another_format_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "FORMAT").write_text(text + "\n")
    with pytest.raises(HostError, match=said):
        DataFolder.locked(str(tmp_path))
