"""Mounts by their lines in mountinfo, and what is known of their types and options."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from columnar.storage import file_systems
from columnar.storage.file_systems import UNKNOWN, Mount, gluster_verdict, mount_in, mount_of, nfs_verdict, verdict_on

MOUNTINFO = r"""
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,errors=remount-ro
28 27 0:5 / /dev rw,nosuid - devtmpfs udev rw
36 27 0:40 / /mnt rw,noatime shared:1 master:7 - xfs /dev/vdb rw
40 36 0:41 / /mnt/store rw,relatime - fuse.glusterfs g1,g2:/vol rw,allow_other
41 36 0:42 /a /mnt/with\040blank rw - nfs4 filer:/export/a rw,vers=4.1,lookupcache=pos,local_lock=none
42 40 0:43 / /mnt/store rw,relatime shared:9 - ceph 10.0.0.1:/ rw,name=admin
no mount
43 27 0:44 / /srv
"""
TIMEOUTS = "--attribute-timeout=0 --entry-timeout=0.0 --negative-timeout=0"
STRICT = f'"Cmdlinestr": "glusterfs {TIMEOUTS} --fopen-keep-cache=off /mnt"'
GLUSTER = Mount("fuse.glusterfs", "g1:/vol", "/mnt", "/", frozenset({"rw"}))


def nfs(*options: str) -> Mount:
    return Mount("nfs4", "filer:/a", "/mnt", "/", frozenset({"rw", "vers=4.1", *options}))


@pytest.mark.parametrize(
    ("path", "kind", "place"),
    [
        ("/", "ext4", "/"),
        ("/srv/data", "ext4", "/"),
        ("/mnt", "xfs", "/mnt"),
        ("/mnt2/data", "ext4", "/"),
        ("/mnt/store/data", "ceph", "/mnt/store"),
        ("/mnt/stores", "xfs", "/mnt"),
        ("/mnt/with blank/a", "nfs4", "/mnt/with blank"),
    ],
)
def test_a_path_has_the_innermost_and_last_mount(path: str, kind: str, place: str) -> None:
    mount = mount_in(MOUNTINFO, path)
    assert (mount.kind, mount.place) == (kind, place)


def test_the_fields_of_a_mount() -> None:
    mount = mount_in(MOUNTINFO, "/mnt/with blank")
    assert (mount.source, mount.root, mount.option("vers"), mount.option("lookup")) == (
        "filer:/export/a", "/a", "4.1", None,
    )  # fmt: skip
    assert mount_in("", "/srv") == UNKNOWN


def test_this_machine_reports_its_mounts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "link").symlink_to("/proc", target_is_directory=True)
    assert mount_of(str(tmp_path / "link" / "self")).kind == "proc"
    monkeypatch.setattr(file_systems, "MOUNTINFO", str(tmp_path / "missing"))
    assert mount_of(str(tmp_path)) == UNKNOWN
    verdict = verdict_on(UNKNOWN)
    assert not verdict.refusal, "probe-root itself tries it"
    assert verdict.needs_proof
    assert "nobody has measured a file system whose type the system does not report" in verdict.remarks[0]


@pytest.mark.parametrize("kind", ["ceph", "fuse.ceph-fuse"])
def test_ceph_is_as_it_should_be(kind: str) -> None:
    assert verdict_on(Mount(kind, "c:/", "/mnt", "/", frozenset())) == file_systems.Verdict()


@pytest.mark.parametrize("kind", ["ext4", "xfs", "tmpfs"])
def test_a_local_file_system_is_usable_by_one_machine(kind: str) -> None:
    verdict = verdict_on(Mount(kind, "/dev/vda", "/", "/", frozenset()))
    assert verdict.is_local
    assert not verdict.refusal
    assert not verdict.needs_proof
    assert ("power cut" in " ".join(verdict.remarks)) == (kind == "tmpfs")


@pytest.mark.parametrize("kind", ["fuse.seaweedfs", "fuse.s3fs", "fuse.rclone"])
def test_what_no_option_repairs_names_another(kind: str) -> None:
    verdict = verdict_on(Mount(kind, "x", "/mnt", "/", frozenset()))
    assert verdict.refusal
    assert "CephFS" in verdict.repair


@pytest.mark.parametrize(
    ("options", "repair"),
    [
        ((), "lookupcache=positive"),
        (("lookupcache=all",), "lookupcache=positive"),
        (("lookupcache=pos", "nocto"), "cto (without nocto)"),
        (("lookupcache=none", "local_lock=flock"), "local_lock=none (without nolock)"),
        (("lookupcache=none", "local_lock=all"), "local_lock=none (without nolock)"),
        (("lookupcache=none", "nolock"), "local_lock=none (without nolock)"),
    ],
)
def test_nfs_needs_its_options(options: tuple[str, ...], repair: str) -> None:
    verdict = nfs_verdict(nfs(*options))
    assert verdict.refusal
    assert verdict.repair == repair


def test_nfs_with_its_options() -> None:
    right = nfs_verdict(nfs("lookupcache=pos", "local_lock=none", "hard"))
    assert right == file_systems.Verdict(needs_proof=True), "no filer was measured with this store"
    old = Mount("nfs", "f:/a", "/mnt", "/", frozenset({"vers=3", "lookupcache=none", "soft"}))
    verdict = verdict_on(old)
    assert not verdict.refusal
    assert [remark.split(":")[1].strip() for remark in verdict.remarks] == ["mount it with vers=4.1", "mount it hard"]


def test_gluster_as_mounted_by_default_is_refused_with_its_options() -> None:
    command = '"Cmdlinestr": "/usr/sbin/glusterfs --volfile-server=g1 --attribute-timeout=0.5 /mnt"'
    verdict = gluster_verdict(GLUSTER, lambda _: (command, frozenset({"vol-io-cache", "vol-md-cache", "top"})))
    assert "cache" in verdict.refusal
    assert verdict.repair == (
        "mount -o attribute-timeout=0,entry-timeout=0,negative-timeout=0; mount -o auto-invalidation=on; "
        "gluster volume set vol performance.io-cache off; gluster volume set vol performance.stat-prefetch off"
    )


@pytest.mark.parametrize("option", ["--fopen-keep-cache=off", "--auto-invalidation=on", "--direct-io-mode=enable"])
def test_gluster_that_reads_opened_files_anew(option: str) -> None:
    parts = frozenset({"vol-dht", "top"})
    assert not gluster_verdict(GLUSTER, lambda _: (f'"glusterfs {TIMEOUTS} {option}"', parts)).refusal
    assert "auto-invalidation=on" in gluster_verdict(GLUSTER, lambda _: (f'"glusterfs {TIMEOUTS}"', parts)).repair
    for wrong in ("--fopen-keep-cache", "--fopen-keep-cache=offset", "--direct-io-mode=auto", "--fopen-keep-cache=on"):
        assert gluster_verdict(GLUSTER, lambda _: (f'"glusterfs {TIMEOUTS} {wrong}"', parts)).refusal  # noqa: B023


def test_gluster_whose_caches_are_off() -> None:
    verdict = gluster_verdict(GLUSTER, lambda _: (STRICT, frozenset({"vol-dht", "vol-replicate-0", "vol", "top"})))
    assert not verdict.refusal
    assert "not maintained" in verdict.remarks[0]


def test_gluster_whose_settings_cannot_be_read_is_refused(tmp_path: Path) -> None:
    missing = Mount("fuse.glusterfs", "g1:/vol", str(tmp_path), "/", frozenset())
    assert "cannot be read" in verdict_on(missing).refusal
    (tmp_path / ".meta/graphs/active/vol-dht").mkdir(parents=True)
    (tmp_path / ".meta/cmdline").write_text(STRICT)
    assert not verdict_on(missing).refusal
    os.mkdir(tmp_path / ".meta/graphs/active/vol-quick-read")
    assert "performance.quick-read off" in verdict_on(missing).repair
    part = Mount("fuse.glusterfs", "g1:/vol", str(tmp_path), "/part", frozenset())
    assert "not its root" in verdict_on(part).refusal
