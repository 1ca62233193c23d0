"""HBase for an experiment: its settings, its jars by a Maven that is a script, its gateway's answers, and its end."""

from __future__ import annotations

import os
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.support.cluster_process import until
from wikibench.experiments import hbase

SETTINGS = """<configuration>
<property><name>hbase.rootdir</name><value>file:///a%20b/data/hbase</value></property>
<property><name>hbase.tmp.dir</name><value>/a b/data/tmp</value></property>
<property><name>hbase.zookeeper.property.dataDir</name><value>/a b/data/zookeeper</value></property>
<property><name>hbase.zookeeper.property.clientPort</name><value>7001</value></property>
<property><name>hbase.zookeeper.quorum</name><value>localhost</value></property>
<property><name>hbase.localcluster.assign.random.ports</name><value>true</value></property>
<property><name>hbase.master.hostname</name><value>localhost</value></property>
<property><name>hbase.regionserver.hostname</name><value>localhost</value></property>
<property><name>hbase.master.ipc.address</name><value>127.0.0.1</value></property>
<property><name>hbase.regionserver.ipc.address</name><value>127.0.0.1</value></property>
<property><name>hbase.master.info.port</name><value>-1</value></property>
<property><name>hbase.regionserver.info.port</name><value>-1</value></property>
<property><name>hbase.thrift.info.port</name><value>7002</value></property>
<property><name>hbase.thrift.info.bindAddress</name><value>127.0.0.1</value></property>
<property><name>hbase.hregion.max.filesize</name><value>52428800</value></property>
<property><name>hbase.hfile.compaction.discharger.interval</name><value>1000</value></property>
<property><name>hbase.wal.hsync</name><value>false</value></property>
</configuration>
"""
# Java as the servers see it: the master says that it is ready, the gateway answers one call after the other.
JAVA = """#!{python}
import os, pathlib, signal, socket, struct, sys
words = sys.argv[1:]
if words == ["-version"]:
    sys.exit('openjdk version "17.0.1" 2021-10-19')
name = words[words.index("-cp") + 2].rpartition(".")[2] + (".stop" if "stop" in words else ".start")
if words[-1] == "stop":
    sys.exit("To stop HBase Cluster run hbase master stop --shutDownCluster")  # as HBase, which goes on
pathlib.Path(__file__).with_name(name).write_text(str(os.getpid()))
if name == "HMaster.stop":
    os.kill(int(pathlib.Path(__file__).with_name("HMaster.start").read_text()), signal.SIGTERM)
elif name == "HMaster.start":
    print("Master has completed initialization", flush=True)
    signal.pause()
else:
    with socket.create_server(("127.0.0.1", int(words[words.index("-p") + 1]))) as server:
        while True:
            made, _ = server.accept()
            asked = made.recv(1000)
            made.sendall(struct.pack(">I", 0x80010002) + asked[4:25] + struct.pack(">BHBI", 15, 0, 11, 0) + b"\\0")
"""


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def bin_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder of programs."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    program(folder / "java", JAVA.replace("{python}", sys.executable))
    return folder


MAVEN = """#!/bin/sh
for word in "$@"; do case $word in -DoutputDirectory=*) out=${word#-DoutputDirectory=};; esac; done
/bin/mkdir "$out"
echo > "$out/hbase-server-2.6.1-hadoop3.jar"; echo > "$out/hadoop-common-3.3.5.jar"
echo run >> "$0.runs"
"""


def test_settings() -> None:
    assert hbase.settings(Path("/a b"), 7001, 7002, "false") == SETTINGS


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "21"', 21),
        ("", 0),
    ],
)
def test_versions_of_java(said: str, version: int) -> None:
    assert hbase.java_version(said) == version


def test_jars_are_fetched_once(tmp_path: Path, bin_folder: Path) -> None:
    program(bin_folder / "mvn", MAVEN)
    packages = tmp_path / "packages"
    (packages / "jars.new").mkdir(parents=True)  # of a fetch that was killed
    hbase.unpack(packages)
    hbase.unpack(packages)
    assert (bin_folder / "mvn.runs").read_text() == "run\n"
    assert hbase.versions(packages) == 'hbase 2.6.1, hadoop 3.3.5, openjdk version "17.0.1" 2021-10-19'


