"""Apache HBase from Maven Central in one process, and its Thrift 1 gateway in another: nothing is installed.

    python -m wikibench.experiments.hbase unpack PACKAGES             Maven fetches HBase's jars; once
    python -m wikibench.experiments.hbase versions PACKAGES           one line
    python -m wikibench.experiments.hbase serve PACKAGES FOLDER GATEWAY_PORT ZOOKEEPER_PORT WEB_PORT HSYNC
                                      runs both until it is ended, and says "hbase ready" once the gateway answers
    python -m wikibench.experiments.hbase compact PACKAGES FOLDER GATEWAY_PORT
                                      writes what is in memory to files, then each region's files into one

Java (11 or later) and Maven are those on PATH, and else Debian's, unpacked into PACKAGES.
FOLDER has the settings, data and logs.  All servers listen on loopback, and end with ``serve``, whatever ends that.

The settings are HBase's own but for these: regions of 50 MB, as the thesis had them; heaps with a bound; no pages for
people but the gateway's, which has its metrics.  HSYNC is ``hbase.wal.hsync``: with "false", HBase's default, a write
is acknowledged once the operating system has the log of writes, with "true" once it is on the disk.
"""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn
from xml.sax.saxutils import escape

from .debian import unpack_packages
from .system import end_guard, start_guard

HBASE: Final = "2.6.1"
SERVER_HEAP: Final = "2g"  # 40 % each for blocks that were read and cells not yet in files
GATEWAY_HEAP: Final = "512m"
REGION_BYTES: Final = 50 << 20
START_S: Final = 240.0
END_S: Final = 20.0  # less than an experiment gives a role, so that this program ends its own
COMPACT_POLL_MS: Final = 200
REPLACED_MS: Final = (
    1_000  # between two checks for files that a compaction has replaced; HBase's default is two minutes
)
CALL_S: Final = 60.0
MOST_TABLES: Final = 10_000
ERROR_BYTES: Final = 4_096
LEAST_JAVA: Final = 11
_POLL_S: Final = 0.1
_READY_LINE: Final = "Master has completed initialization"
_OPENED: Final = ("java.io", "java.lang", "java.lang.reflect", "java.net", "java.nio", "java.util", "sun.nio.ch")
_JARS: Final = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>wikibench</groupId><artifactId>hbase</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.hbase</groupId><artifactId>hbase-server</artifactId><version>{HBASE}-hadoop3</version>
    </dependency>
    <dependency> <!-- does not use Hadoop, so it takes the server's -->
      <groupId>org.apache.hbase</groupId><artifactId>hbase-thrift</artifactId><version>{HBASE}</version>
      <exclusions>
        <exclusion><groupId>org.apache.hadoop</groupId><artifactId>*</artifactId></exclusion>
        <exclusion><groupId>org.apache.hbase</groupId><artifactId>*</artifactId></exclusion>
      </exclusions>
    </dependency>
    <dependency>
      <groupId>org.slf4j</groupId><artifactId>slf4j-reload4j</artifactId><version>1.7.36</version>
    </dependency>
  </dependencies>
