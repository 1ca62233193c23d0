"""An experiment with tiny systems: one page, and whenever its runner is killed, the same command goes on."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.support.cluster_process import until
from wikibench.experiments import server_loads
from wikibench.experiments.guard import why_no_quota

SYSTEM = """
title = "A server that answers at once"
url = "http://127.0.0.1:{port.web}"
fill = [["{python}", "{steps}", "fill", "{folder}/titles.txt"]]
[words]
steps = "STEPS"
[[roles]]
name = "web"
start = ["{python}", "-m", "wikibench.null_server", "100", "{port.web}"]
ready = { address = "127.0.0.1:{port.web}" }
"""
EXPERIMENT = """
title = "Tiny"
[sizes.quick]
rate = 7
[[loads]]
name = "A"
seconds = { quick = 1 }
result = "{cell}/a.json"
steps = [["{python}", "{steps}", "a", "{cell}/a.json", "{rate}"]]
[[loads]]
name = "B"
seconds = { quick = 1 }
result = "{cell}/b.json"
steps = [["{python}", "{steps}", "b", "{cell}/b.json", "{A:rate*0.5}"]]
[[tables]]
title = "Rates"
columns = [{ head = "a", value = "A.figures.rate" }, { head = "b", value = "B.figures.rate" }]
reference = [["thesis", "75"]]
"""
# Each step waits to be killed if a file with its name plus ".hang" stands beside this one, and says so in another one.
STEPS = """
import json, os, pathlib, signal, sys
name, out = sys.argv[1:3]
here = pathlib.Path(__file__).parent
if (here / f"{name}.fail").exists():
    sys.exit("no luck")
if (here / f"{name}.hang").exists():
    (here / f"{name}.hangs").write_text(str(os.getpid()))
    signal.pause()
