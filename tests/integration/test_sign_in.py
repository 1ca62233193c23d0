"""Clients sign in: by SASL, over HTTP, by a certificate and by the Unix socket; what they send otherwise is refused."""

from __future__ import annotations

import asyncio
import base64
import http.client
import json
import os
import shutil
import socket
import stat
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import happybase
import pytest
from click.testing import CliRunner
from thriftpy2.protocol import TBinaryProtocol
from thriftpy2.rpc import make_client
from thriftpy2.thrift import TClient
from thriftpy2.transport import TBufferedTransport, TMemoryBuffer, TSocket, TSSLSocket
from werkzeug.test import Client
from werkzeug.wrappers import Response

from columnar.cli import main
from columnar.client import Connection
from columnar.client.errors import WrongArgument
from columnar.client.store_socket import NotConnected
from columnar.config import RightsSettings
from columnar.diagnosis.store_facts import store_facts
from columnar.errors import HostError
from columnar.model.accounts import ROOT, Account, Token
from columnar.model.rights import ALL, Grant, RightsRecord, Scope
from columnar.rights.page_guard import PageGuard
from columnar.security.credentials import hash_of, new_token
from columnar.security.passwords import Passwords
from columnar.security.scram import ScramClient, Verifier
from columnar.version import VERSION
from columnar.webui.pages import Pages
from columnar.wire.idl import SERVICE, hbase
from columnar.wire.sasl import BAD, COMPLETE, ERROR, OK, PLAIN, SCRAM, START, sasl_message
from columnar.wire.sockets import open_client_socket
from tests.support.certificates import Authority
from tests.support.deep import IS_DEEP
from tests.support.serving import Serving

PASSWORD = "correct horse"
TOKEN = new_token(lambda _bytes: "a" * 43)
ACCOUNT = Account(
    "ann",
    Passwords(memory_kib=1_024).hashed(PASSWORD),
    Verifier.of_password(PASSWORD, b"0123456789abcdef", 4_096).encoded,
    (Token("laptop", hash_of(TOKEN), 1),),
)
NONCE = b"rOprNGfwEbeRWgbNEkqO"
RECORD = RightsRecord((Grant("ann", Scope(), ALL),), {}, {"ann": ACCOUNT})


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    path = str(tmp_path / "clients")
    started = Serving(tmp_path / "data", rights=RightsSettings(is_on=True, socket=path)).start()
    holder = started.store.serving.rights
    assert holder is not None
    started.do(lambda: holder.take_record(RECORD))
    yield started
    started.stop()
    assert not os.path.exists(path), "a stopped store leaves no socket"


def test_the_doctor_asks_a_store_by_its_unix_socket(serving: Serving, tmp_path: Path) -> None:
    assert serving.store.port
    found = store_facts(f"unix:{tmp_path / 'clients'}", None, None, is_wanted=True)
    assert (found.error, found.version) == ("", VERSION)


def _framed(sock: socket.socket) -> bytes:
    length = int.from_bytes(_read(sock, 4), "big")
    return _read(sock, length)