</project>
"""
_LOGGING: Final = """log4j.rootLogger=INFO,file
log4j.appender.file=org.apache.log4j.RollingFileAppender
log4j.appender.file.File=${wikibench.log}
log4j.appender.file.MaxFileSize=16MB
log4j.appender.file.MaxBackupIndex=1
log4j.appender.file.layout=org.apache.log4j.PatternLayout
log4j.appender.file.layout.ConversionPattern=%d %p %c{2}: %m%n
"""


def settings(folder: Path, zookeeper_port: int, web_port: int, hsync: str) -> str:
    """(pure) Return the text of hbase-site.xml."""
    data = folder / "data"
    found = {
        "hbase.rootdir": (data / "hbase").as_uri(),
        "hbase.tmp.dir": str(data / "tmp"),
        "hbase.zookeeper.property.dataDir": str(data / "zookeeper"),
        "hbase.zookeeper.property.clientPort": zookeeper_port,
        "hbase.zookeeper.quorum": "localhost",
        "hbase.localcluster.assign.random.ports": "true",
        **{f"hbase.{role}.hostname": "localhost" for role in ("master", "regionserver")},
        **{f"hbase.{role}.ipc.address": "127.0.0.1" for role in ("master", "regionserver")},
        **{f"hbase.{role}.info.port": -1 for role in ("master", "regionserver")},
        "hbase.thrift.info.port": web_port,
        "hbase.thrift.info.bindAddress": "127.0.0.1",
        "hbase.hregion.max.filesize": REGION_BYTES,
        "hbase.hfile.compaction.discharger.interval": REPLACED_MS,
        "hbase.wal.hsync": hsync,
    }
    lines = [
        f"<property><name>{key}</name><value>{escape(str(value))}</value></property>" for key, value in found.items()
    ]
    return "<configuration>\n" + "\n".join(lines) + "\n</configuration>\n"


def java_version(said: str) -> int:
    """(pure) Return the number of the version that ``java -version`` has said: 17, or 8 for "1.8.0"; 0 if none."""
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    return int(found[1]) if found else 0


def why_maven_failed(said: str) -> str:
    """(pure) Return the line of Maven's output that says why."""
    plain = re.sub(r"\x1b\[[\d;]*m", "", said)
    lines = [line.partition("[ERROR] ")[2] for line in plain.splitlines() if "[ERROR] " in line]
    return next((line for line in lines if line), plain.strip()[-200:] or "no word")


