"""``python -m tests.proofs.stalls``: the shared folder of three nodes stands still for a minute, and nobody dies of it.

The nodes' folder is a FUSE mount whose process is stopped (``stalling_mount``), so each call on it waits in the kernel.
Clients put and get rows of all regions all the time.  During each stall, and after it:

    no death        each node and each server is the same process as before, and the same node leads at the same epoch
    answers         ``columnar servers --data`` and the page of each node answer within 2 s and name the folder
    /live           answers 200: nobody should restart a node for a folder that stands still
    nothing lost    afterwards every row answers, with its last acknowledged value

    --anchor etcd|zookeeper  --rounds 3  --stall-s 60
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.error import HTTPError
from urllib.request import urlopen

from tests.proofs.node_clients import Load, loaded
from tests.support.coordination_services import running
from tests.support.many_nodes import ManyNodes, NodeProcess, until
from tests.support.stalling_mount import StallingMount, missing, stalling_mount

REGIONS: Final = 9
ROWS: Final = "rows again"  # after the stall
ANSWER_S: Final = 2.0  # of a command and a page
LIMITS_S: Final = {"metrics": 3.0}  # the leader waits 2 s for the figures of servers
CALM_S: Final = 2.0
NOTICED_S: Final = 4.0  # from the stall until the nodes name the folder: a probe each second, which may take a second
LIMIT_S: Final = 10.0  # after which a question counts as unanswered
WAIT_S: Final = 60.0


@dataclass
class Found:
    """All stalls together."""

    asked: dict[str, list[float]] = field(default_factory=dict)  # seconds of each answer, by what was asked
    problems: list[str] = field(default_factory=list)


class Trial:
    def __init__(self, cluster: ManyNodes, mount: StallingMount, found: Found) -> None:
        self._cluster = cluster
        self._mount = mount
        self._found = found

    def play(self, load: Load, stall_s: float) -> None:
        before, leader = self._processes(), self._leader()
        self._mount.stall()
        stalled_s = time.monotonic()
        try:
            while time.monotonic() < stalled_s + stall_s:
                has_names = time.monotonic() > stalled_s + NOTICED_S
                words = f"the data folder {self._cluster.data} has not answered for"
                self._check("columnar servers", lambda: "\n".join(self._remarks()), words if has_names else "")
                for node in self._cluster.nodes:
                    self._ask(node, must_name=has_names)
                threading.Event().wait(0.5)
            self._check_processes("during", before)
            if self._leader() != leader:
                self._found.problems.append(f"{leader} led, and {self._leader()} leads")
        finally:
            self._mount.answer()
        answering_s = time.monotonic()
        until(lambda: all(probe.answered_s > answering_s for probe in load.probes), WAIT_S)
        self._note(ROWS, answering_s)
        until(self._is_calm, WAIT_S)
        self._check_processes("after", before)
        if self._leader() != leader:
            self._found.problems.append(f"after the stall {leader} led, and {self._leader()} leads")

    def _processes(self) -> dict[str, list[int]]:
        return {node.name: sorted(node.family()) if node.lives else [] for node in self._cluster.nodes}

    def _check_processes(self, when: str, before: dict[str, list[int]]) -> None:
        """Note which processes have ended; a spare may have started."""
        now = self._processes()
        ended = {name: gone for name, pids in before.items() if (gone := sorted(set(pids) - set(now[name])))}
        if ended:
            self._found.problems.append(f"processes ended {when} the stall: {ended}")

    def _leader(self) -> tuple[str, int]:
        with self._cluster.client() as store:
            record = json.loads(store.list_keys("leader")["leader/leader"].value)  # type: ignore[attr-defined]
        return record["node"], record["epoch"]

    def _ask(self, node: NodeProcess, *, must_name: bool) -> None:
        self._check("page", lambda: read_page(node, "/"), "has not answered for" if must_name else "")
        self._check("live", lambda: read_page(node, "/live"), "")
        self._check("metrics", lambda: read_page(node, "/metrics"), "columnar_")

    def _check(self, what: str, ask: Callable[[], str], words: str) -> None:
        begun_s = time.monotonic()
        try:
            text = ask()
        except (OSError, subprocess.SubprocessError, AssertionError) as error:
            self._found.problems.append(f"{what} after {time.monotonic() - begun_s:.1f} s: {error}")
            return
        self._note(what, begun_s)
        if words not in text:
            self._found.problems.append(f"{what} does not say {words!r}: {text[:300]!r}")

    def _note(self, what: str, begun_s: float) -> None:
        self._found.asked.setdefault(what, []).append(time.monotonic() - begun_s)

    def _is_calm(self) -> bool:
        try:
            return not self._remarks()
        except (subprocess.TimeoutExpired, AssertionError):  # it is asked again
            return False

    def _remarks(self) -> list[str]:
        words = [sys.executable, "-m", "columnar", "servers", "--data", str(self._cluster.data), "--json"]
        said = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        assert said.returncode == 0, said.stderr
        return [str(one) for one in json.loads(said.stdout)["remarks"]]


def read_page(node: NodeProcess, path: str) -> str:
    try:
        with urlopen(f"http://127.0.0.1:{node.web_port}{path}", timeout=LIMIT_S) as answer:
            return str(answer.read().decode())
    except HTTPError as error:
        raise AssertionError(f"{path} is {error.code}: {error.read()[:200]!r}") from error


def prove(anchor: str, rounds: int, stall_s: float, folder: Path) -> Found:
    found = Found()
    with stalling_mount(folder) as mount, running(anchor, folder, 1, is_quick=True) as service:
        cluster = ManyNodes(mount.path, service, anchor, 3, 1, "--folder-unprobed", logs=folder)
        try:
            cluster.start()
            with loaded(cluster, REGIONS) as load:
                trial = Trial(cluster, mount, found)
                for number in range(rounds):
                    threading.Event().wait(CALM_S)
                    trial.play(load, stall_s)
                    print(f"{number + 1}: {len(found.problems)} problems", flush=True)
            found.problems += [text for probe in load.probes for text in probe.lost]
        except AssertionError as error:
            found.problems.append(str(error))
        finally:
            mount.answer()
            cluster.kill()
        log = cluster.logs()
        if " is killed: " in log or "was fenced" in log:
            found.problems.append("a node's log names a server that was killed, or a node that was fenced")
        if found.problems:
            kept = Path(tempfile.gettempdir()) / "columnar-stalls.log"
            kept.write_text(log)
            found.problems.append(f"the nodes' logs are in {kept}")
    return found


def report(found: Found) -> None:
    for what, waits in found.asked.items():
        print(f"{what}, n {len(waits)}: median {sorted(waits)[len(waits) // 2]:.2f} s, longest {max(waits):.2f} s")
    print(*found.problems[:20], sep="\n")
    print(f"problems: {len(found.problems)}")


def main() -> int:
    asked = argparse.ArgumentParser(prog="python -m tests.proofs.stalls")
    asked.add_argument("--anchor", default="etcd", choices=("etcd", "zookeeper"))
    asked.add_argument("--rounds", type=int, default=1)
    asked.add_argument("--stall-s", type=float, default=60.0)
    options = asked.parse_args()
    lacks = missing()
    if lacks is not None:
        print(f"the proof needs {lacks}")
        return 2
    with tempfile.TemporaryDirectory(prefix="stalls-") as folder:
        found = prove(options.anchor, options.rounds, options.stall_s, Path(folder))
    report(found)
    late = [
        f"{what}: {max(waits):.2f} s"
        for what, waits in found.asked.items()
        if what != "rows again" and max(waits) > ANSWER_S
    ]
    print(f"answers after more than {ANSWER_S:g} s: {late or 'none'}")
    return 1 if found.problems or late else 0


if __name__ == "__main__":
    sys.exit(main())