def _read(sock: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = sock.recv(count - len(data))
        assert piece, f"closed after {data!r}"
        data += piece
    return data


def _answer(sock: socket.socket) -> tuple[int, bytes]:
    head = _read(sock, 5)
    return head[0], _read(sock, int.from_bytes(head[1:], "big"))


def _message(method: str) -> bytes:
    """Return a call without arguments."""
    out = TMemoryBuffer()
    client = TClient(SERVICE, TBinaryProtocol(out))
    client._send(method)
    return bytes(out.getvalue())


def _who(reply: bytes) -> str:
    client = TClient(SERVICE, TBinaryProtocol(TMemoryBuffer(reply)))
    found = client._recv("columnarWhoAmI")
    return str(found.user)


def _dial(serving: Serving) -> socket.socket:
    return socket.create_connection(("127.0.0.1", serving.store.port), timeout=20)


def _plain(user: str, secret: str) -> bytes:
    return sasl_message(OK, f"\0{user}\0{secret}".encode())


@pytest.mark.parametrize("secret", [PASSWORD, TOKEN])
@pytest.mark.parametrize("in_pieces", [False, True])
def test_plain_makes_a_user_of_a_connection(serving: Serving, secret: str, in_pieces: bool) -> None:
    call = _message("columnarWhoAmI")
    sent = sasl_message(START, PLAIN) + _plain("ann", secret) + len(call).to_bytes(4, "big") + call
    with _dial(serving) as sock:
        for piece in [sent[at : at + 1] for at in range(len(sent))] if in_pieces else [sent]:
            sock.sendall(piece)
        assert _answer(sock) == (COMPLETE, b"")
        assert _who(_framed(sock)) == "ann"
        sock.sendall(len(call).to_bytes(4, "big") + call)
        assert _who(_framed(sock)) == "ann"


def test_scram_makes_a_user_and_proves_that_the_server_knows_him(serving: Serving) -> None:
    call = _message("columnarWhoAmI")
    client = ScramClient("ann", PASSWORD, NONCE.decode())
    with _dial(serving) as sock:
        sock.sendall(sasl_message(START, SCRAM) + sasl_message(OK, client.first()))
        status, challenge = _answer(sock)
        assert status == OK
        sock.sendall(sasl_message(OK, client.proof(challenge)) + len(call).to_bytes(4, "big") + call)
        status, last = _answer(sock)
        assert status == COMPLETE
        client.check(last)
        assert _who(_framed(sock)) == "ann"


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (sasl_message(START, PLAIN) + _plain("ann", "wrong"), BAD),
        (sasl_message(START, PLAIN) + _plain("nobody", PASSWORD), BAD),
        (sasl_message(START, PLAIN) + _plain("root", PASSWORD), BAD),
        (sasl_message(START, PLAIN) + sasl_message(OK, b"bob\0ann\0" + PASSWORD.encode()), BAD),
        (sasl_message(START, PLAIN) + sasl_message(OK, b"no nul"), BAD),
        (sasl_message(START, b"GSSAPI"), BAD),
        (
            sasl_message(START, SCRAM)
            + sasl_message(OK, b"n,,n=ann,r=" + NONCE)
            + sasl_message(OK, b"c=biws,p=eA==,r=" + NONCE),
            OK,
        ),
        (sasl_message(START, PLAIN) + sasl_message(BAD, b""), BAD),
        (sasl_message(START, PLAIN) + bytes([OK]) + b"\xff" * 4, BAD),
    ],
)
def test_other_negotiations_are_refused_and_closed(serving: Serving, sent: bytes, status: int) -> None:
    with _dial(serving) as sock:
        sock.sendall(sent)
        answers = [_answer(sock)]
        if status == OK:
            answers.append(_answer(sock))
        assert answers[0][0] == status
        assert answers[-1][0] in (BAD, ERROR)
        assert PASSWORD.encode() not in answers[-1][1]
        assert sock.recv(1) == b"", "the connection is closed"


def _post(serving: Serving, headers: dict[str, str]) -> tuple[int, bytes, dict[str, str]]:
    connection = http.client.HTTPConnection("127.0.0.1", serving.store.port, timeout=20)
    connection.request("POST", "/", _message("columnarWhoAmI"), {"Content-Type": "application/x-thrift", **headers})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, body, dict(answer.getheaders())


