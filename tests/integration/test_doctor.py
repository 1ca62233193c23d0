"""``columnar doctor`` finds why a store does not start, and how one is that serves."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from columnar.cli import main
from columnar.diagnosis import folder_facts
from columnar.storage.cluster_file import ClusterFile, to_bytes
from columnar.storage.data_folder import DataFolder
from tests.support.certificates import Authority
from tests.support.failing_disk import FULL, FailingDisk, library
from tests.support.ports import free_port
from tests.support.standalone_store import ENVIRONMENT, StoreProcess
from tests.support.stopped_process import stop_process

NOBODY = 65_534
NEEDS_PROC = pytest.mark.skipif(not Path("/proc/locks").exists(), reason="not Linux")


@pytest.fixture(autouse=True)
def few_fsyncs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_facts, "SYNCS", 3)  # the disk of the tests is busy


def doctor(*words: str) -> tuple[int, list[dict[str, Any]]]:
    """The exit status and the findings."""
    done = CliRunner().invoke(main, ["doctor", *words, "--json"], env={"COLUMNAR_STORE": None})
    assert done.stdout.startswith("{"), done.output
    return done.exit_code, json.loads(done.stdout)["findings"]


def problem(*words: str) -> dict[str, Any]:
    """The one problem that is found for a start."""
    status, found = doctor("--before-start", "--port", str(free_port()), "--web-port", "-1", *words)
    problems = [finding for finding in found if finding["level"] == "problem"]
    assert (status, len(problems)) == (1, 1), problems
    return problems[0]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    DataFolder.locked(str(folder)).close()
    return folder


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[StoreProcess, Path]]:
    folder = tmp_path_factory.mktemp("served") / "data"
    with StoreProcess(folder, is_forked=False) as store:  # a command line of its own
        yield store, folder


def test_a_folder_that_waits_for_a_start_has_no_problem(data: Path) -> None:
    status, found = doctor("--before-start", "--data", str(data), "--port", str(free_port()), "--web-port", "-1")
    assert (status, {one["level"] for one in found} & {"problem"}) == (0, set())


@NEEDS_PROC
def test_a_store_that_serves_is_recognised(served: tuple[StoreProcess, Path]) -> None:
    store, folder = served
    status, found = doctor("--data", str(folder), "--store", f"127.0.0.1:{store.port}")
    assert status == 0
    texts = {finding["text"] for finding in found if finding["level"] == "ok"}
    assert f"the store listens on 127.0.0.1:{store.port}" in texts, "the port is that of its settings"
    assert any(text.startswith(f"the folder is served by process {store.pid} (columnar, folder ") for text in texts)
    assert any(text.startswith(f"127.0.0.1:{store.port} answered in ") for text in texts)
    status, found = doctor("--data", str(folder))
    assert status == 0
    asked = [finding["text"] for finding in found if finding["name"] == "store"]
    assert asked[0].startswith(f"127.0.0.1:{store.port} answered in "), "its address comes from its settings"


@NEEDS_PROC
def test_a_folder_in_use_and_a_port_in_use(served: tuple[StoreProcess, Path], data: Path) -> None:
    store, folder = served
    found = problem("--data", str(folder))
    assert found["name"] == "lock"
    assert f"in use by process {store.pid} " in found["text"]
    found = problem("--data", str(data), "--port", str(store.port))
    assert found["name"] == "port"
    assert f"127.0.0.1:{store.port} is in use by process {store.pid} (columnar, folder {folder})" in found["text"]


@NEEDS_PROC
def test_a_store_that_hangs(served: tuple[StoreProcess, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("columnar.diagnosis.store_facts.ANSWER_S", 0.3)
    store, folder = served
    stop_process(store.pid)
    try:
        status, found = doctor("--data", str(folder), "--store", f"127.0.0.1:{store.port}")
    finally:
        os.kill(store.pid, signal.SIGCONT)
    assert (status, found[0]["name"]) == (1, "store")
    assert "did not answer in 0.3 s" in found[0]["text"]


def test_a_killed_predecessor(data: Path) -> None:
    (data / "LOCK").write_text("process 4194399\n")
    (data / "server-log").mkdir()
    (data / "server-log" / "00000001.segment").write_bytes(b"left")
    status, found = doctor("--data", str(data))
    assert status == 0
    (left,) = [finding for finding in found if finding["name"] == "lock"]
    assert left["level"] == "note"
    assert "(process 4194399) did not stop in order: server-log" in left["text"]


def test_a_newer_format(data: Path) -> None:
    (data / "FORMAT").write_text("columnar-data 99\n")
    found = problem("--data", str(data))
    assert found["name"] == "content"
    assert "has format 99; this version knows up to" in found["text"]


def test_a_strange_folder_and_a_lost_catalogue(tmp_path: Path, data: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "one.jpg").write_bytes(b"")
    assert "is no data folder of ours, and not empty" in problem("--data", str(tmp_path / "photos"))["text"]
    (data / "regions").rmdir()
    assert "regions is missing" in problem("--data", str(data))["text"]


def test_a_folder_of_another_role(data: Path) -> None:
    (data / "CLUSTER").write_bytes(to_bytes(ClusterFile("id", "etcd://10.0.0.1:2379/columnar")))
    found = problem("--data", str(data), "--role", "standalone")
    assert found["name"] == "role"
    assert "etcd://10.0.0.1:2379/columnar" in found["text"]
    assert "start 'columnar node'" in found["advice"]
    status, findings = doctor("--data", str(data))
    assert status == 0
    assert ("warning", "role") in {(one["level"], one["name"]) for one in findings}, "it was not said who is to serve"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a second user")
def test_a_user_without_rights(request: pytest.FixtureRequest) -> None:
    place = Path(tempfile.mkdtemp(prefix="columnar-doctor-"))  # the user may not enter pytest's own folders
    request.addfinalizer(lambda: shutil.rmtree(place))
    place.chmod(0o755)
    data = place / "data"
    DataFolder.locked(str(data)).close()
    program = f"""
