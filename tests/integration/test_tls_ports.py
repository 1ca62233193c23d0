"""TLS on every port of a store in a process of its own: who is let in, who is turned away and with which line."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
from click.testing import CliRunner
from thriftpy2.protocol import TBinaryProtocolFactory, TCompactProtocolFactory
from thriftpy2.rpc import make_client
from thriftpy2.transport import TBufferedTransportFactory, TFramedTransportFactory, TTransportException

from columnar.cli import main
from columnar.client import ClientTls, Connection
from columnar.limits import HANDSHAKE_S, MIB
from columnar.wire.idl2 import SERVICE2, hbase2
from tests.support.besieged import log_lines, next_log_lines
from tests.support.certificates import Authority, Pair
from tests.support.ports import free_port
from tests.support.standalone_store import ENVIRONMENT, StoreProcess
from wikka_port.cli import main as wikka

WAIT_S = 20.0


@dataclass
class House:
    """A store that asks for client certificates, and those who may come in."""

    store: StoreProcess
    ours: Authority
    server: Pair
    client: Pair
    web_port: int
    thrift2_port: int

    @property
    def guest(self) -> ClientTls:
        return self.ours.client(self.client)

    def connect(self, **options: Any) -> Connection:
        return Connection("127.0.0.1", self.store.port, timeout=20_000, **{"tls": self.guest, **options})

    def said_after(self, act: Callable[[], Any]) -> list[str]:
        """The lines of the log that ``act`` brought about; waits for the first."""
        before = len(self.store.log.read_text().splitlines())
        act()
        return self.lines_from(before)

    def lines_from(self, before: int) -> list[str]:
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            lines = self.store.log.read_text().splitlines()[before:]
            if lines:
                return lines
            threading.Event().wait(0.01)
        raise AssertionError("nothing was logged")


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder = tmp_path_factory.mktemp("tls")
    ours = Authority(folder, "ours")
    server, client = ours.sign("store"), ours.sign("client")
    web_port, thrift2_port = free_port(), free_port()
    flags = ["--tls-cert", server.cert, "--tls-key", server.key, "--tls-client-ca", ours.ca]
    flags += ["--web-port", str(web_port), "--thrift2-port", str(thrift2_port)]
    flags += ["--trigger-modules", "tests.support.trigger_functions"]
    with StoreProcess(folder / "data", *flags) as store:
        store.await_log()
        made = House(store, ours, server, client, web_port, thrift2_port)
        connection = made.connect()
        connection.create_table("t", {"a": {}})
        connection.table("t").put(b"r0", {b"a:x": b"value"})
        connection.close()
        yield made


def refusal(connect: Callable[[], Connection]) -> str:
    """What a client hears that is turned away: at the handshake, or by its first answer."""
    with pytest.raises((TTransportException, OSError)) as caught:
        connect().tables()
    return str(getattr(caught.value, "message", None) or caught.value)


@pytest.mark.parametrize("transport", ["buffered", "framed"])
@pytest.mark.parametrize("protocol", ["binary", "compact"])
def test_every_transport_and_protocol(house: House, transport: str, protocol: str) -> None:
    connection = house.connect(transport=transport, protocol=protocol)
    assert connection.table("t").row(b"r0") == {b"a:x": b"value"}
    assert connection.is_columnar
    connection.close()


def test_http(house: House) -> None:
    context = house.guest.context()
    ask = b"\x80\x01\x00\x01\x00\x00\x00\rgetTableNames\x00\x00\x00\x01\x00"
    kind = {"Content-Type": "application/x-thrift"}  # urllib's own is that of a form
    request = urllib.request.Request(f"https://127.0.0.1:{house.store.port}/", ask, kind, method="POST")
    with urllib.request.urlopen(request, context=context, timeout=WAIT_S) as reply:
        assert b"getTableNames" in reply.read()


@pytest.mark.parametrize("transport", [TBufferedTransportFactory, TFramedTransportFactory])
@pytest.mark.parametrize("protocol", [TBinaryProtocolFactory, TCompactProtocolFactory])
def test_the_thrift_2_port(house: House, transport: Any, protocol: Any) -> None:
    where = {"host": "127.0.0.1", "port": house.thrift2_port, "timeout": 20_000}
    client = make_client(
        SERVICE2,
        proto_factory=protocol(),
        trans_factory=transport(),
        ssl_context=house.guest.context(),
        **where,
    )
    found = client.get(b"t", hbase2.TGet(row=b"r0"))
    assert [value.value for value in found.columnValues] in ([b"value"], ["value"])
    client.close()


def test_the_status_page(house: House) -> None:
    url = f"https://127.0.0.1:{house.web_port}"
    for path in ("/health", "/", "/metrics"):
        with urllib.request.urlopen(url + path, context=house.guest.context(), timeout=WAIT_S) as answer:
            assert answer.status == 200
    with pytest.raises(OSError):
        urllib.request.urlopen(url, context=house.ours.client().context(), timeout=WAIT_S)


def test_ten_megabytes_there_and_back(house: House) -> None:
    connection = house.connect()
    values = {b"a:%d" % number: bytes([number]) * (5 * MIB) for number in range(2)}
    connection.table("t").put(b"large", values)
    assert connection.table("t").row(b"large") == values
    connection.table("t").delete(b"large")
    connection.close()


def test_who_is_turned_away_hears_why_and_the_log_has_one_line(house: House, tmp_path: Path) -> None:
    strangers = Authority(tmp_path, "strangers")
    alien, old = strangers.sign("alien"), house.ours.sign("old", days=-1)
    cases = {
        "no certificate": (house.ours.client(), "CERTIFICATE_REQUIRED", "the client has no certificate"),
        "expired": (house.ours.client(old), "CERTIFICATE_EXPIRED", "certificate has expired"),
        "of somebody else": (ClientTls(house.ours.ca, alien.cert, alien.key), "UNKNOWN_CA", "is not accepted"),
        "does not trust us": (strangers.client(alien), "certificate", "does not trust our certificate"),
        "plain text": (None, "read 0 bytes", "plain text, unframed binary"),
    }
    for name, (tls, heard, logged) in cases.items():
        told: list[str] = []
        lines = house.said_after(lambda tls=tls, told=told: told.append(refusal(lambda: house.connect(tls=tls))))
        assert heard in told[0], name
        assert len(lines) == 1, f"{name}: {lines}"
        assert logged in lines[0], name
        assert "closed: " in lines[0], name


def test_a_certificate_for_another_host_is_refused_by_the_client(house: House) -> None:
    told = refusal(lambda: Connection("127.0.0.2", house.store.port, timeout=20_000, tls=house.guest))
    assert "connect" in told  # the store listens at 127.0.0.1 alone
    raw = socket.create_connection(("127.0.0.1", house.store.port), timeout=WAIT_S)
    with raw, pytest.raises(ssl.SSLCertVerificationError, match="match"):
        house.guest.context().wrap_socket(raw, server_hostname="elsewhere.example")


def test_a_client_of_tls_at_a_plain_port(tmp_path: Path) -> None:
    with StoreProcess(tmp_path / "data") as store:
        store.await_log()
        before = len(log_lines(store))
        told = refusal(lambda: Connection("127.0.0.1", store.port, timeout=20_000, tls=True))
        assert told.startswith(f"no TLS with 127.0.0.1:{store.port}: ")
        lines = next_log_lines(store, before)
        assert len(lines) == 1
        assert "TLS; this port speaks plain TCP" in lines[0]


def hello(house: House) -> bytes:
    """The first bytes of a client's handshake."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    half = house.guest.context().wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    with pytest.raises(ssl.SSLWantReadError):
        half.do_handshake()
    return outgoing.read()


