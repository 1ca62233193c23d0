"""Commands, the shell and the wiki with several addresses of a store: the first that answers, and the next ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import click
import pytest

from columnar.client import ClusterAdmin, Connection
from columnar.errors import CallerError
from columnar.shell.connecting import connect
from columnar.shell.session import KeptConnection
from tests.support.cluster_process import ClusterProcess
from tests.support.ports import free_port
from tests.support.shell import Shell, store_at
from wikka_port.commands.store_options import StoreOptions
from wikka_port.pages import Wiki


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with store_at(tmp_path_factory.mktemp("several") / "data") as address:
        yield address


def nobody() -> str:
    return f"127.0.0.1:{free_port()}"


def test_a_command_uses_the_first_address_that_answers(store: str) -> None:
    shell = Shell(f"{nobody()},{store}")
    shell.out("create", "pages", "text")
    shell.out("put", "pages", "x", "text:a=1")
    assert shell.out("get", "pages", "x") == "x\ttext:a\t1\n"
    assert Shell(f"{store}, {nobody()}").out("get", "pages", "x", "--store", f"{store},{nobody()}") == "x\ttext:a\t1\n"


def test_the_error_names_every_address() -> None:
    first, second = nobody(), nobody()
    said = Shell(f"{first},{second}").error("tables", status=2)
    assert said.startswith(f"cannot talk to {first},{second}: cannot connect to {first}: Connection refused; ")
    assert f"cannot connect to {second}: Connection refused" in said


def test_a_text_that_is_no_list_is_refused(store: str) -> None:
    assert Shell(f"{store},").error("tables", status=2) == (
        "'' is no address: write HOST:PORT, for example 127.0.0.1:9090"
    )
    with pytest.raises(CallerError):
        Connection.at(f"{store},a:b")


def test_one_address_is_one_connection(store: str) -> None:
    with closing(Connection.at(store)) as one, closing(Connection.at(f"{store},{nobody()}")) as several:
        assert not one.knows_several
        assert several.knows_several
        assert one.tables() == several.tables()


def test_a_wiki_goes_on_at_the_next_address(tmp_path: Path) -> None:
    with ClusterProcess(tmp_path / "data", 2) as cluster, closing(cluster.connection()) as admin:
        admin.create_table("t", {"f": {}}, splits=[b"5"])
        ports = sorted(one.port for one in ClusterAdmin(admin).locations(b"t"))
        assert len(set(ports)) == 2, "each server's own"
        options = StoreOptions(",".join(f"127.0.0.1:{port}" for port in ports), "application")
        host, port = options.place
        wiki = Wiki(host, port, indexes="application")
        wiki.prepare()
        wiki.save("HomePage", "Hello", base=0, author="Somebody")
        cluster.kill_server(0)
        page = wiki.page("HomePage")
        assert page is not None
        assert page.body == "Hello"
        wiki.store.close()


def test_places_of_a_wiki_store() -> None:
    assert StoreOptions("h1:1").place == ("h1", 1)
    assert StoreOptions("h1:1, h2").place == ("h1:1,h2:9090", 9090)
    assert Wiki("h1:1,h2:9090", 9090).store.address == "h1:1,h2:9090"
    with pytest.raises(click.BadParameter, match="'h2:x' is no address"):
        StoreOptions("h1:1,h2:x").place  # noqa: B018 - it is checked when it is read


def test_a_shell_keeps_its_connection(store: str) -> None:
    kept = KeptConnection(connect)
    found = []
    for _ in range(2):
        with kept.lent(f"127.0.0.1:1,{store}", None) as (connection, _):
            found.append(connection)
            assert connection.is_columnar
    assert found[0] is found[1]
    found[0].close()
    with kept.lent(f"127.0.0.1:1,{store}", None) as (connection, _):
        assert connection is not found[0]
        assert connection.is_columnar
    kept.close()
    assert not connection.transport.is_open()