import os
from click.testing import CliRunner
from columnar.cli import main
words = ["doctor", "--before-start", "--data", {str(data)!r}, "--port", "{free_port()}", "--web-port", "-1", "--json"]
CliRunner().invoke(main, words)  # everything is imported before the user changes
os.setgid({NOBODY}); os.setuid({NOBODY})
print(CliRunner().invoke(main, words).stdout)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=ENVIRONMENT, check=True)
    (found,) = [one for one in json.loads(done.stdout)["findings"] if one["level"] == "problem"]
    assert found["name"] == "permissions"
    assert f"user {NOBODY} may not read and write {data} (owner 0, mode 0700)" in found["text"]


@pytest.mark.skipif(library() is None, reason="no compiler, or nothing can be preloaded")
def test_a_full_disk(data: Path, tmp_path: Path) -> None:
    disk = FailingDisk(data, tmp_path / "control")
    disk.fail(FULL)
    command = [sys.executable, "-m", "columnar", "doctor", "--before-start", "--data", str(data), "--web-port", "-1"]
    command += ["--port", str(free_port())]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT | disk.environment, check=False)
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith(
        f"problem\tfsync\ta file in {data} cannot be written and synced: No space left on device\t"
    )


def test_too_little_memory(data: Path) -> None:
    assert problem("--data", str(data), "--memory", "8MiB")["name"] == "memory"


