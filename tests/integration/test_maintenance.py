"""The maintenance lock of commands at real servers: a second one waits, and one whose lock was ended stops."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from columnar.client import ClusterAdmin
from columnar.shell import maintenance
from columnar.shell.server_changes import ServerChanges
from tests.support.cluster_process import ClusterProcess
from tests.support.many_nodes import until
from tests.support.shell import Shell

NONCE = "0a" * 16
HOLDER = "columnar restart --rolling by eve at n9"
NOBODY = "nobody has the maintenance of this store\n"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcess]:
    with ClusterProcess(tmp_path_factory.mktemp("maintained") / "data", 2) as store:
        yield store


@pytest.fixture
def shell(store: ClusterProcess, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.setattr(maintenance, "POLL_S", 0.02)
    return Shell(f"127.0.0.1:{store.port}")


@pytest.fixture
def admin(store: ClusterProcess) -> Iterator[ClusterAdmin]:
    with store.connection() as connection:
        admin = ClusterAdmin(connection)
        yield admin
        admin.release_maintenance()


@pytest.mark.parametrize(
    "command", [("restart", "s1"), ("restart", "--rolling"), ("stop", "s1"), ("drain", "s1"), ("drain", "s1", "--wait")]
)
def test_a_second_command_says_who_is_before_it(shell: Shell, admin: ClusterAdmin, command: tuple[str, ...]) -> None:
    before = admin.servers()
    assert admin.acquire_maintenance(NONCE, HOLDER, "n9").own
    said = shell.error(*command, "--timeout", "0")
    assert f"'{HOLDER}' has the maintenance of this store for n9, since 0." in said
    assert "nothing was done. 'columnar maintenance --break' ends what nobody continues" in said
    found = admin.servers()
    assert [(one.incarnation, one.state, one.drained) for one in found.servers] == [
        (one.incarnation, one.state, one.drained) for one in before.servers
    ]
    assert shell.out("maintenance").startswith(f"'{HOLDER}' has the maintenance of this store for n9, since ")
    shell.out(*command, "--timeout", "0", "--dry-run")


def test_what_empties_and_ends_no_server_waits_for_nobody(shell: Shell, admin: ClusterAdmin) -> None:
    admin.acquire_maintenance(NONCE, HOLDER)
    shell.out("undrain", "s1")
    shell.out("balance")


def test_a_second_command_goes_on_when_the_first_is_done(shell: Shell, admin: ClusterAdmin) -> None:
    admin.acquire_maintenance(NONCE, HOLDER)
    before = admin.servers().servers[0].incarnation
    restarting = threading.Thread(target=shell.out, args=("restart", "s1"))
    restarting.start()
    restarting.join(0.5)
    assert restarting.is_alive()
    assert admin.servers().servers[0].incarnation == before
    admin.release_maintenance(NONCE)
    restarting.join(60)
    assert admin.servers().servers[0].incarnation > before
    assert shell.out("maintenance") == NOBODY


def test_a_command_renews_its_lock_while_it_works(
    shell: Shell, admin: ClusterAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "RENEW_S", 0.02)
    has_begun, may_end = threading.Event(), threading.Event()

    def restart(_changes: ServerChanges, _name: str) -> object:
        has_begun.set()
        may_end.wait(60)
        raise KeyboardInterrupt  # the person gives up

    monkeypatch.setattr(ServerChanges, "restart", restart)
    command = threading.Thread(target=shell, args=("restart", "s1"))
    command.start()
    assert has_begun.wait(60)
    for _ in range(5):
        time.sleep(0.3)
        found = admin.maintenance()
        assert found.holder.startswith("columnar restart s1 by ")
        assert found.silent_ms < 250
    may_end.set()
    command.join(60)
    assert shell.out("maintenance") == NOBODY


def test_a_command_whose_lock_was_ended_stops_before_its_next_step(
    shell: Shell, admin: ClusterAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "RENEW_S", 0.02)
    restarted = []

    def restart(changes: ServerChanges, name: str) -> object:
        restarted.append(name)
        assert shell.out("maintenance", "--break").startswith("ended: 'columnar restart --rolling by ")
        until(lambda: not any(one.name == "renewal of the maintenance lock" for one in threading.enumerate()))
        return changes.admin.restart(name, dry_run=True)

    monkeypatch.setattr(ServerChanges, "restart", restart)
    result = shell("restart", "--rolling")
    said = "columnar: this command stops before its next step: somebody has ended its maintenance\n"
    assert (result.exit_code, result.stderr) == (1, said)
    assert restarted == ["s1"]
    assert admin.acquire_maintenance(NONCE, HOLDER).own, "it holds nothing"
