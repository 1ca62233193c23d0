"""Real etcd and ZooKeeper on loopback, one process or three, which a test may kill, freeze and start again.

Debian's packages: ``etcd-server``, and ``libzookeeper-java`` with any Java.  Nothing is installed here; ``missing``
names the missing packages, which fail a run under CI (``CI=true``).
"""

from __future__ import annotations

import os
import shutil
import signal
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from columnar.coordination.cas import CasStore, CasUnavailable
from columnar.coordination.cas_etcd import CasEtcd
from tests.support.certificates import Pair
from tests.support.ports import free_port
from tests.support.stopped_process import stop_process

START_S: Final = 60.0
_ZOOKEEPER_JAR: Final = Path("/usr/share/java/zookeeper.jar")
_NETTY: Final = sorted(_ZOOKEEPER_JAR.parent.glob("netty-*.jar"))  # which ZooKeeper speaks TLS with
_JAVA_OPTIONS: Final = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
_LOG4J: Final = """log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{ISO8601} %-5p %c{1}: %m%n
"""


class ServiceProcess:
    """A server of a service, started by a fixed command."""

    def __init__(self, command: list[str], log: Path) -> None:
        self._command = command
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log, cwd=self._log.parent)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def freeze(self) -> None:
        """Stop the process like a machine that hangs: its connections stay open, and nothing answers."""
        assert self._process is not None
        stop_process(self._process.pid)

    def thaw(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")[-3_000:] if self._log.exists() else ""


class Service:
    """The servers of one service; ``connect`` makes a client."""

    def __init__(
        self, servers: list[ServiceProcess], addresses: list[str], connect: Callable[[str, float], CasStore]
    ) -> None:
        self.servers = servers
        self.addresses = addresses  # URLs of etcd, HOST:PORT of ZooKeeper
        self.connect = connect  # (prefix of the keys, seconds of a call)

    def start(self) -> None:
        for server in self.servers:
            server.start()
        self.wait()

    def wait(self, client: CasStore | None = None) -> None:
        """Wait until a client (this one or a new one) gets an answer of a majority; then close the client."""
        client = self.connect("waiting", 2.0) if client is None else client
        end = time.monotonic() + START_S
        try:
            while True:
                try:
                    client.read_key("any/key")
                    return
                except CasUnavailable as error:
                    if time.monotonic() > end:
                        logs = "\n".join(server.log for server in self.servers)
                        raise AssertionError(f"{error}; the servers said:\n{logs}") from error
                    time.sleep(0.05)  # another process starts, and says nothing
        finally:
            client.close()

    def kill(self) -> None:
        for server in self.servers:
            server.kill()


def etcd(
    folder: Path,
    count: int,
    more: tuple[str, ...] = (),
    *,
    is_quick: bool = False,
    tls: ssl.SSLContext | None = None,
    host: str = "127.0.0.1",
) -> Service:
    """Return etcd with ``more`` options of each server.

    ``tls`` is for clients; the servers then need a certificate among their options.
    """
    heartbeat_ms = 50 if is_quick else 200
    scheme = "http" if tls is None else "https"
    ports = [(free_port(), free_port()) for _ in range(count)]
    members = ",".join(f"e{number}=http://{host}:{peer}" for number, (_, peer) in enumerate(ports))
    servers = []
    for number, (port, peer) in enumerate(ports):
        url, peer_url = f"{scheme}://{host}:{port}", f"http://{host}:{peer}"
        command = ["etcd", "--name", f"e{number}", "--data-dir", str(folder / f"e{number}")]
        command += ["--listen-client-urls", url, "--advertise-client-urls", url]
        command += ["--listen-peer-urls", peer_url, "--initial-advertise-peer-urls", peer_url]
        command += ["--initial-cluster", members, "--heartbeat-interval", str(heartbeat_ms)]
        command += ["--election-timeout", str(10 * heartbeat_ms)]
        command += ["--logger", "zap", "--log-level", "error", "--unsafe-no-fsync"]
        command += ["--bcrypt-cost", "4", *more]  # on a slow machine the usual hash takes longer than a start waits
        servers.append(ServiceProcess(command, folder / f"e{number}.log"))
    urls = [f"{scheme}://{host}:{port}" for port, _ in ports]
    context = (lambda: tls) if tls is not None else None
    return Service(servers, urls, lambda prefix, timeout_s: CasEtcd(urls, prefix, timeout_s=timeout_s, tls=context))


def zookeeper(
    folder: Path,
    count: int,
    *,
    is_quick: bool = False,
    server: Pair | None = None,
    tls: Callable[[], ssl.SSLContext] | None = None,
    ca: str = "",
    host: str = "127.0.0.1",
) -> Service:
    """Return ZooKeeper; with the certificate ``server`` only clients that ``ca`` has signed reach it, by ``tls``."""
    from columnar.coordination.cas_zookeeper import SESSION_S, CasZookeeper

    ports = [(free_port(), free_port(), free_port()) for _ in range(count)]
    members = "".join(f"server.{number}={host}:{a}:{b}\n" for number, (_, a, b) in enumerate(ports, 1))
    logged = folder / "log4j.properties"
    logged.write_text(_LOG4J)
    servers = []
    for number, (port, _, _) in enumerate(ports, 1):
        data = folder / f"z{number}"
        data.mkdir(parents=True)
        (data / "myid").write_text(f"{number}\n")
        settings = f"tickTime=500\ninitLimit=20\nsyncLimit={4 if is_quick else 10}\ndataDir={data}\n"
        settings += "admin.enableServer=false\nforceSync=no\n"
        kind = "clientPort" if server is None else "secureClientPort"
        settings += f"{kind}={port}\n{kind}Address={host}\n"
        if server is not None:
            settings += _over_tls(folder, server, ca)
        config = folder / f"z{number}.cfg"
        config.write_text(settings + (members if count > 1 else ""))
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        command = ["java", *_JAVA_OPTIONS, f"-Dlog4j.configuration=file:{logged}"]
        command += ["-cp", ":".join(map(str, (_ZOOKEEPER_JAR, *_NETTY))), main, str(config)]
        servers.append(ServiceProcess(command, folder / f"z{number}.log"))
    hosts = [f"{host}:{port}" for port, _, _ in ports]

    def connect(prefix: str, timeout_s: float) -> CasStore:
        session_s = max(SESSION_S, timeout_s)
        return CasZookeeper.connect(hosts, prefix, timeout_s=timeout_s, session_s=session_s, tls=tls)

    return Service(servers, hosts, connect)


def _over_tls(folder: Path, server: Pair, ca: str) -> str:
    store = folder / "zookeeper.pem"
    store.write_text(Path(server.key).read_text() + Path(server.cert).read_text())
    return (
        "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n"
        f"ssl.keyStore.location={store}\nssl.keyStore.type=PEM\nssl.trustStore.location={ca}\nssl.trustStore.type=PEM\n"
    )


def missing(kind: str) -> str | None:
    """Return what must be installed for the service, or None."""
    if kind == "etcd":
        return None if shutil.which("etcd") else "etcd (Debian: apt-get install etcd-server)"
    if not _ZOOKEEPER_JAR.exists() or not shutil.which("java"):
        return "ZooKeeper (Debian: apt-get install libzookeeper-java default-jre-headless)"
    return None


def need(kind: str) -> None:
    """Skip the test, or fail it under CI, if the service is not installed."""
    what = missing(kind)
    if what is not None and os.environ.get("CI", "").lower() in ("true", "1"):
        pytest.fail(f"THE COORDINATION TESTS DID NOT RUN: {what} is not installed")
    if what is not None:
        pytest.skip(f"THE COORDINATION TESTS DID NOT RUN: {what} is not installed")


@contextmanager
def running(
    kind: str, folder: Path, count: int = 1, *, is_quick: bool = False, host: str = "127.0.0.1"
) -> Iterator[Service]:
    """Start ``count`` servers of a kind that ``need`` has found.

    ``is_quick``: with the times of a service for short leases, by which a busy machine elects leaders without need.
    """
    need(kind)
    start = etcd if kind == "etcd" else zookeeper
    with started(start(folder, count, is_quick=is_quick, host=host)) as service:
        yield service


@contextmanager
def started(service: Service) -> Iterator[Service]:
    try:
        service.start()
        yield service
    finally:
        service.kill()
