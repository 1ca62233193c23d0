"""The whole wiki as its users have it: store, triggers and ``wikka serve`` in processes of their own."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
import requests
from prometheus_client.parser import text_string_to_metric_families

from tests.support.ports import free_port
from tests.support.readme_blocks import await_that

FIELD = re.compile(r'<input type="hidden" name="(csrf|base)" value="([^"]*)"')


def start(*command: str) -> tuple[subprocess.Popen[str], str]:
    """The process and the line with which it said that it is ready."""
    process = subprocess.Popen(
        [sys.executable, "-m", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    ready = process.stdout.readline()
    assert "ready" in ready, process.communicate(timeout=10)[1]
    return process, ready


def stop(process: subprocess.Popen[str]) -> int:
    if process.poll() is None:
        process.terminate()
    process.communicate(timeout=30)
    return process.returncode


class Whole:
    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self._data = str(folder / "data")
        self.store = self.start_store()
        address = f"127.0.0.1:{self.port}"
        subprocess.run([sys.executable, "-m", "wikka_port", "prepare", "--store", address], check=True, timeout=30)
        self.metrics_port = free_port()
        options = ["--port", "0", "--workers", "2", "--edits-per-minute", "0", "--log-level", "error"]
        options += ["--metrics-port", str(self.metrics_port)]
        self.web, ready = start("wikka_port", "serve", "--store", address, *options)
        self.url = ready.split()[2].rstrip("/")

    def start_store(self) -> subprocess.Popen[str]:
        options = ["--data", self._data, "--port", str(self.port), "--web-port", "-1"]
        return start("columnar", "standalone", *options, "--trigger-modules", "wikka_port.triggers")[0]

    def metrics(self) -> dict[tuple[str, ...], float]:
        """Return the samples of ``/metrics``, by name and values of labels."""
        text = requests.get(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=30).text
        samples = (one for family in text_string_to_metric_families(text) for one in family.samples)
        return {(one.name, *one.labels.values()): one.value for one in samples}

    def workers(self) -> list[int]:
        return [int(pid) for pid in Path(f"/proc/{self.web.pid}/task/{self.web.pid}/children").read_text().split()]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    running = Whole(tmp_path_factory.mktemp("whole"))
    yield running
    stop(running.web)
    stop(running.store)


class Editor:
    def __init__(self, url: str) -> None:
        self.url = url
        self.session = requests.Session()

    def get(self, path: str) -> requests.Response:
        return self.session.get(self.url + path, timeout=30)

    def form(self, path: str) -> dict[str, str]:
        return {key: unescape(value) for key, value in FIELD.findall(self.get(path + "/edit").text)}

    def post(self, path: str, fields: dict[str, str]) -> requests.Response:
        return self.session.post(f"{self.url}{path}/edit", data=fields, timeout=60, allow_redirects=False)

    def save(self, path: str, body: str) -> int:
        return self.post(path, {**self.form(path), "body": body}).status_code


def test_an_editor_sees_his_change_in_every_list_at_once(whole: Whole) -> None:
    editor = Editor(whole.url)
    assert "HomePage" in editor.get("/api/titles").text.split("\n"), "the first pages are there"
    assert editor.get("/").status_code == 200
    for n in range(5):
        assert editor.save(f"/Source_{n}", f"[[Target {n}]] [[Missing {n}]]") == 303
        assert f"/Source_{n}" in editor.get(f"/Target_{n}/backlinks").text
        assert f"/Source_{n}" in editor.get("/-/recentchanges").text
        assert f"/Source_{n}" in editor.get("/-/orphanedpages").text
        assert f"/Missing_{n}/edit" in editor.get("/-/wantedpages").text
        assert f"Source {n}" in editor.get("/api/titles").text.split("\n")
        assert editor.save(f"/Source_{n}", "no links any more") == 303
        assert f"/Source_{n}" not in editor.get(f"/Target_{n}/backlinks").text.partition("<main")[2]
    assert f"/Source_{n}" in editor.get(f"/-/search?q=source+{n}").text


def test_every_handler_answers(whole: Whole) -> None:
    editor = Editor(whole.url)
    for body in ("one\ntwo", "one\nthree"):
        assert editor.save("/A~2FB", body) == 303
    for handler in ("", "/edit", "/revisions", "/history", "/diff", "/raw", "/backlinks", "/revert", "?revision=1"):
        assert editor.get("/A~2FB" + handler).status_code == 200, handler
    assert "<ins>three</ins>" in editor.get("/A~2FB/diff").text
    for page in ("HomePage", "FormattingRules", "RecentChanges", "PageIndex", "WantedPages", "OrphanedPages"):
        answer = editor.get("/" + page)
        assert answer.status_code == 200, page
        assert "could not be shown" not in answer.text


def test_two_editors_at_once_conflict(whole: Whole) -> None:
    one, two = Editor(whole.url), Editor(whole.url)
    forms = [editor.form("/Both") for editor in (one, two)]
    assert one.post("/Both", {**forms[0], "body": "of one"}).status_code == 303
    answer = two.post("/Both", {**forms[1], "body": "of two"})
    assert answer.status_code == 409
    assert "of one" in answer.text
    assert "of two" in answer.text


@pytest.mark.skipif(sys.platform != "linux", reason="finds the workers through /proc")
def test_a_worker_that_falls_is_replaced(whole: Whole) -> None:
    import os

    before, counted = whole.workers(), whole.metrics()
    assert len(before) == 2
    os.kill(before[0], signal.SIGKILL)
    cut_off = 0
    for _ in range(40):  # connections go to both; those that the fallen one had not accepted wait for its successor
        try:
            assert requests.get(whole.url + "/HomePage", timeout=30).status_code == 200
        except requests.ConnectionError:
            cut_off += 1
    assert cut_off <= 1
    after = whole.workers()
    assert len(after) == 2
    assert before[0] not in after
    shown = whole.metrics()
    assert shown["wikka_worker_restarts_total",] == counted["wikka_worker_restarts_total",] + 1
    assert shown["wikka_workers",] == 2
    assert all(shown[one] >= counted[one] for one in counted if one[0].endswith(("_total", "_count"))), "none is lost"
    answered = "wikka_requests_total", "show", "2xx"
    assert shown[answered] >= counted[answered] + 40 - cut_off, "of both workers, whichever is asked"


def test_while_the_store_is_away_the_text_is_kept(whole: Whole) -> None:
    editor = Editor(whole.url)
    fields = {**editor.form("/Patient"), "body": "typed while it was away"}
    assert stop(whole.store) == 0
    answer = editor.post("/Patient", fields)
    assert answer.status_code == 503
    assert "typed while it was away" in answer.text
    assert editor.get("/health").status_code == 503
    whole.store = whole.start_store()
    assert editor.post("/Patient", fields).status_code == 303
    assert "typed while it was away" in editor.get("/Patient").text


def test_the_end_loses_no_answer(whole: Whole) -> None:
    """Last: it stops the wiki while many ask."""
    answers: list[int] = []
    enough = threading.Event()

    def ask() -> None:
        while True:
            try:
                answer = requests.get(whole.url + "/FormattingRules", timeout=30)
            except requests.ConnectionError:
                return
            assert answer.text.rstrip().endswith("</html>")
            answers.append(answer.status_code)
            if len(answers) > 40:
                enough.set()

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert enough.wait(30)
    assert stop(whole.web) == 0
    for thread in threads:
        thread.join(30)
    assert set(answers) == {200}


def test_a_changed_file_is_taken_by_new_workers_and_a_broken_one_by_none(whole: Whole, tmp_path: Path) -> None:
    file, log, port = tmp_path / "wikka.toml", tmp_path / "log", free_port()
    settings = f'[client]\nstore = "127.0.0.1:{whole.port}"\n[wiki]\nport = {port}\nworkers = 2\n'
    file.write_text(f'{settings}site-name = "First"\n')
    command = [sys.executable, "-m", "wikka_port", "serve", "--config", str(file), "--threads", "2"]
    with log.open("w") as said, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, text=True) as web:
        assert web.stdout is not None
        assert web.stdout.readline().startswith(f"wikka ready http://127.0.0.1:{port}/ ")
        url = f"http://127.0.0.1:{port}/"

        def lines_of_settings() -> list[str]:
            return [line for line in log.read_text().splitlines() if " wikka_port.settings: " in line]

        def lines_after(text: str, count: int) -> list[str]:
            """Write the file, send SIGHUP, and return the lines that it brings about."""
            before = len(lines_of_settings())
            file.write_text(text)
            web.send_signal(signal.SIGHUP)
            await_that(lambda: len(lines_of_settings()) >= before + count, 30, log.read_text)
            return lines_of_settings()[before:]

        assert "First" in requests.get(url, timeout=30).text
        (line,) = lines_after("[wiki]\nsite_name = 'x'\n", 1)
        assert "ERROR" in line
        assert f"{file}:2: [wiki] site_name: there is no such setting; write site-name" in line
        taken, waiting = lines_after(f'{settings}site-name = "Second"\nthreads = 7\nhost = "::1"\n', 2)
        assert taken.endswith('and are in force: site-name "Second" (before: "First")'), "threads is a flag"
        assert waiting.endswith("needs a restart: host")
        for _ in range(20):  # each worker has its share of the connections
            await_that(lambda: "Second" in requests.get(url, timeout=30).text, 30, log.read_text)
        workers = Path(f"/proc/{web.pid}/task/{web.pid}/children")
        await_that(lambda: len(workers.read_text().split()) == 2, 30, workers.read_text)
        assert "ended with status" not in log.read_text()
        web.terminate()
        assert web.wait(30) == 0
