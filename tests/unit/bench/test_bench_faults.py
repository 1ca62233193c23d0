"""What is said of an endpoint that cannot be measured."""

from __future__ import annotations

import pickle
import socket
import ssl
import threading

import pytest
from thriftpy2.transport import TTransportException

from columnar.bench.address import Endpoint, EndpointFailed, Misaddressed
from columnar.bench.faults import failed
from columnar.client.tls import ClientTls

NOWHERE = Endpoint("127.0.0.1", 1, tls=ClientTls())


def refusal(code: int, message: str) -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_code, error.verify_message = code, message
    return error


@pytest.mark.parametrize(
    ("code", "step"),
    [
        (9, "look at its dates"),
        (10, "have it renewed"),
        (62, "by a name that"),
        (64, "by an address"),
        (20, "--tls-ca"),
    ],
)
def test_a_certificate_that_is_not_accepted(code: int, step: str) -> None:
    by_client = TTransportException(TTransportException.NOT_OPEN, "no TLS with 127.0.0.1:1")
    by_client.__cause__ = refusal(code, "the reason")
    for error in (refusal(code, "the reason"), by_client):
        told = failed(NOWHERE, error)
        assert isinstance(told, Misaddressed)
        assert str(told).startswith("tls://127.0.0.1:1: its certificate is not accepted: the reason; ")
        assert step in str(told)


def test_an_alert_that_is_not_about_certificates_asks_for_none() -> None:
    error = ssl.SSLError(1, "[SSL: TLSV1_ALERT_PROTOCOL_VERSION]")
    error.reason = "TLSV1_ALERT_PROTOCOL_VERSION"
    assert str(failed(NOWHERE, error)) == "tls://127.0.0.1:1: TLS failed: TLSV1 ALERT PROTOCOL VERSION"


@pytest.mark.parametrize("tls", [None, ClientTls()])
def test_who_closes_whatever_is_asked_is_just_said_to_have_closed(tls: ClientTls | None) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        closing = threading.Thread(target=lambda: listener.accept()[0].close())
        closing.start()
        endpoint = Endpoint(*listener.getsockname(), tls=tls)
        told = failed(endpoint, EndpointFailed("the endpoint closed the connection"))
        closing.join()
    assert type(told) is EndpointFailed
    assert str(told) == f"{endpoint}: the endpoint closed the connection"


def test_it_comes_whole_from_another_process() -> None:
    again = pickle.loads(pickle.dumps(Misaddressed("a line")))
    assert (type(again), str(again)) == (Misaddressed, "a line")
