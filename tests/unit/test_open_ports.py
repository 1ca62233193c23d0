"""What the log says at the start of a store that other machines can reach."""

from __future__ import annotations

import pytest

from columnar.config import RightsSettings, StandaloneConfig
from columnar.roles.store_process import warn_of_the_open

DROP = "can read, change and drop every table"
ON = RightsSettings(is_on=True)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, ["WITHOUT TLS", DROP]),
        ({"tls_cert": "c", "tls_key": "k"}, ["TO EVERYBODY", DROP]),
        ({"tls_cert": "c", "tls_key": "k", "tls_client_ca": "a"}, []),
        ({"rights": ON}, ["WITHOUT TLS", "users must sign in"]),
        ({"rights": ON, "tls_cert": "c", "tls_key": "k"}, []),
    ],
)
@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1"])
def test_a_store_warns_of_what_others_could_do(
    settings: dict[str, object], said: list[str], host: str, caplog: pytest.LogCaptureFixture
) -> None:
    warn_of_the_open(StandaloneConfig(data="/srv", host=host, **settings))  # type: ignore[arg-type]
    expected = said if host == "0.0.0.0" else []
    assert bool(caplog.text) is bool(expected)
    assert all(words in caplog.text for words in expected)
    assert DROP not in caplog.text or DROP in expected