def test_certificates_that_do_not_fit(data: Path, tmp_path: Path) -> None:
    authority = Authority(tmp_path, "authority")
    one, other, old = authority.sign("one"), authority.sign("other"), authority.sign("old", days=-1)
    found = problem("--data", str(data), "--tls-cert", one.cert, "--tls-key", other.key)
    assert found["name"] == "certificate"
    assert "is not that of the certificate" in found["text"]
    missing = problem("--data", str(data), "--tls-cert", str(tmp_path / "none.crt"), "--tls-key", one.key)
    assert "cannot read" in missing["text"]
    assert "expired" in problem("--data", str(data), "--tls-cert", old.cert, "--tls-key", old.key)["text"]
    half = authority.sign("half", usage="serverAuth")
    words = ["--data", str(data), "--tls-cert", half.cert, "--tls-key", half.key, "--tls-client-ca", authority.ca]
    assert problem(*words, "--coordination", "etcd://h/c")["name"] == "certificate", "links of nodes use both ends"
    os.chmod(one.key, 0o644)
    status, findings = doctor("--data", str(data), "--tls-cert", one.cert, "--tls-key", one.key)
    assert status == 0
    said = [finding for finding in findings if finding["name"] == "certificate"]
    assert [finding["level"] for finding in said] == ["warning", "ok"], "the key, which others may read"


def before_start(*words: str) -> tuple[int, list[dict[str, Any]]]:
    """The problems that are found for a start."""
    status, found = doctor("--before-start", *words)
    return status, [finding for finding in found if finding["level"] == "problem"]


def test_a_start_is_judged_by_the_settings_that_it_would_have(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "columnar.toml"
    monkeypatch.setenv("COLUMNAR_WEB_PORT", "-1")
    port = free_port()
    file.write_text(f'[standalone]\nmemory = "8MiB"\ndata = "{data}"\nport = {port}\n[node]\nport = 1\n')
    status, problems = before_start("--config", str(file))
    assert (status, [one["name"] for one in problems]) == (1, ["memory"])
    status, found = doctor("--before-start", "--config", str(file), "--memory", "1GiB")
    assert status == 0, "a flag has precedence"
    texts = [one["text"] for one in found]
    assert f"127.0.0.1:{port} is free" in texts
    assert not [text for text in texts if ":9095 " in text], "the variable has precedence over the default"
    assert f"{data} has format 6 and 0 region folders" in texts
    monkeypatch.setenv("COLUMNAR_CONFIG", str(file))
    assert before_start()[0] == 1, "the variable names the file too"
    assert before_start("--config", os.devnull, "--data", str(data), "--port", str(port))[0] == 0


def test_settings_that_a_start_refuses_are_a_problem(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "columnar.toml"
    words = ("--data", str(data), "--port", str(free_port()), "--web-port", "-1", "--config", str(file))
    for role, text, said in (
        ("standalone", 'memmory = "1GiB"', f"{file}:2: [standalone] memmory: there is no such setting; did you mean"),
        ("standalone", 'tls-cert = "a.crt"', "TLS needs --tls-cert and --tls-key, both"),
        ("node", "servers = 0", "Missing option '--coordination'"),
        ("node", 'zone = "?"', "zone"),
    ):
        file.write_text(f"[{role}]\n{text}\n")
        given = ("--coordination", "etcd://h/c") if "zone" in text else ()
        status, (found,) = before_start(*words, "--role", role, *given)
        assert (status, found["name"]) == (1, "settings")
        assert said in found["text"]
    file.write_text('[node]\nmemory = "300MiB"\n')
    few, many = (before_start(*words, "--coordination", "etcd://h/c", "--servers", count) for count in ("1", "32"))
    assert few == (0, []), "the URL says that this is a node"
    assert [one["name"] for one in many[1]] == ["memory"]


def test_a_port_that_is_no_store(tmp_path: Path, data: Path) -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        status, found = doctor("--data", str(data), "--store", f"127.0.0.1:{deaf.getsockname()[1]}")
    assert (status, found[0]["name"]) == (1, "store")
    done = CliRunner().invoke(main, ["doctor", "--data", str(data), "--tls-cert", "x"])
    assert (done.exit_code, "belong together" in done.stderr) == (2, True)
