"""Clients that sign in by SASL PLAIN on a Thrift port: Python's thrift_sasl, and Java's TSaslClientTransport.

thrift_sasl has pure-sasl's mechanism, as PyHive and impyla use it; the client in Java has libthrift, as HBase's.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from puresasl.client import SASLClient
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TTransportException
from thrift_sasl import TSaslClientTransport
from thriftpy2.protocol.binary import TBinaryProtocol
from thriftpy2.thrift import TClient

from columnar.client import Connection
from columnar.client.users import UserAdmin
from columnar.config import RightsSettings
from columnar.model.accounts import ROOT
from columnar.wire.idl import SERVICE, columnar, hbase
from tests.support.deep import IS_DEEP
from tests.support.serving import Serving

PASSWORD = "correct horse"
JARS: Final = ("org.apache.thrift:libthrift:0.14.1", "org.slf4j:slf4j-api:1.7.28")  # as HBase 2.5 has them
JAVA_CLIENT: Final = """
import java.util.Map;
import javax.security.auth.callback.*;
import org.apache.thrift.TConfiguration;
import org.apache.thrift.protocol.*;
import org.apache.thrift.transport.*;

public class Who {
    public static void main(String[] words) throws Exception {
        for (int at = 2; at < words.length; at++) {
            String user = words[1], password = words[at];
            CallbackHandler secrets = asked -> {
                for (Callback one : asked) {
                    if (one instanceof NameCallback) ((NameCallback) one).setName(user);
                    if (one instanceof PasswordCallback) ((PasswordCallback) one).setPassword(password.toCharArray());
                }
            };
            TTransport socket = new TSocket(new TConfiguration(), "127.0.0.1", Integer.parseInt(words[0]), 20000);
            TTransport signedIn =
                new TSaslClientTransport("PLAIN", null, "hbase", "localhost", Map.of(), secrets, socket);
            try {
                signedIn.open();
                TProtocol call = new TBinaryProtocol(signedIn);
                call.writeMessageBegin(new TMessage("columnarWhoAmI", TMessageType.CALL, 1));
                call.writeStructBegin(new TStruct("args"));
                call.writeFieldStop();
                call.writeStructEnd();
                call.writeMessageEnd();
                call.getTransport().flush();
                call.readMessageBegin();
                call.readStructBegin();
                call.readFieldBegin();
                call.readStructBegin();
                call.readFieldBegin();
                System.out.println("user " + call.readString());
            } catch (TTransportException refused) {
                System.out.println("refused " + refused.getMessage());
            }
            signedIn.close();
        }
    }
}
"""


class Sasl:
    """pure-sasl's client with the methods of Cyrus' binding, as PyHive and impyla give it to thrift_sasl."""

    def __init__(self, user: str, password: str) -> None:
        self._client = SASLClient("localhost", service="hbase", mechanism="PLAIN", username=user, password=password)

    def start(self, mechanism: str) -> tuple[bool, str, bytes]:
        self._client.mechanism = mechanism
        return True, mechanism, self._client.process()

    def encode(self, data: bytes) -> tuple[bool, bytes]:
        return True, self._client.wrap(data)

    def getError(self) -> str:
        return "pure-sasl"


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    path = str(tmp_path / "clients")
    serving = Serving(tmp_path / "data", rights=RightsSettings(is_on=True, socket=path)).start()
    root = Connection(unix_socket=path, user=ROOT)
    root.create_table("t", {"a": {}, "b": {}})
    root.table("t").put(b"r", {b"a:1": b"seen", b"b:1": b"secret"})
    UserAdmin(root).set_password("ann", PASSWORD)
    root.call("columnarGrant", columnar.RightsGrant(grantee="ann", rights="R", table=b"t", family=b"a"))
    yield serving.store.port
    root.close()
    serving.stop()


def _transport(port: int, user: str, password: str) -> TSaslClientTransport:
    sock = TSocket("127.0.0.1", port)
    sock.setTimeout(20_000)
    return TSaslClientTransport(lambda: Sasl(user, password), "PLAIN", sock)


def test_the_right_password_signs_in_and_rights_count(port: int) -> None:
    transport = _transport(port, "ann", PASSWORD)
    transport.open()
    client = TClient(SERVICE, TBinaryProtocol(transport, decode_response=False))
    assert client.columnarWhoAmI().user == b"ann"
    for _ in range(2):
        (row,) = client.getRow(b"t", b"r", {})
        assert {column: cell.value for column, cell in row.columns.items()} == {b"a:1": b"seen"}
    with pytest.raises(hbase.IOError) as refused:
        client.mutateRow(b"t", b"r", [hbase.Mutation(column=b"a:1", value=b"x")], {})
    assert b"Insufficient permissions (user=ann" in refused.value.message
    transport.close()


@pytest.mark.parametrize(("user", "password"), [("ann", "wrong"), ("nobody", PASSWORD), ("ann", ""), (ROOT, PASSWORD)])
def test_a_wrong_one_does_not(port: int, user: str, password: str) -> None:
    transport = _transport(port, user, password)
    with pytest.raises(TTransportException, match="Bad status: 3"):
        transport.open()
    transport.close()


@pytest.mark.skipif(not all(map(shutil.which, ("java", "javac", "mvn"))), reason="no Java: its client was not run")
@pytest.mark.skipif(not IS_DEEP, reason="make test-deep compiles the client in Java")
def test_a_client_in_java_signs_in(port: int, tmp_path: Path) -> None:
    def run(*command: str) -> str:
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    (tmp_path / "Who.java").write_text(JAVA_CLIENT)
    for jar in JARS:
        run("mvn", "-q", "-B", "dependency:copy", f"-Dartifact={jar}", f"-DoutputDirectory={tmp_path / 'jars'}")
    path = f"{tmp_path}:{tmp_path / 'jars'}/*"
    run("javac", "-cp", path, "Who.java")
    right, wrong, again = run("java", "-cp", path, "Who", str(port), "ann", PASSWORD, "wrong", PASSWORD).splitlines()
    assert (right, again) == ("user ann", "user ann")
    assert wrong.startswith("refused ")
    assert "the user or the password is not right" in wrong
