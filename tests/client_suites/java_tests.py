"""HBase's own tests of its Thrift gateways, in Java, over the wire against our server.

Maven fetches HBase's jars when they are run, among them the compiled tests; nothing of HBase is kept in the repository.
The classes of ``java/`` stand in the place of those that would start a cluster: its gateways are the store's ports.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from tests.support.cluster_process import ClusterProcess
from tests.support.many_nodes import PATIENT, many_nodes

CACHE: Final = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "columnar-java-suites"
SOURCES: Final = Path(__file__).with_name("java")
PACKAGE: Final = "org.apache.hadoop.hbase"
TIMEOUT_S: Final = 1_200  # of a class: 120,000 increments, one after the other
_HEAP: Final = "-Xmx512m"
_LOGGING: Final = """log4j.rootLogger=ERROR,err
log4j.appender.err=org.apache.log4j.ConsoleAppender
log4j.appender.err.target=System.err
log4j.appender.err.layout=org.apache.log4j.PatternLayout
log4j.appender.err.layout.ConversionPattern=%d %p %c{2}: %m%n
"""


class Tested(NamedTuple):
    """A class of HBase's tests."""

    name: str
    tests: int  # that pass
    without: tuple[str, ...] = ()  # COMPATIBILITY.md, "HBase's own tests", says why
    parts_of: str = ""  # a test that is a sequence of parts, which are run and counted instead of it


CLASSES: Final = (
    Tested("thrift.TestThriftServer", 14, ("testMetricsWithException",), "testAll"),
    Tested(
        "thrift2.TestThriftHBaseServiceHandler",
        30,
        (
            *("testMetricsWithException", "testMetricsPrecision", "testExpiredScanner", "testSlowLogResponses"),
            *("testFilterRegistration", "testAttribute", "testDurability"),
        ),
    ),
    Tested("thrift2.TestThriftConnection", 12),
)


class Outcome(NamedTuple):
    test: str
    failure: str  # empty: it passed


def prepare(cache: Path) -> str:
    """Fetch HBase's jars and compile our classes; the class path."""
    cache.mkdir(parents=True, exist_ok=True)
    for program in ("java", "javac", "mvn"):
        if shutil.which(program) is None:
            raise SystemExit(f"{program} is not installed: HBase's tests need a JDK of 11 or later, and Maven")
    jars, classes = cache / "lib", cache / "classes"
    stamp, wanted = cache / "fetched.xml", (SOURCES / "pom.xml").read_text()
    if not stamp.exists() or stamp.read_text() != wanted:
        shutil.rmtree(jars, ignore_errors=True)
        jars.mkdir(parents=True)
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={jars}", "-DincludeScope=runtime"]
        subprocess.run(["mvn", "-q", "-B", "-f", SOURCES / "pom.xml", *goal], check=True)
        stamp.write_text(wanted)
    shutil.rmtree(classes, ignore_errors=True)
    classes.mkdir()
    path = f"{jars}/*"
    subprocess.run(["javac", "-nowarn", "-d", classes, "-cp", path, *sorted(SOURCES.rglob("*.java"))], check=True)
    (classes / "log4j.properties").write_text(_LOGGING)
    (classes / "hosts").write_text(f"127.0.0.1 {socket.gethostname()} localhost\n")
    return f"{classes}:{path}"


def outcomes(tested: Tested, path: str, ports: tuple[int, int]) -> Iterator[Outcome]:
    """Of each test as it ends.  What a class says beside that goes to standard error where one failed."""
    hosts = Path(path.partition(":")[0]) / "hosts"
    options = [f"-Djdk.net.hosts.file={hosts}", f"-Dcolumnar.thrift1={ports[0]}", f"-Dcolumnar.thrift2={ports[1]}"]
    # A gateway of HBase is loaded, never run, and returns our handler in the place of its own, which the verifier sees.
    options += [_HEAP, "-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote"]
    arguments = [f"{PACKAGE}.{tested.name}", ",".join(tested.without), *filter(None, [tested.parts_of])]
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            ["java", *options, "-cp", path, "columnar.Suite", *arguments],
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            env=os.environ | {"LANG": "C.UTF-8"},
        )
        assert process.stdout is not None
        try:
            for line in process.stdout:
                found = re.match(r"(passed|failed) (\w+) ?(.*)", line)
                if found is not None:
                    yield Outcome(found[2], found[3] or "failed" if found[1] == "failed" else "")
            status = process.wait(TIMEOUT_S)
        finally:
            process.kill()
            process.wait()
        if status:
            said.seek(0)
            sys.stderr.write(said.read())


@contextmanager
def _served(folder: Path, servers: int, nodes: int) -> Iterator[tuple[int, int]]:
    """Start a store; yields its ports for Thrift 1 and Thrift 2: those of the last node, which seldom leads."""
    flags = ("--thrift2-port", "0", "--log-level", "warning")
    if nodes:
        with many_nodes(folder, *PATIENT, *flags, count=nodes) as cluster:
            yield cluster.nodes[-1].port, cluster.nodes[-1].thrift2_port
        return
    with ClusterProcess(folder / "data", servers, *flags) as store:
        yield store.port, store.thrift2_port
        store.stop()


def run(cache: Path, servers: int, nodes: int = 0) -> int:
    """The number of classes of which not all tests passed; ``nodes``: so many nodes serve, 0: one with ``servers``."""
    path, bad = prepare(cache), 0
    with tempfile.TemporaryDirectory() as folder, _served(Path(folder), servers, nodes) as ports:
        for tested in CLASSES:
            passed = 0
            for one in outcomes(tested, path, ports):
                passed += not one.failure
                if one.failure:
                    print(f"  {one.test}: {one.failure}", flush=True)
            whole = passed == tested.tests
            bad += not whole
            said = f"{passed:3} of {tested.tests}, {len(tested.without)} not run"
            print(f"{'ok    ' if whole else 'FAILED'} {tested.name:40} {said}", flush=True)
    return bad