def test_what_maven_says_is_passed_on(tmp_path: Path, bin_folder: Path) -> None:
    said = "printf '\\033[1;31m[ERROR] \\033[mCould not find artifact x\\n[ERROR] \\n[ERROR] [Help 1] http://y\\n'"
    program(bin_folder / "mvn", f"#!/bin/sh\n{said}; exit 1\n")
    with pytest.raises(SystemExit, match=r"Maven could not fetch HBase 2\.6\.1: Could not find artifact x$"):
        hbase.unpack(tmp_path / "packages")


def test_lacking_programs_are_named(tmp_path: Path, bin_folder: Path) -> None:
    with pytest.raises(SystemExit, match="HBase needs maven, and this machine has no apt-get: install"):
        hbase.unpack(tmp_path / "packages")
    program(bin_folder / "mvn", MAVEN)
    program(bin_folder / "java", "#!/bin/sh\necho 'java version \"1.8.0\"' >&2\n")
    with pytest.raises(SystemExit, match=r'is java version "1\.8\.0": HBase needs Java 11 or later'):
        hbase.unpack(tmp_path / "packages")


def answered(body: bytes) -> int:
    """Return the port of a server that answers one call with those bytes."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with server, server.accept()[0] as made:
            made.recv(1000)
            made.sendall(body)

    threading.Thread(target=serve).start()
    port: int = server.getsockname()[1]
    return port


def test_answers_of_a_gateway() -> None:
    head = struct.pack(">II", 0x80010002, 13) + b"getTableNames" + struct.pack(">I", 1)
    names = struct.pack(">BHBI", 15, 0, 11, 2) + b"\0\0\0\5pages\0\0\0\5users\0"
    assert hbase.call(answered(head + names), "getTableNames") == b"pages\nusers"
    head = struct.pack(">II", 0x80010002, 12) + b"disableTable" + struct.pack(">I", 1)
    assert hbase.call(answered(head + b"\0"), "disableTable", b"pages") == b""
    with pytest.raises(SystemExit, match=r"HBase refused disableTable pages: .*TableNotFound"):
        hbase.call(answered(head + b"\x0c\0\1\x0b\0\1\0\0\0\x0dTableNotFound\0\0"), "disableTable", b"pages")
    assert not hbase.answers(answered(b"HTTP/1.1 400 Bad Request\r\n\r\n" + b" " * 40))


def is_running(pid: int) -> bool:
    return (
        Path(f"/proc/{pid}/stat").exists()
        and Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_whatever_ends_it_both_servers_end(tmp_path: Path, bin_folder: Path, number: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = ["serve", str(tmp_path / "packages"), str(tmp_path / "hbase"), str(port), "1", "2", "false"]
    served = subprocess.Popen(
        [sys.executable, "-m", "wikibench.experiments.hbase", *words], stdout=subprocess.PIPE, env={**os.environ}
    )
    assert served.stdout is not None
    assert served.stdout.readline() == f"hbase ready, gateway 127.0.0.1:{port}\n".encode()
    pids = [int((bin_folder / name).read_text()) for name in ("HMaster.start", "ThriftServer.start")]
    assert all(is_running(pid) for pid in pids)
    served.send_signal(number)
    served.wait()
    until(lambda: not any(is_running(pid) for pid in pids))
    until((bin_folder / "HMaster.stop").exists)
    served.stdout.close()


def test_a_server_that_does_not_start_is_said(tmp_path: Path, bin_folder: Path) -> None:
    program(
        bin_folder / "java",
        "#!/bin/sh\n[ $1 = -version ] && echo 'version \"17\"' >&2 && exit\necho no memory; exit 3\n",
    )
    words = ["serve", str(tmp_path / "packages"), str(tmp_path / "hbase"), "1", "2", "3", "false"]
    done = subprocess.run([sys.executable, "-m", "wikibench.experiments.hbase", *words], capture_output=True, text=True)
    assert done.returncode == 1
    assert "HBase's server ended with status 3: no memory" in done.stderr
