"""A disk that takes no writes is shown wherever an operator looks, and so is its recovery, without any request."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import requests

from tests.support.cluster_process import ClusterProcess
from tests.support.failing_disk import FULL, READ_ONLY, FailingStore, error_of, library
from tests.support.readme_blocks import await_that
from tests.support.shell import Shell
from tests.support.standalone_store import WAIT_S

SAID = "1 region cannot be written"

pytestmark = pytest.mark.skipif(library() is None, reason="no C compiler: the disk cannot be made to fail")


class FailingServers(FailingStore, ClusterProcess):
    """Servers whose processes all have the same failing disk."""


@pytest.fixture(scope="module", params=[1, 2], ids=["one process", "two servers"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FailingServers]:
    folder = tmp_path_factory.mktemp("seen") / "data"
    with FailingServers(folder, request.param, "--web-port", "0") as store:
        shell = Shell(f"127.0.0.1:{store.port}")
        shell.out("create", "pages", "text", "--split", "m")
        for row in ("a", "x"):
            shell.out("put", "pages", row, "text:a=1")
        yield store


def page(store: FailingServers, path: str) -> tuple[int, str]:
    found = requests.get(f"{store.web}{path}", timeout=WAIT_S)
    return found.status_code, found.text


def unwritable(store: FailingServers) -> float:
    lines = [line for line in page(store, "metrics")[1].splitlines() if line.startswith("columnar_unwritable_regions")]
    return sum(float(line.split()[-1]) for line in lines)


@pytest.mark.parametrize(("how", "why"), [(FULL, "the disk is full"), (READ_ONLY, "Read-only")])
def test_each_place_where_an_operator_looks_says_it(store: FailingServers, how: str, why: str) -> None:
    shell = Shell(f"127.0.0.1:{store.port}")
    assert page(store, "health") == (200, "ok\n")
    assert unwritable(store) == 0
    assert not [one for one in shell.json("servers")["servers"] if one["notes"]]
    store.fail(how)
    await_that(lambda: bool(shell("put", "pages", "a", "text:a=2").exit_code), WAIT_S, store.log.read_text)

    def is_seen() -> bool:
        """Wait until the fault is shown, as servers report once a second."""
        return page(store, "health")[0] == 503

    await_that(is_seen, WAIT_S, store.log.read_text)
    told = page(store, "health")[1]
    assert told.startswith(f"unhealthy: {SAID}; "), told
    assert why in told
    assert page(store, "live") == (200, "ok\n"), "a restart would not end it"
    assert SAID in page(store, "")[1]
    assert unwritable(store) == 1
    assert SAID in "".join(shell.json("status")["remarks"])
    servers = shell.json("servers")
    assert SAID in "".join(servers["remarks"])
    assert [note for one in servers["servers"] for note in one["notes"] if SAID in note]
    assert "it cannot be written: the disk" in shell.json("where", "pages", "a")["remarks"][0]
    assert not [text for text in shell.json("where", "pages", "x")["remarks"] if "disk" in text], "nobody wrote there"
    assert shell.out("get", "pages", "x") == "x\ttext:a\t1\n"

    store.mend()
    await_that(lambda: page(store, "health") == (200, "ok\n"), WAIT_S, store.log.read_text)
    assert unwritable(store) == 0
    assert error_of(lambda: store.connection().table("pages").put(b"a", {b"text:a": b"3"})) == ""


def test_the_room_of_the_disk_is_a_metric(store: FailingServers) -> None:
    found = {
        line.split()[0]: float(line.split()[1])
        for line in page(store, "metrics")[1].splitlines()
        if line.startswith("columnar_disk")
    }
    assert 0 < found["columnar_disk_free_bytes"] <= found["columnar_disk_bytes"]


def test_a_table_that_is_dropped_takes_its_fault_along(store: FailingServers) -> None:
    shell = Shell(f"127.0.0.1:{store.port}")
    shell.out("create", "gone", "text")
    shell.out("put", "gone", "a", "text:a=1")
    store.fail(FULL)
    await_that(lambda: bool(shell("put", "gone", "a", "text:a=2").exit_code), WAIT_S, store.log.read_text)
    await_that(lambda: unwritable(store) == 1, WAIT_S, store.log.read_text)
    store.mend()
    await_that(lambda: shell("drop", "gone", "--yes").exit_code == 0, WAIT_S, store.log.read_text)
    await_that(lambda: page(store, "health") == (200, "ok\n"), WAIT_S, store.log.read_text)
