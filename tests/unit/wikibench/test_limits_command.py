"""``wikibench limits`` goes on until a rate is missed twice, and really measures."""

from __future__ import annotations

import json
from urllib.request import Request, urlopen

from click.testing import CliRunner

from wikibench.cli import main
from wikibench.commands.limits import FIRST_RATE, STEP, OwnTry, own_tries
from wikibench.null_server import null_server


def kept_up_to(most: float, stalls: int = 0) -> list[float]:
    """The rates that are tried where those over ``most`` are missed, and the first ``stalls`` tries by chance."""
    tried: list[float] = []

    def measure(rate: float) -> OwnTry:
        tried.append(rate)
        missed = rate > most or len(tried) <= stalls
        return OwnTry(rate, rate, 0.1, 30.0, 0.1, "sent late" if missed else "")

    own_tries(measure)
    return [round(rate / FIRST_RATE, 2) for rate in tried]


def test_a_rate_is_missed_when_it_is_missed_twice() -> None:
    assert kept_up_to(FIRST_RATE * STEP * 1.1) == [1.0, 1.41, 2.0, 2.0]
    assert kept_up_to(FIRST_RATE * STEP * 1.1, stalls=1) == [1.0, 1.0, 1.41, 2.0, 2.0]
    assert kept_up_to(0.0) == [1.0, 1.0]
    assert len(kept_up_to(1e9)) == 14, "and it ends"


def test_the_null_server_gives_a_head_no_body() -> None:
    with null_server(100) as url, urlopen(Request(url, method="HEAD"), timeout=10) as answer:
        assert (answer.status, answer.headers["Content-Length"], answer.read()) == (200, "100", b"")


def test_it_measures_a_null_server() -> None:
    words = ["limits", "--seconds", "50ms", "--bytes", "10", "--lateness", "0.001ms"]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 1, result.output
    assert "sent late" in result.output
    assert "no rate was kept" in result.output
    assert json.dumps(result.output).count("1,000") >= 2