def unpack(packages: Path) -> None:
    """Have the jars in PACKAGES/jars, and Java and Maven where this machine has none."""
    complete = packages / "jars.complete"
    if complete.exists() and complete.read_text() == _JARS:
        return
    packages.mkdir(parents=True, exist_ok=True)
    debian = {"java": "openjdk-17-jre-headless", "mvn": "maven"}
    lacking = [package for program, package in debian.items() if not _on_path(program)]
    if lacking:
        if not _on_path("apt-get"):
            raise SystemExit(f"HBase needs {' and '.join(lacking)}, and this machine has no apt-get: install them")
        unpack_packages(packages, lacking, ("usr/lib/jvm", "usr/share/maven", "usr/share/maven-repo", "usr/share/java"))
    java, made = _java(packages), packages / "jars.new"
    shutil.rmtree(made, ignore_errors=True)
    (packages / "pom.xml").write_text(_JARS)
    words = [_maven(packages), "-q", "-B", "-f", str(packages / "pom.xml"), "dependency:copy-dependencies"]
    environment = dict(os.environ)
    if not _on_path("java"):
        environment |= {"JAVA_HOME": str(java.parent.parent)}
    done = subprocess.run(
        [*words, f"-DoutputDirectory={made}", "-DincludeScope=runtime"],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode or not made.exists():
        sys.stderr.write(done.stdout)
        raise SystemExit(f"Maven could not fetch HBase {HBASE}: {why_maven_failed(done.stdout)}")
    shutil.rmtree(packages / "jars", ignore_errors=True)
    made.rename(packages / "jars")
    complete.write_text(_JARS)


def _on_path(program: str) -> bool:
    return shutil.which(program) is not None


def _java(packages: Path) -> Path:
    found = shutil.which("java")
    if found is None:
        unpacked = sorted((packages / "root/usr/lib/jvm").glob("java-*-openjdk-*/bin/java"))
        if not unpacked:
            raise SystemExit("no java on PATH: the command unpack brings Debian's")
        return unpacked[-1]
    said = subprocess.run([found, "-version"], capture_output=True, text=True, check=False).stderr
    if java_version(said) < LEAST_JAVA:
        first = (said.strip().splitlines() or ["no version"])[0]
        why = f"HBase needs Java {LEAST_JAVA} or later on PATH, or none there: then Debian's is taken"
        raise SystemExit(f"{found} is {first}: {why}")
    return Path(found)


def _maven(packages: Path) -> str:
    return shutil.which("mvn") or str(packages / "root/usr/share/maven/bin/mvn")


def versions(packages: Path) -> str:
    java = subprocess.run([str(_java(packages)), "-version"], capture_output=True, text=True, check=False)
    names = " ".join(path.name for path in sorted((packages / "jars").glob("*.jar")))
    found = {
        name: re.search(rf"\b{name}-(\d[\w.]*?)(?:-hadoop\d)?\.jar", names)
        for name in ("hbase-server", "hadoop-common")
    }
    made = ", ".join(f"{name.partition('-')[0]} {match[1]}" for name, match in found.items() if match)
    return f"{made}, {java.stderr.splitlines()[0]}"


def java_command(packages: Path, folder: Path, name: str, heap: str, words: Sequence[str]) -> list[str]:
    """Return the words that start a program of HBase's jars."""
    opened = [f"--add-opens=java.base/{one}=ALL-UNNAMED" for one in _OPENED]
    opened += ["--add-modules=jdk.unsupported", "--add-exports=java.base/jdk.internal.misc=ALL-UNNAMED"]
    own = [f"-Djdk.net.hosts.file={folder / 'hosts'}", f"-Dwikibench.log={folder / name}.log", f"-Xmx{heap}"]
    own += [f"-XX:ErrorFile={folder / name}.error", "-XX:+ExitOnOutOfMemoryError"]
    return [str(_java(packages)), *opened, *own, "-cp", f"{folder / 'settings'}:{packages / 'jars'}/*", *words]


def serve(packages: Path, folder: Path, ports: tuple[int, int, int], hsync: str) -> None:
    """Run HBase and its gateway until a signal, or the end of one of them."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)
    (folder / "settings").mkdir(parents=True, exist_ok=True)
    (folder / "settings/hbase-site.xml").write_text(settings(folder, ports[1], ports[2], hsync))
    (folder / "settings/log4j.properties").write_text(_LOGGING)
    (folder / "hosts").write_text(f"127.0.0.1 localhost {socket.gethostname()}\n")
    for log in folder.glob("*.log"):
        log.unlink()
    hadoop = "org.apache.hadoop.hbase"
    with ExitStack() as stack:
        master = f"{hadoop}.master.HMaster"
        # A signal ends HBase's ZooKeeper first, and then the rest waits for it.
        stop = java_command(packages, folder, "stop", GATEWAY_HEAP, [master, "stop", "--shutDownCluster"])
        start = java_command(packages, folder, "server", SERVER_HEAP, [master, "start"])
        server = _start(stack, folder / "server.log", start, stop)
        _wait(server, folder, "server", lambda: _READY_LINE in _read(folder / "server.log"))
        words = [f"{hadoop}.thrift.ThriftServer", "-b", "127.0.0.1", "-p", str(ports[0]), "start"]
        start = java_command(packages, folder, "gateway", GATEWAY_HEAP, words)
        gateway = _start(stack, folder / "gateway.log", start)
        _wait(gateway, folder, "gateway", lambda: answers(ports[0]))
        sys.stdout.write(f"hbase ready, gateway 127.0.0.1:{ports[0]}\n")
        sys.stdout.flush()
        watched = [os.pidfd_open(guard.pid) for guard in (server, gateway)]
        select.select(watched, [], [])
        raise SystemExit(f"HBase ended: see {folder}/server.log and {folder}/gateway.log")


def _leave(_number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(0)


def _start(stack: ExitStack, log: Path, start: Sequence[str], stop: Sequence[str] = ()) -> subprocess.Popen[bytes]:
    """Start a program under a guard of its own, which ends it even when this program is killed."""
    guard = start_guard({"start": start, "stop": stop, "log": str(log), "grace_s": END_S})
    stack.callback(end_guard, guard)
    return guard


def _wait(guard: subprocess.Popen[bytes], folder: Path, name: str, is_ready: Callable[[], bool]) -> None:
    until_s = time.monotonic() + START_S
    while not is_ready():
        has_ended = guard.poll() is not None
        if has_ended or time.monotonic() > until_s:
            why = f"ended with status {guard.returncode}" if has_ended else f"was not ready in {START_S:g} s"
            lines = _read(folder / f"{name}.log").strip().splitlines()[-3:]
            raise SystemExit(f"HBase's {name} {why}: {' | '.join(lines)} ({folder / name}.log)")
        time.sleep(_POLL_S)


def _read(log: Path) -> str:
    return log.read_text(errors="replace") if log.exists() else ""


def call(port: int, method: str, table: bytes = b"") -> bytes:
    """Call a method of a Thrift 1 gateway that has no argument or a table; return the bytes of its result.

    Raises OSError if it does not answer, and SystemExit if it answers with an exception.
    """
    argument = struct.pack(f">BHI{len(table)}s", 11, 1, len(table), table) if table else b""
    name = method.encode()
    head = struct.pack(f">II{len(name)}sI", 0x80010001, len(name), name, 1)
    with socket.create_connection(("127.0.0.1", port), timeout=CALL_S) as made, made.makefile("rb") as file:
        made.sendall(head + argument + b"\0")
        answer = file.read(len(head) + 1)  # and the type of the first field: none, a list, or an exception
        if not answer.startswith(struct.pack(">I", 0x80010002)):
            raise ConnectionError(f"127.0.0.1:{port} is no Thrift 1 gateway")
        if answer[-1] == 15:
            _, _, count = struct.unpack(">HBI", file.read(7))
            found = [file.read(struct.unpack(">I", file.read(4))[0]) for _ in range(min(count, MOST_TABLES))]
            return b"\n".join(found)
        if answer[-1]:
            raise SystemExit(f"HBase refused {method} {table.decode()}: {file.read1(ERROR_BYTES)!r}")
    return b""


def answers(port: int) -> bool:
    """Say whether a Thrift 1 gateway lists its tables there."""
    try:
        call(port, "getTableNames")
    except OSError:
        return False
    return True


def compact(packages: Path, folder: Path, gateway_port: int) -> None:
    """Have each region of each table in one file a family.

    A gateway's own ``majorCompact`` runs a minor compaction, and it has no call to flush; but a table that is disabled
    has been flushed.
    """
    tool = "org.apache.hadoop.hbase.util.compaction.MajorCompactor"
    for table in call(gateway_port, "getTableNames").splitlines():
        call(gateway_port, "disableTable", table)
        call(gateway_port, "enableTable", table)
        name = table.decode()
        files = (folder / "data/hbase/data/default" / name).glob("*/*/*")  # of a region's family; names begin so
        if any(re.fullmatch(r"[0-9a-f]{32}", file.name) for file in files):
            words = [tool, "-table", name, "-servers", "1", "-sleep", str(COMPACT_POLL_MS)]
            subprocess.run(java_command(packages, folder, "compact", GATEWAY_HEAP, words), check=True)


def main(words: list[str]) -> int:
    """Run a command of the module's docstring."""
    command, *rest = words
    packages = Path(rest[0]).absolute()
    if command == "unpack":
        unpack(packages)
    elif command == "versions":
        sys.stdout.write(f"{versions(packages)}\n")
    elif command == "serve":
        gateway, zookeeper, web = (int(port) for port in rest[2:5])
        serve(packages, Path(rest[1]).absolute(), (gateway, zookeeper, web), rest[5])
    elif command == "compact":
        compact(packages, Path(rest[1]).absolute(), int(rest[2]))
    else:
        raise SystemExit(f"{command}: no such command of hbase")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
