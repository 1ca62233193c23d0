"""CephFS on loopback: a monitor, an MDS and three OSDs without authentication, and a ``ceph-fuse`` for each mount.

It is up in some 20 s.  The settings are those that ``docs/shared-folders.md`` names, and what one host needs: copies on
the OSDs of one host, and reports of failures by OSD, else a frozen OSD is never marked as down.  There is no manager
daemon, which takes 300 MB and is not needed to read and write.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from tests.support.many_machines.daemons import (
    Daemon,
    SharedFolder,
    end_all,
    is_mounted,
    run,
    short_folder,
    unmount,
    wait_until,
)
from tests.support.ports import free_port

OSDS: Final = 3
_OSD_BYTES: Final = 8 << 30  # a sparse file
_TICK_S: Final = {True: 0.2, False: 5.0}
_CONF: Final = """
[global]
fsid = {fsid}
mon host = [v2:127.0.0.1:{port}/0]
auth cluster required = none
auth service required = none
auth client required = none
public addr = 127.0.0.1
cluster addr = 127.0.0.1
run dir = {folder}
admin socket = {folder}/$name.$pid.asok
log file = {folder}/$name.log
crash dir = {folder}
keyring = {folder}/keyring
osd pool default size = {osds}
osd pool default min size = 2
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
mon osd reporter subtree level = osd
mon osd min down reporters = 1
mon data avail warn = 1
mon data avail crit = 1
osd heartbeat grace = 6
osd memory target = 939524096
bluestore block size = {osd_bytes}
bluestore fsck on mount = false
mds tick interval = {tick_s}
mon data = {folder}/mon
osd data = {folder}/osd$id
mds data = {folder}/mds
"""


@contextmanager
def ceph(folder: Path, *, is_tuned: bool = True, mounts: int = 2) -> Iterator[SharedFolder]:
    """Yield mounts of a new CephFS; ``is_tuned`` sets the MDS's tick interval to 0.2 s.  All is gone afterwards."""
    folder = short_folder(folder)
    conf = folder / "ceph.conf"
    values = {"fsid": uuid.uuid4(), "port": free_port(), "folder": folder, "osds": OSDS, "osd_bytes": _OSD_BYTES}
    conf.write_text(_CONF.format(tick_s=_TICK_S[is_tuned], **values))
    (folder / "keyring").write_text("")
    daemons: dict[str, Daemon] = {}
    with ExitStack() as stack:
        stack.callback(lambda: end_all(list(daemons.values())))
        _start_monitor(conf, folder, str(values["fsid"]), int(str(values["port"])), daemons)
        for number in range(OSDS):
            _start_osd(conf, folder, number, daemons)
        _start_file_system(conf, folder, daemons)
        places = tuple(_mount(conf, folder, number, daemons, stack) for number in range(mounts))
        yield SharedFolder("ceph", places, daemons, lambda number: evict(conf, places[number]), conf)


def _asked(conf: Path, *words: str) -> Any:
    return json.loads(run("ceph", "--conf", conf, "--connect-timeout", "20", *words, "--format", "json"))


def _start_monitor(conf: Path, folder: Path, fsid: str, port: int, daemons: dict[str, Daemon]) -> None:
    monmap = folder / "monmap"
    run("monmaptool", "--create", "--fsid", fsid, "--addv", "a", f"[v2:127.0.0.1:{port}]", monmap)
    run("ceph-mon", "--conf", conf, "--mkfs", "--id", "a", "--monmap", monmap)
    daemons["mon"] = Daemon(["ceph-mon", "--conf", conf, "--id", "a", "-f"], folder / "mon.out")
    daemons["mon"].start()


def _start_osd(conf: Path, folder: Path, number: int, daemons: dict[str, Daemon]) -> None:
    identity = str(uuid.uuid4())
    (folder / f"osd{number}").mkdir()
    assert run("ceph", "--conf", conf, "--connect-timeout", "20", "osd", "new", identity).split() == [str(number)]
    run("ceph-osd", "--conf", conf, "--id", str(number), "--mkfs", "--osd-uuid", identity)
    name = f"osd{number}"
    daemons[name] = Daemon(["ceph-osd", "--conf", conf, "--id", str(number), "-f"], folder / f"{name}.out")
    daemons[name].start()


def _start_file_system(conf: Path, folder: Path, daemons: dict[str, Daemon]) -> None:
    for pool in ("meta", "data"):
        run("ceph", "--conf", conf, "osd", "pool", "create", pool, "8")
    run("ceph", "--conf", conf, "fs", "new", "columnar", "meta", "data")
    (folder / "mds").mkdir()
    daemons["mds"] = Daemon(["ceph-mds", "--conf", conf, "--id", "a", "-f"], folder / "mds.out")
    daemons["mds"].start()

    def is_active() -> bool:
        (file_system,) = _asked(conf, "fs", "dump")["filesystems"]
        return any(one["state"] == "up:active" for one in file_system["mdsmap"]["info"].values())

    wait_until(is_active, "the MDS is active", list(daemons.values()))


def _mount(conf: Path, folder: Path, number: int, daemons: dict[str, Daemon], stack: ExitStack) -> Path:
    place = folder / f"mnt{number}"
    place.mkdir()
    stack.callback(unmount, place)
    daemon = Daemon(["ceph-fuse", "--conf", conf, "--id", "admin", "-f", place], folder / f"mount{number}.out")
    daemons[f"mount{number}"] = daemon
    daemon.start()
    wait_until(lambda: is_mounted(place), f"{place} is mounted", [daemon])
    return place


def evict(conf: Path, place: Path) -> None:
    """End the session of the client that has mounted ``place``: its writes fail, and it holds nobody up any more."""
    sessions = _asked(conf, "tell", "mds.a", "session", "ls")
    (client,) = [one["id"] for one in sessions if one["client_metadata"].get("mount_point") == str(place)]
    run("ceph", "--conf", conf, "tell", "mds.a", "client", "evict", f"id={client}")