def _basic(user: str, secret: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{secret}".encode()).decode()}


def test_http_requests_name_their_user_each(serving: Serving) -> None:
    for headers in (_basic("ann", PASSWORD), {"Authorization": f"Bearer {TOKEN}"}, _basic("ann", TOKEN)):
        for _ in range(2):  # the second finds the verified password
            status, body, _ = _post(serving, headers)
            assert (status, _who(body)) == (200, "ann")
    status, body, _ = _post(serving, {})
    assert (status, _who(body)) == (200, "")


@pytest.mark.parametrize(
    "headers",
    [_basic("ann", "wrong"), _basic("bob", PASSWORD), {"Authorization": "Bearer clmn_wrong"}, {"Authorization": "x"}],
)
def test_wrong_credentials_are_refused_over_http(serving: Serving, headers: dict[str, str]) -> None:
    status, body, answered = _post(serving, headers)
    assert status == 401
    assert "WWW-Authenticate" in answered
    assert PASSWORD.encode() not in body


def test_a_request_whose_password_is_being_verified_counts_as_input(serving: Serving) -> None:
    holder = serving.store.serving.rights
    assert holder is not None
    assert holder.sign_in is not None
    began, goes_on = threading.Event(), threading.Event()

    class Gated(Passwords):
        async def verify(self, stored: str, password: str) -> bool:
            began.set()
            await asyncio.to_thread(goes_on.wait, 20)
            return False

    holder.sign_in._passwords = Gated()
    wire = serving.store.ports.wire
    answers: list[int] = []
    posting = threading.Thread(target=lambda: answers.append(_post(serving, _basic("ann", "wrong"))[0]))
    posting.start()
    assert began.wait(20)
    assert serving.do(lambda: wire.input_bytes) >= len(_message("columnarWhoAmI"))
    goes_on.set()
    posting.join(20)
    assert answers == [401]


def test_calls_sent_with_the_credentials_are_served_as_the_user(serving: Serving) -> None:
    call = _message("columnarWhoAmI")
    framed = len(call).to_bytes(4, "big") + call
    with _dial(serving) as sock:
        sock.sendall(sasl_message(START, PLAIN) + _plain("ann", PASSWORD) + framed * 500)
        sock.sendall(framed * 500)
        assert _answer(sock)[0] == COMPLETE
        assert {_who(_framed(sock)) for _ in range(1_000)} == {"ann"}


def test_users_of_one_http_connection_do_not_mix(serving: Serving) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", serving.store.port, timeout=20)
    for headers, user in ((_basic("ann", PASSWORD), "ann"), ({}, ""), ({"Authorization": f"Bearer {TOKEN}"}, "ann")):
        connection.request("POST", "/", _message("columnarWhoAmI"), headers)
        assert _who(connection.getresponse().read()) == user
    connection.close()


def _over_socket(path: str) -> Any:
    return make_client(SERVICE, unix_socket=path, timeout=20_000)


def test_the_user_of_the_store_is_root_over_the_unix_socket(serving: Serving, tmp_path: Path) -> None:
    path = str(tmp_path / "clients")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o660
    client = _over_socket(path)
    assert client.columnarWhoAmI().user == ROOT
    client.createTable(b"t", [hbase.ColumnDescriptor(name=b"a")])
    client.close()


def test_happybase_works_over_the_unix_socket(serving: Serving, tmp_path: Path) -> None:
    connection = happybase.Connection("127.0.0.1", 1, autoconnect=False)
    connection.transport = TBufferedTransport(TSocket(unix_socket=str(tmp_path / "clients")))
    connection.client = TClient(
        connection.client._service, TBinaryProtocol(connection.transport, decode_response=False)
    )
    connection.open()
    connection.create_table("t", {"a": {}})
    connection.table("t").put(b"r", {b"a:1": b"v"})
    assert connection.table("t").row(b"r") == {b"a:1": b"v"}
    connection.close()


@pytest.mark.parametrize("secret", [{"password": PASSWORD}, {"token": TOKEN}])
def test_our_client_signs_in(serving: Serving, secret: dict[str, str]) -> None:
    with Connection("127.0.0.1", serving.store.port, timeout=20_000, user="ann", **secret) as connection:
        assert connection.call("columnarWhoAmI").user == b"ann"
        connection.close()
        connection.open()
        assert connection.call("columnarWhoAmI").user == b"ann"
        connection.create_table("t", {"a": {}})  # afterwards the catalogue publishes, which knows no ann
        connection.table("t").put(b"r", {b"a:1": b"v"})
        assert connection.table("t").row(b"r") == {b"a:1": b"v"}


def test_our_client_says_why_it_is_not_signed_in(serving: Serving) -> None:
    for secret in ({"password": "wrong"}, {"token": TOKEN + "x"}):
        with pytest.raises(
            NotConnected, match="not signed in as ann: the user or the password is not right"
        ) as refused:
            Connection("127.0.0.1", serving.store.port, timeout=20_000, user="ann", **secret)
        assert next(iter(secret.values())) not in str(refused.value)
    for host, options in (("10.0.0.1", {"user": "ann", "token": TOKEN}), ("127.0.0.1", {"password": "x"})):
        with pytest.raises(WrongArgument):
            Connection(host, 1, autoconnect=False, **options)


GO_CLIENT: Final = """
package main

import ("bytes"; "fmt"; "io"; "net/http"; "os")

func main() {
    message, _ := io.ReadAll(os.Stdin)
    for _, token := range os.Args[2:] {
        request, _ := http.NewRequest("POST", os.Args[1], bytes.NewReader(message))
        request.Header.Set("Content-Type", "application/x-thrift")
        request.Header.Set("Authorization", "Bearer " + token)
        answer, err := http.DefaultClient.Do(request)
        if err != nil {
            panic(err)
        }
        body, _ := io.ReadAll(answer.Body)
        fmt.Printf("%d %x\\n", answer.StatusCode, body)
    }
}
"""


@pytest.mark.skipif(shutil.which("go") is None, reason="no Go: its client was not run")
@pytest.mark.skipif(not IS_DEEP, reason="make test-deep compiles the client in Go")
def test_a_client_in_go_signs_in_by_a_token_over_http(serving: Serving, tmp_path: Path) -> None:
    (tmp_path / "client.go").write_text(GO_CLIENT)
    command = ["go", "run", str(tmp_path / "client.go"), f"http://127.0.0.1:{serving.store.port}/", TOKEN, "clmn_wrong"]
    done = subprocess.run(command, input=_message("columnarWhoAmI"), capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.decode().splitlines()
    assert first.startswith("200 ")
    assert _who(bytes.fromhex(first[4:])) == "ann"
    assert second.startswith("401 ")


def test_certificates_name_the_users_of_tls_and_credentials_another(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "ca")
    own = authority.sign("store")
    settings = {"tls_cert": own.cert, "tls_key": own.key, "tls_client_ca": authority.ca}
    tls = Serving(tmp_path / "data", rights=RightsSettings(is_on=True), **settings).start()
    holder = tls.store.serving.rights
    assert holder is not None
    tls.do(lambda: holder.take_record(RECORD))

    dialled: list[TSSLSocket] = []

    def dial(name: str) -> TSSLSocket:
        pair = authority.sign(name)
        found = TSSLSocket(
            "127.0.0.1",
            tls.store.port,
            cafile=authority.ca,
            certfile=pair.cert,
            keyfile=pair.key,
            socket_timeout=20_000,
        )
        found.open()
        dialled.append(found)
        return found

    def who(sock: Any) -> str:
        call = _message("columnarWhoAmI")
        sock.sendall(len(call).to_bytes(4, "big") + call)
        return _who(_framed(sock))

    try:
        assert {name: who(dial(name).sock) for name in ("ann", "bob")} == {"ann": "ann", "bob": "bob"}
        assert {who(dial(name).sock) for name in (ROOT, "two words", "ann/CN=bob")} == {""}, "no certificate is root"
        other = dial("bob").sock
        other.sendall(sasl_message(START, PLAIN) + _plain("ann", PASSWORD))
        assert _answer(other)[0] == COMPLETE
        assert who(other) == "ann"
        connection = happybase.Connection("127.0.0.1", 1, autoconnect=False)
        connection.transport = TBufferedTransport(dial("ann"))
        protocol = TBinaryProtocol(connection.transport, decode_response=False)
        connection.client = TClient(connection.client._service, protocol)
        connection.create_table("t", {"a": {}})
        connection.table("t").put(b"r", {b"a:1": b"v"})
        assert connection.table("t").row(b"r") == {b"a:1": b"v"}
        connection.close()
        connection.transport = TBufferedTransport(dial("bob"))
        protocol = TBinaryProtocol(connection.transport, decode_response=False)
        connection.client = TClient(connection.client._service, protocol)
        with pytest.raises(Exception, match="AccessDenied"):
            connection.table("t").row(b"r")
        connection.close()
    finally:
        for sock in dialled:
            sock.close()
        tls.stop()


def test_a_plain_connection_has_no_user_and_no_rights(serving: Serving) -> None:
    client = make_client(SERVICE, "127.0.0.1", serving.store.port, timeout=20_000)
    assert client.columnarWhoAmI().user == ""
    with pytest.raises(hbase.IOError, match="AccessDeniedException"):
        client.getTableNames()
    client.close()


def test_the_socket_of_a_killed_store_is_replaced_and_no_other(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    left = socket.socket(socket.AF_UNIX)
    left.bind(path)
    left.close()  # as a killed process leaves it
    opened = open_client_socket(path)
    with pytest.raises(HostError, match="another process serves"):
        open_client_socket(path)
    opened.remove_path()
    assert not os.path.exists(path)
    opened.listening.close()
    (tmp_path / "file").write_text("kept")
    with pytest.raises(HostError, match="is no socket"):
        open_client_socket(str(tmp_path / "file"))
    assert (tmp_path / "file").read_text() == "kept"
    with pytest.raises(HostError, match="107 bytes"):
        open_client_socket(str(tmp_path / ("x" * 120)))


def test_a_stop_removes_its_own_socket_whoever_holds_it_and_no_other(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    opened = open_client_socket(path)
    with os.fdopen(os.dup(opened.listening.fileno())):  # as in the child of a fork, which has not run its program yet
        opened.remove_path()
        opened.listening.close()
        assert not os.path.exists(path)
    first = open_client_socket(path)
    os.unlink(path)
    second = open_client_socket(path)
    first.remove_path()
    first.listening.close()
    assert os.path.exists(path), "it is the second's"
    second.remove_path()
    second.remove_path()
    second.listening.close()


def test_pages_need_a_user_with_rights_and_probes_none(serving: Serving) -> None:
    holder = serving.store.serving.rights
    assert holder is not None
    guard = PageGuard(serving.store.judge_visitor, serving.run(_loop())).refusal
    assert guard("", "127.0.0.1", True) == (401, "sign in: this store checks rights")
    assert guard(f"Bearer {TOKEN}", "127.0.0.1", True) is None
    for _ in range(2):
        assert guard(_basic("ann", PASSWORD)["Authorization"], "127.0.0.1", True) is None
    assert guard(f"Bearer {TOKEN}", "10.0.0.9", False) is not None, "the network could read it"
    wrong = guard(_basic("ann", "wrong")["Authorization"], "127.0.0.1", True)
    assert wrong is not None
    assert wrong[0] == 401
    serving.do(lambda: holder.take_record(RightsRecord((), {}, {"ann": ACCOUNT})))
    refused = guard(f"Bearer {TOKEN}", "127.0.0.1", True)
    assert refused is not None
    assert refused[0] == 403
    pages = Pages({"/": lambda _request: Response("tables"), "/livez": lambda _request: Response("ok")}, "", None)
    pages._visitors.guard_pages(guard)
    assert [Client(pages).get(path).status_code for path in ("/", "/livez", "/nothing")] == [401, 200, 401]


async def _loop() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


def test_the_terminal_is_root_over_the_socket(serving: Serving, tmp_path: Path) -> None:
    store = f"unix:{tmp_path / 'clients'}"
    answered = CliRunner().invoke(main, ["whoami", "--json", "--store", store], catch_exceptions=False)
    assert json.loads(answered.output) == {
        "user": "root",
        "groups": [],
        "rights": "RWXCA",
        "superuser": True,
        "rights_on": True,
    }