def test_many_handshakes_left_half_way_hold_up_nobody(house: House) -> None:
    first = hello(house)
    left = [socket.create_connection(("127.0.0.1", house.store.port)) for _ in range(300)]
    try:
        for number, sock in enumerate(left):
            sock.sendall((b"", first[:5], first[: len(first) // 2], first)[number % 4])
        begun = time.monotonic()
        connection = house.connect()
        assert connection.table("t").row(b"r0") == {b"a:x": b"value"}
        connection.close()
        assert time.monotonic() - begun < HANDSHAKE_S, "it waits for none of them to be over"
        with urllib.request.urlopen(
            f"https://127.0.0.1:{house.web_port}/health", context=house.guest.context(), timeout=WAIT_S
        ) as answer:
            assert answer.status == 200
    finally:
        for sock in left:
            sock.close()


def test_a_client_that_ends_its_side_is_still_answered(house: House) -> None:
    """Half a close: TCP's end, and TLS's farewell, come before the reply."""
    ask = b"\x80\x01\x00\x01\x00\x00\x00\rgetTableNames\x00\x00\x00\x01\x00"
    raw = socket.create_connection(("127.0.0.1", house.store.port), timeout=WAIT_S)
    with raw, house.guest.context().wrap_socket(raw, server_hostname="127.0.0.1") as sock:
        sock.sendall(ask)  # the first call of a connection that ends at once may never begin
        assert b"getTableNames" in sock.recv(1 << 16)
        sock.sendall(ask)
        socket.socket.shutdown(sock, socket.SHUT_WR)
        answer = b""
        while data := sock.recv(1 << 16):
            answer += data
    assert b"getTableNames" in answer


def test_triggers_run_behind_tls(house: House) -> None:
    """Their worker has no certificate: it comes in by a socket of its own."""
    connection = house.connect()
    for name in ("source", "audit"):
        connection.create_table(name, {"a": {}})
    connection.triggers.add("copy", b"source", "tests.support.trigger_functions:note", [b"a"])
    connection.table("source").put(b"r", {b"a:x": b"1"})
    deadline = time.monotonic() + WAIT_S
    while not connection.table("audit").row(b"r") and time.monotonic() < deadline:
        threading.Event().wait(0.02)
    assert connection.table("audit").row(b"r")
    connection.close()


def test_commands_take_the_same_options(house: House) -> None:
    where = ["--store", f"127.0.0.1:{house.store.port}", "--tls-ca", house.ours.ca]
    mine = ["--tls-client-cert", house.client.cert, "--tls-client-key", house.client.key]
    shown = CliRunner().invoke(main, ["tables", "--json", *where, *mine])
    assert shown.exit_code == 0, shown.output
    assert "t" in [table["name"] for table in json.loads(shown.output)]
    script = CliRunner().invoke(main, ["shell", "-c", "tables; check --json", *where, *mine])
    assert (script.exit_code, json.loads(script.stdout.splitlines()[-1])["errors"]) == (0, 0), script.output
    by_environment = {"COLUMNAR_STORE": where[1], "COLUMNAR_TLS_CA": house.ours.ca}
    before = len(house.store.log.read_text().splitlines())
    refused = CliRunner().invoke(main, ["tables"], env=by_environment)
    assert refused.exit_code == 2
    assert "--tls-client-cert" in refused.output
    assert len(house.lines_from(before)) == 1  # looking whether somebody is there is no line
    half = CliRunner().invoke(main, ["tables", *where, *mine[:2]])
    assert half.exit_code == 2
    assert "go together" in half.output
    missing = CliRunner().invoke(main, ["tables", *where[:2], "--tls-ca", "/no/such/file"])
    assert missing.exit_code == 2
    assert "--tls-ca must name a PEM file" in missing.output
    assert CliRunner().invoke(wikka, ["prepare", *where, *mine, "--indexes=application"]).exit_code == 0


def test_a_renewed_certificate_is_taken_and_a_broken_one_is_not(tmp_path: Path) -> None:
    old, new = Authority(tmp_path, "old"), Authority(tmp_path, "new")
    cert, key = tmp_path / "store.crt", tmp_path / "store.key"

    def put(pair: Pair) -> None:
        shutil.copy(pair.cert, cert)
        shutil.copy(pair.key, key)

    put(old.sign("store"))
    with StoreProcess(tmp_path / "data", "--tls-cert", str(cert), "--tls-key", str(key)) as store:
        house = House(store, old, Pair(str(cert), str(key)), Pair("", ""), 0, 0)
        early = house.connect(tls=old.client())

        def renew() -> None:
            store._process.send_signal(signal.SIGHUP)

        cert.write_text("no certificate\n")
        assert "the certificate in use stays" in house.said_after(renew)[0]
        house.connect(tls=old.client()).close()
        put(new.sign("store"))
        assert "was read again" in house.said_after(renew)[0]
        house.connect(tls=new.client()).close()
        assert "certificate" in refusal(lambda: house.connect(tls=old.client()))
        assert early.tables() == []  # a connection that was there before goes on
        early.close()
        assert store.stop() == 0


def start_refused(tmp_path: Path, *flags: str) -> str:
    command = [sys.executable, "-m", "columnar", "standalone", "--data", str(tmp_path / "d"), "--port", "0"]
    command += ["--web-port", "-1", *flags]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, timeout=60)
    assert done.returncode == 2
    return done.stderr.splitlines()[-1]


def test_files_that_cannot_be_used_are_told_before_anything_is_served(tmp_path: Path) -> None:
    ours = Authority(tmp_path, "ours")
    one, two = ours.sign("one"), ours.sign("two")
    assert "--tls-cert must name a PEM file" in start_refused(tmp_path, "--tls-cert", "/none", "--tls-key", one.key)
    assert "is not that of the certificate" in start_refused(tmp_path, "--tls-cert", one.cert, "--tls-key", two.key)
    assert "TLS needs --tls-cert and --tls-key" in start_refused(tmp_path, "--tls-cert", one.cert)


def test_probes_need_no_certificate_at_the_health_port_which_tells_nothing_else(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "authority")
    pair = authority.sign("store")
    health, web = free_port(), free_port()
    flags = ["--tls-cert", pair.cert, "--tls-key", pair.key, "--tls-client-ca", authority.ca]
    flags += ["--health-port", str(health), "--web-port", str(web)]
    with StoreProcess(tmp_path / "data", *flags):
        assert requests.get(f"http://127.0.0.1:{health}/livez", timeout=WAIT_S).text == "ok\n"
        assert requests.get(f"http://127.0.0.1:{health}/readyz", timeout=WAIT_S).text == "ready\n"
        assert requests.get(f"http://127.0.0.1:{health}/metrics", timeout=WAIT_S).status_code == 404
        with pytest.raises(requests.exceptions.SSLError):
            requests.get(f"https://127.0.0.1:{health}/livez", timeout=WAIT_S, verify=False)
        with pytest.raises(requests.exceptions.ConnectionError):
            requests.get(f"https://127.0.0.1:{web}/livez", timeout=WAIT_S, verify=authority.ca)
