"""``columnar node --fence-command``: regions of a dead node wait for the command, and operators read what for."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.test_nodes import ROWS, all_up, fill, owners, place, revive, values, write
from tests.support.many_nodes import ManyNodes, NodeProcess, many_nodes, until
from tests.support.shell import command

SAID_S = 2.0  # until an operator is told
COMMAND_S = 4.0  # of a command on a busy machine


class Switch:
    """A command that notes its calls, and fails while it is off."""

    def __init__(self, folder: Path) -> None:
        self._calls, self._off = folder / "calls", folder / "off"
        words = "$COLUMNAR_NODE $COLUMNAR_INCARNATION $COLUMNAR_ADDRESS"
        self.command = f"echo {words} >> {self._calls}; test ! -e {self._off} || {{ echo the switch is off; exit 1; }}"

    def off(self) -> None:
        self._off.touch()

    def on(self) -> None:
        self._off.unlink()

    def calls(self) -> list[str]:
        return self._calls.read_text().splitlines() if self._calls.exists() else []

    def nodes(self) -> set[str]:
        return {line.split(" ")[0] for line in self.calls()}


@pytest.fixture(scope="module")
def switch(tmp_path_factory: pytest.TempPathFactory) -> Switch:
    return Switch(tmp_path_factory.mktemp("switch"))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, switch: Switch) -> Iterator[ManyNodes]:
    with many_nodes(tmp_path_factory.mktemp("fenced"), "--fence-command", switch.command) as nodes:
        fill(nodes.nodes[0], b"t")
        yield nodes


def said(cluster: ManyNodes) -> str:
    """Return what an operator reads."""
    stores = ",".join(f"127.0.0.1:{node.port}" for node in cluster.nodes if node.lives)
    done = command("servers", "--store", stores)
    return done.stdout + done.stderr


def remark(node: NodeProcess) -> str:
    return f"node {node.name}."


def lead_and_others(cluster: ManyNodes) -> tuple[NodeProcess, list[NodeProcess]]:
    leader = cluster.leader()
    return leader, [node for node in cluster.nodes if node is not leader]


def test_a_stop_in_order_runs_no_command(cluster: ManyNodes, switch: Switch) -> None:
    _, others = lead_and_others(cluster)
    assert others[0].stop() == 0
    write(cluster.leader(), b"t", b"1")
    assert switch.calls() == []
    revive(cluster, others[0])
    assert switch.calls() == []


def test_regions_of_a_dead_node_wait_for_the_command_and_operators_read_why(cluster: ManyNodes, switch: Switch) -> None:
    leader, (dead, living) = lead_and_others(cluster)
    write(leader, b"t", b"2")
    place(cluster, dead)
    switch.off()
    dead.kill()
    until(lambda: bool(switch.calls()))
    failed_s = time.monotonic()
    until(lambda: remark(dead) in said(cluster))
    assert time.monotonic() - failed_s < SAID_S + COMMAND_S
    text = said(cluster)
    assert f"(127.0.0.1:{dead.peer_port}) is not fenced at the file system yet" in text
    assert "the switch is off" in text
    assert f"'columnar fence {dead.name}' says so" in text
    until(lambda: len(switch.calls()) >= 3)  # it is run again
    assert f"{dead.name}-s1" in owners(leader, b"t"), "nobody has its regions before it is fenced"
    switch.on()
    until(lambda: values(living, b"t") == [b"2"] * len(ROWS))
    until(lambda: remark(dead) not in said(cluster))
    revive(cluster, dead)


def test_the_next_leader_fences_what_the_last_one_did_not_finish(cluster: ManyNodes, switch: Switch) -> None:
    leader, (dead, living) = lead_and_others(cluster)
    write(living, b"t", b"3")
    before = len(switch.calls())
    switch.off()
    dead.kill()
    until(lambda: len(switch.calls()) > before)
    leader.kill()
    assert cluster.leader() is living
    until(lambda: {line.split(" ")[0] for line in switch.calls()[before:]} == {dead.name, leader.name})
    until(lambda: all(remark(one) in said(cluster) for one in (dead, leader)))
    switch.on()
    until(lambda: values(living, b"t") == [b"3"] * len(ROWS))
    revive(cluster, dead, leader)


def test_a_node_that_is_back_is_not_fenced_in_place_of_its_former_self(cluster: ManyNodes, switch: Switch) -> None:
    leader, (dead, _) = lead_and_others(cluster)
    write(leader, b"t", b"4")
    place(cluster, dead)
    switch.off()
    dead.kill()
    before = len(switch.calls())
    until(lambda: len(switch.calls()) > before)
    dead.begin()
    dead.await_ready()
    until(lambda: "is not fenced at the file system: node" in leader.log.read_text())
    until(lambda: values(leader, b"t") == [b"4"] * len(ROWS))
    switch.on()
    until(lambda: all_up(cluster))


def test_the_word_of_a_person_lets_the_regions_go_on(cluster: ManyNodes, switch: Switch) -> None:
    leader, (dead, living) = lead_and_others(cluster)
    write(leader, b"t", b"5")
    place(cluster, dead)
    switch.off()
    dead.kill()
    until(lambda: remark(dead) in said(cluster))
    at = ("--data", str(cluster.data))
    for name, why in (("n9", "there is no server n9, and no node"), (leader.name, "leads, and answers this call")):
        refused = command("fence", name, "--confirm", name, *at)
        assert refused.returncode == 1
        assert why in refused.stderr
    wrong = command("fence", dead.name, "--confirm", living.name, *at)
    assert "nothing was done" in wrong.stderr
    assert "its machine must be off" in command("fence", dead.name, "--dry-run", *at).stdout
    assert f"{dead.name}-s1" in owners(leader, b"t"), "nothing has been said yet"
    spoken = command("fence", dead.name, "--confirm", dead.name, *at)
    assert spoken.returncode == 0, spoken.stderr
    assert values(living, b"t") == [b"5"] * len(ROWS)
    assert remark(dead) not in said(cluster)
    before = len(switch.calls())
    write(living, b"t", b"6")
    assert len(switch.calls()) == before, "it is not run again"
    switch.on()
    revive(cluster, dead)


def test_the_word_of_a_person_ends_the_lease_of_a_node_that_renews_it(cluster: ManyNodes, switch: Switch) -> None:
    leader, (living, fenced) = lead_and_others(cluster)  # the first node of the machine answers the command
    until(lambda: all_up(cluster))
    place(cluster, fenced)
    write(leader, b"t", b"7")
    switch.off()
    before = len(switch.calls())
    spoken = command("fence", fenced.name, "--confirm", fenced.name, "--data", str(cluster.data), "--json")
    assert json.loads(spoken.stdout)["done"], spoken.stdout
    assert values(living, b"t") == [b"7"] * len(ROWS)
    assert fenced.has_ended(COMMAND_S)
    assert "this node was fenced" in fenced.log.read_text()
    assert len(switch.calls()) == before
    switch.on()
    fenced.close_output()
    revive(cluster, fenced)
