"""Requests of the dearest pages that an anonymous visitor can make, eight at a time, beside a reader of a small page.

    python -m tests.overload.dear_pages [--requests 20] [--at-once 8]

Starts a store and a wiki, saves the pages through the editor, asks, prints how long the small page took meanwhile,
runs ``wikka check``.  Exit status 1 where the small page took over 1 s or the check over 60 s.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from html import unescape
from pathlib import Path

import requests

from tests.support.ports import free_port
from wikka_port.limits import ACTIONS_MAX, CELLS_MAX, LINKS_MAX, STEPS_MAX

QUICK_S = 1.0
CHECK_S = 60.0
_FIELD = re.compile(r'<input type="hidden" name="(csrf|base)" value="([^"]*)"')


def dear_texts() -> dict[str, str]:
    """Each just under a bound of a page."""
    repeated = (STEPS_MAX - 10) // 2
    return {
        "Links": " ".join(f"[[page {number}]]" for number in range(LINKS_MAX)),
        "MoreLinks": " ".join(f"[[other {number}]]" for number in range(LINKS_MAX)),
        "SameLink": "[[a]]" * repeated,
        "Cells": "||(c:a)a" * (CELLS_MAX - 1) + "||",
        "Toggles": "**//__##" * (repeated // 4),
        "Headings": "{{toc}}\n" + "==a==\n" * (repeated // 3),
        "Colons": ":" * (2 * repeated),
        "Html": ('""' + "<ul><li>" * 900 + '""\n') * 10,
        "Code": "".join(f"%%(java)\n{'a<b<c ' * 30}\n%%" for _ in range(60)),
        "Actions": "".join(f'{{{{orphanedpages limit="{number}"}}}}' for number in range(100, 100 + ACTIONS_MAX)),
        "Indexes": "".join(f'{{{{pageindex limit="{number}"}}}}' for number in range(400, 400 + ACTIONS_MAX)),
    }


def long_lines(seed: int) -> str:
    words = [f"w{(seed * 7919 + number * 31) % 20_011}" for number in range(6_000)]
    return "\n".join(" ".join(words[line:] + words[:line]) for line in range(0, 5_000, 100))


class Visitor:
    def __init__(self, url: str) -> None:
        self.url = url
        self.session = requests.Session()

    def save(self, name: str, text: str) -> None:
        form = self.session.get(f"{self.url}/{name}/edit", timeout=60).text
        fields = {key: unescape(value) for key, value in _FIELD.findall(form)}
        answer = self.session.post(f"{self.url}/{name}/edit", data={**fields, "body": text}, timeout=60)
        assert answer.status_code == 200, f"{name}: {answer.status_code} {answer.text[:3000]}"


@contextmanager
def running(folder: Path) -> Iterator[tuple[str, str]]:
    """The addresses of the wiki and of its store."""
    port = free_port()
    store = f"127.0.0.1:{port}"
    options = ["--data", str(folder / "data"), "--port", str(port), "--web-port", "-1"]
    children = [_start("columnar", "standalone", *options, "--trigger-modules", "wikka_port.triggers")[0]]
    try:
        subprocess.run([sys.executable, "-m", "wikka_port", "prepare", "--store", store], check=True, timeout=60)
        wiki, ready = _start("wikka_port", "serve", "--store", store, "--port", "0", "--edits-per-minute", "0")
        children.append(wiki)
        yield ready.split()[2].rstrip("/"), store
    finally:
        for child in reversed(children):
            child.terminate()
            child.wait(30)


def _start(*command: str) -> tuple[subprocess.Popen[str], str]:
    process = subprocess.Popen([sys.executable, "-m", *command], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    ready = process.stdout.readline()
    assert "ready" in ready, f"{command[0]} did not start"
    return process, ready


def make_pages(url: str) -> list[str]:
    """The paths of dear requests."""
    visitor = Visitor(url)
    for name, text in dear_texts().items():
        visitor.save(name, text)
    for seed in range(11):
        visitor.save("LongLines", long_lines(seed))
    paths = [f"/{name}" for name in dear_texts()]
    paths += ["/LongLines/history", "/LongLines/diff?a=1&b=9", "/LongLines/revert?revision=2", "/-/orphanedpages"]
    return [*paths, "/LongLines/diff?a=2&b=11", "/Links/history", "/Cells?revision=1", "/LongLines/history?below=9"]


def timed(url: str, path: str) -> tuple[float, int]:
    began = time.monotonic()
    answer = requests.get(url + path, timeout=300)
    return time.monotonic() - began, answer.status_code


def beside(url: str, stop: threading.Event) -> list[float]:
    """How long a small page took, again and again."""
    took = []
    with requests.Session() as session:
        while not stop.is_set():
            began = time.monotonic()
            assert session.get(url + "/HomePage", timeout=120).status_code == 200
            took.append(time.monotonic() - began)
            stop.wait(0.02)
    return took


def alone_for(url: str, seconds: float) -> list[float]:
    """What the machine gives while nothing dear is asked for."""
    stop = threading.Event()
    threading.Timer(seconds, stop.set).start()
    return sorted(beside(url, stop))


def summary(took: list[float]) -> str:
    return f"{len(took)} times, median {took[len(took) // 2]:.3f} s, worst {took[-1]:.3f} s"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=20)
    parser.add_argument("--at-once", type=int, default=8)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as (url, store):
        paths = make_pages(url)
        asked = [paths[number % len(paths)] for number in range(given.requests)]
        alone = alone_for(url, 5.0)
        stop = threading.Event()
        with ThreadPoolExecutor(given.at_once + 1) as pool:
            reader = pool.submit(beside, url, stop)
            began = time.monotonic()
            answers = list(pool.map(lambda path: timed(url, path), asked))
            all_s = time.monotonic() - began
            stop.set()
            took = sorted(reader.result())
        for path, (seconds, status) in zip(asked, answers, strict=True):
            print(f"  {seconds:6.2f} s  {status}  {path}")
        print(f"{len(asked)} dear requests, {given.at_once} at a time: {all_s:.1f} s")
        print(f"the small page alone:     {summary(alone)}")
        print(f"the small page meanwhile: {summary(took)}")
        began = time.monotonic()
        check = subprocess.run([sys.executable, "-m", "wikka_port", "check", "--store", store], check=False)
        check_s = time.monotonic() - began
        print(f"wikka check: status {check.returncode} in {check_s:.1f} s")
    fine = took[-1] <= QUICK_S and check_s <= CHECK_S and check.returncode == 0
    return 0 if fine and all(status == 200 for _, status in answers) else 1


if __name__ == "__main__":
    raise SystemExit(main())
