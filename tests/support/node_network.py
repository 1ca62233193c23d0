"""Machines of a network on this machine: network namespaces at a bridge, whose cables a test may cut.

Needs root and Debian's ``iproute2``; ``missing`` names what lacks.  A cut is silent: packets disappear, and no
connection is reset.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Final

WAYS: Final = ("out", "in", "both")  # what a machine sends is lost, what it should receive, or all
_DROP: Final = ("tbf", "rate", "8bit", "burst", "10b", "limit", "10b")  # no packet is so small
_NEW_NETWORK: Final = 0x40000000  # CLONE_NEWNET of setns(2)


@dataclass(frozen=True, slots=True)
class Machine:
    namespace: str
    cable: str  # the end at the bridge; the other end is e0
    address: str

    def cut(self, way: str) -> None:
        if way in ("out", "both"):
            self._run("tc", "qdisc", "replace", "dev", "e0", "root", *_DROP)
        if way in ("in", "both"):
            _run("tc", "qdisc", "replace", "dev", self.cable, "root", *_DROP)

    def heal(self) -> None:
        with suppress(subprocess.CalledProcessError):  # nothing was cut this way
            self._run("tc", "qdisc", "del", "dev", "e0", "root")
        with suppress(subprocess.CalledProcessError):
            _run("tc", "qdisc", "del", "dev", self.cable, "root")

    def enter(self) -> None:
        """Let the sockets that this thread makes from now on be of this machine."""
        file = os.open(f"/run/netns/{self.namespace}", os.O_RDONLY)
        try:
            if ctypes.CDLL(None, use_errno=True).setns(file, _NEW_NETWORK):
                raise OSError(ctypes.get_errno(), f"cannot enter {self.namespace}")
        finally:
            os.close(file)

    def _run(self, *words: str) -> None:
        _run("ip", "netns", "exec", self.namespace, *words)


@dataclass(frozen=True, slots=True)
class NodeNetwork:
    host: str  # the address of this machine, at the bridge
    machines: tuple[Machine, ...]


def missing() -> str | None:
    """Return what network namespaces need and is not there, or None."""
    if os.geteuid() != 0:
        return "root"
    return None if shutil.which("ip") and shutil.which("tc") else "ip and tc (Debian: apt-get install iproute2)"


@contextmanager
def node_network(count: int) -> Iterator[NodeNetwork]:
    """Make a bridge and machines; remove them at the end."""
    number = os.getpid() % 16_384
    net = f"10.{64 + number // 256}.{number % 256}"
    bridge = f"cb{number}"
    with ExitStack() as undo:
        _run("ip", "link", "add", bridge, "type", "bridge")
        undo.callback(_run, "ip", "link", "del", bridge)
        _run("ip", "addr", "add", f"{net}.254/24", "dev", bridge)
        _run("ip", "link", "set", bridge, "up")
        machines = []
        for n in range(1, count + 1):
            machine = Machine(f"cn{number}-{n}", f"cv{number}-{n}", f"{net}.{n}")
            _run("ip", "netns", "add", machine.namespace)
            undo.callback(_run, "ip", "netns", "del", machine.namespace)
            peer = ("peer", "name", "e0", "netns", machine.namespace)
            _run("ip", "link", "add", machine.cable, "type", "veth", *peer)
            # Before the namespace, which the kernel removes later, with what it has: the next network has these names.
            undo.callback(_run, "ip", "link", "del", machine.cable)
            _run("ip", "link", "set", machine.cable, "master", bridge, "up")
            machine._run("ip", "link", "set", "lo", "up")
            machine._run("ip", "addr", "add", f"{machine.address}/24", "dev", "e0")
            machine._run("ip", "link", "set", "e0", "up")
            machines.append(machine)
        yield NodeNetwork(f"{net}.254", tuple(machines))


def _run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)
