"""The benchmark against real stores that speak TLS, for parts of a second; and what it says where it cannot."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.__main__ import benchmarks
from benchmarks.own_stores import wait_for_answer
from columnar.bench import measuring
from columnar.bench.address import Misaddressed, parse_endpoint
from columnar.bench.commands import bench
from tests.support.certificates import Authority, Pair
from tests.support.forked_program import FORKS
from tests.support.standalone_store import ENVIRONMENT, StoreProcess

SHORT = ("--rows", "200", "--rounds", "1", "--seconds", "0.1")


@pytest.fixture(autouse=True)
def _forked_generators(monkeypatch: pytest.MonkeyPatch) -> None:
    """Generators within this process's commands are forks: a new interpreter for each costs more than the load."""
    monkeypatch.setattr(measuring, "get_context", lambda _method: FORKS)


@dataclass(frozen=True, slots=True)
class Ports:
    """Of a store that asks for client certificates, and of a plain one."""

    secured: str
    plain: str
    ours: Authority
    client: Pair

    @property
    def trust(self) -> tuple[str, ...]:
        return "--tls-ca", self.ours.ca

    @property
    def identity(self) -> tuple[str, ...]:
        return "--tls-client-cert", self.client.cert, "--tls-client-key", self.client.key


@pytest.fixture(scope="module")
def ports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ports]:
    folder = tmp_path_factory.mktemp("bench-tls")
    ours = Authority(folder, "ours")
    server, client = ours.sign("store"), ours.sign("client")
    flags = ("--tls-cert", server.cert, "--tls-key", server.key, "--tls-client-ca", ours.ca)
    with StoreProcess(folder / "secured", *flags) as secured, StoreProcess(folder / "plain") as plain:
        yield Ports(f"127.0.0.1:{secured.port}", f"127.0.0.1:{plain.port}", ours, client)


def measured(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", *arguments]
    ran = subprocess.run(command, env={**ENVIRONMENT, **environment}, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    return ran


def refused(*arguments: str, **environment: str) -> str:
    """What it says, in one line."""
    program = bench if arguments[0] == "run" else benchmarks
    ran = CliRunner(env=environment).invoke(program, list(arguments))
    assert ran.exit_code == 1, ran.output
    (line,) = ran.stderr.strip().splitlines()
    assert line.startswith("columnar bench: ")
    return line


def test_closed_and_open_loop_with_a_client_certificate(ports: Ports, tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    load = ("-w", "get-cell,scan-rows,load", "-c", "4", "--open", "0.3", "--json", str(figures), *SHORT)
    measured("compare", ports.secured, *load, *ports.identity, COLUMNAR_TLS_CA=ports.ours.ca)
    found, name = json.loads(figures.read_text()), f"tls://{ports.secured}"
    assert [line["workload"] for line in found["lines"]] == ["get-cell", "scan-rows", "load"]
    assert all(line["endpoints"][name]["rate"] > 0 for line in found["lines"])
    (opened,) = found["opened"]
    assert opened["endpoints"][name]["calls"] > 0


def test_tls_beside_plain(ports: Ports, tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    load = ("-w", "put", "-c", "2", "--generators", "2", "--protocol", "compact", "--json", str(figures), *SHORT)
    measured("compare", f"tls://{ports.secured}", ports.plain, *load, *ports.trust, *ports.identity)
    found = json.loads(figures.read_text())
    assert found["names"] == [f"tls://{ports.secured}", ports.plain]
    (line,) = found["lines"]
    assert [side["rate"] > 0 for side in line["endpoints"].values()] == [True, True]
    assert line["ratio"] > 0


def test_growth_over_tls(ports: Ports) -> None:
    small = ("--only", "puts", "--only", "rows", "--rows", "1000", "--regions", "1", "--seconds", "0.05")
    ran = measured("growth", f"tls://{ports.secured}", *small, "--calls", "4", *ports.trust, *ports.identity)
    assert "Durable puts" in ran.stdout
    assert "1,000 rows" in ran.stdout


# Who meets it first: a client, a generator, a client again.
WAYS = [("run",), ("run", "--reuse"), ("growth", "--only", "puts")]


@pytest.mark.parametrize("way", WAYS, ids=" ".join)
def test_mistakes_are_one_line_that_says_what_to_do(ports: Ports, tmp_path: Path, way: tuple[str, ...]) -> None:
    strangers = Authority(tmp_path, "strangers")
    alien = strangers.sign("alien")
    as_alien = ("--tls-client-cert", alien.cert, "--tls-client-key", alien.key)
    load = () if way[0] == "growth" else ("-w", "get-cell", "-c", "1", *SHORT)
    no_tls = f"speaks no TLS: write it as {ports.plain}, and leave out the --tls options"
    cases = {
        (ports.secured,): f"{ports.secured} speaks TLS: write it as tls://{ports.secured}, with --tls-ca FILE",
        (f"tls://{ports.plain}",): no_tls,
        (ports.plain, *ports.trust): no_tls,
        (ports.secured, "--tls-ca", strangers.ca): "its certificate is not accepted: self-signed certificate",
        (ports.secured, "--tls"): "name the authority that signed it with --tls-ca FILE",
        (ports.secured, *ports.trust): "does not let us in: TLSV13 ALERT CERTIFICATE REQUIRED; show a certificate",
        (ports.secured, *ports.trust, *as_alien): "does not let us in: TLSV1 ALERT UNKNOWN CA; show a certificate",
        (ports.secured, "--tls-ca", "/no/such/file"): "--tls-ca must name a PEM file",
        (ports.secured, *ports.identity[:2]): "go together: give both files, or none",
    }
    for arguments, said in cases.items():
        assert said in refused(way[0], *arguments, *way[1:], *load)


def test_who_waits_for_a_start_is_told_a_mistake_at_once(ports: Ports) -> None:
    for endpoint in (parse_endpoint(ports.secured), parse_endpoint(f"tls://{ports.plain}")):
        with pytest.raises(Misaddressed):
            wait_for_answer(endpoint, 60, lambda: None)
