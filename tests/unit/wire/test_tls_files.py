"""What the server says of its certificate's files and dates."""

from __future__ import annotations

import logging
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from columnar.errors import HostError
from columnar.wire.certificate_dates import validity_of
from columnar.wire.tls_context import ServerTls, TlsFiles
from tests.support.certificates import Authority


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"), "ours")


def test_the_dates_are_those_that_openssl_tells(ours: Authority) -> None:
    pair = ours.sign("store", days=30)
    der = ssl.PEM_cert_to_DER_cert(Path(pair.cert).read_text()[Path(pair.cert).read_text().index("-----BEGIN") :])
    found = validity_of(der)
    assert found.ends - found.begins == timedelta(days=30)
    assert abs(datetime.now(UTC) - found.begins) < timedelta(minutes=5)


@pytest.mark.parametrize("cut", [0, 1, 3, 10, 50])
def test_what_is_no_certificate_is_told(ours: Authority, cut: int) -> None:
    with pytest.raises(ValueError, match="certificate"):
        validity_of(ssl.PEM_cert_to_DER_cert(Path(ours.ca).read_text())[:cut])


@pytest.mark.parametrize(
    ("after_days", "level", "words"),
    [(1, None, ""), (20, "WARNING", "expires on"), (40, "ERROR", "EXPIRED"), (-2, "ERROR", "NOT VALID before")],
)
def test_the_log_warns_of_dates(
    ours: Authority, caplog: pytest.LogCaptureFixture, after_days: int, level: str | None, words: str
) -> None:
    pair = ours.sign("store", days=30)
    with caplog.at_level(logging.INFO):
        ServerTls(TlsFiles(pair.cert, pair.key), now=lambda: datetime.now(UTC) + timedelta(days=after_days))
    assert [record.levelname for record in caplog.records] == ([level] if level else [])
    assert words in caplog.text


def test_files_that_cannot_be_used(ours: Authority, tmp_path: Path) -> None:
    one, two = ours.sign("one"), ours.sign("two")
    text = tmp_path / "text"
    text.write_text("no PEM\n")
    for files, said in {
        TlsFiles("/none", one.key): "--tls-cert must name",
        TlsFiles(one.cert, "/none"): "--tls-key must name",
        TlsFiles(str(text), one.key): "are no certificate and its key",
        TlsFiles(one.cert, two.key): "is not that of the certificate",
        TlsFiles(one.cert, one.key, str(text)): "--tls-client-ca",
    }.items():
        with pytest.raises(HostError) as caught:
            ServerTls(files)
        assert said in caught.value.text
        assert "\n" not in caught.value.text
