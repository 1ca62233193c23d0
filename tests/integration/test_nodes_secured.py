"""A node over an etcd and a ZooKeeper that want TLS, a certificate and a user: its options, and what they give away."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from columnar.coordination.service_access import PASSWORD as VARIABLE
from tests.support.many_nodes import ROOT, WAIT_S, NodeProcess, in_new_interpreters
from tests.support.secured_services import PASSWORD, Secured, secured


def command(service: Secured, data: Path, *flags: str, password: str | None = None) -> subprocess.CompletedProcess[str]:
    """Try to start a node; it ends soon, because it is refused."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **({VARIABLE: password} if password is not None else {})}
    words = [sys.executable, "-m", "columnar", "node", "--data", str(data), "--coordination", service.url]
    words += ["--name", "n1", "--port", "0", "--web-port", "-1", "--peer-port", "0", "--folder-unprobed", *flags]
    until_s = time.monotonic() + WAIT_S
    while True:
        ended = subprocess.run(words, capture_output=True, text=True, timeout=WAIT_S, env=environment)
        # A service on a busy machine may check a password longer than a start waits for.
        if "operation timed out" not in ended.stderr or time.monotonic() > until_s:
            return ended


@pytest.mark.parametrize("kind", ["etcd", "zookeeper"])
def test_a_node_serves_over_a_secured_service(kind: str, tmp_path: Path, subtests: pytest.Subtests) -> None:
    with secured(kind, tmp_path) as service:
        flags = ("--servers", "1", "--folder-unprobed")
        by_file = NodeProcess("n1", tmp_path / "data", service.url, tmp_path, *flags, *service.flags())
        no_password = [word for word in service.flags() if word not in ("--coordination-password-file", "--")]
        no_password.remove(service.access.password_file)
        by_variable = NodeProcess("n2", tmp_path / "data", service.url, tmp_path, *flags, *no_password)
        for node in (by_file, by_variable):
            in_new_interpreters(node)  # which /proc shows with the command and the environment of each process
        try:
            by_file.begin()
            by_file.await_ready()
            by_variable.environment[VARIABLE] = PASSWORD
            by_variable.begin()
            by_variable.await_ready()
            connection = by_file.connection()
            connection.create_table("t", {"f": {}})
            connection.table("t").put(b"a", {b"f:q": b"1"})
            connection.close()
            connection = by_variable.connection()
            assert connection.table("t").row(b"a") == {b"f:q": b"1"}
            connection.close()
            for node in (by_file, by_variable):
                for pid in node.family():
                    assert PASSWORD.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"), (
                        "in a command"
                    )
                for pid in node.family()[1:]:
                    assert VARIABLE.encode() not in Path(f"/proc/{pid}/environ").read_bytes(), "for triggers to read"
            assert PASSWORD not in (tmp_path / "data" / "CLUSTER").read_text()
            with subtests.test("a wrong password"):
                refused = command(service, tmp_path / "data", *no_password, password="wrong")
                assert refused.returncode == 2
                assert f"{service.url}: the coordination service refuses the call" in refused.stderr
            with subtests.test("no certificate"):
                bare = [*service.flags()[:4], "--coordination-ca", service.access.ca_file]
                refused = command(service, tmp_path / "data", *bare)
                assert refused.returncode == 2
                assert "the coordination service" in refused.stderr
        finally:
            by_file.kill()
            by_variable.kill()


@pytest.mark.parametrize(
    ("url", "flags", "words"),
    [
        ("etcd://me:secret@a/c", (), "an address has no user and no password: give --coordination-user"),
        ("etcd://a/c", ("--coordination-user", "me"), "--coordination-user and a password go together"),
        ("etcd://a/c", ("--coordination-password-file", "f"), "--coordination-user and a password go together"),
        ("etcds://a/c", ("--coordination-cert", "f"), "--coordination-cert and --coordination-key go together"),
        ("etcd://a/c", ("--coordination-ca", "f"), "certificates are of an etcds:// or zookeepers:// address"),
    ],
)
def test_options_that_lack_others_are_refused(url: str, flags: tuple[str, ...], words: str) -> None:
    from click.testing import CliRunner

    from columnar.cli import main

    said = CliRunner().invoke(main, ["node", "--data", "d", "--coordination", url, *flags])
    assert said.exit_code == 2
    assert words in " ".join(said.output.split())
    assert "secret" not in said.output
