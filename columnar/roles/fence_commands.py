"""Storage fences that run commands: one of the operator's, or Ceph's own, which evicts a client of CephFS.

    --fence-command CMD             CMD by ``sh -c``, with the environment of ENVIRONMENT; status 0 means fenced
    --fence-command "cephfs ..."    ``ceph ... tell mds.NAME client evict id=N`` at the active MDSs

An eviction ends the client's session, so that nobody waits for it any more, and adds the client to the blocklist: its
later writes fail with EIO or ESHUTDOWN.  All mounts of that client fail until they are mounted again.

A fence may be run again, also at the same time by two leaders: it must succeed for a machine that is fenced already.

Owned by the loop; commands run as child processes, which end with this process.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from columnar.coordination.node_record import MountRecord
from columnar.runtime.command_run import run_to_end

LIMIT_S: Final = 30.0  # of one command; then it is killed with its children, and has failed
_CONNECT_S: Final = "5"
CEPHFS: Final = "cephfs"
ENVIRONMENT: Final = ("COLUMNAR_NODE", "COLUMNAR_INCARNATION", "COLUMNAR_ADDRESS", "COLUMNAR_CLIENT", "COLUMNAR_DATA")
_CLIENT: Final = re.compile(r"client\.?(\d+)")
_READY: Final = frozenset({"up:active", "up:stopping", "up:clientreplay"})  # states in which an MDS knows all sessions


class FenceFailed(Exception):
    """The machine was not shut out, or nobody knows."""


class StorageFence(Protocol):
    def find_sparing(self, record: MountRecord, living: Iterable[MountRecord]) -> MountRecord | None:
        """Return the mount of a living node that the fence would shut out too, or that replaces the fenced one.

        Then the fence is not run: the copies of a takeover keep the ended node out.
        """

    async def fence_mount(self, record: MountRecord) -> None:
        """Return when the node's machine cannot write to the folder any more.  Raises FenceFailed."""


def storage_fence(option: str, data: str) -> StorageFence | None:
    """Return the fence that the option ``--fence-command`` names; None if it is empty.  Raises ValueError."""
    if not option.strip():
        return None
    words = shlex.split(option)
    return CephFence(words[1:]) if words[0] == CEPHFS else CommandFence(option, data)


class CommandFence:
    def __init__(self, command: str, data: str) -> None:
        self._command = command
        self._data = data

    def find_sparing(self, record: MountRecord, living: Iterable[MountRecord]) -> MountRecord | None:
        """Return a newer mount of the same node: its machine is in use again, and a command may name the machine."""
        later = (one for one in living if one.node == record.node and one.incarnation > record.incarnation)
        return next(later, None)

    async def fence_mount(self, record: MountRecord) -> None:
        values = (record.node, str(record.incarnation), record.address, record.client, self._data)
        await run_command(["/bin/sh", "-c", self._command], dict(zip(ENVIRONMENT, values, strict=True)))


class CephFence:
    def __init__(self, options: Sequence[str]) -> None:
        """Take options of the command ``ceph``, such as ``--id fence``."""
        self._ceph = ("ceph", *options, "--connect-timeout", _CONNECT_S)

    def find_sparing(self, record: MountRecord, living: Iterable[MountRecord]) -> MountRecord | None:
        return next((one for one in living if one.client == record.client != ""), None)

    async def fence_mount(self, record: MountRecord) -> None:
        number = client_number(record.client)
        if number is None:
            raise FenceFailed(f"its record names no client of CephFS, but {record.client!r}: is its folder on CephFS?")
        names, not_ready = _active(_parsed(await self._run("fs", "dump", "--format", "json")))
        for name in names:  # one that does not know the client succeeds
            await self._run("tell", f"mds.{name}", "client", "evict", f"id={number}")
        if not_ready:
            raise FenceFailed(f"not every MDS is active: {', '.join(not_ready)}")

    async def _run(self, *words: str) -> bytes:
        return await run_command([*self._ceph, *words])


def client_number(client: str) -> int | None:
    """Return the number of a CephFS client by its name, ``client4151``; None for other texts."""
    found = _CLIENT.fullmatch(client)
    return int(found[1]) if found is not None else None


def _parsed(output: bytes) -> Any:
    try:
        return json.loads(output)
    except ValueError:
        raise FenceFailed(f"ceph answered {output[:100]!r}") from None


def _active(fs_map: Any) -> tuple[list[str], list[str]]:
    """Return the names of the MDSs that know their sessions, and descriptions of the ranks that have no such MDS."""
    active, not_ready = [], []
    try:
        for file_system in fs_map["filesystems"]:
            mds_map = file_system["mdsmap"]
            by_rank = {one["rank"]: one for one in mds_map["info"].values() if one["rank"] >= 0}
            for rank in mds_map["in"]:
                found = by_rank.get(rank)
                if found is not None and found["state"] in _READY:
                    active.append(found["name"])
                else:
                    state = "failed" if found is None else found["state"]
                    not_ready.append(f"rank {rank} of {mds_map['fs_name']} is {state}")
    except (KeyError, TypeError, AttributeError) as error:
        raise FenceFailed(f"the map of file systems lacks {error}") from error
    return active, not_ready or ([] if active else ["there is none"])


async def run_command(words: Sequence[str], environment: Mapping[str, str] | None = None) -> bytes:
    """Run the command and return the end of its output.  Raises FenceFailed with what it said, or after LIMIT_S.

    A cancellation kills the command.
    """
    try:
        ended = await run_to_end(words, {**os.environ, **(environment or {})}, LIMIT_S, "fence command")
    except OSError as error:
        raise FenceFailed(f"{words[0]} cannot be run: {error.strerror}") from error
    if not ended.is_whole:
        raise FenceFailed(f"{_text_of(words)} did not end within {LIMIT_S:g} s")
    if ended.status:
        why = ended.last_line
        if why.startswith(f"{words[0]} cannot be run: "):
            raise FenceFailed(why)
        raise FenceFailed(f"{_text_of(words)} ended with status {ended.status}: {why}")
    return ended.output


def _text_of(words: Sequence[str]) -> str:
    return "the command" if words[0] == "/bin/sh" else shlex.join(words)