text = "Page_1\\nPage_2\\n" if name == "fill" else json.dumps({"rate": float(sys.argv[3])})
pathlib.Path(out).write_text(text)
(here / f"{name}.done").open("a").write("x")
"""


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    (tmp_path / "steps.py").write_text(STEPS)
    (tmp_path / "system.toml").write_text(SYSTEM.replace("STEPS", str(tmp_path / "steps.py")))
    (tmp_path / "tiny.toml").write_text(EXPERIMENT)
    return tmp_path


def start(tiny: Path, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "wikibench.cli", "experiment", str(tiny / "tiny.toml")]
    given = ["--systems", str(tiny / "system.toml"), "--out", str(tiny / "out"), *words]
    return subprocess.Popen([*command, *given], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(tiny: Path, *words: str) -> tuple[int, str, str]:
    process = start(tiny, *words)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def test_killed_at_each_cell_it_goes_on(tiny: Path) -> None:
    for name in ("fill", "a", "b"):
        (tiny / f"{name}.hang").touch()
        process = start(tiny)
        until(lambda name=name: (tiny / f"{name}.hangs").exists() and (tiny / f"{name}.hangs").read_text() != "")
        if name == "a":
            status, _, err = run(tiny)
            assert (status, "another run uses this folder" in err) == (2, True)
        process.kill()
        process.communicate()
        step = int((tiny / f"{name}.hangs").read_text())
        (port,) = json.loads((tiny / "out/systems/system-quick/ports.json").read_text()).values()
        until(lambda step=step: not is_running(step))
        until(lambda port=port: is_free(port))
        (tiny / f"{name}.hang").unlink()
    status, out, err = run(tiny)
    assert status == 0, err
    assert "| A server that answers at once | 7 | 3.5 |" in out
    assert "| *thesis* | 75 |  |" in out
    assert [(tiny / f"{name}.done").read_text() for name in ("fill", "a", "b")] == ["x", "x", "x"], "each once"
    page = (tiny / "out/index.html").read_text()
    assert "<td>3.5</td>" in page
    found = json.loads((tiny / "out/results.json").read_text())
    assert found["cells"]["B.system"]["roles"]["web"]["cpu_s"] >= 0
    assert found["cells"]["B.system"]["commands"][0][-1] == "3.5"
    assert run(tiny)[0] == 0
    assert (tiny / "a.done").read_text() == "x", "nothing is measured twice"


def test_what_failed_is_said_and_tried_again(tiny: Path) -> None:
    (tiny / "a.fail").touch()
    status, out, err = run(tiny)
    assert status == 1
    assert "no luck" in err
    assert "B system failed: it needs rate of A, which has none" in out
    (tiny / "a.fail").unlink()
    status, out, _ = run(tiny)
    assert status == 0
    assert (tiny / "fill.done").read_text() == "x", "what succeeded stays"
    status, _, err = run(tiny, "--set", "steps=/elsewhere")
    assert (status, "results of system from another file, or with other values" in err) == (2, True), err
    text = (tiny / "tiny.toml").read_text()
    (tiny / "tiny.toml").write_text(text.replace("rate = 7", "rate = 8"))
    status, _, err = run(tiny)
    assert status == 2
    assert "results of another experiment" in err


def test_a_plan_runs_nothing_and_a_budget_leaves_the_rest(tiny: Path) -> None:
    status, out, _ = run(tiny, "--plan")
    assert (status, "3 cells, about 1 minutes" in out) == (0, True)
    assert not (tiny / "out").exists()
    status, _, err = run(tiny, "--budget", "10s")
    assert status == 3
    assert "3 cells are left over" in err
    assert not (tiny / "fill.done").exists()


@pytest.mark.skipif(why_no_quota() != "", reason=why_no_quota())
def test_a_role_has_its_share_of_a_core_alone(tmp_path: Path) -> None:
    spin = "import os,time\nt=time.monotonic()\nwhile time.monotonic()-t<1.0: pass\nprint(sum(os.times()[:2]))"
    given = {"start": [sys.executable, "-c", spin], "quota": 0.1, "group": f"wikibench-test-{os.getpid()}"}
    words = json.dumps({**given, "log": str(tmp_path / "log"), "grace_s": 5})
    guard = subprocess.Popen([sys.executable, "-m", "wikibench.experiments.guard", words], stdin=subprocess.PIPE)
    assert guard.wait(60) == 0
    assert guard.stdin is not None
    guard.stdin.close()
    assert float((tmp_path / "log").read_text()) < 0.3, "a tenth of a core, start of Python included"


def test_a_guard_ends_what_ignores_a_request_to_end(tmp_path: Path) -> None:
    stubborn = "import signal\nsignal.signal(15, signal.SIG_IGN)\nprint('up', flush=True)\nsignal.pause()"
    words = json.dumps({"start": [sys.executable, "-c", stubborn], "log": str(tmp_path / "log"), "grace_s": 0.1})
    guard = subprocess.Popen([sys.executable, "-m", "wikibench.experiments.guard", words], stdin=subprocess.PIPE)
    until(lambda: (tmp_path / "log").exists() and "up" in (tmp_path / "log").read_text())
    assert guard.stdin is not None
    guard.stdin.close()
    assert guard.wait(30) == -signal.SIGKILL & 0xFF


class Metrics(BaseHTTPRequestHandler):
    """Counters of two servers that grow with each reading; the first reading after the start has no moves yet."""

    readings = 0

    def do_GET(self) -> None:
        Metrics.readings += self.path == "/metrics"
        n = Metrics.readings
        text = f'columnar_requests_total{{server="s1"}} {9 * n}\ncolumnar_requests_total{{server="s2"}} {3 * n}\n'
        text += "" if n == 1 else f'columnar_moves_total{{reason="balance"}} {n - 1}\n'
        text = text if self.path == "/metrics" else str(n)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        pass


def test_the_loads_of_servers_are_read_while_a_command_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_loads, "EVERY_S", 0.01)
    with HTTPServer(("127.0.0.1", 0), Metrics) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url, out = f"http://127.0.0.1:{server.server_port}/metrics", tmp_path / "loads.json"
        count = f"http://127.0.0.1:{server.server_port}/count"
        load = f"from urllib.request import urlopen\nwhile int(urlopen('{count}').read()) < 7: pass\nexit(3)"
        words = ["--metrics", url, "--servers", "2", "--out", str(out), "--", sys.executable, "-c", load]
        assert server_loads.main(words) == 3, "the command's status"
        server.shutdown()
    found = json.loads(out.read_text())
    assert found["samples"][0]["calls"] == {"s1": 9.0, "s2": 3.0}
    assert found["before"]["busiest_over_mean"] == found["after"]["busiest_over_mean"] == 1.5
    assert found["before"]["moves"] + found["after"]["moves"] == len(found["samples"])
