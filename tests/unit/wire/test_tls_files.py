"""What the server says of its certificate's files and dates."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from columnar.errors import HostError
from columnar.wire.tls_context import ServerTls, TlsFiles
from tests.support.certificates import Authority


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"), "ours")


@pytest.mark.parametrize(
    ("after_days", "level", "words"),
    [(1, None, ""), (20, "WARNING", "expires on"), (40, "ERROR", "EXPIRED"), (-2, "ERROR", "NOT VALID before")],
)
def test_the_log_warns_of_dates(
    ours: Authority, caplog: pytest.LogCaptureFixture, after_days: int, level: str | None, words: str
) -> None:
    pair = ours.sign("store", days=30)
    with caplog.at_level(logging.INFO):
        ServerTls.read(TlsFiles(pair.cert, pair.key), now=lambda: datetime.now(UTC) + timedelta(days=after_days))
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
            ServerTls.read(files)
        assert said in caught.value.text
        assert "\n" not in caught.value.text
